// SPDX-License-Identifier: PostgreSQL
//
// Error values: every code has a class, texts are cut between characters.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

static void every_code_has_a_class(void **state)
{
    (void)state;
    for (int code = MR_EINTERNAL; code < 0; code++) {
        assert_int_not_equal(mr_code_class(code), MR_CLASS_NONE);
    }
    assert_int_equal(mr_code_class(MR_OK), MR_CLASS_NONE);
    assert_int_equal(mr_code_class(MR_ECONNECT), MR_CLASS_TRANSIENT);
    assert_int_equal(mr_code_class(MR_ENEWER), MR_CLASS_CONFIG);
    assert_int_equal(mr_code_class(-9999), MR_CLASS_INTERNAL);
}

static void set_begins_anew(void **state)
{
    (void)state;
    struct mr_error err;

    mr_error_set(&err, MR_EUSAGE, "old");
    mr_error_hint(&err, "old");
    mr_error_sqlstate(&err, "42501");
    assert_int_equal(mr_error_set(&err, MR_ELOCK, "what: %d", 7), MR_ELOCK);
    assert_string_equal(err.message, "what: 7");
    assert_string_equal(err.hint, "");
    assert_string_equal(err.sqlstate, "");
    assert_int_equal(err.error_class, MR_CLASS_TRANSIENT);
}

static void message_is_one_line(void **state)
{
    (void)state;
    struct mr_error err;

    mr_error_set(&err, MR_EUSAGE, "one\ntwo\tthree\n");
    assert_string_equal(err.message, "one two three ");
    mr_error_detail(&err, "one\ntwo");
    assert_string_equal(err.detail, "one\ntwo");
}

static void prefix_and_recode(void **state)
{
    (void)state;
    struct mr_error err;

    mr_error_set(&err, MR_EPRIVILEGE, "why");
    mr_error_prefix(&err, "what %s", "exactly");
    assert_string_equal(err.message, "what exactly: why");
    assert_int_equal(mr_error_recode(&err, MR_ECONFLICT), MR_ECONFLICT);
    assert_int_equal(err.error_class, MR_CLASS_CONFLICT);
    assert_string_equal(err.message, "what exactly: why");
}

static void long_texts_are_cut_between_characters(void **state)
{
    (void)state;
    struct mr_error err;
    char text[4001];

    for (size_t i = 0; i < 4000; i += 2) {
        memcpy(text + i, "ü", 2);
    }
    text[4000] = '\0';
    mr_error_set(&err, MR_EUSAGE, "%s", text);
    assert_int_equal(strlen(err.message), MR_ERROR_MESSAGE_SIZE - 2);
    mr_error_prefix(&err, "a");
    assert_int_equal(strlen(err.message), MR_ERROR_MESSAGE_SIZE - 1);
    mr_error_prefix(&err, "%s", text);
    assert_int_equal(strlen(err.message), MR_ERROR_MESSAGE_SIZE - 1);
}

static void nobody_has_to_look(void **state)
{
    (void)state;
    assert_int_equal(mr_error_set(NULL, MR_EIO, "x"), MR_EIO);
    mr_error_prefix(NULL, "x");
    mr_error_detail(NULL, "x");
    mr_error_hint(NULL, "x");
    mr_error_sqlstate(NULL, "x");
    assert_int_equal(mr_error_recode(NULL, MR_EIO), MR_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_a_class),
        cmocka_unit_test(set_begins_anew),
        cmocka_unit_test(message_is_one_line),
        cmocka_unit_test(prefix_and_recode),
        cmocka_unit_test(long_texts_are_cut_between_characters),
        cmocka_unit_test(nobody_has_to_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
