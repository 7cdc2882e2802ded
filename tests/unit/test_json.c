// SPDX-License-Identifier: PostgreSQL
//
// Writing JSON strings.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

static void escapes(void **state)
{
    (void)state;
    AUTO_BUF buf;

    buf_init(&buf, 100);
    json_add_string(&buf, "a\"b\\c\nd\x01"
                          "e/ü");
    assert_string_equal(buf_peek(&buf), "\"a\\\"b\\\\c\\u000ad\\u0001e/ü\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
