// SPDX-License-Identifier: PostgreSQL
//
// The modes of `millrace bench`: each measures one contender once, in sites of its own.

#ifndef MILLRACE_BENCH_MODES_H
#define MILLRACE_BENCH_MODES_H

#include "bench/bench.h"

typedef int mode_fn(struct bench *bench, const struct contender *contender, struct run *run,
                    struct mr_error *err);

mode_fn mode_enqueue;
mode_fn mode_single;
mode_fn mode_drain;
mode_fn mode_steady;
mode_fn mode_latency;
mode_fn mode_depth;
mode_fn mode_snapshot;
mode_fn mode_wal;
mode_fn mode_history;

#endif
