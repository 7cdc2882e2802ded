// SPDX-License-Identifier: PostgreSQL
//
// The growing buffer: content, its maximum, and that a failed append sticks.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

static void empty_is_empty_string(void **state)
{
    (void)state;
    AUTO_BUF buf;

    buf_init(&buf, 10);
    assert_string_equal(buf_peek(&buf), "");
    assert_int_equal(buf_status(&buf, NULL), 0);
}

static void appends_grow(void **state)
{
    (void)state;
    AUTO_BUF buf;

    buf_init(&buf, 100000);
    for (int i = 0; i < 10000; i++) {
        buf_printf(&buf, "%04d", i);
    }
    buf_puts(&buf, "end");
    assert_int_equal(buf.len, 40003);
    assert_memory_equal(buf.data + 4 * 1234, "12341235", 8);
    assert_string_equal(buf.data + 40000, "end");
}

static void maximum_is_exact(void **state)
{
    (void)state;
    AUTO_BUF buf;
    struct mr_error err;

    buf_init(&buf, 4);
    buf_puts(&buf, "abcd");
    assert_int_equal(buf_status(&buf, &err), 0);
    buf_puts(&buf, "e");
    assert_int_equal(buf_status(&buf, &err), MR_ELIMIT);
    assert_int_equal(err.error_class, MR_CLASS_REJECTED);
    assert_string_equal(buf_peek(&buf), "abcd");
}

static void failure_sticks(void **state)
{
    (void)state;
    AUTO_BUF buf;

    buf_init(&buf, 4);
    buf_puts(&buf, "too long");
    buf_puts(&buf, "ok");
    buf_printf(&buf, "%d", 1);
    assert_int_equal(buf_status(&buf, NULL), MR_ELIMIT);
    assert_string_equal(buf_peek(&buf), "");
}

static void done_makes_it_usable_again(void **state)
{
    (void)state;
    AUTO_BUF buf;

    buf_init(&buf, 4);
    buf_puts(&buf, "too long");
    buf_done(&buf);
    buf_puts(&buf, "ok");
    assert_int_equal(buf_status(&buf, NULL), 0);
    assert_string_equal(buf_peek(&buf), "ok");
}

static void bytes_may_be_zero(void **state)
{
    (void)state;
    AUTO_BUF buf;

    buf_init(&buf, 10);
    buf_add(&buf, "a\0b", 3);
    assert_int_equal(buf.len, 3);
    assert_memory_equal(buf.data, "a\0b", 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_is_empty_string),      cmocka_unit_test(appends_grow),
        cmocka_unit_test(maximum_is_exact),           cmocka_unit_test(failure_sticks),
        cmocka_unit_test(done_makes_it_usable_again), cmocka_unit_test(bytes_may_be_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
