// SPDX-License-Identifier: PostgreSQL
//
// The library's worker: the worker of worker.h, one for each shard, driven by poll() on the thread
// of mr_worker_run(), and threads that run the handler.
//
// 1. The worker and its jobs are touched by the running thread only. Other threads see the
//    atomic members, the worker's counters and its wake-up.
// 2. A ticket goes with each job, from start to settlement. While a thread has it, the job's
//    batch stays: settled is only what came back from the pool, or never began.
// 3. One job is held for each thread, and ahead of them what they can work off in AHEAD_US, at most
//    three batches: two claims are under way while the last one is worked off, and slow jobs are
//    left to others.
// 4. Shards share the threads: what one of them holds, or has asked for just now, is no room for
// the
//    others, and an idle one holds none.

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "client/conn.h"
#include "client/mr_conn.h"
#include "client/mr_outcome.h"
#include "client/pool.h"
#include "client/sized.h"
#include "client/worker.h"

#define BATCH_DEFAULT     100
#define POLL_DEFAULT_MS   100
#define POLL_MAX_MS       (INT64_C(24) * 60 * 60 * 1000)
#define GRACE_DEFAULT_MS  30000
#define HEALTH_DEFAULT_MS 15000
#define THREADS_MAX       1000
// Longer than anything runs, so that a sum of times is none too large: INT64_MAX is "for ever".
#define TIME_MAX_MS (INT64_C(100) * 365 * 24 * 60 * 60 * 1000)
// See 3.
#define AHEAD_US 100000
// How often the health is looked at while nothing happens.
#define ROUND_MAX_MS 1000

// One shard, or the only database.
struct member {
    mr_worker *owner;
    struct worker *worker;
    int at;
};

struct ticket {
    struct pool_work work; // first: the pool gives it back
    struct member *member;
    struct held_job *held;
    struct outcome outcome;
    int64_t took_us;
    atomic_bool cancelled; // what mr_outcome_cancelled() says
    struct ticket *next, *prev;
};

struct mr_worker {
    mr_worker_options options; // numbers with their defaults filled in
    struct member members[SHARD_NUMBERS];
    int count;
    struct shard_set set; // what they have said
    struct pool *pool;
    struct ticket *tickets;
    int held;
    int64_t job_us; // what a job takes, as a moving average; 0: not known yet
    bool stopping;
    int64_t stop_at_ms; // the end of the grace period
    atomic_bool stop, started;
    atomic_bool healthy;
    atomic_llong looked_at_ms; // when it was
};

// ---- tickets ----

static struct ticket *ticket_new(struct member *member, struct held_job *held)
{
    mr_worker *worker = member->owner;
    struct ticket *ticket = calloc(1, sizeof(*ticket));

    if (ticket) {
        ticket->member = member;
        ticket->held = held;
        outcome_init(&ticket->outcome);
        ticket->next = worker->tickets;
        if (ticket->next) {
            ticket->next->prev = ticket;
        }
        worker->tickets = ticket;
        worker->held++;
        held->user = ticket;
    }
    return ticket;
}

static void ticket_settle(struct ticket *ticket)
{
    mr_worker *worker = ticket->member->owner;

    *(ticket->prev ? &ticket->prev->next : &worker->tickets) = ticket->next;
    if (ticket->next) {
        ticket->next->prev = ticket->prev;
    }
    worker->held--;
    worker_settle(ticket->member->worker, ticket->held, &ticket->outcome);
    outcome_done(&ticket->outcome);
    free(ticket);
}

// On a thread of the handler's.
static int on_report(void *arg, struct held_job *held, double percent, const char *note)
{
    const struct member *member = arg;

    return worker_report(member->worker, held, percent, note);
}

// On a thread of the pool.
static void ticket_run(struct pool_work *work, void *thread_state)
{
    struct ticket *ticket = (struct ticket *)work;
    const mr_worker_options *options = &ticket->member->owner->options;
    mr_outcome outcome;

    (void)thread_state;
    mr__outcome_init(&outcome);
    outcome.cancelled = &ticket->cancelled;
    outcome.report = on_report;
    outcome.report_arg = ticket->member;
    outcome.held = ticket->held;
    int64_t begun_us = clock_us();
    int status = options->handler(ticket->held->job, &outcome, options->arg);
    ticket->took_us = clock_us() - begun_us;
    mr__outcome_end(&outcome, status, &ticket->outcome);
    mr__outcome_done(&outcome);
}

// Gives a job back that no thread has begun; false when one has.
static bool ticket_withdraw(struct ticket *ticket)
{
    if (!pool_withdraw(ticket->member->owner->pool, &ticket->work)) {
        return false;
    }
    outcome_release(&ticket->outcome);
    ticket_settle(ticket);
    return true;
}

static void collect(mr_worker *worker)
{
    struct pool_work *work;

    while ((work = pool_collect(worker->pool))) {
        struct ticket *ticket = (struct ticket *)work;
        int64_t took_us = ticket->took_us + 1;
        worker->job_us = worker->job_us ? (worker->job_us * 7 + took_us) / 8 : took_us;
        ticket_settle(ticket);
    }
}

// ---- what the worker asks for ----

// What the others may bring.
static int on_the_way(const struct member *member)
{
    int jobs = 0;

    for (int i = 0; i < member->owner->count; i++) {
        if (i != member->at) {
            jobs += worker_on_the_way(member->owner->members[i].worker);
        }
    }
    return jobs;
}

static int on_room(void *arg)
{
    const struct member *member = arg;
    const mr_worker *worker = member->owner;
    int64_t most = 3 * (int64_t)worker->options.batch;
    int64_t ahead =
        worker->job_us ? worker->options.concurrency * (int64_t)AHEAD_US / worker->job_us : 0;

    return worker->options.concurrency + (int)(ahead < most ? ahead : most) - worker->held -
           on_the_way(member);
}

static void on_start(void *arg, struct held_job *const *jobs, int count)
{
    struct member *member = arg;
    struct pool_work **works = malloc((size_t)count * sizeof(*works));
    int ready = 0;

    for (int i = 0; i < count; i++) {
        struct ticket *ticket = works ? ticket_new(member, jobs[i]) : NULL;
        if (ticket) {
            ticket->work.run = ticket_run;
            works[ready++] = &ticket->work;
        } else {
            AUTO_OUTCOME outcome;
            outcome_init(&outcome);
            outcome_release(&outcome);
            worker_settle(member->worker, jobs[i], &outcome);
        }
    }
    pool_submit_many(member->owner->pool, works, ready);
    free(works);
}

// A C function cannot be interrupted: a job that has begun runs to its end for nothing.
static void on_drop(void *arg, struct held_job *held)
{
    (void)arg;
    ticket_withdraw(held->user);
}

// The handler can ask, and end early.
static void on_cancel(void *arg, struct held_job *held)
{
    const struct member *member = arg;
    struct ticket *ticket = held->user;

    if (pool_withdraw(member->owner->pool, &ticket->work)) {
        outcome_cancel(&ticket->outcome);
        ticket_settle(ticket);
    } else {
        atomic_store(&ticket->cancelled, true);
    }
}

static int on_admit(void *arg, const struct shard_info *info, struct mr_error *err)
{
    const struct member *member = arg;
    int code = shard_set_admit(&member->owner->set, member->at, info, err);

    if (code) {
        mr_error_prefix(err, "address %d", member->at + 1);
    }
    return code;
}

// ---- running ----

static void stop_now(mr_worker *worker)
{
    worker->stopping = true;
    worker->stop_at_ms = clock_ms() + worker->options.grace_ms;
    for (int i = 0; i < worker->count; i++) {
        worker_stop(worker->members[i].worker);
    }
    for (struct ticket *ticket = worker->tickets, *next; ticket; ticket = next) {
        next = ticket->next;
        ticket_withdraw(ticket);
    }
}

// Of several shards one is enough: the others' jobs wait for them.
static bool any_healthy(const mr_worker *worker)
{
    for (int i = 0; i < worker->count; i++) {
        if (worker_healthy(worker->members[i].worker)) {
            return true;
        }
    }
    return false;
}

static void look_at_health(mr_worker *worker)
{
    atomic_store(&worker->healthy, any_healthy(worker));
    atomic_store(&worker->looked_at_ms, clock_ms());
}

static void wait_for_events(const mr_worker *worker)
{
    struct pollfd poll_fds[SHARD_NUMBERS + 1];
    int64_t left_ms = worker->options.health_ms / 2;

    for (int i = 0; i < worker->count; i++) {
        poll_fds[i] = (struct pollfd){.fd = worker_fd(worker->members[i].worker), .events = POLLIN};
    }
    poll_fds[worker->count] = (struct pollfd){.fd = pool_fd(worker->pool), .events = POLLIN};
    poll(poll_fds, (nfds_t)worker->count + 1,
         left_ms < ROUND_MAX_MS ? (int)left_ms + 1 : ROUND_MAX_MS);
}

// An answer that leaves room to others comes to light in the first round; they take it in the
// second.
static void advance_all(const mr_worker *worker)
{
    for (int round = 0; round < (worker->count > 1 ? 2 : 1); round++) {
        for (int i = 0; i < worker->count; i++) {
            worker_advance(worker->members[i].worker);
        }
    }
}

static bool all_done(const mr_worker *worker)
{
    for (int i = 0; i < worker->count; i++) {
        if (!worker_done(worker->members[i].worker)) {
            return false;
        }
    }
    return true;
}

// The first failure of any of them.
static int result_of(const mr_worker *worker, mr_error *err)
{
    for (int i = 0; i < worker->count; i++) {
        int code = worker_result(worker->members[i].worker, err);
        if (code) {
            return code;
        }
    }
    return 0;
}

// Stopped by somebody, or by itself: empty, or failed.
static bool is_stopping(const mr_worker *worker)
{
    return atomic_load(&worker->stop) || all_done(worker) || result_of(worker, NULL) != 0;
}

// Whether there is nothing left to wait for: handlers may still run whose leases are lost.
static bool is_over(const mr_worker *worker)
{
    return all_done(worker) && (worker->held == 0 || clock_ms() >= worker->stop_at_ms);
}

static void run(mr_worker *worker)
{
    do {
        if (!worker->stopping && is_stopping(worker)) {
            stop_now(worker);
        }
        advance_all(worker);
        look_at_health(worker);
        if (!worker->stopping || !is_over(worker)) {
            wait_for_events(worker);
            collect(worker);
        }
    } while (!worker->stopping || !is_over(worker));
}

int mr_worker_run(mr_worker *worker, mr_error *err)
{
    struct pool_options options = {0};
    int code;

    if (!worker || atomic_exchange(&worker->started, true)) {
        mr_error_set(err, MR_EUSAGE, worker ? "the worker has run already" : "no worker was given");
        mr_error_hint(err, "Make a new one with mr_worker_new() for each run.");
        return MR_EUSAGE;
    }
    options.threads = worker->options.concurrency;
    if ((code = pool_new(&options, &worker->pool, err))) {
        return code;
    }
    run(worker);
    atomic_store(&worker->healthy, false);
    return result_of(worker, err);
}

void mr_worker_stop(mr_worker *worker)
{
    int saved = errno; // this may be a signal handler

    if (worker) {
        atomic_store(&worker->stop, true);
        worker_wake(worker->members[0].worker);
    }
    errno = saved;
}

// The running thread may hang, so its word is good for a time only.
int mr_worker_healthy(mr_worker *worker)
{
    return worker && atomic_load(&worker->healthy) &&
           clock_ms() - atomic_load(&worker->looked_at_ms) < worker->options.health_ms;
}

static void add_counts(mr_worker_counts *to, const mr_worker_counts *from)
{
    to->claims += from->claims;
    to->claimed += from->claimed;
    to->completed += from->completed;
    to->failed += from->failed;
    to->requeued += from->requeued;
    to->released += from->released;
    to->lost += from->lost;
    to->reconnects += from->reconnects;
    to->running += from->running;
}

void mr_worker_stats(mr_worker *worker, mr_worker_counts *ret)
{
    mr_worker_counts counts = MR_WORKER_COUNTS_INIT;

    if (!worker || !ret || ret->size < sizeof(size_t) || ret->size > sizeof(counts)) {
        return;
    }
    for (int i = 0; i < worker->count; i++) {
        mr_worker_counts one = MR_WORKER_COUNTS_INIT;
        worker_counts(worker->members[i].worker, &one);
        add_counts(&counts, &one);
    }
    counts.size = ret->size;
    memcpy(ret, &counts, ret->size);
}

// ---- options ----

static int default_concurrency(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    return cores < 1 ? 1 : cores > THREADS_MAX ? THREADS_MAX : (int)cores;
}

static int64_t default_poll_ms(void)
{
    const char *text = getenv("QUEUE_POLL_INTERVAL_MS");
    int64_t poll_ms = POLL_DEFAULT_MS;

    if (text) {
        str_parse_int(text, 1, POLL_MAX_MS, &poll_ms);
    }
    return poll_ms;
}

static int wrong(mr_error *err, const char *what, const char *hint)
{
    mr_error_set(err, MR_EUSAGE, "%s", what);
    mr_error_hint(err, "%s", hint);
    return MR_EUSAGE;
}

static int check_options(const mr_worker_options *options, mr_error *err)
{
    if (!options->handler) {
        return wrong(err, "the worker has no handler", "Set mr_worker_options.handler.");
    }
    if (options->concurrency < 0 || options->concurrency > THREADS_MAX) {
        return wrong(err, "concurrency is out of range",
                     "Give a number of threads from 1 to 1,000, or 0 for the number of cores.");
    }
    if (options->lease_ms < 0 || options->poll_ms < 0 || options->grace_ms < 0 ||
        options->health_ms < 0) {
        return wrong(err, "a time of the worker's options is negative",
                     "Give milliseconds, or 0 for the default.");
    }
    return 0;
}

static void cut_time(int64_t *time_ms)
{
    *time_ms = *time_ms < TIME_MAX_MS ? *time_ms : TIME_MAX_MS;
}

static void fill_defaults(mr_worker_options *options)
{
    if (!options->concurrency) {
        options->concurrency = default_concurrency();
    }
    if (!options->batch) {
        options->batch = BATCH_DEFAULT;
    }
    if (!options->poll_ms) {
        options->poll_ms = default_poll_ms();
    }
    if (!options->grace_ms) {
        options->grace_ms = GRACE_DEFAULT_MS;
    }
    if (!options->health_ms) {
        options->health_ms = HEALTH_DEFAULT_MS;
    }
    cut_time(&options->poll_ms);
    cut_time(&options->grace_ms);
    cut_time(&options->health_ms);
}

// Host, pid and a number: no two workers have the same.
static void make_name(char *name, size_t size)
{
    static atomic_int last;
    char host[65] = "";

    if (gethostname(host, sizeof(host) - 1) != 0 || !host[0]) {
        memcpy(host, "host", sizeof("host"));
    }
    snprintf(name, size, "%s-%ld-%d", host, (long)getpid(), atomic_fetch_add(&last, 1) + 1);
}

static int make_member(mr_worker *worker, int at, struct worker_options *inner, mr_error *err)
{
    struct worker_ops ops = {
        .room = on_room, .start = on_start, .drop = on_drop, .cancel = on_cancel};
    struct member *member = &worker->members[at];

    *member = (struct member){.owner = worker, .at = at};
    if (inner->shard_leases) {
        ops.admit = on_admit;
    }
    return worker_new(inner, &ops, member, &member->worker, err);
}

static int make_members(mr_worker *worker, const struct dsn_list *list, mr_error *err)
{
    const mr_worker_options *options = &worker->options;
    char name[128];
    int code = 0;

    make_name(name, sizeof(name));
    struct worker_options inner = {
        .pooler = options->pooler != 0,
        .redis = options->redis,
        .queue = options->queue ? options->queue : "default",
        .name = options->name ? options->name : name,
        .batch = options->batch,
        .slots = options->concurrency,
        .lease_ms = options->lease_ms,
        .poll_ms = options->poll_ms,
        .grace_ms = options->grace_ms,
        .health_ms = options->health_ms,
        .without_state = options->without_state != 0,
        .until_empty = options->until_empty != 0,
        .shard_leases = list->count > 1,
        .blobs = {.address = options->blobs},
    };
    for (int i = 0; code == 0 && i < list->count; i++) {
        inner.dsn = list->items[i];
        code = make_member(worker, i, &inner, err);
        worker->count += code == 0;
    }
    worker->set.count = worker->count;
    return code;
}

static int make_worker(mr_worker *worker, mr_error *err)
{
    struct dsn_list list;
    const char *several = conn_shards_dsn(worker->options.dsn);
    int code = dsn_list_parse(several ? several : worker->options.dsn, &list, err);

    if (code == 0) {
        code = make_members(worker, &list, err);
        dsn_list_done(&list);
    }
    return code;
}

int mr_worker_new(const mr_worker_options *from, mr_worker **ret, mr_error *err)
{
    mr_worker_options options = MR_WORKER_OPTIONS_INIT;
    int code;

    if (!from) {
        return wrong(err, "no options were given", "Begin them with MR_WORKER_OPTIONS_INIT.");
    }
    if ((code = sized_read(&options, sizeof(options), from, "MR_WORKER_OPTIONS_INIT", err)) ||
        (code = check_options(&options, err))) {
        return code;
    }
    if (conn_redis_dsn(options.dsn)) {
        return mr__conn_needs_pg("mr_worker_new()", err);
    }
    mr_worker *worker = calloc(1, sizeof(*worker));
    if (!worker) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    fill_defaults(&options);
    worker->options = options;
    if ((code = make_worker(worker, err))) {
        mr_worker_free(worker);
        return code;
    }
    *ret = worker;
    return 0;
}

void mr_worker_free(mr_worker *worker)
{
    if (!worker) {
        return;
    }
    if (worker->pool) {
        pool_join(worker->pool);
        collect(worker);
        pool_free(worker->pool);
    }
    for (int i = 0; i < worker->count; i++) {
        worker_free(worker->members[i].worker);
    }
    free(worker);
}
