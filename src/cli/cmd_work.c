// SPDX-License-Identifier: PostgreSQL
//
// `millrace work`: a worker from the command line.

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/options.h"
#include "client/call.h"
#include "client/conn.h"
#include "client/dsn_list.h"
#include "daemon/config.h"
#include "daemon/signals.h"
#include "daemon/station.h"
#include "store/redis_link.h"

enum { HANDLER_KINDS = HANDLER_PLUGIN + 1 };

struct work {
    struct config_worker worker;
    const char *targets[HANDLER_KINDS]; // as given, by the kind of handler
    // numbers as options read them
    int64_t concurrency, batch, failures;
    bool help, json, until_empty;
    // while it runs
    struct dsn_list list; // one, or several shards
    struct station_share share;
    struct work_station {
        struct work *work;
        struct station *station; // NULL: it has ended
    } stations[DSN_LIST_MAX];
    int running; // stations
    struct signals signals;
    mr_worker_counts counts;
    int code;
    struct mr_error err;
};

static int print_help(const struct option_row *rows)
{
    puts("usage: millrace work QUEUE (--exec CMD | --run CMD | --http URL | --sql FUNCTION |\n"
         "                     --plugin FILE) [OPTION...]\n"
         "\n"
         "Takes jobs from a queue and has them done, until it is stopped.\n");
    options_help(rows, stdout);
    puts("\nThe first SIGTERM or SIGINT stops claiming and lets running jobs finish; the second\n"
         "exits at once. Exit status: 0 done, 1 failed, 2 wrong usage, 3 cannot reach the\n"
         "database at the start. See millrace-work(1).");
    return command_finish(EXIT_DONE);
}

// ---- the command line ----

static int choose_handler(struct work *work, struct mr_error *err)
{
    int given = 0;

    for (int kind = 0; kind < HANDLER_KINDS; kind++) {
        if (work->targets[kind]) {
            given++;
            work->worker.kind = (enum handler_kind)kind;
            work->worker.target = work->targets[kind];
        }
    }
    if (given != 1) {
        mr_error_set(err, MR_EUSAGE, given ? "more than one handler given" : "no handler given");
        mr_error_hint(err, "Give one of --exec, --run, --http, --sql, --plugin.");
        return MR_EUSAGE;
    }
    return 0;
}

static int take_queue(struct work *work, int argc, char **argv, int next, struct mr_error *err)
{
    if (next < 0) {
        return next;
    }
    if (next == argc || str_empty(argv[next])) {
        mr_error_set(err, MR_EUSAGE, "no queue given");
        mr_error_hint(err, "Write `millrace work QUEUE --run COMMAND`, for example.");
        return MR_EUSAGE;
    }
    if (next + 1 < argc) {
        mr_error_set(err, MR_EUSAGE, "work takes one queue: \"%s\"", argv[next + 1]);
        mr_error_hint(err, "A command with arguments is one word: --run \"./send.sh --fast\".");
        return MR_EUSAGE;
    }
    work->worker.queue = argv[next];
    return 0;
}

static int check_usage(struct work *work, struct mr_error *err)
{
    struct config_worker *worker = &work->worker;

    if (work->concurrency < 1 || work->concurrency > CONFIG_CONCURRENCY_MAX) {
        return mr_error_set(err, MR_EUSAGE, "--concurrency must be from 1 to %d",
                            CONFIG_CONCURRENCY_MAX);
    }
    if (work->batch < 1 || work->batch > CONFIG_BATCH_MAX) {
        return mr_error_set(err, MR_EUSAGE, "--batch must be from 1 to %d", CONFIG_BATCH_MAX);
    }
    worker->concurrency = (int)work->concurrency;
    worker->batch = (int)work->batch;
    worker->breaker.failures = (int)work->failures;
    worker->name = worker->name ? worker->name : worker->queue;
    return choose_handler(work, err);
}

// ---- before it runs ----

// A wrong address, a password, a missing schema or privilege: somebody who starts a worker wants
// to be told now. Later the worker reconnects for as long as it takes.
static int check_one(const struct config_worker *worker, const char *dsn, struct mr_error *err)
{
    AUTO_CONN *conn = NULL;
    AUTO_RESULT *result = NULL;
    AUTO_CALL call;

    call_init(&call, CALL_WAIT_CHANNEL);
    call_text(&call, worker->queue);
    call_text(&call, worker->name);
    int code = conn_open(dsn, &conn, err);
    return code ? code : call_exec(&call, conn_pg(conn), &result, err);
}

// The same of Redis, where the jobs come from.
static int check_redis(const struct config_worker *worker, struct mr_error *err)
{
    static const int64_t patience_ms = 5000;
    struct redis_link *link = NULL;
    struct redis_url url;
    int code = redis_url_parse(worker->redis, &url, err);

    if (code == 0) {
        code = redis_link_open(&url, worker->name, patience_ms, &link, err);
    }
    redis_link_free(link);
    return code;
}

// Of several shards those that are up are checked; one has to be.
static int check_database(const struct work *work, struct mr_error *err)
{
    int down = 0;

    for (int i = 0; i < work->list.count; i++) {
        int code = check_one(&work->worker, work->list.items[i], err);
        bool passed_over = work->list.count > 1 && (code == MR_ECONNECT || code == MR_EREADONLY);
        down += passed_over;
        if (code && (!passed_over || down == work->list.count)) {
            return code;
        }
    }
    return 0;
}

static int check_source(const struct work *work, struct mr_error *err)
{
    return work->worker.redis ? check_redis(&work->worker, err) : check_database(work, err);
}

static int read_addresses(struct work *work, struct mr_error *err)
{
    const char *several = conn_shards_dsn(work->worker.dsn);

    return dsn_list_parse(several ? several : work->worker.dsn, &work->list, err);
}

// ---- while it runs ----

static void stop_stations(struct work *work)
{
    for (int i = 0; i < work->list.count; i++) {
        if (work->stations[i].station) {
            station_stop(work->stations[i].station);
        }
    }
}

static void on_stop(void *arg)
{
    struct work *work = arg;

    stop_stations(work);
    if (work->running > 0) {
        signals_limit(&work->signals, work->worker.grace_ms + SIGNALS_MARGIN_MS);
    }
}

static void add_counts(mr_worker_counts *to, const mr_worker_counts *from)
{
    to->completed += from->completed;
    to->failed += from->failed;
    to->requeued += from->requeued;
    to->released += from->released;
    to->lost += from->lost;
    to->reconnects += from->reconnects;
}

// The first that fails ends them all.
static void on_end(void *arg, int code, const struct mr_error *err)
{
    struct work_station *ended = arg;
    struct work *work = ended->work;
    mr_worker_counts counts = MR_WORKER_COUNTS_INIT;

    station_counts(ended->station, &counts);
    add_counts(&work->counts, &counts);
    ended->station = NULL;
    work->running--;
    if (code && !work->code) {
        work->code = code;
        work->err = *err;
        stop_stations(work);
    }
    if (work->running == 0) {
        signals_close(&work->signals);
    }
}

static int start_one(struct work *work, int at, uv_loop_t *loop, struct mr_error *err)
{
    struct work_station *one = &work->stations[at];
    struct station_options options;
    char name[CONFIG_WORKER_NAME_SIZE];

    config_worker_station(&work->worker, NULL, name, &options);
    options.worker.until_empty = work->until_empty;
    options.worker.dsn = options.handler.dsn = work->list.items[at];
    if (work->list.count > 1) {
        options.share = &work->share;
        options.address = at;
    }
    one->work = work;
    int code = station_new(&options, loop, &one->station, err);
    if (code == 0) {
        station_on_end(one->station, on_end, one);
        work->running++;
    }
    return code;
}

static int run(struct work *work, struct mr_error *err)
{
    const struct signals_hooks hooks = {.stop = on_stop, .arg = work};
    uv_loop_t loop;
    int code = 0;

    work->share.set.count = work->list.count;
    uv_loop_init(&loop);
    for (int i = 0; code == 0 && i < work->list.count; i++) {
        code = start_one(work, i, &loop, err);
    }
    if (code) {
        stop_stations(work);
    }
    if (work->running > 0) {
        signals_init(&work->signals, &loop, &hooks);
        uv_run(&loop, UV_RUN_DEFAULT);
    }
    if (code == 0 && (code = work->code)) {
        *err = work->err;
    }
    uv_loop_close(&loop);
    return code;
}

static void print_summary(const mr_worker_counts *counts, int64_t took_ms)
{
    printf("completed %" PRId64 ", failed %" PRId64 ", requeued %" PRId64 ", released %" PRId64
           ", lost %" PRId64 " in %.3f s\n",
           counts->completed, counts->failed, counts->requeued, counts->released, counts->lost,
           (double)took_ms / 1000);
}

static void print_json(const mr_worker_counts *counts, int64_t took_ms)
{
    printf("{\"completed\":%" PRId64 ",\"failed\":%" PRId64 ",\"requeued\":%" PRId64
           ",\"released\":%" PRId64 ",\"lost\":%" PRId64 ",\"reconnects\":%" PRId64
           ",\"seconds\":%.3f}\n",
           counts->completed, counts->failed, counts->requeued, counts->released, counts->lost,
           counts->reconnects, (double)took_ms / 1000);
}

static int work_run(struct work *work)
{
    int64_t began_ms = clock_ms();
    struct mr_error err;

    int code = config_setup_log(NULL, &err);
    if (code == 0 && (code = read_addresses(work, &err)) == 0) {
        code = check_source(work, &err);
        code = code ? code : run(work, &err);
        dsn_list_done(&work->list);
    }
    if (code) {
        return command_fail(&err);
    }
    if (work->json) {
        print_json(&work->counts, clock_ms() - began_ms);
    } else if (work->until_empty) {
        print_summary(&work->counts, clock_ms() - began_ms);
    }
    return command_finish(EXIT_DONE);
}

int cmd_work(int argc, char **argv)
{
    struct work work = {.counts = MR_WORKER_COUNTS_INIT};
    struct config_worker *worker = &work.worker;
    const struct option_row rows[] = {
        {"exec", OPTION_STRING, &work.targets[HANDLER_EXEC], "CMD",
         "a child that reads a job a line and answers a line"},
        {"run", OPTION_STRING, &work.targets[HANDLER_RUN], "CMD", "a process for each job"},
        {"http", OPTION_STRING, &work.targets[HANDLER_HTTP], "URL", "a POST for each job"},
        {"sql", OPTION_STRING, &work.targets[HANDLER_SQL], "FUNCTION",
         "a function in the database, in the transaction that completes"},
        {"plugin", OPTION_STRING, &work.targets[HANDLER_PLUGIN], "FILE",
         "a shared object, FILE[:FUNCTION]"},
        {"dsn", OPTION_DSN, &worker->dsn, "DSN", "the database; see millrace(1)"},
        {"via", OPTION_STRING, &worker->redis, "REDIS",
         "take jobs from this Redis, where a relay puts them"},
        {"pooler", OPTION_FLAG, &worker->pooler, NULL,
         "behind PgBouncer: no named statements, no LISTEN"},
        {"name", OPTION_STRING, &worker->name, "NAME", "the worker's name (QUEUE)"},
        {"concurrency", OPTION_NUMBER, &work.concurrency, "N", "jobs at once (number of cores)"},
        {"batch", OPTION_NUMBER, &work.batch, "N", "jobs in one claim at most (100)"},
        {"batch-wait", OPTION_DURATION, &worker->batch_wait_ms, "TIME",
         "wait for a whole batch so long (not at all)"},
        {"lease", OPTION_DURATION, &worker->lease_ms, "TIME", "of a claim (the queue's, 30s)"},
        {"poll", OPTION_DURATION, &worker->poll_ms, "TIME",
         "how often to look ($QUEUE_POLL_INTERVAL_MS or 100ms)"},
        {"timeout", OPTION_DURATION, &worker->timeout_ms, "TIME",
         "of a job that has none of its own (none)"},
        {"grace", OPTION_DURATION, &worker->grace_ms, "TIME", "for running jobs at the end (30s)"},
        {"breaker-failures", OPTION_NUMBER, &work.failures, "N",
         "in a row that stop claiming; 0: never (5)"},
        {"breaker-open", OPTION_DURATION, &worker->breaker.open_ms, "TIME",
         "until one job is tried again (30s)"},
        {"per-batch", OPTION_FLAG, &worker->per_batch, NULL, "sql: one call for a whole claim"},
        {"procedure", OPTION_FLAG, &worker->procedure, NULL,
         "sql: FUNCTION is a procedure that commits"},
        {"secret", OPTION_STRING, &worker->secret, "SECRET", "http: signs each request (none)"},
        {"private-networks", OPTION_FLAG, &worker->private_networks, NULL,
         "http: may call addresses that are not public"},
        {"until-empty", OPTION_FLAG, &work.until_empty, NULL,
         "end when nothing is left to do, with a summary"},
        {"json", OPTION_FLAG, &work.json, NULL, "the summary as JSON"},
        {"help", OPTION_FLAG, &work.help, NULL, "show this"},
        {0},
    };
    struct mr_error err;

    config_worker_init(worker);
    work.concurrency = worker->concurrency;
    work.batch = worker->batch;
    work.failures = worker->breaker.failures;
    int next = options_parse(rows, argc, argv, &err);
    if (next > 0 && work.help) {
        return print_help(rows);
    }
    if (take_queue(&work, argc, argv, next, &err) || check_usage(&work, &err)) {
        return command_fail(&err);
    }
    return work_run(&work);
}
