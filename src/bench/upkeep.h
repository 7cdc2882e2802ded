// SPDX-License-Identifier: PostgreSQL
//
// Upkeep beside a measurement, once a second on a connection of its own, as a daemon does it.

#ifndef MILLRACE_BENCH_UPKEEP_H
#define MILLRACE_BENCH_UPKEEP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "bench/place.h"

struct upkeep {
    const struct site *site;
    pthread_t thread;
    bool running;
    atomic_bool stop;
    int64_t rounds;
    int code;
    struct mr_error err;
};

// `upkeep` is zeroed, and stays where it is until upkeep_stop().
int upkeep_start(struct upkeep *upkeep, const struct site *site, struct mr_error *err);

// Fails with what upkeep failed with. Safe when it was never started.
int upkeep_stop(struct upkeep *upkeep, struct mr_error *err);

#endif
