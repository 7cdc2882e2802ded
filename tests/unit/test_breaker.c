// SPDX-License-Identifier: PostgreSQL
//
// When a breaker opens, probes and closes. The clock is the test's.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/breaker.h"

static struct breaker opened(int64_t at_ms)
{
    struct breaker breaker;

    breaker_init(&breaker, (struct breaker_options){.failures = 3, .open_ms = 1000});
    assert_int_equal(breaker_allows(&breaker, 8, at_ms), 8);
    breaker_started(&breaker, 3);
    assert_false(breaker_failed(&breaker, at_ms));
    assert_false(breaker_failed(&breaker, at_ms));
    assert_true(breaker_failed(&breaker, at_ms));
    assert_int_equal(breaker.status, BREAKER_OPEN);
    return breaker;
}

static struct breaker probing(int64_t at_ms)
{
    struct breaker breaker = opened(at_ms - 1000);

    assert_int_equal(breaker_allows(&breaker, 8, at_ms), 1);
    breaker_started(&breaker, 1);
    return breaker;
}

static void failures_in_a_row_open_it(void **state)
{
    struct breaker breaker = opened(5000);

    (void)state;
    assert_int_equal(breaker_allows(&breaker, 8, 5000), 0);
    assert_int_equal(breaker_allows(&breaker, 8, 5999), 0);
    assert_int_equal(breaker_retry_at_ms(&breaker), 6000);
}

static void a_success_starts_the_count_again(void **state)
{
    struct breaker breaker;

    (void)state;
    breaker_init(&breaker, (struct breaker_options){.failures = 2, .open_ms = 1000});
    for (int i = 0; i < 10; i++) {
        assert_false(breaker_failed(&breaker, i));
        assert_false(breaker_good(&breaker));
    }
    assert_int_equal(breaker.status, BREAKER_CLOSED);
    assert_int_equal(breaker_retry_at_ms(&breaker), 0);
}

static void one_probe_at_a_time(void **state)
{
    struct breaker breaker = opened(5000);

    (void)state;
    assert_int_equal(breaker_allows(&breaker, 0, 6000), 0);
    assert_int_equal(breaker_allows(&breaker, 8, 6000), 1);
    // asked, but nothing was there to start
    assert_int_equal(breaker_allows(&breaker, 8, 6001), 1);
    breaker_started(&breaker, 1);
    assert_int_equal(breaker_allows(&breaker, 8, 6002), 0);
    assert_int_equal(breaker_allows(&breaker, 8, 999999), 0);
    assert_int_equal(breaker_retry_at_ms(&breaker), 0);
}

static void a_good_probe_closes_it(void **state)
{
    struct breaker breaker = probing(6000);

    (void)state;
    assert_true(breaker_good(&breaker));
    assert_int_equal(breaker.status, BREAKER_CLOSED);
    assert_int_equal(breaker_allows(&breaker, 8, 6001), 8);
    // and the count begins at nothing
    assert_false(breaker_failed(&breaker, 6002));
    assert_int_equal(breaker.status, BREAKER_CLOSED);
}

static void a_failed_probe_opens_it_again(void **state)
{
    struct breaker breaker = probing(6000);

    (void)state;
    assert_true(breaker_failed(&breaker, 6500));
    assert_int_equal(breaker_allows(&breaker, 8, 7499), 0);
    assert_int_equal(breaker_allows(&breaker, 8, 7500), 1);
}

static void a_probe_that_says_nothing_is_repeated(void **state)
{
    struct breaker breaker = probing(6000);

    (void)state;
    breaker_neutral(&breaker);
    assert_int_equal(breaker.status, BREAKER_HALF_OPEN);
    assert_int_equal(breaker_allows(&breaker, 8, 6001), 1);
}

// Jobs that were running when it opened.
static void latecomers_change_nothing(void **state)
{
    struct breaker breaker = opened(5000);

    (void)state;
    assert_false(breaker_good(&breaker));
    assert_false(breaker_failed(&breaker, 5900));
    breaker_neutral(&breaker);
    assert_int_equal(breaker_retry_at_ms(&breaker), 6000);
    // half open, the probe not yet under way
    assert_int_equal(breaker_allows(&breaker, 8, 6000), 1);
    assert_false(breaker_good(&breaker));
    assert_false(breaker_failed(&breaker, 6001));
    assert_int_equal(breaker.status, BREAKER_HALF_OPEN);
}

static void without_a_limit_it_never_opens(void **state)
{
    struct breaker breaker;

    (void)state;
    breaker_init(&breaker, (struct breaker_options){.failures = 0, .open_ms = 1000});
    for (int i = 0; i < 1000; i++) {
        assert_false(breaker_failed(&breaker, i));
    }
    assert_int_equal(breaker_allows(&breaker, 8, 1000), 8);
}

static double half(void)
{
    return 0.5;
}

// Each probe that fails doubles the wait, up to the longest; one that is good begins anew.
static void it_backs_off(void **state)
{
    static const int64_t waits_ms[] = {1200, 2400, 4800, 6000, 6000};
    struct breaker breaker;
    int64_t now_ms = 0;

    (void)state;
    breaker_init(
        &breaker,
        (struct breaker_options){
            .failures = 1, .open_ms = 1000, .open_max_ms = 5000, .jitter = 0.4, .random = half});
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < sizeof(waits_ms) / sizeof(waits_ms[0]); i++) {
            assert_true(breaker_failed(&breaker, now_ms));
            assert_int_equal(breaker_retry_at_ms(&breaker), now_ms + waits_ms[i]);
            now_ms += waits_ms[i];
            assert_int_equal(breaker_allows(&breaker, 1, now_ms - 1), 0);
            assert_int_equal(breaker_allows(&breaker, 1, now_ms), 1);
            breaker_started(&breaker, 1);
        }
        assert_true(breaker_good(&breaker));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_in_a_row_open_it),
        cmocka_unit_test(a_success_starts_the_count_again),
        cmocka_unit_test(one_probe_at_a_time),
        cmocka_unit_test(a_good_probe_closes_it),
        cmocka_unit_test(a_failed_probe_opens_it_again),
        cmocka_unit_test(a_probe_that_says_nothing_is_repeated),
        cmocka_unit_test(latecomers_change_nothing),
        cmocka_unit_test(without_a_limit_it_never_opens),
        cmocka_unit_test(it_backs_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
