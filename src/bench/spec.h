// SPDX-License-Identifier: PostgreSQL
//
// What `millrace bench` is asked to measure, and the limits of it.

#ifndef MILLRACE_BENCH_SPEC_H
#define MILLRACE_BENCH_SPEC_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SPEC_JOBS_DEFAULT = 100000,
    SPEC_JOBS_MAX = 1000000000,
    SPEC_PAYLOAD_DEFAULT = 200,
    SPEC_PAYLOAD_MIN = 32,
    SPEC_PAYLOAD_MAX = 1000000, // a queue's max_args is 1 MiB unless set otherwise
    SPEC_BATCH_DEFAULT = 100,   // as a worker's
    SPEC_BATCH_MAX = 10000,
    SPEC_CHUNK_DEFAULT = 10000, // as mr_enqueue_many()'s
    SPEC_CHUNK_MAX = 1000000,
    SPEC_WORKERS_MAX = 64,
    SPEC_PARTS_MAX = 32, // as set_queue() has it
    SPEC_CONCURRENCY_MAX = 1000,
    SPEC_DEPTH_DEFAULT = 200000,
    SPEC_SECONDS_DEFAULT = 5,
    SPEC_SECONDS_MAX = 86400,
    SPEC_RATE_MAX = 10000000,
    SPEC_REPEAT_MAX = 100,
};

struct bench_spec {
    const char *dsn;       // borrowed
    int64_t jobs;          // of a run
    int64_t payload_bytes; // of a job's args
    int64_t batch;         // jobs in one claim, at most
    int64_t chunk;         // jobs in one transaction of a bulk enqueue
    int64_t workers;
    int64_t concurrency; // threads of a worker; 0: as the library has it
    int64_t parts;       // of the queue
    int64_t depth;
    int64_t seconds; // of single, steady and latency
    int64_t rate;    // of steady; 0: as fast as they can
    int64_t repeat;
    bool hold_snapshot;
    bool upkeep;   // runs beside Millrace
    bool textbook; // compare with it
    bool here;
};

#endif
