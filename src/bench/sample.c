// SPDX-License-Identifier: PostgreSQL
//
// Measured values: see sample.h.

#include "bench/sample.h"

#include <math.h>
#include <stdlib.h>

void sample_init(struct sample *sample)
{
    *sample = (struct sample){0};
}

void sample_done(struct sample *sample)
{
    free(sample->values);
    sample_init(sample);
}

static int grow(struct sample *sample, struct mr_error *err)
{
    size_t capacity = sample->capacity ? sample->capacity * 2 : 64;

    if (sample->count == SAMPLE_MAX) {
        return mr_error_set(err, MR_ELIMIT, "more than %zu values", SAMPLE_MAX);
    }
    double *values = realloc(sample->values, capacity * sizeof(*values));
    if (!values) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    sample->values = values;
    sample->capacity = capacity;
    return 0;
}

int sample_add(struct sample *sample, double value, struct mr_error *err)
{
    int code = sample->count == sample->capacity ? grow(sample, err) : 0;

    if (code == 0) {
        sample->values[sample->count++] = value;
    }
    return code;
}

static int compare(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;

    return (*x > *y) - (*x < *y);
}

static void sort(struct sample *sample)
{
    if (sample->count > 1) {
        qsort(sample->values, sample->count, sizeof(*sample->values), compare);
    }
}

double sample_percentile(struct sample *sample, double share)
{
    double rank = ceil(share * (double)sample->count);

    if (sample->count == 0) {
        return 0;
    }
    sort(sample);
    size_t at = rank < 1 ? 0 : (size_t)rank - 1;
    return sample->values[at < sample->count ? at : sample->count - 1];
}

double sample_median(struct sample *sample)
{
    size_t middle = sample->count / 2;

    if (sample->count == 0) {
        return 0;
    }
    sort(sample);
    if (sample->count % 2) {
        return sample->values[middle];
    }
    return (sample->values[middle - 1] + sample->values[middle]) / 2;
}

struct spread sample_spread(struct sample *sample)
{
    struct spread spread = {.median = sample_median(sample)};

    if (sample->count) {
        spread.least = sample->values[0];
        spread.most = sample->values[sample->count - 1];
    }
    return spread;
}
