// SPDX-License-Identifier: PostgreSQL
//
// What most modes begin with: a fresh site for a contender, jobs to put into it, a session, and
// where it is wanted a snapshot that somebody holds.

#ifndef MILLRACE_BENCH_STAGE_H
#define MILLRACE_BENCH_STAGE_H

#include "bench/bench.h"
#include "bench/payload.h"
#include "bench/upkeep.h"

struct stage {
    struct bench *bench;
    const struct contender *contender;
    struct site *site; // NULL: not there
    struct payload payload;
    size_t chunk;
    struct session session;
    struct conn *holder; // NULL: no snapshot is held
    struct upkeep upkeep;
};

// Jobs of one transaction take at most so many bytes; larger payloads go in smaller chunks.
#define STAGE_CHUNK_BYTES ((size_t)64 * 1024 * 1024)

// stage_close() afterwards, also on failure.
int stage_open(struct stage *stage, struct bench *bench, const struct contender *contender,
               struct mr_error *err);
// Returns `code`, or if that is 0 what went wrong in closing.
int stage_close(struct stage *stage, int code, struct mr_error *err);

// Enqueues jobs in bulk. *ret_us, where not NULL: the time it took.
int stage_enqueue(struct stage *stage, int64_t jobs, int64_t *ret_us, struct mr_error *err);

// The same in preparation of something: with statistics for the planner, and with the snapshot
// of --hold-snapshot taken behind it.
int stage_fill(struct stage *stage, int64_t jobs, struct mr_error *err);

// How many jobs go ahead of a measurement, at most `jobs`: fewer where they are large.
int64_t stage_warm_jobs(const struct stage *stage, int64_t jobs);

// Nothing will be enqueued any more: gives back the memory that was needed for it.
void stage_rest(struct stage *stage);

// From now on a snapshot is held.
int stage_hold(struct stage *stage, struct mr_error *err);

// Bytes of WAL that the server has written.
int stage_wal(struct stage *stage, int64_t *ret, struct mr_error *err);

#endif
