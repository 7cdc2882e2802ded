// SPDX-License-Identifier: PostgreSQL
//
// The producer as a program: invocations from its input, one a line, in the words and the form of
// cyclotron.bulk_create_jobs (vm_state and blob in base64), become jobs, `chunk` of them with one
// call. It goes by way of the library, so that it serves several shards, if MILLRACE_DSN names
// them, and compresses what a queue wants compressed.
//
// A full queue is waited for. Where a shard broke down before it answered nobody knows what is in:
// then every shard is asked for the refs, once it is back, and what none of them knows is sent
// again. In the end it says how many were created, and how many of them were in doubt and in.
//
//   produce [CHUNK] <INVOCATIONS

#include <jansson.h>
#include <libpq-fe.h>
#include <millrace/millrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CHUNK_DEFAULT = 200, CHUNK_MAX = 10000, LINE_MAX_BYTES = 1 << 20 };
enum { FULL_WAIT_MS = 600 * 1000, PAUSE_MS = 200, PAUSES_MAX = 300, TRIES_MAX = 10 };
enum { REF_MAX_BYTES = 64, ADDRESS_MAX_BYTES = 4096 };

// What a job is made of; all of it is its own.
struct invocation {
    json_t *line;
    char *args, *meta, *tenant;
    unsigned char *state, *blob;
};

struct producer {
    mr_conn *conn;
    size_t chunk, count; // room, and how much of it is taken
    struct invocation *invocations;
    mr_job_spec *jobs;
    int64_t *ids; // 0: not in
    long long created, doubted, found;
};

// ---- one invocation ---------------------------------------------------------------------------

static int digit_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;

    return at != NULL ? (int)(at - digits) : -1;
}

// Line ends and padding are passed over. The caller frees it; NULL: none, or out of memory.
static unsigned char *decode(const json_t *text, size_t *ret_size)
{
    const char *from = json_string_value(text);
    unsigned char *bytes = from != NULL ? malloc(strlen(from) + 1) : NULL;
    unsigned bits = 0;
    unsigned held = 0;
    size_t size = 0;

    for (; bytes != NULL && *from != '\0'; from++) {
        int digit = digit_of(*from);

        if (digit < 0) {
            continue;
        }
        bits = (bits << 6 | (unsigned)digit) & 0xffff;
        held += 6;
        if (held >= 8) {
            held -= 8;
            bytes[size++] = (unsigned char)(bits >> held);
        }
    }
    *ret_size = size;
    return bytes;
}

static char *meta_of(json_t *line)
{
    json_t *meta = json_pack("{s:O*, s:O*}", "function_id", json_object_get(line, "function_id"),
                             "metadata", json_object_get(line, "metadata"));
    char *text = json_dumps(meta, JSON_COMPACT);

    json_decref(meta);
    return text;
}

// `job` borrows from `to`. -1: the line is no invocation, or out of memory.
static int invocation_read(const char *text, struct invocation *to, mr_job_spec *job)
{
    static const mr_job_spec fresh = MR_JOB_SPEC_INIT;

    to->line = json_loads(text, 0, NULL);
    to->args = json_dumps(json_object_get(to->line, "parameters"), JSON_COMPACT);
    to->meta = meta_of(to->line);
    to->tenant = json_dumps(json_object_get(to->line, "team_id"), JSON_ENCODE_ANY);
    *job = fresh;
    to->state = decode(json_object_get(to->line, "vm_state"), &job->state_size);
    to->blob = decode(json_object_get(to->line, "blob"), &job->blob_size);
    job->kind = "invocation";
    job->queue = json_string_value(json_object_get(to->line, "queue_name"));
    job->ref = json_string_value(json_object_get(to->line, "ref"));
    job->run_at = json_string_value(json_object_get(to->line, "scheduled"));
    job->args = to->args;
    job->meta = to->meta;
    job->tenant = to->tenant;
    job->state = to->state;
    job->blob = to->blob;
    return job->args != NULL && job->tenant != NULL && job->queue != NULL && job->ref != NULL &&
                   strlen(job->ref) < REF_MAX_BYTES
               ? 0
               : -1;
}

static void invocation_done(struct invocation *invocation)
{
    json_decref(invocation->line);
    free(invocation->args);
    free(invocation->meta);
    free(invocation->tenant);
    free(invocation->state);
    free(invocation->blob);
    memset(invocation, 0, sizeof(*invocation));
}

// ---- doubt ------------------------------------------------------------------------------------

// The refs of what is not in, as an array of SQL. The caller frees it; NULL: out of memory.
static char *refs_missing(const struct producer *producer)
{
    size_t size = producer->count * (REF_MAX_BYTES + 3) + 3;
    char *text = malloc(size);
    size_t used = 1;

    if (text == NULL) {
        return NULL;
    }
    text[0] = '{';
    for (size_t i = 0; i < producer->count; i++) {
        if (producer->ids[i] == 0) {
            used += (size_t)snprintf(text + used, size - used, "%s\"%s\"", used > 1 ? "," : "",
                                     producer->jobs[i].ref);
        }
    }
    snprintf(text + used, size - used, "}");
    return text;
}

static void mark_known(struct producer *producer, const char *ref)
{
    for (size_t i = 0; i < producer->count; i++) {
        if (producer->ids[i] == 0 && strcmp(producer->jobs[i].ref, ref) == 0) {
            producer->ids[i] = 1;
            producer->found++;
        }
    }
}

// Asks one database. -1: no answer.
static int shard_ask(struct producer *producer, const char *address, const char *refs)
{
    PGconn *pg = PQconnectdb(address);
    PGresult *result =
        PQexecParams(pg, "select cyclotron.known_refs($1::text[])", 1, NULL, &refs, NULL, NULL, 0);
    int good = PQresultStatus(result) == PGRES_TUPLES_OK;

    for (int i = 0; good && i < PQntuples(result); i++) {
        mark_known(producer, PQgetvalue(result, i, 0));
    }
    PQclear(result);
    PQfinish(pg);
    return good ? 0 : -1;
}

// As the library takes it; "": libpq's own environment.
static const char *all_addresses(void)
{
    const char *text = getenv("MILLRACE_DSN");

    text = text != NULL ? text : getenv("DATABASE_URL");
    return text != NULL ? text : "";
}

// Asks all databases of the address in turn, each until it answers. -1: one has not for too long.
static int doubt_settle(struct producer *producer)
{
    static const char between[] = " ; ";
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    const char *rest = all_addresses();
    char *refs = refs_missing(producer);
    int status = refs != NULL ? 0 : -1;

    while (status == 0 && rest != NULL) {
        const char *end = strstr(rest, between);
        char address[ADDRESS_MAX_BYTES];

        snprintf(address, sizeof(address), "%.*s",
                 end != NULL ? (int)(end - rest) : (int)strlen(rest), rest);
        status = shard_ask(producer, address, refs);
        for (int i = 0; status != 0 && i < PAUSES_MAX; i++) {
            nanosleep(&pause, NULL);
            status = shard_ask(producer, address, refs);
        }
        rest = end != NULL ? end + strlen(between) : NULL;
    }
    free(refs);
    return status;
}

// ---- chunks -----------------------------------------------------------------------------------

// Moves what is not in to the front, and says how much that is.
static size_t keep_missing(struct producer *producer)
{
    size_t missing = 0;

    for (size_t i = 0; i < producer->count; i++) {
        if (producer->ids[i] == 0) {
            producer->jobs[missing++] = producer->jobs[i];
        }
    }
    producer->created += (long long)(producer->count - missing);
    producer->count = missing;
    return missing;
}

static void forget_chunk(struct producer *producer)
{
    for (size_t i = 0; i < producer->chunk; i++) {
        invocation_done(&producer->invocations[i]);
    }
    producer->count = 0;
}

// Whether the chunk is in, in whole or, where it is not, in part and without doubt.
static int chunk_try(struct producer *producer, mr_error *err)
{
    int code;

    memset(producer->ids, 0, producer->chunk * sizeof(*producer->ids));
    code = mr_enqueue_jobs(producer->conn, producer->jobs, producer->count, producer->chunk,
                           producer->ids, NULL, err);
    if (keep_missing(producer) == 0) {
        return 0;
    }
    producer->doubted += (long long)producer->count;
    memset(producer->ids, 0, producer->chunk * sizeof(*producer->ids));
    if (mr_code_class(code) != MR_CLASS_TRANSIENT || doubt_settle(producer) != 0) {
        return -1;
    }
    keep_missing(producer);
    return 0;
}

static int chunk_send(struct producer *producer)
{
    mr_error err = {0};

    for (int tries = 0; tries < TRIES_MAX && producer->count > 0; tries++) {
        if (chunk_try(producer, &err) != 0) {
            break;
        }
    }
    if (producer->count > 0) {
        fprintf(stderr, "produce: %s\nhint: %s\n", err.message, err.hint);
        return -1;
    }
    forget_chunk(producer);
    return 0;
}

static int produce(struct producer *producer)
{
    char *line = malloc(LINE_MAX_BYTES);
    int good = line != NULL;

    while (good && fgets(line, LINE_MAX_BYTES, stdin) != NULL) {
        size_t at = producer->count;

        if (invocation_read(line, &producer->invocations[at], &producer->jobs[at]) != 0) {
            fprintf(stderr, "produce: no invocation: %.60s\n", line);
            invocation_done(&producer->invocations[at]);
            good = 0;
        } else {
            producer->count++;
        }
        if (good && producer->count == producer->chunk) {
            good = chunk_send(producer) == 0;
        }
    }
    good = good && chunk_send(producer) == 0;
    forget_chunk(producer);
    free(line);
    return good ? 0 : -1;
}

static int producer_init(struct producer *producer, size_t chunk)
{
    mr_conn_options options = MR_CONN_OPTIONS_INIT;
    mr_error err;

    options.full_wait_ms = FULL_WAIT_MS;
    producer->chunk = chunk;
    producer->invocations = calloc(chunk, sizeof(*producer->invocations));
    producer->jobs = calloc(chunk, sizeof(*producer->jobs));
    producer->ids = calloc(chunk, sizeof(*producer->ids));
    if (producer->invocations == NULL || producer->jobs == NULL || producer->ids == NULL) {
        fprintf(stderr, "produce: out of memory\n");
        return -1;
    }
    if (mr_conn_open(&options, &producer->conn, &err) != 0) {
        fprintf(stderr, "produce: %s\nhint: %s\n", err.message, err.hint);
        return -1;
    }
    return 0;
}

static void producer_done(struct producer *producer)
{
    mr_conn_free(producer->conn);
    free(producer->invocations);
    free(producer->jobs);
    free(producer->ids);
}

int main(int argc, char **argv)
{
    struct producer producer = {0};
    char *end = NULL;
    unsigned long chunk = argc == 2 ? strtoul(argv[1], &end, 10) : CHUNK_DEFAULT;
    int status;

    if (argc > 2 || (end != NULL && *end != '\0') || chunk < 1 || chunk > CHUNK_MAX) {
        fprintf(stderr, "usage: produce [CHUNK] <INVOCATIONS\n");
        return 2;
    }
    status = producer_init(&producer, chunk);
    if (status == 0) {
        status = produce(&producer);
        printf("created %lld, in doubt %lld of which %lld were in\n", producer.created,
               producer.doubted, producer.found);
    }
    producer_done(&producer);
    return status == 0 ? 0 : 1;
}
