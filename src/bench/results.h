// SPDX-License-Identifier: PostgreSQL
//
// What was measured: runs, and what they come to over repeats.

#ifndef MILLRACE_BENCH_RESULTS_H
#define MILLRACE_BENCH_RESULTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "bench/sample.h"

enum { RUN_ENTRIES_MAX = 32 };

// One number of a run. All texts are literals.
struct run_entry {
    const char *name;
    double value;
    const char *unit;    // NULL: a circumstance, not a figure
    bool less;           // the smaller, the better
    const char *against; // not NULL: a ratio, over this
};

struct run {
    const char *mode;
    const char *contender;
    int repeat; // from 1
    struct run_entry entries[RUN_ENTRIES_MAX];
    size_t entry_count;
};

// A circumstance, a figure where more is better, one where less is, a ratio.
void run_note(struct run *run, const char *name, double value);
void run_more(struct run *run, const char *name, const char *unit, double value);
void run_less(struct run *run, const char *name, const char *unit, double value);
void run_ratio(struct run *run, const char *name, const char *against, double value);

// NULL: there is none.
const struct run_entry *run_find(const struct run *run, const char *name);

struct results {
    struct run *runs;
    size_t count;
    size_t capacity;
};

#define RESULTS_MAX 10000

void results_init(struct results *results);
void results_done(struct results *results);

// The caller puts the entries in; *ret is valid until the next run is added. Fails with
// MR_ENOMEM, MR_ELIMIT.
int results_add(struct results *results, const char *mode, const char *contender, int repeat,
                struct run **ret, struct mr_error *err);

// A figure or ratio over the repeats.
struct finding {
    const char *mode;
    const char *contender;
    const char *name;
    const char *unit; // NULL for a ratio
    bool less;
    const char *against; // NULL for a figure
    struct spread spread;
};

struct findings {
    struct finding *items;
    size_t count;
};

// The figures, then the ratios: those that runs brought along, and each figure of Millrace over
// the same of the textbook's, repeat by repeat. Freed with findings_done().
int results_find(const struct results *results, struct findings *ret, struct mr_error *err);
void findings_done(struct findings *findings);

// Appends `"runs": [...], "figures": [...], "ratios": [...]`.
void results_json(const struct results *results, const struct findings *findings, struct buf *out);

#endif
