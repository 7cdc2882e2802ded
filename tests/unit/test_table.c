// SPDX-License-Identifier: PostgreSQL
//
// Tables for people.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/table.h"

static const struct table_column columns[] = {
    {"NAME", false, 6},
    {"COUNT", true, 0},
    {"ERROR", false, 0},
    {NULL, false, 0},
};

static void prints(const struct table *table, const char *expected)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    assert_int_equal(table_print(table, out, NULL), 0);
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
}

static void cells_are_aligned(void **state)
{
    (void)state;
    AUTO_TABLE table;

    table_init(&table, columns);
    prints(&table, "NAME  COUNT  ERROR\n");
    table_add(&table, "a");
    table_add_number(&table, 1234567);
    table_add(&table, "no route");
    table_add(&table, "grün");
    table_add_number(&table, -5);
    table_add(&table, NULL);
    prints(&table, "NAME    COUNT  ERROR\n"
                   "a     1234567  no route\n"
                   "grün       -5  -\n");
}

static void long_cells_are_cut_between_characters(void **state)
{
    (void)state;
    AUTO_TABLE table;

    table_init(&table, columns);
    table_add(&table, "übermäßig");
    table_add_number(&table, 1);
    table_add(&table, "x");
    prints(&table, "NAME    COUNT  ERROR\n"
                   "überm…      1  x\n");
}

// What a job says must not steer the terminal of who looks at it.
static void control_characters_are_blanks(void **state)
{
    (void)state;
    AUTO_TABLE table;

    table_init(&table, columns);
    table_add(&table, "a\nb");
    table_add_number(&table, 1);
    table_add(&table, "\033[31mred\177\302\233x\r");
    prints(&table, "NAME  COUNT  ERROR\n"
                   "a b       1   [31mred  x \n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_are_aligned),
        cmocka_unit_test(long_cells_are_cut_between_characters),
        cmocka_unit_test(control_characters_are_blanks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
