// SPDX-License-Identifier: PostgreSQL
//
// What an SQLSTATE means. Connecting itself is tested with servers, in integration/.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/conn.h"

static void codes_of_sqlstates(void **state)
{
    (void)state;
    assert_int_equal(conn_code_of_sqlstate("42501"), MR_EPRIVILEGE);
    assert_int_equal(conn_code_of_sqlstate("55P03"), MR_ELOCK);
    assert_int_equal(conn_code_of_sqlstate("40P01"), MR_ECONFLICT);
    assert_int_equal(conn_code_of_sqlstate("57P01"), MR_ECONNECT);
    assert_int_equal(conn_code_of_sqlstate("08006"), MR_ECONNECT);
    assert_int_equal(conn_code_of_sqlstate("25006"), MR_EREADONLY);
    assert_int_equal(conn_code_of_sqlstate("57014"), MR_ETIMEOUT);
    assert_int_equal(conn_code_of_sqlstate("54000"), MR_ELIMIT);
    assert_int_equal(conn_code_of_sqlstate("42601"), MR_EDATABASE);
    assert_int_equal(conn_code_of_sqlstate(""), MR_EDATABASE);
}

static void assert_rotated(const char *list, int turn, const char *expected)
{
    AUTO_BUF out;

    buf_init(&out, 100);
    conn_rotate(list, turn, &out);
    assert_string_equal(buf_peek(&out), expected);
}

static void rotates_hosts(void **state)
{
    (void)state;
    assert_rotated("a,b,c", 0, "a,b,c");
    assert_rotated("a,b,c", 1, "b,c,a");
    assert_rotated("a,b,c", 5, "c,a,b");
    assert_rotated(",5433", 1, "5433,");
    assert_rotated("a", 7, "a");
    assert_rotated("", 7, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_of_sqlstates),
        cmocka_unit_test(rotates_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
