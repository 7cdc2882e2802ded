// SPDX-License-Identifier: PostgreSQL
//
// Base64: the examples of RFC 4648.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base64.h"

static void examples(void **state)
{
    static const char *const rows[][2] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        AUTO_BUF buf;
        buf_init(&buf, 100);
        base64_add(&buf, rows[i][0], strlen(rows[i][0]));
        assert_string_equal(buf_peek(&buf), rows[i][1]);
        AUTO_BUF back;
        buf_init(&back, 100);
        assert_true(base64_read(&back, rows[i][1], strlen(rows[i][1])));
        assert_string_equal(buf_peek(&back), rows[i][0]);
    }
}

static void any_byte(void **state)
{
    (void)state;
    AUTO_BUF buf;

    buf_init(&buf, 100);
    base64_add(&buf, "\xff\xef\xbe\x00", 4);
    assert_string_equal(buf_peek(&buf), "/+++AA==");
    AUTO_BUF back;
    buf_init(&back, 100);
    assert_true(base64_read(&back, buf.data, buf.len));
    assert_int_equal(back.len, 4);
    assert_memory_equal(back.data, "\xff\xef\xbe\x00", 4);
}

static void refused(void **state)
{
    static const char *const rows[] = {
        "Z",    "Zg",   "Zg=",  "Zg===",  "====",  "Zg==Zg==",
        "Z===", "Zm9!", "Zm 9", "Zm9v\n", "Zm9v,", "Zm-_",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        AUTO_BUF buf;
        buf_init(&buf, 100);
        assert_false(base64_read(&buf, rows[i], strlen(rows[i])));
    }
    AUTO_BUF zero;
    buf_init(&zero, 100);
    assert_false(base64_read(&zero, "Zm\0v", 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples),
        cmocka_unit_test(any_byte),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
