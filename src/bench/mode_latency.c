// SPDX-License-Identifier: PostgreSQL
//
// Latency: single jobs into an idle queue, from the moment the producer knows of its commit to
// the handler's first line; and in turns with them a bare NOTIFY, which is what the server and
// the kernel cost by themselves.

#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "bench/crew.h"
#include "bench/modes.h"
#include "bench/script.h"
#include "bench/stage.h"

enum {
    WARM_ROUNDS = 5,
    PAUSE_LEAST_US = 10000, // the queue is idle again, and at no fixed distance from a poll
    PAUSE_SPAN_US = 30000,
    LIMIT_S = 30,
    LIMIT_MS = LIMIT_S * 1000,
};

struct latency {
    struct stage *stage;
    struct crew crew;
    struct conn *listener;
    struct conn *notifier;
    atomic_llong arrived_us;
    sem_t arrived;
    struct sample pickup;     // commit to handler
    struct sample notify;     // commit to listener
    struct sample round_trip; // sending to listener
};

static void on_job(void *arg, const char *args)
{
    struct latency *latency = arg;

    (void)args;
    atomic_store(&latency->arrived_us, clock_us());
    sem_post(&latency->arrived);
}

static double ms_since(int64_t from_us, int64_t to_us)
{
    return to_us > from_us ? (double)(to_us - from_us) / 1000 : 0;
}

// Asleep, as behind a NOTIFY: who looks again and again keeps a core from the worker.
static int wait_for_job(struct latency *latency, struct mr_error *err)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LIMIT_S;
    while (sem_timedwait(&latency->arrived, &until)) {
        if (errno != EINTR) {
            return mr_error_set(err, MR_ETIMEOUT, "a job was not picked up in %d seconds", LIMIT_S);
        }
    }
    return 0;
}

static int pick_up(struct latency *latency, double *ret_ms, struct mr_error *err)
{
    struct stage *stage = latency->stage;
    int code;

    while (sem_trywait(&latency->arrived) == 0) { // of a job that was delivered twice
    }
    if ((code = stage->contender->enqueue(&stage->session, stage->payload.args, 1, 1, err))) {
        return code;
    }
    int64_t committed = clock_us();
    if ((code = wait_for_job(latency, err)) == 0) {
        *ret_ms = ms_since(committed, atomic_load(&latency->arrived_us));
    }
    return code;
}

static int wait_for_notify(struct conn *listener, struct mr_error *err)
{
    PGconn *pg = conn_pg(listener);
    struct pollfd fd = {.fd = PQsocket(pg), .events = POLLIN};
    PGnotify *notify;

    while (!(notify = PQnotifies(pg))) {
        if (poll(&fd, 1, LIMIT_MS) <= 0) {
            return mr_error_set(err, MR_ETIMEOUT, "a notification was not delivered");
        }
        if (!PQconsumeInput(pg)) {
            return conn_error_of(pg, NULL, err);
        }
    }
    PQfreemem(notify);
    return 0;
}

static int notify(struct latency *latency, double *ret_ms, double *ret_round_trip_ms,
                  struct mr_error *err)
{
    int64_t sent = clock_us();
    int code = script_run(latency->notifier, "notify", NULL, NULL, err);
    int64_t committed = clock_us();

    if (code == 0 && (code = wait_for_notify(latency->listener, err)) == 0) {
        int64_t arrived = clock_us();
        *ret_ms = ms_since(committed, arrived);
        *ret_round_trip_ms = ms_since(sent, arrived);
    }
    return code;
}

static void pause_idle(void)
{
    watch_pause_us(PAUSE_LEAST_US + random() % PAUSE_SPAN_US);
}

static int one_round(struct latency *latency, bool counts, struct mr_error *err)
{
    double pickup_ms = 0, notify_ms = 0, round_trip_ms = 0;
    int code;

    pause_idle();
    if ((code = pick_up(latency, &pickup_ms, err))) {
        return code;
    }
    // After a pause, too: right behind a job it would find caches warm that were cold for the job.
    pause_idle();
    if ((code = notify(latency, &notify_ms, &round_trip_ms, err)) || !counts) {
        return code;
    }
    if ((code = sample_add(&latency->pickup, pickup_ms, err)) ||
        (code = sample_add(&latency->notify, notify_ms, err))) {
        return code;
    }
    return sample_add(&latency->round_trip, round_trip_ms, err);
}

static int all_rounds(struct latency *latency, struct mr_error *err)
{
    int64_t end = clock_us() + latency->stage->bench->spec->seconds * 1000000;
    int code = 0;

    for (int i = 0; code == 0 && (clock_us() < end || i <= WARM_ROUNDS); i++) {
        code = crew_tick(&latency->crew, &latency->stage->bench->watch, 0, true, err);
        if (code == 0) {
            code = one_round(latency, i >= WARM_ROUNDS, err);
        }
    }
    return code;
}

static void put_in(struct latency *latency, struct run *run)
{
    double p50 = sample_percentile(&latency->pickup, 0.5);
    double p99 = sample_percentile(&latency->pickup, 0.99);
    double notify_p50 = sample_percentile(&latency->round_trip, 0.5);
    double notify_p99 = sample_percentile(&latency->round_trip, 0.99);

    run_note(run, "jobs", (double)latency->pickup.count);
    run_note(run, "workers", latency->crew.workers);
    run_less(run, "p50_ms", "ms", p50);
    run_less(run, "p99_ms", "ms", p99);
    run_less(run, "max_ms", "ms", sample_percentile(&latency->pickup, 1));
    run_less(run, "notify_p50_ms", "ms", notify_p50);
    run_less(run, "notify_p99_ms", "ms", notify_p99);
    run_less(run, "notify_max_ms", "ms", sample_percentile(&latency->round_trip, 1));
    run_note(run, "notify_from_commit_p50_ms", sample_percentile(&latency->notify, 0.5));
    run_note(run, "notify_from_commit_p99_ms", sample_percentile(&latency->notify, 0.99));
    run_ratio(run, "p50_ms", "notify", notify_p50 > 0 ? p50 / notify_p50 : 0);
    run_ratio(run, "p99_ms", "notify", notify_p99 > 0 ? p99 / notify_p99 : 0);
}

static int open_sessions(struct latency *latency, struct mr_error *err)
{
    const char *dsn = buf_peek(&latency->stage->site->dsn);
    int code;

    if ((code = conn_open(dsn, &latency->listener, err)) ||
        (code = conn_open(dsn, &latency->notifier, err))) {
        return code;
    }
    return conn_run(latency->listener, "listen millrace_bench", err);
}

static int work(struct latency *latency, struct run *run, struct mr_error *err)
{
    struct mr_error later = {0};
    int code = crew_start(&latency->crew, err);

    if (code == 0) {
        code = all_rounds(latency, err);
    }
    int end = crew_finish(&latency->crew, &later);
    if (code == 0 && end) {
        *err = later;
    }
    if (code == 0 && end == 0) {
        put_in(latency, run);
    }
    return code ? code : end;
}

static int measure(struct latency *latency, struct run *run, struct mr_error *err)
{
    struct stage *stage = latency->stage;
    int code = open_sessions(latency, err);

    sem_init(&latency->arrived, 0, 0);
    crew_init(&latency->crew, stage->contender, stage->site, stage->bench->spec);
    latency->crew.on_job = on_job;
    latency->crew.arg = latency;
    if (code == 0 && stage->bench->spec->hold_snapshot) {
        code = stage_hold(stage, err);
    }
    if (code == 0) {
        code = work(latency, run, err);
    }
    conn_free(latency->listener);
    conn_free(latency->notifier);
    sample_done(&latency->pickup);
    sample_done(&latency->notify);
    sample_done(&latency->round_trip);
    sem_destroy(&latency->arrived);
    return code;
}

int mode_latency(struct bench *bench, const struct contender *contender, struct run *run,
                 struct mr_error *err)
{
    static struct latency latency;
    struct stage stage;
    int code = stage_open(&stage, bench, contender, err);

    latency = (struct latency){.stage = &stage};
    if (code == 0) {
        code = measure(&latency, run, err);
    }
    return stage_close(&stage, code, err);
}
