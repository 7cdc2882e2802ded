// SPDX-License-Identifier: PostgreSQL
//
// Statements with their $n filled in.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/schema_script.h"

static const struct embedded_file files[] = {
    {EMBEDDED_SCHEMA, 0, "begin", "", "", "-- $1 stays\nset a = $1; set b = $2; do $x$ $3 $\n"},
    {EMBEDDED_SCHEMA, 0, "role_statements", "", "", "-- list\nselect 1\n"},
    {EMBEDDED_SCHEMA, 0, "roles", "", "", "for r in\n$1loop"},
    {EMBEDDED_SCHEMA, 0, "record_functions", "", "", "values ($1, $2)"},
};
static const struct embedded_set set = {files, 4, "abc"};
static const struct schema_options options = {
    .program_version = "it's",
    .lock_timeout_ms = 5000,
    .wait_timeout_ms = 60000,
};

static void arguments_are_filled_in(void **state)
{
    (void)state;
    AUTO_BUF out;

    buf_init(&out, 1000);
    assert_int_equal(schema_script_begin(&set, &options, &out, NULL), 0);
    assert_string_equal(buf_peek(&out),
                        "-- $1 stays\nset a = '60000'; set b = '5000'; do $x$ $3 $\n");
}

static void literals_are_quoted(void **state)
{
    (void)state;
    AUTO_BUF out;

    buf_init(&out, 1000);
    assert_int_equal(schema_script_record_functions(&set, &options, &out, NULL), 0);
    assert_string_equal(buf_peek(&out), "values ('abc', 'it''s')");
}

static void a_query_goes_in_as_it_is(void **state)
{
    (void)state;
    AUTO_BUF out;

    buf_init(&out, 1000);
    assert_int_equal(schema_script_roles(&set, &out, NULL), 0);
    assert_string_equal(buf_peek(&out), "for r in\n-- list\nselect 1\nloop");
}

static void a_missing_file_is_a_defect(void **state)
{
    (void)state;
    AUTO_BUF out;
    struct mr_error err;

    buf_init(&out, 1000);
    assert_int_equal(schema_script_after(&set, &out, &err), MR_EINTERNAL);
    assert_non_null(strstr(err.message, "sql/schema/after.sql"));
}

static void print_from_an_unknown_migration(void **state)
{
    (void)state;
    AUTO_BUF out;
    struct mr_error err;

    buf_init(&out, 1000);
    assert_int_equal(schema_print(&set, &options, 7, &out, &err), MR_EUSAGE);
    assert_int_equal(out.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_are_filled_in),
        cmocka_unit_test(literals_are_quoted),
        cmocka_unit_test(a_query_goes_in_as_it_is),
        cmocka_unit_test(a_missing_file_is_a_defect),
        cmocka_unit_test(print_from_an_unknown_migration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
