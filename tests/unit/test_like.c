// SPDX-License-Identifier: PostgreSQL
//
// SQL's LIKE.

#include "base/like.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_matches(void **state)
{
    static const struct {
        const char *text, *pattern;
        bool matches;
    } rows[] = {
        {"", "", true},
        {"", "%", true},
        {"", "_", false},
        {"a", "", false},
        {"abc", "abc", true},
        {"abc", "ab", false},
        {"ab", "abc", false},
        {"abc", "ABC", false},
        {"abc", "a%", true},
        {"abc", "%c", true},
        {"abc", "%b%", true},
        {"abc", "a_c", true},
        {"ac", "a_c", false},
        {"abcabd", "%ab_", true},
        {"aaab", "%aab", true},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "%a%a%a%a%a%a%a%a%a%c", false},
        {"abc", "%%%", true},
        {"abc", "____", false},
        {"a%c", "a\\%c", true},
        {"abc", "a\\%c", false},
        {"a_c", "a\\_c", true},
        {"abc", "a\\bc", true},
        {"a\\c", "a\\\\c", true},
        {"a*c", "a*c", true},
        {"abc", "a*c", false},
        {"a\xe2\x82\xac", "a_", true},
        {"a\xe2\x82\xac", "a__", false},
        {"\xe2\x82\xac\xc3\xbc", "%\xc3\xbc", true},
        {"\xe2\x82\xac", "%\x82\xac", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (like_matches(rows[i].text, rows[i].pattern) != rows[i].matches) {
            fail_msg("\"%s\" like \"%s\"", rows[i].text, rows[i].pattern);
        }
    }
}

static void test_is_cut(void **state)
{
    (void)state;
    assert_false(like_is_cut(""));
    assert_false(like_is_cut("a"));
    assert_true(like_is_cut("\\"));
    assert_false(like_is_cut("a\\\\"));
    assert_true(like_is_cut("a\\\\\\"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matches),
        cmocka_unit_test(test_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
