// SPDX-License-Identifier: PostgreSQL
//
// Cutting bytes into lines, in pieces of every size.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "handler/lines.h"

static void on_line(void *arg, const char *text, size_t size, enum line_end end)
{
    static const char marks[] = {[LINE_WHOLE] = '|', [LINE_CUT] = '!', [LINE_OPEN] = '?'};

    buf_add(arg, text, size);
    buf_add(arg, &marks[end], 1);
}

static const struct {
    const char *bytes;
    const char *lines; // of at most four bytes
} cases[] = {
    {"", ""},
    {"a\nb\n", "a|b|"},
    {"a\nb", "a|b?"},
    {"\n\na\n", "||a|"},
    {"a\r\nb\r\n", "a|b|"},
    {"a\r", "a\r?"},
    {"1234\n5\n", "1234|5|"},
    {"12345\n6\n", "1234!6|"},
    {"123456789\n6", "1234!6?"},
    {"123456789", "1234!"},
    {"123\r\n", "123|"},
};

static void pieces_of_every_size(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t size = strlen(cases[i].bytes);
        for (size_t piece = 1; piece <= size + 1; piece++) {
            struct lines lines;
            AUTO_BUF out;

            buf_init(&out, 1000);
            lines_init(&lines, 4);
            for (size_t at = 0; at < size; at += piece) {
                lines_feed(&lines, cases[i].bytes + at, piece < size - at ? piece : size - at,
                           on_line, &out);
            }
            lines_end(&lines, on_line, &out);
            assert_string_equal(buf_peek(&out), cases[i].lines);
            lines_done(&lines);
        }
    }
}

static void assert_shown(const char *text, size_t size, const char *shown)
{
    char out[6];

    line_show(text, size, out, sizeof(out));
    assert_string_equal(out, shown);
}

static void shown_to_people(void **state)
{
    (void)state;
    assert_shown("", 0, "");
    assert_shown("abcde", 5, "abcde");
    assert_shown("abcdef", 6, "abcde");
    assert_shown("a\tb\x1b\x7f", 5, "a b  ");
    assert_shown("a\0b", 3, "a b");
    assert_shown("\xff\xfe", 2, "??");
    assert_shown("aé", 3, "aé");
    assert_shown("abcdé", 6, "abcd"); // no half of a character
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_every_size),
        cmocka_unit_test(shown_to_people),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
