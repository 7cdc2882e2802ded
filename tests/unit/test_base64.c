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
    }
}

static void any_byte(void **state)
{
    (void)state;
    AUTO_BUF buf;

    buf_init(&buf, 100);
    base64_add(&buf, "\xff\xef\xbe\x00", 4);
    assert_string_equal(buf_peek(&buf), "/+++AA==");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples),
        cmocka_unit_test(any_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
