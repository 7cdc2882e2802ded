// SPDX-License-Identifier: PostgreSQL
//
// Waiting for room in a full queue: the pauses, the end, and what is not waited for.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/room.h"

static void full(struct mr_error *err)
{
    mr_error_set(err, MR_EFULL, "queue 'q' is full");
    mr_error_detail(err, "PL/pgSQL function");
}

static void pauses_grow_to_the_end(void **state)
{
    static const int64_t expected[] = {50, 100, 200, 400, 800, 1000, 1000, 450};
    struct room_wait wait;
    struct mr_error err;
    int64_t now_ms = 7000, pause_ms = 0;

    (void)state;
    room_wait_begin(&wait, now_ms, 4000);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        full(&err);
        assert_true(room_wait_again(&wait, now_ms, MR_EFULL, &pause_ms, &err));
        assert_int_equal(pause_ms, expected[i]);
        now_ms += pause_ms;
    }
    assert_int_equal(now_ms, 11000);
    full(&err);
    assert_false(room_wait_again(&wait, now_ms, MR_EFULL, &pause_ms, &err));
    assert_string_equal(err.detail, "There was no room within 4000 ms.");
    assert_string_equal(err.message, "queue 'q' is full");
}

static void no_time_is_no_wait(void **state)
{
    struct room_wait wait;
    struct mr_error err;
    int64_t pause_ms = -1;

    (void)state;
    full(&err);
    room_wait_begin(&wait, 5, 0);
    assert_false(room_wait_again(&wait, 5, MR_EFULL, &pause_ms, &err));
    assert_int_equal(pause_ms, -1);
    assert_string_equal(err.detail, "");
}

static void other_results_are_final(void **state)
{
    static const int codes[] = {0, MR_EINVALID, MR_ECONNECT, MR_ETIMEOUT};
    struct room_wait wait;
    struct mr_error err;
    int64_t pause_ms = 0;

    (void)state;
    full(&err);
    room_wait_begin(&wait, 0, 1000);
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        assert_false(room_wait_again(&wait, 1, codes[i], &pause_ms, &err));
    }
    assert_string_equal(err.detail, "PL/pgSQL function");
}

static void for_ever_does_not_overflow(void **state)
{
    struct room_wait wait;
    struct mr_error err;
    int64_t pause_ms = 0;

    (void)state;
    full(&err);
    room_wait_begin(&wait, 1000, INT64_MAX);
    assert_true(room_wait_again(&wait, INT64_MAX / 2, MR_EFULL, &pause_ms, &err));
    assert_int_equal(pause_ms, 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses_grow_to_the_end),
        cmocka_unit_test(no_time_is_no_wait),
        cmocka_unit_test(other_results_are_final),
        cmocka_unit_test(for_ever_does_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
