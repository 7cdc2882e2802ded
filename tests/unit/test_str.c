// SPDX-License-Identifier: PostgreSQL
//
// Questions about strings.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <limits.h>

#include "base/str.h"

static void prefixes_and_emptiness(void **state)
{
    (void)state;
    assert_true(str_starts("57P01", "57P"));
    assert_false(str_starts("57", "57P"));
    assert_true(str_empty(NULL));
    assert_true(str_empty(""));
    assert_false(str_empty(" "));
}

static void incomplete_characters_are_trimmed(void **state)
{
    (void)state;
    char whole[] = "aü€😀";
    char four[] = "a\xF0\x9F\x98";
    char lead[] = "a\xC3";
    char only[] = "\xE2\x82";

    str_trim_utf8(whole);
    assert_string_equal(whole, "aü€😀");
    str_trim_utf8(four);
    assert_string_equal(four, "a");
    str_trim_utf8(lead);
    assert_string_equal(lead, "a");
    str_trim_utf8(only);
    assert_string_equal(only, "");
}

static void lines_are_counted_in_characters(void **state)
{
    (void)state;
    const char *text = "üü\n€\n\nx";

    assert_int_equal(str_line_of(text, 1), 1);
    assert_int_equal(str_line_of(text, 3), 1);
    assert_int_equal(str_line_of(text, 4), 2);
    assert_int_equal(str_line_of(text, 5), 2);
    assert_int_equal(str_line_of(text, 6), 3);
    assert_int_equal(str_line_of(text, 7), 4);
    assert_int_equal(str_line_of(text, 999), 4);
    assert_int_equal(str_line_of("", 1), 1);
}

static void distance_counts_edits(void **state)
{
    (void)state;
    char longest[STR_DISTANCE_MAX + 2];

    assert_int_equal(str_distance("migrate", "migrate"), 0);
    assert_int_equal(str_distance("migrat", "migrate"), 1);
    assert_int_equal(str_distance("mgirate", "migrate"), 1);
    assert_int_equal(str_distance("", "abc"), 3);
    assert_int_equal(str_distance("kitten", "sitting"), 3);
    memset(longest, 'x', sizeof(longest));
    longest[STR_DISTANCE_MAX + 1] = '\0';
    assert_int_equal(str_distance(longest, "x"), INT_MAX);
    assert_int_equal(str_distance(longest + 1, "x"), STR_DISTANCE_MAX - 1);
}

static void durations(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "5",
                                      "s",
                                      "0s",
                                      "-1s",
                                      " 5s",
                                      "5 s",
                                      "25h",
                                      "2d",
                                      "5S",
                                      "9999999999999999999s",
                                      "9223372036854775807h"};
    int64_t ms = 7;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(str_parse_duration_ms(bad[i], &ms));
        assert_int_equal(ms, 7);
    }
    assert_true(str_parse_duration_ms("250ms", &ms));
    assert_int_equal(ms, 250);
    assert_true(str_parse_duration_ms("5s", &ms));
    assert_int_equal(ms, 5000);
    assert_true(str_parse_duration_ms("2min", &ms));
    assert_int_equal(ms, 120000);
    assert_true(str_parse_duration_ms("24h", &ms));
    assert_int_equal(ms, STR_DURATION_MAX_MS);
}

static void spans(void **state)
{
    (void)state;
    int64_t ms = 7;

    assert_false(str_parse_span_ms("3651d", &ms));
    assert_false(str_parse_span_ms("7days", &ms));
    assert_false(str_parse_span_ms("9223372036854775807d", &ms));
    assert_int_equal(ms, 7);
    assert_true(str_parse_span_ms("7d", &ms));
    assert_int_equal(ms, 7 * STR_DURATION_MAX_MS);
    assert_true(str_parse_span_ms("48h", &ms));
    assert_int_equal(ms, 2 * STR_DURATION_MAX_MS);
}

static void reals(void **state)
{
    (void)state;
    static const char *const bad[] = {"",    ".",   "-1",  "+1",    "1e3",
                                      "inf", "nan", "0x1", "1.2.3", "1 "};
    double number = 7;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(str_parse_real(bad[i], &number));
        assert_true(number == 7);
    }
    assert_true(str_parse_real("0.5", &number));
    assert_true(number == 0.5);
    assert_true(str_parse_real("0", &number));
    assert_true(number == 0);
}

static void integers(void **state)
{
    (void)state;
    int64_t number = 7;

    assert_false(str_parse_int("", 0, 10, &number));
    assert_false(str_parse_int("x", 0, 10, &number));
    assert_false(str_parse_int("1x", 0, 10, &number));
    assert_false(str_parse_int(" 1", 0, 10, &number));
    assert_false(str_parse_int("11", 0, 10, &number));
    assert_false(str_parse_int("-1", 0, 10, &number));
    assert_false(str_parse_int("-", -5, 10, &number));
    assert_false(str_parse_int("99999999999999999999", 0, INT64_MAX, &number));
    assert_int_equal(number, 7);
    assert_true(str_parse_int("10", 0, 10, &number));
    assert_int_equal(number, 10);
    assert_true(str_parse_int("-5", -5, 10, &number));
    assert_int_equal(number, -5);
}

static void versions(void **state)
{
    (void)state;
    assert_int_equal(str_version_compare("1.2.3", "1.2.3"), 0);
    assert_true(str_version_compare("1.10.0", "1.9.2") > 0);
    assert_true(str_version_compare("0.9", "1.0.0") < 0);
    assert_int_equal(str_version_compare("1.0", "1.0.0"), 0);
    assert_true(str_version_compare("1.0.1", "1.0") > 0);
    assert_int_equal(str_version_compare("1.0.0-rc1", "1.0.0"), 0);
    assert_true(str_version_compare("", "0.1") < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefixes_and_emptiness),
        cmocka_unit_test(incomplete_characters_are_trimmed),
        cmocka_unit_test(lines_are_counted_in_characters),
        cmocka_unit_test(distance_counts_edits),
        cmocka_unit_test(durations),
        cmocka_unit_test(spans),
        cmocka_unit_test(reals),
        cmocka_unit_test(integers),
        cmocka_unit_test(versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
