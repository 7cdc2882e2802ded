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
static int64_t span_ms;
static double real;
static const struct option_row rows[] = {
    {"flag", OPTION_FLAG, &flag, NULL, "a flag"},
    {"text", OPTION_STRING, &text, "TEXT", "a text (none)"},
    {"time", OPTION_DURATION, &time_ms, "TIME", "a time (none)"},
    {"number", OPTION_NUMBER, &number, "NUMBER", "a number (0)"},
    {"span", OPTION_SPAN, &span_ms, "TIME", "a longer time (none)"},
    {"real", OPTION_REAL, &real, "NUMBER", "a share (0)"},
    {"t", OPTION_STRING, &text, "TEXT", "a text (none)"},
    {0},
};

static char *words[20];

// Words are separated by single spaces.
static int parse(const char *line, struct mr_error *err)
{
    static char copy[200];
    int argc = 0;

    memset(words, 0, sizeof(words));
    flag = false;
    text = NULL;
    time_ms = number = 0;
    assert_true(strlen(line) < sizeof(copy));
    memcpy(copy, line, strlen(line) + 1);
    for (char *rest = copy; rest;) {
        words[argc++] = strsep(&rest, " ");
    }
    return options_parse(rows, argc, words, err);
}

static void all_types(void **state)
{
    (void)state;
    assert_int_equal(
        parse("cmd --flag --text=a=b --time 5s --number 12 --span 2d --real 0.5", NULL), 11);
    assert_true(flag);
    assert_string_equal(text, "a=b");
    assert_int_equal(time_ms, 5000);
    assert_int_equal(number, 12);
    assert_int_equal(span_ms, 2 * 24 * 3600 * 1000);
    assert_true(real == 0.5);
}

static void options_and_arguments_mix(void **state)
{
    (void)state;
    int first = parse("cmd --flag queue --text x - --number=3 last", NULL);

    assert_int_equal(first, 5);
    assert_true(flag);
    assert_string_equal(text, "x");
    assert_int_equal(number, 3);
    assert_string_equal(words[first], "queue");
    assert_string_equal(words[first + 1], "-");
    assert_string_equal(words[first + 2], "last");
    assert_int_equal(parse("cmd -", NULL), 1);
    assert_int_equal(parse("cmd", NULL), 1);
}

static void a_letter_has_one_dash(void **state)
{
    (void)state;
    assert_int_equal(parse("cmd -t x --flag", NULL), 4);
    assert_string_equal(text, "x");
    assert_int_equal(parse("cmd -t=y", NULL), 2);
    assert_string_equal(text, "y");
    assert_int_equal(parse("cmd --t x", NULL), MR_EUSAGE);
    assert_int_equal(parse("cmd -text x", NULL), MR_EUSAGE);
    assert_int_equal(parse("cmd -x", NULL), MR_EUSAGE);
    assert_int_equal(parse("cmd -t", NULL), MR_EUSAGE);
}

static void dashes_end_options(void **state)
{
    (void)state;
    int first = parse("cmd a --flag -- b --text x", NULL);

    assert_int_equal(first, 3);
    assert_true(flag);
    assert_null(text);
    assert_string_equal(words[first], "a");
    assert_string_equal(words[first + 1], "b");
    assert_string_equal(words[first + 2], "--text");
    assert_int_equal(parse("cmd -- --flag", NULL), 2);
    assert_false(flag);
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
        {"cmd --time 2d", "wrong value for --time: \"2d\""},
        {"cmd --real -1", "wrong value for --real: \"-1\""},
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
        cmocka_unit_test(options_and_arguments_mix),
        cmocka_unit_test(a_letter_has_one_dash),
        cmocka_unit_test(dashes_end_options),
        cmocka_unit_test(wrong_usage),
        cmocka_unit_test(nearest_option_is_hinted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
