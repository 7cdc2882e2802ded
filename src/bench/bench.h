// SPDX-License-Identifier: PostgreSQL
//
// `millrace bench` without its command line: measures modes, contenders in turns, repeat by
// repeat.

#ifndef MILLRACE_BENCH_BENCH_H
#define MILLRACE_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/contender.h"
#include "bench/place.h"
#include "bench/results.h"
#include "bench/spec.h"
#include "bench/watch.h"

struct bench {
    const struct bench_spec *spec;
    struct place place;
    struct results results;
    struct watch watch;
    PGresult *settings; // name and value
    char server[32];    // its version
};

struct bench_mode {
    const char *name;
    int (*measure)(struct bench *bench, const struct contender *contender, struct run *run,
                   struct mr_error *err);
    bool textbook;        // has something to compare
    const char *not_here; // why it cannot be done in a database that is in use; NULL: it can
    const char *main;     // the figure that a chart shows
};

// Ends with a row without a name.
extern const struct bench_mode bench_modes[];

// NULL: there is none.
const struct bench_mode *bench_mode_find(const char *name);

// Measures the modes, a list that ends with NULL, into bench->results. The caller has set spec and
// watch, and calls bench_done() afterwards, also on failure. Scratch databases are gone in any
// case; where that was not possible, the error says so.
int bench_run(struct bench *bench, const struct bench_mode *const *modes, struct mr_error *err);
void bench_done(struct bench *bench);

#endif
