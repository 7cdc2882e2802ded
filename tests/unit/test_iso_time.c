// SPDX-License-Identifier: PostgreSQL
//
// Points in time as text.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/iso_time.h"

static const struct {
    const char *text;
    int64_t us;
} good[] = {
    {"1970-01-01", 0},
    {"1970-01-01 00:00", 0},
    {"1970-01-01T00:00:01Z", 1000000},
    {"1970-01-01 00:00:00.5", 500000},
    {"1970-01-01 00:00:00.1234567", 123456},
    {"1970-01-01 01:00:00+01", 0},
    {"1970-01-01 01:30+01:30", 0},
    {"1969-12-31 22:00:00-0200", 0},
    {"1970-1-2 3:04", 97440000000},
    {"1969-12-31 23:59:59.999999", -1},
    {"2000-02-29 12:00:00 +00", 951825600000000},
    {"2100-01-01 00:00:00+00", 4102444800000000},
    {"0001-01-01", -62135596800000000},
    {"99999-12-31 23:59:59", 3093527980799000000},
    {"294000-12-31 23:59:59.999999-15:59", 9215608348739999999},
};

static void times_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        int64_t us = 7;
        assert_int_equal(iso_time_parse(good[i].text, &us), ISO_TIME_GOOD);
        assert_int_equal(us, good[i].us);
    }
}

static void others_are_refused(void **state)
{
    static const char *const forms[] = {"",
                                        "tomorrow",
                                        "2026",
                                        "2026-01",
                                        "26-01-01",
                                        "2026-01-01x",
                                        "2026-01-01 1",
                                        "2026-01-01 10:00:",
                                        "2026-01-01 10:00:00.",
                                        "2026-01-01 10:00+1",
                                        "2026-01-01 10:00 CET",
                                        "2026-01-01 10:00+16:00",
                                        "-2026-01-01",
                                        "1234567-01-01"};
    static const char *const ranges[] = {
        "2026-00-01",       "2026-13-01",          "2026-02-30",   "2100-02-29",
        "2026-01-32",       "2026-01-00",          "0000-01-01",   "2026-01-01 24:01",
        "2026-01-01 10:60", "2026-01-01 10:00:60", "294001-01-01", "294276-12-31",
        "300000-01-01",     "999999-12-31"};
    int64_t us = 7;

    (void)state;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        assert_int_equal(iso_time_parse(forms[i], &us), ISO_TIME_FORM);
    }
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        assert_int_equal(iso_time_parse(ranges[i], &us), ISO_TIME_RANGE);
    }
    assert_int_equal(us, 7);
}

static void what_is_printed_is_read_again(void **state)
{
    char text[ISO_TIME_SIZE];
    int64_t us = 0;

    (void)state;
    iso_time_print(0, text);
    assert_string_equal(text, "1970-01-01T00:00:00+00:00");
    iso_time_print(951825600250000, text);
    assert_string_equal(text, "2000-02-29T12:00:00.25+00:00");
    iso_time_print(-1, text);
    assert_string_equal(text, "1969-12-31T23:59:59.999999+00:00");
    for (int64_t at = -62135596800000000; at < 3000000000000000000; at += 12345678901234567) {
        iso_time_print(at, text);
        assert_int_equal(iso_time_parse(text, &us), ISO_TIME_GOOD);
        assert_int_equal(us, at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_read),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(what_is_printed_is_read_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
