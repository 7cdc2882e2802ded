// SPDX-License-Identifier: PostgreSQL
//
// Workers of one contender, a thread each, and what is noted of the jobs they begin.
//
//   crew_start()   they connect and begin to work
//   crew_tick()    again and again: shows progress, finds out that one failed or all hang
//   crew_finish()  stops those that still work, waits for them, closes them
//
// A job is counted when its handler starts. Marks are the times at which the count reached
// certain numbers.

#ifndef MILLRACE_BENCH_CREW_H
#define MILLRACE_BENCH_CREW_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "bench/contender.h"
#include "bench/spec.h"
#include "bench/watch.h"

enum { CREW_MARKS_MAX = 8 };

struct crew;

struct hand {
    struct crew *crew;
    mr_worker *worker; // Millrace's own
    pthread_t thread;
    bool running; // the thread is there
    atomic_bool done;
    int code;
    struct mr_error err;
    int64_t completed;
    int64_t end_us;
};

struct crew_mark {
    int64_t count;
    atomic_llong us; // 0: not reached
};

struct crew {
    const struct contender *contender;
    struct site *site;
    int workers;
    int batch;
    int concurrency;
    bool until_empty;
    // Called for each job on the worker's threads, with its args. May be NULL.
    void (*on_job)(void *arg, const char *args);
    void *arg;
    struct crew_mark marks[CREW_MARKS_MAX];
    int mark_count;

    atomic_llong started;
    atomic_bool stop;
    int64_t start_us;
    int64_t end_us;       // of the last hand; crew_finish()
    int64_t completed;    // crew_finish()
    int64_t memory_bytes; // that this process had in use at most, as crew_tick() saw it; 0: unknown
    int64_t seen;         // by crew_tick(), and when that was
    int64_t seen_us;
    struct hand hands[SPEC_WORKERS_MAX];
};

// Sizes from the spec; the caller sets until_empty, on_job and marks before the start.
void crew_init(struct crew *crew, const struct contender *contender, struct site *site,
               const struct bench_spec *spec);
void crew_mark_at(struct crew *crew, int64_t count);

int crew_start(struct crew *crew, struct mr_error *err);

// Whether all hands have ended by themselves.
bool crew_is_done(struct crew *crew);

// Fails with what a hand failed with, MR_ECONNECT when the server is gone, MR_ETIMEOUT when no
// job was started for CREW_STALL_S seconds and `idle` is false.
int crew_tick(struct crew *crew, struct watch *watch, int64_t whole, bool idle,
              struct mr_error *err);

#define CREW_STALL_S 60

// Always called after crew_start(), also after its failure.
int crew_finish(struct crew *crew, struct mr_error *err);

// Works until nothing is left: start, ticks, finish.
int crew_run(struct crew *crew, struct watch *watch, int64_t whole, struct mr_error *err);

// Fails with MR_EINTERNAL unless so many jobs were completed.
int crew_check_done(const struct crew *crew, int64_t jobs, struct mr_error *err);

// From the handlers.
void crew_note(struct crew *crew, const char *args);

// Seconds between two marks that were reached.
double crew_seconds_between(const struct crew *crew, int first, int last);

#endif
