// SPDX-License-Identifier: PostgreSQL
//
// Steady state: a producer and workers together for some time, at a rate or as fast as they can.
// In the latter case the producer waits when the backlog is larger than the workers' appetite, so
// that what is measured is what goes through, not what piles up.
//
// A job's args carry the number of its transaction; the time of that commit, as the producer
// learned it, stands in a ring. A handler that is faster than that news counts as immediate.

#include <stdlib.h>

#include "base/clock.h"
#include "bench/crew.h"
#include "bench/histogram.h"
#include "bench/modes.h"
#include "bench/stage.h"

enum {
    CHUNK_MOST = 1000,
    WARM_JOBS = 10000, // before the clock starts: connections, plans, statistics
    PAUSE_US = 500,
    TICK_US = 20000,
    RING_SIZE = 1 << 20,
};

struct commit {
    atomic_llong number;
    atomic_llong us;
};

struct steady {
    struct stage *stage;
    struct crew *crew;
    size_t chunk;
    int64_t warm;     // jobs that go ahead
    int64_t enqueued; // the warm-up included
    int64_t number;   // of the last transaction
    int64_t ticked_us;
    atomic_bool counting;
    atomic_llong missed; // jobs whose commit is no longer in the ring
    struct histogram latency;
    struct commit ring[RING_SIZE];
};

static void on_job(void *arg, const char *args)
{
    struct steady *steady = arg;
    int64_t now = clock_us();
    int64_t number = payload_number(args);

    if (number <= 0 || !atomic_load(&steady->counting)) {
        return;
    }
    struct commit *commit = &steady->ring[number % RING_SIZE];
    int64_t known = atomic_load(&commit->number);
    if (known == number) {
        histogram_add(&steady->latency, now - atomic_load(&commit->us));
    } else if (known < number) {
        histogram_add(&steady->latency, 0);
    } else {
        atomic_fetch_add(&steady->missed, 1);
    }
}

static int enqueue(struct steady *steady, size_t count, struct mr_error *err)
{
    struct stage *stage = steady->stage;
    int64_t number = ++steady->number;

    payload_mark(&stage->payload, count, number);
    int code =
        stage->contender->enqueue(&stage->session, stage->payload.args, count, steady->chunk, err);
    struct commit *commit = &steady->ring[number % RING_SIZE];
    atomic_store(&commit->us, clock_us());
    atomic_store(&commit->number, number);
    steady->enqueued += code == 0 ? (int64_t)count : 0;
    return code;
}

static int tick(struct steady *steady, int64_t whole, struct mr_error *err)
{
    int64_t now = clock_us();

    if (now - steady->ticked_us < TICK_US) {
        return 0;
    }
    steady->ticked_us = now;
    return crew_tick(steady->crew, &steady->stage->bench->watch, whole, true, err);
}

// How many jobs are due `us` after the start, of which `sent` are in.
static size_t due_jobs(const struct steady *steady, int64_t us, int64_t sent)
{
    const struct bench_spec *spec = steady->stage->bench->spec;
    int64_t backlog = steady->enqueued - atomic_load(&steady->crew->started);
    int64_t most = (int64_t)steady->chunk;
    int64_t due = most;

    if (spec->rate > 0) {
        due = (int64_t)((double)spec->rate * (double)us / 1e6) - sent;
    } else if (backlog > 4 * most + 4 * spec->batch * spec->workers) {
        due = 0;
    }
    return (size_t)(due < 0 ? 0 : due > most ? most : due);
}

// Everything that was put in before is begun: from here on it counts.
static int warm_up(struct steady *steady, struct mr_error *err)
{
    int code = 0;

    while (code == 0 && atomic_load(&steady->crew->started) < steady->warm) {
        code = crew_tick(steady->crew, &steady->stage->bench->watch, steady->warm, false, err);
        watch_pause_us(PAUSE_US);
    }
    return code;
}

static int produce(struct steady *steady, struct run *run, struct mr_error *err)
{
    const struct bench_spec *spec = steady->stage->bench->spec;
    int64_t begun = clock_us(), before = atomic_load(&steady->crew->started);
    int64_t sent = steady->enqueued, us = 0;
    int code = 0;

    atomic_store(&steady->counting, true);
    while (code == 0 && (us = clock_us() - begun) < spec->seconds * 1000000) {
        size_t due = due_jobs(steady, us, steady->enqueued - sent);
        if (due > 0) {
            code = enqueue(steady, due, err);
        } else {
            watch_pause_us(PAUSE_US);
        }
        if (code == 0) {
            code = tick(steady, spec->rate * spec->seconds, err);
        }
    }
    double jobs = (double)(atomic_load(&steady->crew->started) - before);
    double seconds = (double)(clock_us() - begun) / 1e6;
    atomic_store(&steady->counting, false);
    run_note(run, "jobs", jobs);
    run_note(run, "enqueued", (double)(steady->enqueued - sent));
    run_note(run, "seconds", seconds);
    run_more(run, "rate", "jobs/s", jobs / seconds);
    return code;
}

static void put_in(const struct steady *steady, struct run *run)
{
    const struct bench_spec *spec = steady->stage->bench->spec;

    run_note(run, "asked_rate", (double)spec->rate);
    run_note(run, "batch", (double)spec->batch);
    run_note(run, "chunk", (double)steady->chunk);
    run_note(run, "workers", (double)spec->workers);
    run_note(run, "memory_bytes", (double)steady->crew->memory_bytes);
    run_note(run, "not_timed", (double)atomic_load(&steady->missed));
    run_less(run, "p50_ms", "ms", (double)histogram_percentile(&steady->latency, 0.5) / 1000);
    run_less(run, "p99_ms", "ms", (double)histogram_percentile(&steady->latency, 0.99) / 1000);
    run_note(run, "max_ms", (double)atomic_load(&steady->latency.most_us) / 1000);
}

static int work(struct steady *steady, struct run *run, struct mr_error *err)
{
    struct mr_error later = {0};
    int code;

    if ((code = crew_start(steady->crew, err)) == 0 && (code = warm_up(steady, err)) == 0) {
        code = produce(steady, run, err);
    }
    int end = crew_finish(steady->crew, &later);
    if (code == 0 && end) {
        *err = later;
    }
    return code ? code : end;
}

static int measure(struct steady *steady, struct stage *stage, struct run *run,
                   struct mr_error *err)
{
    static struct crew crew;

    crew_init(&crew, stage->contender, stage->site, stage->bench->spec);
    crew.on_job = on_job;
    crew.arg = steady;
    steady->stage = stage;
    steady->crew = &crew;
    steady->chunk = stage->chunk < CHUNK_MOST ? stage->chunk : CHUNK_MOST;
    steady->warm = stage_warm_jobs(stage, WARM_JOBS);
    int code = stage_fill(stage, steady->warm, err);
    steady->enqueued = steady->warm;
    if (code == 0 && (code = work(steady, run, err)) == 0) {
        put_in(steady, run);
    }
    return code;
}

int mode_steady(struct bench *bench, const struct contender *contender, struct run *run,
                struct mr_error *err)
{
    struct steady *steady = calloc(1, sizeof(*steady));
    struct stage stage;

    if (!steady) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    int code = stage_open(&stage, bench, contender, err);
    if (code == 0) {
        code = measure(steady, &stage, run, err);
    }
    code = stage_close(&stage, code, err);
    free(steady);
    return code;
}
