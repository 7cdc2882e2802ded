// SPDX-License-Identifier: PostgreSQL
//
// Keys of a terminal, and the columns that text takes on it.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/keys.h"
#include "cli/width.h"

enum { KEYS_MAX = 20 };

// The keys of some bytes, each followed by nothing for a while at the end.
static void keys_are(const char *bytes, size_t len, const int *expected)
{
    struct keys keys = {0};
    int found[KEYS_MAX + 1] = {0};
    int count = 0;

    for (size_t i = 0; i <= len; i++) {
        int key = i < len ? keys_take(&keys, bytes[i]) : keys_flush(&keys);

        if (key != KEY_NONE) {
            assert_true(count < KEYS_MAX);
            found[count++] = key;
        }
    }
    assert_false(keys_pending(&keys));
    int wanted = 0;
    for (; expected[wanted] != KEY_NONE; wanted++) {
        assert_int_equal(found[wanted], expected[wanted]);
    }
    assert_int_equal(count, wanted);
}

#define KEYS(text, ...) keys_are(text, sizeof(text) - 1, (const int[]){__VA_ARGS__, KEY_NONE})

static void characters(void **state)
{
    (void)state;
    KEYS("qj?", 'q', 'j', '?');
    KEYS("\r", KEY_ENTER);
    KEYS("\n", KEY_ENTER);
    KEYS("", KEY_NONE);
    // controls and what is beyond ASCII mean nothing
    KEYS("\001\002\003\t\177\200\377\303\244", KEY_NONE);
}

static void sequences(void **state)
{
    (void)state;
    KEYS("\033[A\033[B\033[C\033[D", KEY_UP, KEY_DOWN, KEY_RIGHT, KEY_LEFT);
    KEYS("\033OA\033OB\033OH\033OF", KEY_UP, KEY_DOWN, KEY_HOME, KEY_END);
    KEYS("\033[H\033[F\033[1~\033[4~\033[7~\033[8~", KEY_HOME, KEY_END, KEY_HOME, KEY_END, KEY_HOME,
         KEY_END);
    KEYS("\033[5~\033[6~", KEY_PAGE_UP, KEY_PAGE_DOWN);
    KEYS("\033[1;5A\033[5;2~", KEY_UP, KEY_PAGE_UP);
    // function keys, mouse, focus and pasted brackets are swallowed whole
    KEYS("\033[15~\033[24~\033[I\033[200~q", 'q');
    KEYS("\033[<0;10;20Mq", 'q');
    KEYS("\033OM", KEY_ENTER); // of the number pad
    KEYS("\033xq", 'q');
}

static void escapes(void **state)
{
    (void)state;
    KEYS("\033", KEY_ESCAPE);
    KEYS("\033\033", KEY_ESCAPE, KEY_ESCAPE);
    KEYS("\033\033[A", KEY_ESCAPE, KEY_UP);
    KEYS("q\033[", 'q');
    // longer than any: dropped, and what follows is read again
    KEYS("\033[111111111111111111111111111q", '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1',
         '1', '1', 'q');
}

static void pieces(void **state)
{
    (void)state;
    struct keys keys = {0};

    assert_int_equal(keys_take(&keys, '\033'), KEY_NONE);
    assert_true(keys_pending(&keys));
    assert_int_equal(keys_take(&keys, '['), KEY_NONE);
    assert_int_equal(keys_take(&keys, 'A'), KEY_UP);
    assert_false(keys_pending(&keys));
    assert_int_equal(keys_flush(&keys), KEY_NONE);
}

// ---- widths ----

static void columns(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int columns;
    } cases[] = {
        {"", 0},
        {"mail", 4},
        {"größe", 5},
        {"日本語", 6},
        {"한글", 4},
        {"e\u0301", 1}, // e and an accent
        {"🚀", 2},
        {"\t\n\033[31m", 7},
        {"\xc2\x9b"
         "31m",
         4},              // a control of one character
        {"\u202eabc", 4}, // right to left from here
        {"\377\376", 2},
        {"\xe6\x97", 2},         // cut short
        {"\xc0\xaf", 2},         // a slash in two bytes
        {"\xed\xa0\x80", 3},     // half of a pair
        {"\xf4\x90\x80\x80", 4}, // beyond the last
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(width_of(cases[i].text), cases[i].columns);
    }
}

static void shown(const char *text, int room, const char *expected)
{
    AUTO_BUF out;

    buf_init(&out, 1000);
    int used = width_add(&out, text, room);
    assert_string_equal(buf_peek(&out), expected);
    assert_int_equal(used, width_of(expected));
    assert_true(used <= room || room < 0);
}

static void cuts(void **state)
{
    (void)state;
    shown("mail", 4, "mail");
    shown("mail", 3, "ma…");
    shown("mail", 1, "…");
    shown("mail", 0, "");
    shown("mail", -1, "");
    shown("日本語", 6, "日本語");
    shown("日本語", 5, "日本…");
    shown("日本語", 4, "日…"); // a half would not fit
    shown("a\033]0;owned\007b", 20, "a ]0;owned b");
    shown("a\u202eb\u200bc", 20, "a b c");
    shown("\xff\xfe", 20, "??");
    shown("e\u0301e\u0301", 2, "e\u0301e\u0301");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters), cmocka_unit_test(sequences), cmocka_unit_test(escapes),
        cmocka_unit_test(pieces),     cmocka_unit_test(columns),   cmocka_unit_test(cuts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
