// SPDX-License-Identifier: PostgreSQL
//
// Reading the command line by table.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <stdbool.h>

#include "cli/options.h"

static bool flag;
static const char *text;
static int64_t time_ms;
static int64_t number;
static const struct option_row rows[] = {
    {"flag", OPTION_FLAG, &flag, NULL, "a flag"},
    {"text", OPTION_STRING, &text, "TEXT", "a text (none)"},
    {"time", OPTION_DURATION, &time_ms, "TIME", "a time (none)"},
    {"number", OPTION_NUMBER, &number, "NUMBER", "a number (0)"},
    {0},
};

// Words are separated by single spaces.
static int parse(const char *line, struct mr_error *err)
{
    static char copy[200];
    char *argv[20] = {NULL};
    int argc = 0;

    flag = false;
    text = NULL;
    time_ms = number = 0;
    assert_true(strlen(line) < sizeof(copy));
    memcpy(copy, line, strlen(line) + 1);
    for (char *rest = copy; rest;) {
        argv[argc++] = strsep(&rest, " ");
    }
    return options_parse(rows, argc, argv, err);
}

static void all_types(void **state)
{
    (void)state;
    assert_int_equal(parse("cmd --flag --text=a=b --time 5s --number 12", NULL), 7);
    assert_true(flag);
    assert_string_equal(text, "a=b");
    assert_int_equal(time_ms, 5000);
    assert_int_equal(number, 12);
}

static void stops_at_arguments(void **state)
{
    (void)state;
    assert_int_equal(parse("cmd --flag queue --text x", NULL), 2);
    assert_null(text);
    assert_int_equal(parse("cmd -- --flag", NULL), 2);
    assert_false(flag);
    assert_int_equal(parse("cmd -", NULL), 1);
    assert_int_equal(parse("cmd", NULL), 1);
}

static void wrong_usage(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *message;
    } cases[] = {
        {"cmd --flug", "unknown option: --flug"},
        {"cmd --fla", "unknown option: --fla"},
        {"cmd -f", "unknown option: -f"},
        {"cmd --flag=yes", "--flag takes no value"},
        {"cmd --text", "--text needs a value"},
        {"cmd --time 5", "wrong value for --time: \"5\""},
        {"cmd --number -1", "wrong value for --number: \"-1\""},
        {"cmd --number 4294967296", "wrong value for --number: \"4294967296\""},
    };
    struct mr_error err;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(parse(cases[i].line, &err), MR_EUSAGE);
        assert_string_equal(err.message, cases[i].message);
    }
}

static void nearest_option_is_hinted(void **state)
{
    (void)state;
    struct mr_error err;

    parse("cmd --tmie", &err);
    assert_string_equal(err.hint, "Did you mean --time?");
    parse("cmd --something-else-entirely", &err);
    assert_string_equal(err.hint, "See the options with --help.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_types),
        cmocka_unit_test(stops_at_arguments),
        cmocka_unit_test(wrong_usage),
        cmocka_unit_test(nearest_option_is_hinted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
