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
    assert_int_equal(conn_code_of_sqlstate("42601"), MR_EDATABASE);
    assert_int_equal(conn_code_of_sqlstate(""), MR_EDATABASE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_of_sqlstates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
