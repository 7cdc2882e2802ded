// SPDX-License-Identifier: PostgreSQL
//
// What `millrace bench` computes of what it measured: percentiles, spreads, histograms.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/histogram.h"
#include "bench/sample.h"

#define EPSILON 1e-4

static void fill(struct sample *sample, const double *values, size_t count)
{
    struct mr_error err;

    sample_init(sample);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(sample_add(sample, values[i], &err), 0);
    }
}

static void percentiles(void **state)
{
    (void)state;
    AUTO_SAMPLE sample;
    struct mr_error err;

    // 100, 99 ... 1: the nearest rank is the number itself
    sample_init(&sample);
    for (int i = 100; i >= 1; i--) {
        assert_int_equal(sample_add(&sample, i, &err), 0);
    }
    assert_float_equal(sample_percentile(&sample, 0.5), 50, EPSILON);
    assert_float_equal(sample_percentile(&sample, 0.99), 99, EPSILON);
    assert_float_equal(sample_percentile(&sample, 1), 100, EPSILON);
    assert_float_equal(sample_percentile(&sample, 0), 1, EPSILON);
    assert_float_equal(sample_percentile(&sample, 0.001), 1, EPSILON);
}

static void few_values(void **state)
{
    (void)state;
    AUTO_SAMPLE none, one, two;

    fill(&none, NULL, 0);
    assert_float_equal(sample_percentile(&none, 0.99), 0, EPSILON);
    assert_float_equal(sample_median(&none), 0, EPSILON);
    fill(&one, (double[]){7}, 1);
    assert_float_equal(sample_percentile(&one, 0.01), 7, EPSILON);
    assert_float_equal(sample_percentile(&one, 0.99), 7, EPSILON);
    fill(&two, (double[]){3, 1}, 2);
    assert_float_equal(sample_percentile(&two, 0.5), 1, EPSILON);
    assert_float_equal(sample_percentile(&two, 0.51), 3, EPSILON);
}

static void spreads(void **state)
{
    (void)state;
    AUTO_SAMPLE odd, even, none;

    fill(&odd, (double[]){5, 1, 3}, 3);
    struct spread spread = sample_spread(&odd);
    assert_float_equal(spread.median, 3, EPSILON);
    assert_float_equal(spread.least, 1, EPSILON);
    assert_float_equal(spread.most, 5, EPSILON);
    fill(&even, (double[]){4, 1, 2, 8}, 4);
    assert_float_equal(sample_spread(&even).median, 3, EPSILON);
    fill(&none, NULL, 0);
    spread = sample_spread(&none);
    assert_float_equal(spread.least, 0, EPSILON);
    assert_float_equal(spread.most, 0, EPSILON);
}

static void histograms(void **state)
{
    (void)state;
    static struct histogram histogram;

    histogram_init(&histogram);
    assert_int_equal(histogram_percentile(&histogram, 0.5), 0);
    histogram_add(&histogram, -5);
    assert_int_equal(histogram_percentile(&histogram, 0.5), 0);
    histogram_init(&histogram);
    // small ones are exact
    for (int i = 1; i <= 20; i++) {
        histogram_add(&histogram, i);
    }
    assert_int_equal(histogram_percentile(&histogram, 0.5), 10);
    assert_int_equal(histogram_percentile(&histogram, 0.99), 20);
    assert_int_equal(histogram_percentile(&histogram, 1), 20);
}

// At most one bucket above the value, over the whole range.
static void histogram_precision(void **state)
{
    (void)state;
    static struct histogram histogram;

    for (int64_t us = 1; us < INT64_C(1) << 35; us = us * 3 / 2 + 1) {
        histogram_init(&histogram);
        histogram_add(&histogram, us);
        histogram_add(&histogram, INT64_C(1) << 35);
        int64_t found = histogram_percentile(&histogram, 0.5);
        assert_true(found >= us);
        assert_true((double)found <= (double)us * 1.0323);
    }
    // beyond the range: the last bucket, and the largest value is exact
    histogram_init(&histogram);
    histogram_add(&histogram, INT64_MAX);
    assert_true(histogram_percentile(&histogram, 1) > INT64_C(1) << 35);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles),
        cmocka_unit_test(few_values),
        cmocka_unit_test(spreads),
        cmocka_unit_test(histograms),
        cmocka_unit_test(histogram_precision),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
