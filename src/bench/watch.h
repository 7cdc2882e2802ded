// SPDX-License-Identifier: PostgreSQL
//
// Who looks on while something is measured: shows how far it is, and may end it.

#ifndef MILLRACE_BENCH_WATCH_H
#define MILLRACE_BENCH_WATCH_H

#include <signal.h>
#include <stdint.h>

#include "base/err.h"

struct watch {
    const volatile sig_atomic_t *stopped; // not 0: a signal came
    // `what` is under way: `done` of `whole`. Called often, from one thread. May be NULL.
    void (*progress)(void *arg, const char *what, int64_t done, int64_t whole);
    void *arg;
    char what[96];
};

// Says what begins now, for those that follow.
void watch_begin(struct watch *watch, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Shows progress. Fails with MR_EINVALID once the measurement was interrupted.
int watch_tick(struct watch *watch, int64_t done, int64_t whole, struct mr_error *err);

// Sleeps, at most this long.
void watch_pause_us(int64_t us);

#endif
