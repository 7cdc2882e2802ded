// SPDX-License-Identifier: PostgreSQL
//
// Options structs of older and newer headers.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/sized.h"

struct options {
    size_t size;
    int one, two;
};

static void older_ones_leave_defaults(void **state)
{
    struct options to = {sizeof(to), 1, 2};
    struct options from = {offsetof(struct options, two), 11, 12};

    (void)state;
    assert_int_equal(sized_read(&to, sizeof(to), &from, "INIT", NULL), 0);
    assert_int_equal(to.one, 11);
    assert_int_equal(to.two, 2);
    from.size = sizeof(from);
    assert_int_equal(sized_read(&to, sizeof(to), &from, "INIT", NULL), 0);
    assert_int_equal(to.two, 12);
}

static void wrong_sizes_are_refused(void **state)
{
    struct options to = {sizeof(to), 1, 2};
    struct options from = {0, 11, 12};
    mr_error err;

    (void)state;
    assert_int_equal(sized_read(&to, sizeof(to), &from, "THE_INIT", &err), MR_EUSAGE);
    assert_non_null(strstr(err.hint, "THE_INIT"));
    from.size = sizeof(from) + 1;
    assert_int_equal(sized_read(&to, sizeof(to), &from, "THE_INIT", &err), MR_EUSAGE);
    assert_non_null(strstr(err.hint, MR_VERSION));
    assert_int_equal(to.one, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(older_ones_leave_defaults),
        cmocka_unit_test(wrong_sizes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
