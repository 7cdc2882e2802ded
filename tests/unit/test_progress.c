// SPDX-License-Identifier: PostgreSQL
//
// Progress, and figures as people read them.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/figure.h"
#include "cli/progress.h"

enum { TEXT_MAX = 1000 };

static void numbers(void **state)
{
    (void)state;
    static const struct {
        int64_t number;
        const char *text;
    } cases[] = {{0, "0"},
                 {999, "999"},
                 {1000, "1,000"},
                 {123456, "123,456"},
                 {1234567, "1,234,567"},
                 {-123456, "-123,456"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        AUTO_BUF out;

        buf_init(&out, TEXT_MAX);
        figure_add_number(&out, cases[i].number);
        assert_string_equal(buf_peek(&out), cases[i].text);
    }
}

static void times(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {{-1, "0 ms"},       {0.0614, "61 ms"}, {1.44, "1.4 s"},      {12.4, "12 s"},
                 {125, "2 min 5 s"}, {3600, "1 h"},     {4800, "1 h 20 min"}, {273600, "3 d 4 h"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        AUTO_BUF out;

        buf_init(&out, TEXT_MAX);
        figure_add_seconds(&out, cases[i].seconds);
        assert_string_equal(buf_peek(&out), cases[i].text);
    }
}

static void clocks(void **state)
{
    (void)state;
    static const struct {
        const char *iso;
        const char *text;
    } cases[] = {
        {"\"2026-11-15T09:10:11.123456+00:00\"", "2026-11-15 09:10:11+00:00"},
        {"2026-11-15T09:10:11+05:30", "2026-11-15 09:10:11+05:30"},
        {"2026-11-15T09:10:11", "2026-11-15 09:10:11"},
        {"\"infinity\"", "infinity"},
        {"", ""},
        {"2026", "2026"},
        {"T", "T"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        AUTO_BUF out;

        buf_init(&out, TEXT_MAX);
        figure_add_clock(&out, cases[i].iso);
        assert_string_equal(buf_peek(&out), cases[i].text);
    }
}

static void draws(int64_t count, int64_t part, int64_t whole, int64_t elapsed_ms, int width,
                  const char *expected)
{
    AUTO_BUF out;

    buf_init(&out, TEXT_MAX);
    progress_text(&out, "jobs", count, part, whole, elapsed_ms, width);
    assert_string_equal(buf_peek(&out), expected);
}

static void bars(void **state)
{
    (void)state;
    draws(450, 45, 100, 1000, 79,
          "[=============>                ]  45 %  450 jobs  450/s  2 s left");
    draws(1000, 100, 100, 2000, 79, "[==============================] 100 %  1,000 jobs  500/s");
    draws(0, 0, 100, 0, 79, "[>                             ]   0 %  0 jobs");
    // more than was expected, as when a file grows while it is read
    draws(1000, 150, 100, 2000, 79, "[==============================] 100 %  1,000 jobs  500/s");
    // no room for a bar; no terminal; no end in sight
    draws(450, 45, 100, 1000, 40, " 45 %  450 jobs  450/s  2 s left");
    draws(450, 45, 100, 1000, 0, " 45 %  450 jobs  450/s  2 s left");
    draws(450, 45, 0, 1000, 79, "450 jobs  450/s");
}

static void short_forms(void **state)
{
    (void)state;
    static const struct {
        void (*add)(struct buf *out, double number);
        double number;
        const char *text;
    } cases[] = {
        {figure_add_short, 0, "0"},
        {figure_add_short, 0.04, "0"},
        {figure_add_short, 0.5, "0.5"},
        {figure_add_short, 12.34, "12.3"},
        {figure_add_short, 123.4, "123"},
        {figure_add_short, 1234, "1234"},
        {figure_add_short, 99999, "99999"},
        {figure_add_short, 123456, "123k"},
        {figure_add_short, 1234.5, "1.2k"},
        {figure_add_short, 4500000, "4.5M"},
        {figure_add_short, 1e18, "1000000T"},
        {figure_add_short_time, 0, "0"},
        {figure_add_short_time, -1, "0"},
        {figure_add_short_time, 0.35, "350ms"},
        {figure_add_short_time, 1.44, "1.4s"},
        {figure_add_short_time, 29.9, "29s"},
        {figure_add_short_time, 119, "119s"},
        {figure_add_short_time, 125, "2m"},
        {figure_add_short_time, 11520, "3.2h"},
        {figure_add_short_time, 345600, "4d"},
        {figure_add_bytes, 0, "0 B"},
        {figure_add_bytes, 512, "512 B"},
        {figure_add_bytes, 12345678, "12.3 MB"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        AUTO_BUF text;

        buf_init(&text, TEXT_MAX);
        cases[i].add(&text, cases[i].number);
        assert_string_equal(buf_peek(&text), cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers), cmocka_unit_test(short_forms), cmocka_unit_test(times),
        cmocka_unit_test(clocks),  cmocka_unit_test(bars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
