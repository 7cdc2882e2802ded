// SPDX-License-Identifier: PostgreSQL
//
// What the benchmarks found: one JSON object a check on stdout, a table at the end.

#ifndef MILLRACE_BENCH_REPORT_H
#define MILLRACE_BENCH_REPORT_H

#include <stdbool.h>
#include <stddef.h>

// What a check's value depends on. A time on a small or busy machine proves nothing, so the
// small run fails for the other kind alone.
enum check_kind {
    CHECK_TIME,
    CHECK_STRUCTURE,
};

enum bar_side {
    AT_MOST,
    AT_LEAST,
    BELOW,
};

// Figures that explain the next check; copied at once.
void report_figure(const char *name, double value);
void report_note(const char *name, const char *text);

// Prints the check with the figures given since the last one.
void report_check(const char *name, enum check_kind kind, const char *what, double value,
                  enum bar_side side, double bar);

// The table. Returns the number of missed bars; with `small`, those of structure alone.
int report_end(bool small);

// Sorts `values` and returns the middle one, or the one at `share` of the way.
double median(double *values, size_t count);
double percentile(double *values, size_t count, double share);

#endif
