// SPDX-License-Identifier: PostgreSQL
//
// Many jobs at once: a chunk is one transaction, mostly of one statement; on Redis one script.
//
// Small jobs go a thousand to a statement where the queue lets them (policy.h): their args then lie
// in the processor's cache from one end of the server to the other, which is a quarter of the time.
//
// Jobs that differ in nothing but their args go as a binary jsonb[], which costs the least; with
// state and blob as two bytea[] beside it. Anything else goes as one array of objects, as
// enqueue_jobs() takes it. A text of the caller's is put into that array only if it is one JSON
// value: a job must not smuggle in another.

#include <endian.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/json_scan.h"
#include "client/mr_parcel.h"
#include "client/queue_ops.h"
#include "client/request.h"
#include "store/redis_queue.h"

// Jobs in a chunk where the caller does not say, and at most.
struct chunks {
    size_t usual, most;
};
static const struct chunks chunks_pg = {10000, 1000000};
static const struct chunks chunks_redis = {REDIS_QUEUE_CHUNK, REDIS_QUEUE_CHUNK_MAX};

// ---- one job as an object ----

static void add_name(struct buf *out, const char *name)
{
    buf_printf(out, ",\"%s\":", name);
}

static void add_text(struct buf *out, const char *name, const char *text)
{
    if (text) {
        add_name(out, name);
        json_add_string(out, text);
    }
}

static void add_ms(struct buf *out, const char *name, int64_t ms)
{
    if (ms > 0) {
        add_name(out, name);
        buf_printf(out, "\"%lld ms\"", (long long)ms);
    }
}

static void add_bytes(struct buf *out, const char *name, const void *data, size_t size)
{
    if (data) {
        add_name(out, name);
        buf_puts(out, "\"");
        base64_add(out, data, size);
        buf_puts(out, "\"");
    }
}

static int check_json(const char *name, const char *json, mr_error *err)
{
    int code = json_check(json_slice_of(json), err);

    if (code) {
        mr_error_prefix(err, "%s", name);
        mr_error_hint(err, "Give one JSON value.");
    }
    return code;
}

static int add_json(struct buf *out, const char *name, const char *json, mr_error *err)
{
    if (!json) {
        return 0;
    }
    int code = check_json(name, json, err);
    if (code == 0) {
        add_name(out, name);
        buf_puts(out, json);
    }
    return code;
}

static int add_job(struct buf *out, const mr_job_spec *job, mr_error *err)
{
    int code;

    buf_puts(out, "{\"kind\":");
    json_add_string(out, job->kind);
    if ((code = add_json(out, "args", job->args, err)) ||
        (code = add_json(out, "meta", job->meta, err))) {
        return code;
    }
    add_text(out, "queue", job->queue);
    add_name(out, "priority");
    buf_printf(out, "%d", job->priority);
    if (job->max_attempts) {
        add_name(out, "max_attempts");
        buf_printf(out, "%d", job->max_attempts);
    }
    add_text(out, "run_at", job->run_at);
    add_ms(out, "delay", job->delay_ms);
    add_ms(out, "timeout", job->timeout_ms);
    add_ms(out, "expires_in", job->expires_in_ms);
    add_text(out, "unique_key", job->unique_key);
    add_text(out, "on_conflict", job->on_conflict);
    add_ms(out, "unique_for", job->unique_for_ms);
    add_text(out, "ordering_key", job->ordering_key);
    add_text(out, "tenant", job->tenant);
    add_text(out, "ref", job->ref);
    add_bytes(out, "state", job->state, job->state_size);
    add_bytes(out, "blob", job->blob, job->blob_size);
    buf_puts(out, "}");
    return 0;
}

// ---- where jobs come from ----

// One job and many args, or many jobs.
struct source {
    mr_job_spec job;         // shared, read and checked
    const char *const *args; // NULL: many jobs
    const char *jobs;        // as the caller's header laid them out
    size_t stride;
    bool plain; // nothing but kind, queue, priority, run_at and args
};

// Where a chunk of them goes.
struct chunk {
    mr_conn *conn;
    struct parcel *parcel; // what coded parts of it lie in
};

// But for state and blob.
static bool is_simple(const mr_job_spec *job)
{
    return !job->max_attempts && !job->delay_ms && !job->timeout_ms && !job->expires_in_ms &&
           !job->unique_key && !job->on_conflict && !job->unique_for_ms && !job->ordering_key &&
           !job->tenant && !job->ref && !job->meta;
}

static bool is_plain(const mr_job_spec *job)
{
    return is_simple(job) && !job->state && !job->blob;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

// Differ in nothing but args, state and blob.
static bool are_alike(const mr_job_spec *a, const mr_job_spec *b)
{
    return is_simple(a) && is_simple(b) && a->priority == b->priority &&
           same_text(a->kind, b->kind) && same_text(a->queue, b->queue) &&
           same_text(a->run_at, b->run_at);
}

static int source_job(const struct source *source, size_t at, mr_job_spec *ret, mr_error *err)
{
    if (!source->args) {
        return request_read_job(
            (const mr_job_spec *)(const void *)(source->jobs + at * source->stride), ret, err);
    }
    *ret = source->job;
    ret->args = source->args[at];
    return 0;
}

// Whether none of some args is to be coded: nearly always.
static bool are_raw(const char *const *args, size_t count, const struct policy *policy)
{
    for (size_t i = 0; i < count; i++) {
        if (part_args_look_coded(args[i]) ||
            (policy->compress_above > 0 && parcel_asks(args[i], 0, 0))) {
            return false;
        }
    }
    return true;
}

static bool any_asks(const char *const *args, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (parcel_asks(args[i], 0, 0)) {
            return true;
        }
    }
    return false;
}

// *ret: the same args, coded; the caller's own where nothing is. *ret_memory is the caller's to
// free.
static int code_args(const struct chunk *chunk, const char *queue, const char *const *args,
                     size_t count, const char *const **ret, const char ***ret_memory, mr_error *err)
{
    struct policy policy = {0};
    int code = any_asks(args, count)
                   ? mr__parcel_policy(chunk->conn, PARCEL_WAITS, queue, &policy, err)
                   : 0;

    *ret = args;
    if (code || are_raw(args, count, &policy)) {
        return code;
    }
    const char **coded = calloc(count, sizeof(*coded));
    *ret_memory = coded;
    if (!coded) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    for (size_t i = 0; code == 0 && i < count; i++) {
        coded[i] = args[i];
        code = parcel_pack_args(chunk->parcel, &policy, &coded[i], err);
    }
    *ret = coded;
    return code;
}

static int call_many(struct call *call, const struct chunk *chunk, const struct source *source,
                     size_t from, size_t count, mr_error *err)
{
    const char *const *args = NULL;
    const char **memory = NULL;
    int code = code_args(chunk, source->job.queue, source->args + from, count, &args, &memory, err);

    call_init(call, CALL_ENQUEUE_MANY);
    call_text(call, source->job.kind);
    if (code == 0) {
        call_json_array(call, args, count);
    }
    call_text(call, source->job.queue);
    call_number(call, source->job.priority);
    call_text(call, source->job.run_at);
    free(memory);
    return code;
}

// What is different in jobs that are alike.
struct columns {
    const char **args;
    struct call_part *states, *blobs;
};

static void columns_done(struct columns *columns)
{
    free(columns->args);
    free(columns->states);
    free(columns->blobs);
}

static int columns_init(struct columns *columns, size_t count, mr_error *err)
{
    *columns = (struct columns){
        .args = calloc(count, sizeof(*columns->args)),
        .states = calloc(count, sizeof(*columns->states)),
        .blobs = calloc(count, sizeof(*columns->blobs)),
    };
    return columns->args && columns->states && columns->blobs
               ? 0
               : mr_error_set(err, MR_ENOMEM, "out of memory");
}

// *ret_alike: all of them are, and are in the columns.
static int read_columns(const struct source *source, size_t from, size_t count,
                        struct columns *columns, bool *ret_alike, mr_error *err)
{
    mr_job_spec first, job;
    int code = source_job(source, from, &first, err);

    *ret_alike = true;
    for (size_t i = 0; code == 0 && *ret_alike && i < count; i++) {
        if ((code = source_job(source, from + i, &job, err))) {
            mr_error_prefix(err, "job %zu", from + i);
            return code;
        }
        *ret_alike = are_alike(&first, &job);
        columns->args[i] = job.args ? job.args : "{}";
        columns->states[i] = (struct call_part){job.state, job.state_size};
        columns->blobs[i] = (struct call_part){job.blob, job.blob_size};
    }
    for (size_t i = 0; code == 0 && *ret_alike && i < count; i++) {
        if ((code = check_json("args", columns->args[i], err))) {
            mr_error_prefix(err, "job %zu", from + i);
        }
    }
    return code;
}

// As one job after the other would be.
static int code_columns(const struct chunk *chunk, const char *queue, struct columns *columns,
                        size_t count, mr_error *err)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < count; i++) {
        mr_job_spec job = {
            .queue = queue,
            .args = columns->args[i],
            .state = columns->states[i].data,
            .state_size = columns->states[i].size,
            .blob = columns->blobs[i].data,
            .blob_size = columns->blobs[i].size,
        };
        code = mr__parcel_job(chunk->conn, chunk->parcel, PARCEL_WAITS, &job, err);
        columns->args[i] = job.args;
        columns->states[i] = (struct call_part){job.state, job.state_size};
        columns->blobs[i] = (struct call_part){job.blob, job.blob_size};
    }
    return code;
}

static int call_heavy(struct call *call, const struct chunk *chunk, const struct source *source,
                      size_t from, size_t count, struct columns *columns, mr_error *err)
{
    mr_job_spec first;
    int code = source_job(source, from, &first, err);

    if (code || (code = code_columns(chunk, first.queue, columns, count, err))) {
        return code;
    }
    call_init(call, CALL_ENQUEUE_HEAVY);
    call_text(call, first.kind);
    call_json_array(call, columns->args, count);
    call_text(call, first.queue);
    call_number(call, first.priority);
    call_text(call, first.run_at);
    call_bytes_array(call, columns->states, count);
    call_bytes_array(call, columns->blobs, count);
    return call_status(call, err);
}

static int call_jobs(struct call *call, const struct chunk *chunk, const struct source *source,
                     size_t from, size_t count, mr_error *err)
{
    AUTO_BUF text;
    int code = 0;

    call_init(call, CALL_ENQUEUE_JOBS);
    buf_init(&text, CALL_SIZE_MAX);
    buf_puts(&text, "[");
    for (size_t i = 0; i < count && text.status == 0; i++) {
        mr_job_spec job;
        buf_puts(&text, i ? "," : "");
        if ((code = source_job(source, from + i, &job, err)) ||
            (code = mr__parcel_job(chunk->conn, chunk->parcel, PARCEL_WAITS, &job, err)) ||
            (code = add_job(&text, &job, err))) {
            mr_error_prefix(err, "job %zu", from + i);
            return code;
        }
    }
    buf_puts(&text, "]");
    call_text(call, buf_peek(&text));
    call->store.status = text.status ? text.status : call->store.status;
    return call_status(call, err);
}

// The cheapest call that can take them.
static int call_some(struct call *call, const struct chunk *chunk, const struct source *source,
                     size_t from, size_t count, mr_error *err)
{
    struct columns columns;
    bool alike = false;

    if (source->plain) {
        return call_many(call, chunk, source, from, count, err);
    }
    int code = columns_init(&columns, count, err);
    if (code == 0) {
        code = read_columns(source, from, count, &columns, &alike, err);
    }
    if (code == 0) {
        code = alike ? call_heavy(call, chunk, source, from, count, &columns, err)
                     : call_jobs(call, chunk, source, from, count, err);
    }
    columns_done(&columns);
    return code;
}

// ---- chunks ----

// Jobs of a statement, where a chunk has more than one.
enum { PIECE_JOBS = 1000 };

// The calls of a chunk: all but the last have PIECE_JOBS, or there is one.
struct pieces {
    struct call *calls;
    size_t count;
    size_t jobs; // of the chunk
};

static void pieces_done(struct pieces *pieces)
{
    for (size_t i = 0; i < pieces->count; i++) {
        call_done(&pieces->calls[i]);
    }
    free(pieces->calls);
    *pieces = (struct pieces){0};
}

#define AUTO_PIECES __attribute__((cleanup(pieces_done))) struct pieces

// *ret: of a chunk.
static int count_pieces(mr_conn *conn, const struct source *source, size_t jobs, size_t *ret,
                        mr_error *err)
{
    struct policy policy = {0};
    mr_error why = {0}; // the caller's is not for failures that are got over
    int code = 0;

    if (source->plain && jobs > PIECE_JOBS && !mr__conn_is_wrapped(conn)) {
        code = mr__parcel_policy(conn, PARCEL_WAITS, source->job.queue, &policy, &why);
    }
    if (code == MR_EPRIVILEGE) { // may enqueue, but not ask
        code = 0;
    } else if (code && err) {
        *err = why;
    }
    *ret = policy.pieces ? (jobs + PIECE_JOBS - 1) / PIECE_JOBS : 1;
    return code;
}

static int fill_pieces(struct pieces *pieces, const struct chunk *chunk,
                       const struct source *source, size_t from, size_t count, mr_error *err)
{
    size_t each = count > 1 ? PIECE_JOBS : pieces->jobs;
    size_t size = 0;
    int code = 0;

    pieces->calls = calloc(count, sizeof(*pieces->calls));
    if (!pieces->calls) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    for (size_t at = 0; code == 0 && at < pieces->jobs; at += each) {
        size_t jobs = pieces->jobs - at < each ? pieces->jobs - at : each;
        call_init(&pieces->calls[pieces->count], CALL_ENQUEUE_MANY);
        code = call_some(&pieces->calls[pieces->count], chunk, source, from + at, jobs, err);
        size += pieces->calls[pieces->count++].store.len;
        if (code == 0 && size > CALL_SIZE_MAX) {
            code = call_too_large(err);
        }
    }
    return code;
}

static int make_pieces(struct pieces *pieces, const struct chunk *chunk,
                       const struct source *source, size_t from, size_t jobs, mr_error *err)
{
    size_t count = 1;
    int code = count_pieces(chunk->conn, source, jobs, &count, err);

    pieces_done(pieces);
    pieces->jobs = jobs;
    return code ? code : fill_pieces(pieces, chunk, source, from, count, err);
}

// Ids are in binary. *at: how many are there; moved on.
static void read_ids(const PGresult *result, int64_t *ret_ids, size_t *at)
{
    for (int i = 0; i < PQntuples(result); i++) {
        uint64_t network = 0;
        memcpy(&network, PQgetvalue(result, i, 0), sizeof(network));
        ret_ids[(*at)++] = (int64_t)be64toh(network);
    }
}

static int read_all_ids(const mr_reply *reply, size_t jobs, int64_t *ret_ids, mr_error *err)
{
    size_t there = (size_t)PQntuples(reply->result), at = 0;

    for (size_t i = 0; i < reply->more_count; i++) {
        there += (size_t)PQntuples(reply->more[i]);
    }
    if (there != jobs) {
        return mr_error_set(err, MR_EINTERNAL, "%zu jobs went in, and %zu ids came back", jobs,
                            there);
    }
    if (!ret_ids) {
        return 0;
    }
    read_ids(reply->result, ret_ids, &at);
    for (size_t i = 0; i < reply->more_count; i++) {
        read_ids(reply->more[i], ret_ids, &at);
    }
    return 0;
}

// A queue that has a depth_limit by now, or a route, takes pieces for calls of their own, and lets
// in some of what it would have let in or refused as a whole: it is asked again then.
static int send_pieces(mr_conn *conn, struct pieces *pieces, const struct chunk *chunk,
                       const struct source *source, size_t from, mr_reply **ret, mr_error *err)
{
    if (pieces->count > 1) {
        mr_error why = {0};
        int code = mr__conn_ask_all(conn, pieces->calls, pieces->count, ret, &why);
        if (code != MR_EFULL && code != MR_EINVALID) {
            if (code && err) {
                *err = why;
            }
            return code;
        }
        mr__parcel_forget(conn, source->job.queue);
        if ((code = make_pieces(pieces, chunk, source, from, pieces->jobs, err))) {
            return code;
        }
    }
    return mr__conn_ask_room(conn, pieces->calls, pieces->count, ret, err);
}

static int send_chunk(mr_conn *conn, const struct source *source, size_t from, size_t count,
                      int64_t *ret_ids, mr_error *err)
{
    AUTO_PARCEL parcel = {0};
    AUTO_PIECES pieces = {0};
    const struct chunk chunk = {conn, &parcel};
    mr_reply *reply = NULL;

    int code = make_pieces(&pieces, &chunk, source, from, count, err);
    while (code == 0 && mr__parcel_ship_fails(conn, &parcel)) {
        code = make_pieces(&pieces, &chunk, source, from, count, err);
    }
    if (code || (code = send_pieces(conn, &pieces, &chunk, source, from, &reply, err))) {
        return code;
    }
    code = read_all_ids(reply, count, ret_ids, err);
    mr_reply_free(reply);
    return code;
}

// One job of a chunk. Where PostgreSQL is asked for such a job, it counts them from 1.
static int read_one(const struct source *source, size_t from, size_t at, mr_job_spec *ret,
                    mr_error *err)
{
    int code = source_job(source, from + at, ret, err);

    if (code == 0 && !source->plain && ret->args) {
        code = check_json("args", ret->args, err);
    }
    if (code) {
        mr_error_prefix(err, "job %zu", from + at);
        return code;
    }
    code = redis_queue_check_job(ret, err);
    if (code && !source->plain) {
        mr_error_prefix(err, "job %zu", at + 1);
    }
    return code;
}

// Jobs of a chunk go to one queue: a script of Redis's touches no more.
static int read_jobs(const struct source *source, size_t from, size_t count, mr_job_spec *jobs,
                     mr_error *err)
{
    for (size_t i = 0; i < count; i++) {
        int code = read_one(source, from, i, &jobs[i], err);
        if (code) {
            return code;
        }
        if (!same_text(jobs[i].queue, jobs[0].queue)) {
            return mr__conn_needs_pg("a chunk of jobs of several queues", err);
        }
    }
    return 0;
}

static int send_chunk_redis(mr_conn *conn, const struct source *source, size_t from, size_t count,
                            int64_t *ret_ids, mr_error *err)
{
    mr_job_spec *jobs = calloc(count, sizeof(*jobs));

    if (!jobs) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    int code = read_jobs(source, from, count, jobs, err);
    if (code == 0) {
        code = redis_queue_enqueue(mr__conn_redis(conn), jobs, count, ret_ids, err);
    }
    free(jobs);
    return code;
}

static int send_all(mr_conn *conn, const struct source *source, size_t count, size_t chunk,
                    int64_t *ret_ids, size_t *done, mr_error *err)
{
    const struct chunks *chunks = mr__conn_redis(conn) ? &chunks_redis : &chunks_pg;

    if (chunk > chunks->most) {
        mr_error_set(err, MR_EUSAGE, "a chunk of %zu jobs is too large", chunk);
        mr_error_hint(err, "Give at most %zu, or 0 for %zu.", chunks->most, chunks->usual);
        return MR_EUSAGE;
    }
    chunk = chunk ? chunk : chunks->usual;
    while (*done < count) {
        size_t next = count - *done < chunk ? count - *done : chunk;
        int64_t *ids = ret_ids ? ret_ids + *done : NULL;
        int code = (mr__conn_redis(conn) ? send_chunk_redis : send_chunk)(conn, source, *done, next,
                                                                          ids, err);
        if (code) {
            return code;
        }
        *done += next;
    }
    return 0;
}

static int no_pointer(const char *what, size_t at, mr_error *err)
{
    mr_error_set(err, MR_EUSAGE, "%s %zu is missing", what, at);
    mr_error_hint(err, "Give as many as `count` says, none of them NULL.");
    return MR_EUSAGE;
}

int bulk_enqueue_many(mr_conn *conn, const mr_job_spec *job, const char *const *args, size_t count,
                      size_t chunk, int64_t *ret_ids, size_t *ret_done, mr_error *err)
{
    struct source source = {.args = args};
    size_t done = 0;
    int code = request_read_job(job, &source.job, err);

    for (size_t i = 0; code == 0 && i < count; i++) {
        code = args && args[i] ? 0 : no_pointer("args", i, err);
    }
    if (code == 0) {
        source.plain = is_plain(&source.job);
        code = send_all(conn, &source, count, chunk, ret_ids, &done, err);
    }
    if (ret_done) {
        *ret_done = done;
    }
    return code;
}

// The structs lie as far apart as the caller's header made them large.
static int read_stride(const mr_job_spec *jobs, size_t count, struct source *source, mr_error *err)
{
    if (count == 0) {
        return 0;
    }
    if (!jobs) {
        return no_pointer("job", 0, err);
    }
    source->jobs = (const char *)jobs;
    source->stride = jobs->size;
    return request_read_job(jobs, &source->job, err);
}

int bulk_enqueue_jobs(mr_conn *conn, const mr_job_spec *jobs, size_t count, size_t chunk,
                      int64_t *ret_ids, size_t *ret_done, mr_error *err)
{
    struct source source = {0};
    size_t done = 0;
    int code = read_stride(jobs, count, &source, err);

    if (code == 0) {
        code = send_all(conn, &source, count, chunk, ret_ids, &done, err);
    }
    if (ret_done) {
        *ret_done = done;
    }
    return code;
}
