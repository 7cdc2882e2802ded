// SPDX-License-Identifier: PostgreSQL
//
// Measured values: their percentiles, and the spread of a figure over repeats.

#ifndef MILLRACE_BENCH_SAMPLE_H
#define MILLRACE_BENCH_SAMPLE_H

#include <stddef.h>

#include "base/err.h"

// Values in the order in which they came, at most SAMPLE_MAX.
struct sample {
    double *values;
    size_t count;
    size_t capacity;
};

#define SAMPLE_MAX ((size_t)4 * 1024 * 1024)

void sample_init(struct sample *sample);
// Safe to call twice.
void sample_done(struct sample *sample);

// Fails with MR_ENOMEM, MR_ELIMIT.
int sample_add(struct sample *sample, double value, struct mr_error *err);

// The smallest value that at least `share` (0 to 1) of all values do not exceed; 0 for none.
// Sorts the values.
double sample_percentile(struct sample *sample, double share);

// The middle one; the mean of the two middle ones of an even number.
double sample_median(struct sample *sample);

struct spread {
    double median, least, most;
};

struct spread sample_spread(struct sample *sample);

#define AUTO_SAMPLE __attribute__((cleanup(sample_done))) struct sample

#endif
