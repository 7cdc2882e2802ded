// SPDX-License-Identifier: PostgreSQL
//
// One configured worker on the loop: see station.h.
//
// 1. A station ends in one way only: its worker is done and the handler has no job, then the
//    handler closes, then the loop's handles close, then `ended` is called and the memory is
//    freed. A worker may be done before its handler: a job that was let go still ends.
// 2. The worker is asked whether it is done only after worker_advance() has returned: nothing is
//    freed under the feet of a callback.

#include "daemon/station.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "client/lease.h"

// The longest list of outcome members in which the error is looked for: for the log only.
#define ERROR_SOURCE_MAX (64 * 1024)

struct station {
    struct worker *worker;
    struct handler *handler;
    struct breaker breaker;
    struct tally *tally;                // or NULL
    struct station_share *share;        // or NULL
    int address;                        // in it
    char *name, *target, *dsn, *secret; // what the handler borrows
    uv_poll_t poll;                     // of the worker's descriptor
    uv_timer_t timer;                   // when an open breaker may try again
    int running;                        // jobs that the handler has
    int open_handles;
    bool ending;
    char trouble[MR_ERROR_MESSAGE_SIZE]; // why the database was unreachable when last told
    void (*ended)(void *arg, int code, const struct mr_error *err);
    void *ended_arg;
    void (*connected)(void *arg);
    void *connected_arg;
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

// ---- shards ----

// What a log line calls the shard; NULL where there is one database.
#define SHARD_TEXT_SIZE 24
static const char *shard_text(const struct station *station, char ret[SHARD_TEXT_SIZE])
{
    const struct station_share *share = station->share;

    if (!share) {
        return NULL;
    }
    bool known = share->set.entries[station->address].known;
    snprintf(ret, SHARD_TEXT_SIZE, known ? "%d" : "address %d",
             known ? share->set.entries[station->address].info.number : station->address + 1);
    return ret;
}

// What it runs or may be about to.
static int holds(const struct station *station)
{
    return station->running + worker_on_the_way(station->worker);
}

static int taken_by_others(const struct station *station)
{
    int jobs = 0;

    for (int i = 0; station->share && i < station->share->set.count; i++) {
        const struct station *other = station->share->stations[i];
        if (other && other != station) {
            jobs += holds(other);
        }
    }
    return jobs;
}

// Something has ended or was answered here, which leaves room to others. Only then: two that starve
// would wake each other for ever.
static void wake_starved(struct station *station)
{
    struct station_share *share = station->share;

    for (int i = 0; share && i < share->set.count; i++) {
        if (share->starved[i] && share->stations[i] && share->stations[i] != station) {
            share->starved[i] = false;
            worker_wake(share->stations[i]->worker);
        }
    }
}

static int on_admit(void *arg, const struct shard_info *info, struct mr_error *err)
{
    const struct station *station = arg;
    int code = shard_set_admit(&station->share->set, station->address, info, err);

    if (code) {
        mr_error_prefix(err, "address %d", station->address + 1);
    }
    return code;
}

// ---- the log ----

// What the outcome calls its error; the caller frees it. NULL when it says none.
static char *error_of(const struct outcome *outcome)
{
    AUTO_BUF object;
    char *error = NULL;

    buf_init(&object, ERROR_SOURCE_MAX);
    buf_printf(&object, "{%s}", buf_peek(&outcome->members));
    json_t *members = json_loadb(buf_peek(&object), object.len, JSON_ALLOW_NUL, NULL);
    const char *text = json_string_value(json_object_get(members, "error"));
    if (text) {
        error = strdup(text);
    }
    json_decref(members);
    return error;
}

static void log_failure(const struct station *station, const mr_claimed_job *job,
                        const struct outcome *outcome)
{
    char *error = error_of(outcome);
    char shard[SHARD_TEXT_SIZE];
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("worker", station->name),
        LOG_TEXT_FIELD("shard", shard_text(station, shard)),
        LOG_TEXT_FIELD("queue", job->queue),
        LOG_NUMBER_FIELD("job", job->id),
        LOG_TEXT_FIELD("kind", job->kind),
        LOG_NUMBER_FIELD("attempt", job->attempt),
        LOG_NUMBER_FIELD("max_attempts", job->max_attempts),
    };

    log_put(LEVEL_WARNING, "worker.failed", fields, COUNT_OF(fields), "job %lld failed%s%s",
            (long long)job->id, error ? ": " : "", error ? error : "");
    free(error);
}

static void log_breaker(const struct station *station)
{
    const struct log_field fields[] = {LOG_TEXT_FIELD("worker", station->name)};

    if (station->breaker.status == BREAKER_CLOSED) {
        log_put(LEVEL_INFO, "breaker.closed", fields, COUNT_OF(fields),
                "the handler works again, jobs are claimed again");
    } else {
        log_put(LEVEL_WARNING, "breaker.opened", fields, COUNT_OF(fields),
                "%d failures in a row: nothing is claimed for %lld ms, then one job is tried",
                station->breaker.failures, (long long)station->breaker.options.open_ms);
    }
}

static void log_event(const struct station *station, enum log_level level, const char *event,
                      const struct held_job *held, const char *message, const struct mr_error *err)
{
    char shard[SHARD_TEXT_SIZE];
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("worker", station->name),
        LOG_TEXT_FIELD("shard", shard_text(station, shard)),
        held ? LOG_NUMBER_FIELD("job", held->job->id) : LOG_TEXT_FIELD("job", NULL),
        LOG_TEXT_FIELD("detail", err && err->detail[0] ? err->detail : NULL),
        LOG_TEXT_FIELD("hint", err && err->hint[0] ? err->hint : NULL),
    };

    log_put(level, event, fields, COUNT_OF(fields), "%s%s%s", message, err ? ": " : "",
            err ? err->message : "");
}

// An attempt to connect is made every few seconds for as long as it takes: only a new reason is
// news.
static void unreachable(struct station *station, const struct mr_error *err)
{
    if (err && !str_equal(station->trouble, err->message)) {
        memcpy(station->trouble, err->message, sizeof(station->trouble));
        log_event(station, LEVEL_WARNING, "worker.unreachable", NULL, "still trying", err);
    }
}

static void count_lost(const struct station *station, const struct lease *lease);

static void on_event(void *arg, enum worker_event event, const struct held_job *held,
                     const struct mr_error *err)
{
    struct station *station = arg;

    switch (event) {
    case WORKER_CONNECTED:
        station->trouble[0] = '\0';
        log_event(station, LEVEL_INFO, "worker.connected", NULL, "connected", NULL);
        if (station->connected) {
            station->connected(station->connected_arg);
        }
        return;
    case WORKER_DISCONNECTED:
        // libpq's hints are for somebody who types commands
        log_event(station, LEVEL_WARNING, "worker.disconnected", NULL, err->message, NULL);
        return;
    case WORKER_UNREACHABLE: unreachable(station, err); return;
    case WORKER_LEASE_LOST:
        count_lost(station, held->lease);
        log_event(station, LEVEL_WARNING, "worker.lease_lost", held, err->message, NULL);
        return;
    case WORKER_REFUSED:
        log_event(station, LEVEL_WARNING, "worker.refused", held, "an outcome was refused", err);
        return;
    case WORKER_UNREPORTED:
        log_event(station, LEVEL_WARNING, "worker.unreported", NULL,
                  "a report of progress was refused", err);
        return;
    case WORKER_UNREADABLE:
        log_event(station, LEVEL_ERROR, "worker.unreadable", held,
                  "a job is damaged and has failed for good", err);
        return;
    case WORKER_STORE_DOWN:
        log_event(station, LEVEL_WARNING, "worker.store_down", held,
                  "the blob store cannot be read; jobs whose payload it has wait", err);
        return;
    case WORKER_FAILED:
        log_event(station, LEVEL_ERROR, "worker.gave_up", NULL, "cannot go on", err);
        return;
    }
}

// ---- the breaker ----

static void on_timer(uv_timer_t *timer);

// The loop's clock may be a little behind ours: too early only means once more.
static void set_timer(struct station *station)
{
    int64_t at_ms = breaker_retry_at_ms(&station->breaker);
    int64_t wait_ms = at_ms - clock_ms();

    if (at_ms && !station->ending) {
        uv_update_time(station->timer.loop);
        uv_timer_start(&station->timer, on_timer, wait_ms > 0 ? (uint64_t)wait_ms + 1 : 1, 0);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct station *station = timer->data;

    if (clock_ms() < breaker_retry_at_ms(&station->breaker)) {
        set_timer(station);
    }
    worker_wake(station->worker);
}

static bool is_failure(const struct outcome *outcome)
{
    return outcome->kind == OUTCOME_FAILED ||
           (outcome->kind == OUTCOME_ELSEWHERE && outcome->failed);
}

// A job that was stopped says nothing about its handler.
static bool was_stopped(const struct held_job *held, const struct outcome *outcome)
{
    return held->dropped || outcome->kind == OUTCOME_RELEASED ||
           (held->cancelled && is_failure(outcome));
}

// Whether the outcome changed the breaker.
static bool tell_breaker(struct station *station, const struct held_job *held,
                         const struct outcome *outcome)
{
    if (was_stopped(held, outcome)) {
        breaker_neutral(&station->breaker);
        return false;
    }
    if (is_failure(outcome)) {
        return breaker_failed(&station->breaker, clock_ms());
    }
    return breaker_good(&station->breaker);
}

// ---- between worker and handler ----

static int on_room(void *arg)
{
    struct station *station = arg;
    int room = station->handler->ops->room(station->handler);

    if (station->share) {
        int taken = taken_by_others(station);
        station->share->starved[station->address] = room > 0 && taken > 0;
        room -= taken;
    }
    return breaker_allows(&station->breaker, room > 0 ? room : 0, clock_ms());
}

static void release(struct station *station, struct held_job *held)
{
    AUTO_OUTCOME outcome;

    outcome_init(&outcome);
    outcome_release(&outcome);
    worker_settle(station->worker, held, &outcome);
}

// ---- figures ----

// A job that is tried again has waited for its backoff, too: only first attempts tell how long
// jobs wait for a worker.
static void count_start(const struct station *station, struct held_job *held)
{
    held->started_us = clock_us();
    if (station->tally && held->job->attempt == 1) {
        tally_wait(station->tally, held->job->queue,
                   (double)(clock_wall_us() - held->job->created_at_us) / 1e6);
    }
}

static void count(const struct station *station, const struct held_job *held,
                  enum tally_outcome outcome)
{
    tally_count(station->tally, held->job->queue, held->job->kind, outcome, 1);
}

// The server decides by the same: the attempts, and the handler's word.
static void count_failure(const struct station *station, const struct held_job *held,
                          const struct outcome *outcome)
{
    bool dead = outcome->final || held->job->attempt >= held->job->max_attempts;

    count(station, held, TALLY_FAILED);
    count(station, held, dead ? TALLY_DEAD : TALLY_RETRIED);
}

static void count_end(const struct station *station, const struct held_job *held,
                      const struct outcome *outcome)
{
    if (!station->tally) {
        return;
    }
    if (was_stopped(held, outcome)) {
        if (held->cancelled && !held->dropped && is_failure(outcome)) {
            count(station, held, TALLY_CANCELLED);
        }
        return;
    }
    tally_run(station->tally, held->job->queue, (double)(clock_us() - held->started_us) / 1e6);
    if (is_failure(outcome)) {
        count_failure(station, held, outcome);
    } else if (outcome->kind == OUTCOME_COMPLETED || outcome->kind == OUTCOME_ELSEWHERE) {
        count(station, held, TALLY_COMPLETED);
    }
}

// Of a lost lease the jobs that still run, or wait for their handler: somebody else has them now.
static void count_lost(const struct station *station, const struct lease *lease)
{
    for (int i = 0; station->tally && lease->lost && i < lease->count; i++) {
        if (!lease->helds[i].settled && !lease->helds[i].dropped) {
            count(station, &lease->helds[i], TALLY_RESCUED);
        }
    }
}

// The breaker may have opened while the claim was under way: what it does not allow any more goes
// back, its attempt not counted.
static void on_start(void *arg, struct held_job *const *jobs, int count)
{
    struct station *station = arg;
    int started = breaker_allows(&station->breaker, count, clock_ms());

    for (int i = 0; i < started; i++) {
        count_start(station, jobs[i]);
    }
    if (started > 0) {
        breaker_started(&station->breaker, started);
        station->running += started;
        station->handler->ops->start(station->handler, jobs, started);
    }
    for (int i = started; i < count; i++) {
        release(station, jobs[i]);
    }
}

static void on_drop(void *arg, struct held_job *held)
{
    struct station *station = arg;

    station->handler->ops->drop(station->handler, held);
}

static void on_cancel(void *arg, struct held_job *held)
{
    struct station *station = arg;

    log_event(station, LEVEL_INFO, "worker.cancelled", held,
              "the job was cancelled and is told to stop", NULL);
    station->handler->ops->cancel(station->handler, held);
}

static void on_settle(void *arg, struct held_job *held, struct outcome *outcome)
{
    struct station *station = arg;
    bool changed = tell_breaker(station, held, outcome);

    station->running--;
    count_end(station, held, outcome);
    if (!was_stopped(held, outcome) && is_failure(outcome)) {
        log_failure(station, held->job, outcome);
    }
    if (changed) {
        log_breaker(station);
        set_timer(station);
    }
    worker_settle(station->worker, held, outcome);
    wake_starved(station);
}

// From threads of a plugin, too.
static int on_report(void *arg, struct held_job *held, double percent, const char *note)
{
    const struct station *station = arg;

    return worker_report(station->worker, held, percent, note);
}

static void on_roomier(void *arg)
{
    struct station *station = arg;

    worker_wake(station->worker);
}

static const struct worker_ops station_worker_ops = {
    .room = on_room,
    .start = on_start,
    .drop = on_drop,
    .cancel = on_cancel,
    .event = on_event,
};

// ---- the end ----

static void station_free(struct station *station)
{
    if (station->share && station->share->stations[station->address] == station) {
        station->share->stations[station->address] = NULL;
        wake_starved(station);
    }
    worker_free(station->worker);
    free(station->name);
    free(station->target);
    free(station->dsn);
    free(station->secret);
    free(station);
}

static void on_closed(uv_handle_t *handle)
{
    struct station *station = handle->data;
    struct mr_error err;

    if (--station->open_handles > 0) {
        return;
    }
    memset(&err, 0, sizeof(err));
    int code = worker_result(station->worker, &err);
    if (station->ended) {
        station->ended(station->ended_arg, code, code ? &err : NULL);
    }
    station_free(station);
}

static void on_handler_closed(void *arg)
{
    struct station *station = arg;

    station->handler = NULL;
    station->open_handles = 2;
    uv_close((uv_handle_t *)&station->poll, on_closed);
    uv_close((uv_handle_t *)&station->timer, on_closed);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct station *station = poll->data;

    (void)status;
    (void)events;
    if (station->ending) {
        return;
    }
    int held = holds(station);
    worker_advance(station->worker);
    if (holds(station) < held) {
        wake_starved(station);
    }
    if (station->running == 0 && worker_done(station->worker)) {
        station->ending = true;
        uv_poll_stop(&station->poll);
        uv_timer_stop(&station->timer);
        station->handler->ops->close(station->handler, on_handler_closed, station);
    }
}

// ---- the beginning ----

static bool copy(char **ret, const char *text)
{
    *ret = text ? strdup(text) : NULL;
    return *ret || !text;
}

static int open_handler(struct station *station, const struct handler_options *options,
                        uv_loop_t *loop, struct mr_error *err)
{
    const struct handler_ops *ops = handler_ops_of(options->kind);
    const struct handler_env env = {
        .loop = loop,
        .settle = on_settle,
        .roomier = on_roomier,
        .report = on_report,
        .arg = station,
    };
    struct handler_options mine = *options;

    mine.name = station->name;
    mine.target = station->target;
    mine.dsn = station->dsn;
    mine.secret = station->secret;
    return ops->open(&mine, &env, &station->handler, err);
}

// A function that takes a batch runs all of it at once.
static int slots_of(const struct handler_options *options)
{
    static const int batch_default = 100;
    int batch = options->batch > 0 ? options->batch : batch_default;
    int threads = options->concurrency > 0 ? options->concurrency : 1;

    return options->kind == HANDLER_SQL && options->per_batch ? threads * batch : threads;
}

static int open_parts(struct station *station, const struct station_options *options,
                      uv_loop_t *loop, struct mr_error *err)
{
    if (!copy(&station->name, options->handler.name) ||
        !copy(&station->target, options->handler.target) ||
        !copy(&station->dsn, options->handler.dsn) ||
        !copy(&station->secret, options->handler.secret)) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    struct worker_options worker = options->worker;
    struct worker_ops ops = station_worker_ops;
    worker.slots = slots_of(&options->handler);
    ops.admit = options->share ? on_admit : NULL;
    int code = worker_new(&worker, &ops, station, &station->worker, err);
    return code ? code : open_handler(station, &options->handler, loop, err);
}

// Cannot fail any more: libuv only makes entries of its own here, and the descriptor is an epoll.
static void watch(struct station *station, uv_loop_t *loop)
{
    uv_poll_init(loop, &station->poll, worker_fd(station->worker));
    uv_timer_init(loop, &station->timer);
    station->poll.data = station->timer.data = station;
    uv_poll_start(&station->poll, UV_READABLE, on_readable);
    worker_wake(station->worker);
}

int station_new(const struct station_options *options, uv_loop_t *loop, struct station **ret,
                struct mr_error *err)
{
    struct station *station = calloc(1, sizeof(*station));

    if (!station) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    breaker_init(&station->breaker, options->breaker);
    station->tally = options->tally;
    station->share = options->share;
    station->address = options->address;
    int code = open_parts(station, options, loop, err);
    if (code) {
        station_free(station);
        return code;
    }
    if (station->share) {
        station->share->stations[station->address] = station;
    }
    watch(station, loop);
    *ret = station;
    return 0;
}

void station_stop(struct station *station)
{
    worker_stop(station->worker);
    worker_wake(station->worker);
}

void station_on_end(struct station *station,
                    void (*ended)(void *arg, int code, const struct mr_error *err), void *arg)
{
    station->ended = ended;
    station->ended_arg = arg;
}

void station_on_connected(struct station *station, void (*connected)(void *arg), void *arg)
{
    station->connected = connected;
    station->connected_arg = arg;
}

// ---- looking ----

const char *station_name(const struct station *station)
{
    return station->name;
}

bool station_healthy(const struct station *station)
{
    return worker_healthy(station->worker);
}

void station_counts(const struct station *station, mr_worker_counts *ret)
{
    worker_counts(station->worker, ret);
}

enum breaker_status station_breaker(const struct station *station)
{
    return station->breaker.status;
}
