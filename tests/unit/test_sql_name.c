// SPDX-License-Identifier: PostgreSQL
//
// Names of functions: what is accepted, how it is quoted, what is refused.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "handler/sql_name.h"

#define PART_63 "a23456789a23456789a23456789a23456789a23456789a23456789a23456789"
#define PART_64 "a23456789a23456789a23456789a23456789a23456789a23456789a23456789b"

static void accepted(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *quoted;
    } rows[] = {
        {"charge", "\"charge\""},
        {"dwh.process_notes", "\"dwh\".\"process_notes\""},
        {"Dwh.Process", "\"dwh\".\"process\""},
        {"\"Dwh\".\"Process Notes\"", "\"Dwh\".\"Process Notes\""},
        {"a.\"b.c\"", "\"a\".\"b.c\""},
        {"\"say \"\"hi\"\"\"", "\"say \"\"hi\"\"\""},
        {"\"); drop table x; --\"", "\"); drop table x; --\""},
        {"_f$1", "\"_f$1\""},
        {"größe", "\"größe\""},
        {PART_63, "\"" PART_63 "\""},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        AUTO_BUF out;
        buf_init(&out, 1000);
        assert_int_equal(sql_name_quote(rows[i].text, &out, NULL), 0);
        assert_string_equal(buf_peek(&out), rows[i].quoted);
    }
}

static void refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",    ".",   "a.",  ".a",   "a.b.c", "1a",  "f()",    "f(1)",
        "a b", "a;b", "a--", "\"\"", "\"a",   "a\"", "\"a\"b", "a.\"\"",
        " a",  "a ",  "$a",  "a.1",  "f,g",   "'a'", PART_64,  "a\nb",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct mr_error err;
        AUTO_BUF out;
        buf_init(&out, 1000);
        if (sql_name_quote(texts[i], &out, &err) != MR_ECONFIG) {
            fail_msg("accepted: %s", texts[i]);
        }
        assert_true(strlen(err.hint) > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepted),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
