// SPDX-License-Identifier: PostgreSQL
//
// `millrace enqueue`: one job from the command line, or one for each line of a file.

#include <endian.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/json_scan.h"
#include "base/str.h"
#include "cli/bulk.h"
#include "cli/command.h"
#include "cli/figure.h"
#include "cli/ndjson.h"
#include "cli/progress.h"
#include "cli/redis_jobs.h"
#include "client/call.h"
#include "client/mr_parcel.h"
#include "client/room.h"

enum {
    PRIORITY_DEFAULT = 50,
    PRIORITY_MAX = 99,
    ATTEMPTS_MAX = 32000,
    CHUNK_DEFAULT = 10000,
    FLUSH_MS = 1000, // a line waits this long for its chunk to fill, when lines come slowly
};

// Values of options as JSON: the arguments of a process are limited by the system.
#define DEFAULTS_MAX (16 * 1024 * 1024)

struct enqueue {
    struct command_shared shared;
    const char *kind; // NULL: each line says it
    const char *args;
    const char *file;
    const char *queue;
    int64_t priority; // -1: not given
    int64_t delay_ms;
    const char *at;
    const char *unique;
    const char *on_conflict;
    int64_t unique_for_ms;
    const char *key;
    const char *tenant;
    const char *ref;
    int64_t max_attempts; // -1: not given
    int64_t timeout_ms;
    int64_t expires_ms;
    const char *meta;
    int64_t wait_ms; // for room in a full queue
    int64_t chunk;
    int64_t skip;
    bool quiet;
};

static const struct command_form form = {
    "enqueue",
    "KIND [ARGS-JSON]",
    0,
    2,
    "Enqueues a job and prints its id. With --file, or - in place of ARGS-JSON, enqueues a job for\n"
    "each line of a file or of standard input: a JSON object with any of kind, args, queue,\n"
    "priority, run_at, delay, unique_key, on_conflict, unique_for, ordering_key, tenant, ref,\n"
    "max_attempts, timeout, expires_in, meta, state, blob, batch, depends_on. KIND and the options\n"
    "are the defaults of the lines then. Where a job with the same key is there already, its id is\n"
    "printed.",
    "millrace-enqueue(1)",
};

// ---- ids ----

// What was printed so far, and the first and last id.
struct ids {
    bool json;
    int64_t count, first, last;
};

static void ids_begin(const struct ids *ids)
{
    if (ids->json) {
        printf("{\"ids\":[");
    }
}

static void ids_add(struct ids *ids, int64_t id)
{
    if (ids->json) {
        printf("%s%" PRId64, ids->count ? "," : "", id);
    }
    ids->first = ids->count ? ids->first : id;
    ids->last = id;
    ids->count++;
}

static void ids_end(const struct ids *ids)
{
    if (ids->json) {
        printf("],\"enqueued\":%" PRId64 "}\n", ids->count);
    } else if (ids->count > 0) {
        printf("enqueued: %" PRId64 " jobs, ids %" PRId64 " to %" PRId64 "\n", ids->count,
               ids->first, ids->last);
    } else {
        puts("enqueued: 0 jobs");
    }
}

// ---- one ----

static void fill_call(const struct enqueue *enqueue, struct call *call)
{
    call_text(call, enqueue->kind);
    call_text(call, enqueue->args);
    call_text(call, enqueue->queue);
    call_number(call, enqueue->priority < 0 ? PRIORITY_DEFAULT : enqueue->priority);
    call_text(call, enqueue->at);
    call_ms(call, enqueue->delay_ms);
    call_text(call, enqueue->unique);
    call_text(call, enqueue->key);
    call_text(call, enqueue->tenant);
    call_text(call, enqueue->ref);
    if (enqueue->max_attempts < 0) {
        call_null(call);
    } else {
        call_number(call, enqueue->max_attempts);
    }
    call_ms(call, enqueue->timeout_ms);
    call_ms(call, enqueue->expires_ms);
    call_text(call, enqueue->meta);
    call_null(call); // state
    call_null(call); // blob
    call_text(call, enqueue->on_conflict);
    call_ms(call, enqueue->unique_for_ms);
}

// Makes the call again while the queue is full, as long as --wait allows.
static int exec_with_room(const struct enqueue *enqueue, const struct call *call, struct conn *conn,
                          PGresult **ret, struct mr_error *err)
{
    struct room_wait wait;
    int64_t pause_ms = 0;
    int code;

    room_wait_begin(&wait, clock_ms(), enqueue->wait_ms);
    while ((code = call_exec(call, conn_pg(conn), ret, err)) &&
           room_wait_again(&wait, clock_ms(), code, &pause_ms, err)) {
        poll(NULL, 0, (int)pause_ms);
    }
    return code;
}

static void print_id(const struct enqueue *enqueue, int64_t id)
{
    struct ids ids = {.json = enqueue->shared.json};

    if (!ids.json) {
        printf("%" PRId64 "\n", id);
        return;
    }
    ids_begin(&ids);
    ids_add(&ids, id);
    ids_end(&ids);
}

static void fill_job(const struct enqueue *enqueue, mr_job_spec *job)
{
    job->kind = enqueue->kind;
    job->args = enqueue->args;
    job->queue = enqueue->queue;
    job->priority = enqueue->priority < 0 ? PRIORITY_DEFAULT : (int)enqueue->priority;
    job->run_at = enqueue->at;
    job->delay_ms = enqueue->delay_ms;
    job->unique_key = enqueue->unique;
    job->on_conflict = enqueue->on_conflict;
    job->unique_for_ms = enqueue->unique_for_ms;
    job->ordering_key = enqueue->key;
    job->tenant = enqueue->tenant;
    job->ref = enqueue->ref;
    job->max_attempts = enqueue->max_attempts < 0 ? 0 : (int)enqueue->max_attempts;
    job->timeout_ms = enqueue->timeout_ms;
    job->expires_in_ms = enqueue->expires_ms;
    job->meta = enqueue->meta;
}

static int enqueue_redis(const struct enqueue *enqueue, struct mr_error *err)
{
    mr_job_spec job = MR_JOB_SPEC_INIT;
    int64_t id = 0;

    fill_job(enqueue, &job);
    int code = enqueue->file ? redis_jobs_refuse("--file", err)
                             : redis_jobs_enqueue(enqueue->shared.dsn, &job, &id, err);
    if (code == 0) {
        print_id(enqueue, id);
    }
    return code;
}

// Its args as the queue wants them.
static int code_args(struct conn *conn, struct enqueue *enqueue, struct parcel *parcel,
                     struct mr_error *err)
{
    mr_job_spec job = MR_JOB_SPEC_INIT;
    mr_conn *wrapped = NULL;
    int code = mr_conn_wrap(conn_pg(conn), &wrapped, err);

    job.queue = enqueue->queue;
    job.args = enqueue->args;
    if (code == 0) {
        code = mr__parcel_job(wrapped, parcel, PARCEL_WAITS, &job, err);
    }
    enqueue->args = job.args;
    mr_conn_free(wrapped);
    return code;
}

static int refuse_file(struct mr_error *err)
{
    mr_error_set(err, MR_EUSAGE, "--file needs one database; the address names several");
    mr_error_hint(err,
                  "Give --dsn of one shard and a file for each, or use mr_enqueue_jobs(), which "
                  "spreads them.");
    return MR_EUSAGE;
}

// The library finds the shard.
static int enqueue_shards(const struct enqueue *enqueue, struct mr_error *err)
{
    mr_conn_options options = MR_CONN_OPTIONS_INIT;
    mr_job_spec job = MR_JOB_SPEC_INIT;
    mr_conn *conn = NULL;
    int64_t id = 0;

    if (enqueue->file) {
        return refuse_file(err);
    }
    options.dsn = enqueue->shared.dsn;
    options.full_wait_ms = enqueue->wait_ms;
    fill_job(enqueue, &job);
    int code = mr_conn_open(&options, &conn, err);
    if (code == 0 && (code = mr_enqueue(conn, &job, &id, err)) == 0) {
        print_id(enqueue, id);
    }
    mr_conn_free(conn);
    if (code && err->error_class == MR_CLASS_REJECTED) {
        mr_error_detail(err, "%s", "");
    }
    return code;
}

static int enqueue_one(const struct enqueue *enqueue, struct mr_error *err)
{
    struct enqueue coded = *enqueue;
    AUTO_CONN *conn = NULL;
    AUTO_RESULT *rows = NULL;
    AUTO_PARCEL parcel = {0};
    AUTO_CALL call;

    call_init(&call, CALL_ENQUEUE);
    int code = conn_open(enqueue->shared.dsn, &conn, err);
    if (code || (code = code_args(conn, &coded, &parcel, err))) {
        return code;
    }
    fill_call(&coded, &call);
    if ((code = call_status(&call, err))) {
        return code;
    }
    if ((code = exec_with_room(enqueue, &call, conn, &rows, err))) {
        if (err->error_class == MR_CLASS_REJECTED) {
            mr_error_detail(err, "%s", "");
        }
        return code;
    }
    print_id(enqueue, strtoll(PQgetvalue(rows, 0, 0), NULL, 10));
    return 0;
}

// ---- the options as JSON, as defaults of the lines ----

struct defaults {
    struct buf texts[BULK_OPTIONS];
    const char *values[BULK_OPTIONS];
};

static void set_string(struct defaults *defaults, enum bulk_option option, const char *value)
{
    if (value) {
        json_add_string(&defaults->texts[option], value);
    }
}

static void set_number(struct defaults *defaults, enum bulk_option option, int64_t value)
{
    if (value >= 0) {
        buf_printf(&defaults->texts[option], "%" PRId64, value);
    }
}

static void set_ms(struct defaults *defaults, enum bulk_option option, int64_t ms)
{
    if (ms > 0) {
        buf_printf(&defaults->texts[option], "\"%" PRId64 " ms\"", ms);
    }
}

static void defaults_done(struct defaults *defaults)
{
    for (int i = 0; i < BULK_OPTIONS; i++) {
        buf_done(&defaults->texts[i]);
    }
}

static int defaults_init(struct defaults *defaults, const struct enqueue *enqueue,
                         struct mr_error *err)
{
    int code = 0;

    for (int i = 0; i < BULK_OPTIONS; i++) {
        buf_init(&defaults->texts[i], DEFAULTS_MAX);
    }
    set_string(defaults, BULK_KIND, enqueue->kind);
    set_string(defaults, BULK_QUEUE, enqueue->queue);
    set_number(defaults, BULK_PRIORITY, enqueue->priority);
    set_string(defaults, BULK_RUN_AT, enqueue->at);
    set_ms(defaults, BULK_DELAY, enqueue->delay_ms);
    set_string(defaults, BULK_UNIQUE_KEY, enqueue->unique);
    set_string(defaults, BULK_ON_CONFLICT, enqueue->on_conflict);
    set_ms(defaults, BULK_UNIQUE_FOR, enqueue->unique_for_ms);
    set_string(defaults, BULK_ORDERING_KEY, enqueue->key);
    set_string(defaults, BULK_TENANT, enqueue->tenant);
    set_string(defaults, BULK_REF, enqueue->ref);
    set_number(defaults, BULK_MAX_ATTEMPTS, enqueue->max_attempts);
    set_ms(defaults, BULK_TIMEOUT, enqueue->timeout_ms);
    set_ms(defaults, BULK_EXPIRES_IN, enqueue->expires_ms);
    buf_puts(&defaults->texts[BULK_META], enqueue->meta ? enqueue->meta : "");
    for (int i = 0; i < BULK_OPTIONS && code == 0; i++) {
        code = buf_status(&defaults->texts[i], err);
        defaults->values[i] = defaults->texts[i].len ? buf_peek(&defaults->texts[i]) : NULL;
    }
    return code;
}

// ---- many ----

struct load {
    const struct enqueue *enqueue;
    struct ndjson input;
    struct bulk bulk;
    struct progress progress;
    struct ids ids;
    int64_t first_ms; // when the chunk's first line came
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

// The first one ends the load behind a chunk, the second one the program.
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void on_ids(void *arg, const PGresult *rows)
{
    struct load *load = arg;

    for (int i = 0; i < PQntuples(rows); i++) {
        uint64_t network = 0;

        memcpy(&network, PQgetvalue(rows, i, 0), sizeof(network));
        ids_add(&load->ids, (int64_t)be64toh(network));
    }
    progress_update(&load->progress, load->bulk.jobs_in, load->input.bytes);
}

// Adds to an error how far the load came and how to go on.
static void hint_go_on(const struct load *load, int64_t line, struct mr_error *err)
{
    int64_t in =
        load->bulk.line_in > load->enqueue->skip ? load->bulk.line_in : load->enqueue->skip;
    char hint[MR_ERROR_HINT_SIZE];
    AUTO_BUF jobs;

    memcpy(hint, err->hint, sizeof(hint));
    buf_init(&jobs, sizeof(hint));
    figure_add_number(&jobs, load->bulk.jobs_in);
    if (line) {
        mr_error_hint(err,
                      "%s%s%s jobs are in, all before this line. Correct it and go on with "
                      "--skip %" PRId64 ", or leave it out with --skip %" PRId64 ".",
                      hint, *hint ? " " : "", buf_peek(&jobs), line - 1, line);
    } else if (err->code == MR_ECONNECT) {
        mr_error_hint(err,
                      "%s jobs are in for certain, up to line %" PRId64 "; those of the next "
                      "chunk may be in too. Look before you go on with --skip %" PRId64 ".",
                      buf_peek(&jobs), in, in);
    } else {
        mr_error_hint(err, "%s%s%s jobs are in; go on with --skip %" PRId64 ".", hint,
                      *hint ? " " : "", buf_peek(&jobs), in);
    }
}

static int fail_load(const struct load *load, int64_t line, struct mr_error *err)
{
    if (line) {
        mr_error_prefix(err, "%s:%" PRId64, load->input.name, line);
    } else {
        mr_error_prefix(err, "%s", load->input.name);
    }
    hint_go_on(load, line, err);
    return err->code;
}

static int send(struct load *load, struct mr_error *err)
{
    int64_t line = 0;
    int code = bulk_send(&load->bulk, &line, err);

    if (code == MR_EFULL && interrupted) {
        code = mr_error_set(err, MR_EIO, "interrupted while the queue was full");
    }
    if (code == 0 && ferror(stdout)) {
        code = mr_error_set(err, MR_EIO, "cannot write to standard output");
    }
    return code ? fail_load(load, line, err) : 0;
}

// A line that is no job, or too long to be read: those before it still go in.
static int stop_at_line(struct load *load, struct mr_error *err)
{
    struct mr_error reason = *err;
    int64_t line = reason.code == MR_EIO || reason.code == MR_ENOMEM ? 0 : load->input.line;
    int code = send(load, err);

    if (code) {
        return code;
    }
    *err = reason;
    return fail_load(load, line, err);
}

static bool is_due(const struct load *load)
{
    const struct bulk *bulk = &load->bulk;

    return bulk->count > 0 &&
           (bulk->count >= (size_t)load->enqueue->chunk || bulk->objects.len >= BULK_BYTES_MAX ||
            clock_ms() - load->first_ms >= FLUSH_MS);
}

static int add_line(struct load *load, struct json_slice line, struct mr_error *err)
{
    if (load->bulk.count == 0) {
        load->first_ms = clock_ms();
    }
    return bulk_add(&load->bulk, line, load->input.line, err);
}

// Reads and sends until the end of the input.
static int run_load(struct load *load, struct mr_error *err)
{
    enum ndjson_event event = NDJSON_IDLE;
    struct json_slice line;

    while (event != NDJSON_END) {
        int code = ndjson_next(&load->input, FLUSH_MS, &event, &line, err);
        if (code == 0 && event == NDJSON_LINE) {
            code = add_line(load, line, err);
        }
        if (code) {
            return stop_at_line(load, err);
        }
        if (interrupted) {
            mr_error_set(err, MR_EIO, "interrupted");
            return fail_load(load, 0, err);
        }
        if ((event == NDJSON_END || is_due(load)) && (code = send(load, err))) {
            return code;
        }
    }
    return 0;
}

static int skip_lines(struct load *load, struct mr_error *err)
{
    int64_t skip = load->enqueue->skip;
    int code = ndjson_skip(&load->input, skip, err);

    if (code == 0 && load->input.line < skip) {
        return mr_error_set(err, MR_EUSAGE, "--skip %" PRId64 ": %s has %" PRId64 " lines", skip,
                            load->input.name, load->input.line);
    }
    return code;
}

static int connect_and_load(struct load *load, const struct defaults *defaults,
                            struct mr_error *err)
{
    const struct enqueue *enqueue = load->enqueue;
    AUTO_CONN *conn = NULL;
    int code = conn_open(enqueue->shared.dsn, &conn, err);

    if (code) {
        return code;
    }
    bulk_init(&load->bulk, conn, defaults->values);
    load->bulk.on_ids = on_ids;
    load->bulk.arg = load;
    load->bulk.wait_ms = enqueue->wait_ms;
    load->bulk.cancel = &interrupted;
    progress_init(&load->progress, "jobs", ndjson_size(&load->input), enqueue->quiet);
    catch_signals();
    ids_begin(&load->ids);
    code = run_load(load, err);
    progress_clear(&load->progress);
    ids_end(&load->ids);
    bulk_done(&load->bulk);
    return code;
}

static int enqueue_many(const struct enqueue *enqueue, struct mr_error *err)
{
    struct load load = {.enqueue = enqueue, .ids = {.json = enqueue->shared.json}};
    struct defaults defaults = {0};
    int code = ndjson_open(&load.input, enqueue->file, err);

    if (code) {
        return code;
    }
    code = skip_lines(&load, err);
    if (code == 0) {
        code = defaults_init(&defaults, enqueue, err);
    }
    if (code == 0) {
        code = connect_and_load(&load, &defaults, err);
    }
    defaults_done(&defaults);
    ndjson_close(&load.input);
    return code;
}

static int run(const struct enqueue *enqueue, struct mr_error *err)
{
    if (conn_redis_dsn(enqueue->shared.dsn)) {
        return enqueue_redis(enqueue, err);
    }
    if (conn_shards_dsn(enqueue->shared.dsn)) {
        return enqueue_shards(enqueue, err);
    }
    return (enqueue->file ? enqueue_many : enqueue_one)(enqueue, err);
}

// ---- the command line ----

static int check_ranges(const struct enqueue *enqueue, struct mr_error *err)
{
    if (enqueue->priority > PRIORITY_MAX) {
        mr_error_set(err, MR_EUSAGE, "--priority must be from 0 to %d", PRIORITY_MAX);
        mr_error_hint(err, "The lower number runs first; 50 is the default.");
        return MR_EUSAGE;
    }
    if (enqueue->max_attempts == 0 || enqueue->max_attempts > ATTEMPTS_MAX) {
        return mr_error_set(err, MR_EUSAGE, "--max-attempts must be from 1 to %d", ATTEMPTS_MAX);
    }
    if (enqueue->chunk < 1 || enqueue->chunk > BULK_CHUNK_MAX) {
        return mr_error_set(err, MR_EUSAGE, "--chunk must be from 1 to %d", BULK_CHUNK_MAX);
    }
    if (enqueue->at && enqueue->delay_ms) {
        return mr_error_set(err, MR_EUSAGE, "--at and --delay exclude each other");
    }
    return 0;
}

// Of a file each line may have a key of its own.
static int check_unique(const struct enqueue *enqueue, struct mr_error *err)
{
    if (enqueue->file || enqueue->unique || (!enqueue->on_conflict && !enqueue->unique_for_ms)) {
        return 0;
    }
    mr_error_set(err, MR_EUSAGE, "--on-conflict and --unique-for need a key");
    mr_error_hint(err, "Give the job one with --unique KEY.");
    return MR_EUSAGE;
}

// `-` in the place of args, or of everything, is standard input.
static int take_arguments(struct enqueue *enqueue, int argc, char **argv, int first,
                          struct mr_error *err)
{
    int count = argc - first;

    if (count > 0 && str_equal(argv[argc - 1], "-") && !enqueue->file) {
        enqueue->file = "-";
        count--;
    }
    enqueue->kind = count > 0 ? argv[first] : NULL;
    enqueue->args = count > 1 ? argv[first + 1] : NULL;
    if (!enqueue->file && !enqueue->kind) {
        mr_error_set(err, MR_EUSAGE, "enqueue: KIND is missing");
        mr_error_hint(err, "Write `millrace enqueue KIND '{\"some\": \"args\"}'`, or --file FILE.");
        return MR_EUSAGE;
    }
    if (enqueue->file && enqueue->args) {
        return mr_error_set(err, MR_EUSAGE,
                            "enqueue: ARGS-JSON excludes --file: the lines have args");
    }
    if (!enqueue->file && enqueue->skip) {
        return mr_error_set(err, MR_EUSAGE, "--skip belongs to --file");
    }
    return 0;
}

static int check_usage(struct enqueue *enqueue, int argc, char **argv, int first,
                       struct mr_error *err)
{
    int code = take_arguments(enqueue, argc, argv, first, err);

    if (code == 0) {
        code = check_ranges(enqueue, err);
    }
    if (code == 0) {
        code = check_unique(enqueue, err);
    }
    if (code == 0) {
        code = command_check_json("ARGS-JSON", enqueue->args, err);
    }
    return code ? code : command_check_json("--meta", enqueue->meta, err);
}

int cmd_enqueue(int argc, char **argv)
{
    struct enqueue enqueue = {.priority = -1, .max_attempts = -1, .chunk = CHUNK_DEFAULT};
    const struct option_row rows[] = {
        {"file", OPTION_STRING, &enqueue.file, "FILE", "one JSON job a line; - is standard input"},
        {"queue", OPTION_STRING, &enqueue.queue, "QUEUE", "into this queue (default)"},
        {"priority", OPTION_NUMBER, &enqueue.priority, "NUMBER",
         "0 to 99, the lower runs first (50)"},
        {"delay", OPTION_SPAN, &enqueue.delay_ms, "TIME",
         "not before this long from now: 5s, 2h, 7d"},
        {"at", OPTION_STRING, &enqueue.at, "TIME", "not before this time: 2030-01-31 08:00+01"},
        {"unique", OPTION_STRING, &enqueue.unique, "KEY",
         "no second job while one of the queue has this key"},
        {"on-conflict", OPTION_STRING, &enqueue.on_conflict, "MODE",
         "a job with the key is there: ignore, or replace its args and time (ignore)"},
        {"unique-for", OPTION_SPAN, &enqueue.unique_for_ms, "TIME",
         "hold the key this long after completion, too (not at all)"},
        {"key", OPTION_STRING, &enqueue.key, "KEY",
         "jobs of this key run one at a time, in order (ordered queues)"},
        {"tenant", OPTION_STRING, &enqueue.tenant, "TEXT", "travels with the job"},
        {"ref", OPTION_STRING, &enqueue.ref, "TEXT", "your own id; the job can be found by it"},
        {"max-attempts", OPTION_NUMBER, &enqueue.max_attempts, "NUMBER",
         "1 to 32000 (as the kind or queue has it)"},
        {"timeout", OPTION_SPAN, &enqueue.timeout_ms, "TIME", "how long a handler may run"},
        {"expires-in", OPTION_SPAN, &enqueue.expires_ms, "TIME",
         "drop the job if nobody took it by then"},
        {"meta", OPTION_STRING, &enqueue.meta, "JSON", "what is not an argument"},
        {"wait", OPTION_SPAN, &enqueue.wait_ms, "TIME",
         "while the queue is full, at most this long (0)"},
        {"chunk", OPTION_NUMBER, &enqueue.chunk, "NUMBER",
         "with --file: jobs a transaction (10000)"},
        {"skip", OPTION_COUNT, &enqueue.skip, "LINES",
         "with --file: leave out the first lines (0)"},
        {"quiet", OPTION_FLAG, &enqueue.quiet, NULL, "with --file: no progress"},
        COMMAND_SHARED_ROWS(&enqueue.shared),
        {0},
    };
    struct mr_error err;
    int first = command_read(&form, rows, &enqueue.shared, argc, argv, &err);

    if (first >= 0 && enqueue.shared.help) {
        return command_help(&form, rows);
    }
    if (first < 0 || check_usage(&enqueue, argc, argv, first, &err) || run(&enqueue, &err)) {
        return command_fail(&err);
    }
    return command_finish(EXIT_DONE);
}
