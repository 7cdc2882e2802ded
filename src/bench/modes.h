// SPDX-License-Identifier: PostgreSQL
//
// The modes of `millrace bench`: each measures one contender once, in sites of its own.

#ifndef MILLRACE_BENCH_MODES_H
#define MILLRACE_BENCH_MODES_H

#include "bench/bench.h"

typedef int mode_fn(struct bench *bench, const struct contender *contender, struct run *run,
                    struct mr_error *err);

mode_fn mode_enqueue;
mode_fn mode_drain;

#endif
