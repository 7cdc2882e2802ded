// SPDX-License-Identifier: PostgreSQL
//
// Times in buckets: see histogram.h.

#include "bench/histogram.h"

#include <math.h>

void histogram_init(struct histogram *histogram)
{
    for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
        atomic_init(&histogram->counts[i], 0);
    }
    atomic_init(&histogram->count, 0);
    atomic_init(&histogram->most_us, 0);
}

// Values below HISTOGRAM_STEPS have a bucket each; above, the first bits choose it.
static int bucket_of(int64_t us)
{
    int power = 0;

    while (us >= 2 * HISTOGRAM_STEPS) {
        us >>= 1;
        power++;
    }
    int bucket =
        us < HISTOGRAM_STEPS ? (int)us : (power + 1) * HISTOGRAM_STEPS + (int)us - HISTOGRAM_STEPS;
    return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

static int64_t upper_end(int bucket)
{
    int power = bucket / HISTOGRAM_STEPS - 1;

    if (power < 0) {
        return bucket;
    }
    int64_t first = (int64_t)(bucket % HISTOGRAM_STEPS) + HISTOGRAM_STEPS;
    return ((first + 1) << power) - 1;
}

void histogram_add(struct histogram *histogram, int64_t us)
{
    long long most = atomic_load(&histogram->most_us);

    us = us < 0 ? 0 : us;
    atomic_fetch_add(&histogram->counts[bucket_of(us)], 1);
    atomic_fetch_add(&histogram->count, 1);
    while (us > most && !atomic_compare_exchange_weak(&histogram->most_us, &most, us)) {
    }
}

int64_t histogram_percentile(const struct histogram *histogram, double share)
{
    int64_t wanted = (int64_t)ceil(share * (double)atomic_load(&histogram->count));
    int64_t most = atomic_load(&histogram->most_us);
    int64_t seen = 0;

    for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += atomic_load(&histogram->counts[i]);
        if (seen >= wanted && seen > 0) {
            return upper_end(i) < most ? upper_end(i) : most;
        }
    }
    return most;
}
