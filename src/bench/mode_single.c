// SPDX-License-Identifier: PostgreSQL
//
// One job a transaction: as many sessions as there are workers enqueue one job after the other,
// each waiting for its commit, until all jobs are in or the time is up.

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "bench/modes.h"
#include "bench/stage.h"

enum { TICK_US = 20000 };

struct fleet;

struct producer {
    struct fleet *fleet;
    pthread_t thread;
    bool running;
    int code;
    struct mr_error err;
};

struct fleet {
    struct stage *stage;
    int64_t jobs;
    int64_t deadline_us;
    atomic_bool stop;
    atomic_llong taken; // more than `jobs` at the end
    atomic_llong done;
    atomic_int left; // producers at work
    struct producer producers[SPEC_WORKERS_MAX];
};

static bool goes_on(struct fleet *fleet)
{
    return !atomic_load(&fleet->stop) && clock_us() < fleet->deadline_us &&
           atomic_fetch_add(&fleet->taken, 1) < fleet->jobs;
}

static int produce(struct fleet *fleet, struct session *session, struct mr_error *err)
{
    const struct stage *stage = fleet->stage;
    int code = stage->contender->session_open(session, err);

    while (code == 0 && goes_on(fleet)) {
        code = stage->contender->enqueue(session, stage->payload.args, 1, 1, err);
        if (code == 0) {
            atomic_fetch_add(&fleet->done, 1);
        }
    }
    return code;
}

static void *run_producer(void *arg)
{
    struct producer *producer = arg;
    struct fleet *fleet = producer->fleet;
    struct session session = {.site = fleet->stage->site};

    producer->code = produce(fleet, &session, &producer->err);
    fleet->stage->contender->session_close(&session);
    atomic_fetch_sub(&fleet->left, 1);
    return NULL;
}

static int start(struct fleet *fleet, int count, struct mr_error *err)
{
    for (int i = 0; i < count; i++) {
        struct producer *producer = &fleet->producers[i];
        producer->fleet = fleet;
        atomic_fetch_add(&fleet->left, 1);
        if (pthread_create(&producer->thread, NULL, run_producer, producer)) {
            return mr_error_set(err, MR_ENOMEM, "cannot start a thread");
        }
        producer->running = true;
    }
    return 0;
}

// The first error that there was, `code` before those of the producers.
static int finish(struct fleet *fleet, int code, struct mr_error *err)
{
    atomic_store(&fleet->stop, true);
    for (int i = 0; i < SPEC_WORKERS_MAX && fleet->producers[i].running; i++) {
        pthread_join(fleet->producers[i].thread, NULL);
        if (code == 0 && fleet->producers[i].code) {
            code = fleet->producers[i].code;
            *err = fleet->producers[i].err;
        }
    }
    return code;
}

static int run(struct fleet *fleet, int count, struct mr_error *err)
{
    int code = start(fleet, count, err);

    while (code == 0 && atomic_load(&fleet->left) > 0) {
        code = watch_tick(&fleet->stage->bench->watch, atomic_load(&fleet->done), fleet->jobs, err);
        watch_pause_us(TICK_US);
    }
    return finish(fleet, code, err);
}

static int measure(struct stage *stage, struct run *run_row, struct mr_error *err)
{
    static struct fleet fleet;
    const struct bench_spec *spec = stage->bench->spec;
    int64_t begun = clock_us();

    fleet = (struct fleet){
        .stage = stage, .jobs = spec->jobs, .deadline_us = begun + spec->seconds * 1000000};
    int code = spec->hold_snapshot ? stage_hold(stage, err) : 0;
    if (code || (code = run(&fleet, (int)spec->workers, err))) {
        return code;
    }
    double seconds = (double)(clock_us() - begun) / 1e6;
    double jobs = (double)atomic_load(&fleet.done);
    run_note(run_row, "jobs", jobs);
    run_note(run_row, "workers", (double)spec->workers);
    run_note(run_row, "seconds", seconds);
    run_more(run_row, "rate", "jobs/s", jobs / seconds);
    return 0;
}

int mode_single(struct bench *bench, const struct contender *contender, struct run *run_row,
                struct mr_error *err)
{
    struct stage stage;
    int code = stage_open(&stage, bench, contender, err);

    if (code == 0) {
        code = measure(&stage, run_row, err);
    }
    return stage_close(&stage, code, err);
}
