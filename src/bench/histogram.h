// SPDX-License-Identifier: PostgreSQL
//
// Times in microseconds, counted in buckets about three percent wide: any number of them in a
// fixed amount of memory, from any number of threads.

#ifndef MILLRACE_BENCH_HISTOGRAM_H
#define MILLRACE_BENCH_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

enum {
    HISTOGRAM_STEPS = 32,  // buckets of each power of two
    HISTOGRAM_POWERS = 36, // up to 2^36 us, 19 hours; what is longer counts as that
    HISTOGRAM_BUCKETS = HISTOGRAM_STEPS * HISTOGRAM_POWERS,
};

struct histogram {
    atomic_llong counts[HISTOGRAM_BUCKETS];
    atomic_llong count;
    atomic_llong most_us;
};

void histogram_init(struct histogram *histogram);

// Below zero counts as zero.
void histogram_add(struct histogram *histogram, int64_t us);

// The upper end of the bucket in which this share of the values is reached, and never more than
// the largest value; 0 without values.
int64_t histogram_percentile(const struct histogram *histogram, double share);

#endif
