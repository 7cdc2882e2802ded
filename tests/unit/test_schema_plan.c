// SPDX-License-Identifier: PostgreSQL
//
// What is left to do, and which databases are refused.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/schema.h"
#include "client/schema_plan.h"

static const struct embedded_file files[] = {
    {EMBEDDED_SCHEMA, 0, "begin", "sql/schema/begin.sql", "s", ""},
    {EMBEDDED_MIGRATION, 1, "one", "sql/migrations/0001_one.sql", "c1", ""},
    {EMBEDDED_MIGRATION, 2, "two", "sql/migrations/0002_two.sql", "c2", ""},
    {EMBEDDED_API, 0, "f", "sql/api/f.sql", "f", ""},
};
static const struct embedded_set set = {files, 4, "functions"};

static struct schema_record both[] = {{1, "one", "c1", "1.0.0"}, {2, "two", "c2", "1.0.0"}};

// A database where everything is in place.
static struct schema_state good_state(void)
{
    return (struct schema_state){
        .database_ident = "d",
        .user_ident = "u",
        .schema_owner = "u",
        .owns_schema = true,
        .has_bookkeeping = true,
        .has_objects = true,
        .migrations = both,
        .migration_count = 2,
        .functions_checksum = "functions",
        .functions_version = "1.0.0",
    };
}

static int make(const struct schema_state *state, struct schema_plan *plan, struct mr_error *err)
{
    return schema_plan_make(&set, state, "1.0.0", plan, err);
}

static void up_to_date(void **state)
{
    (void)state;
    struct schema_state database = good_state();
    struct schema_plan plan;

    assert_int_equal(make(&database, &plan, NULL), 0);
    assert_true(schema_plan_empty(&plan));
}

static void empty_database(void **state)
{
    (void)state;
    const char *statements[] = {"create role x"};
    struct schema_state database = {.role_statements = statements, .role_statement_count = 1};
    struct schema_plan plan;

    assert_int_equal(make(&database, &plan, NULL), 0);
    assert_true(plan.roles && plan.bootstrap && plan.functions);
    assert_ptr_equal(plan.migration, &files[1]);
}

static void empty_schema_is_ours(void **state)
{
    (void)state;
    struct schema_state database = {.schema_owner = "u", .owns_schema = true};
    struct schema_plan plan;

    assert_int_equal(make(&database, &plan, NULL), 0);
    assert_true(plan.bootstrap);
}

static void one_migration_is_missing(void **state)
{
    (void)state;
    struct schema_state database = good_state();
    struct schema_plan plan;

    database.migration_count = 1;
    assert_int_equal(make(&database, &plan, NULL), 0);
    assert_ptr_equal(plan.migration, &files[2]);
    assert_true(plan.functions);
    assert_false(plan.bootstrap);
    database.migrations = both + 1;
    assert_int_equal(make(&database, &plan, NULL), 0);
    assert_ptr_equal(plan.migration, &files[1]);
}

static void missing_role_needs_grants(void **state)
{
    (void)state;
    struct schema_state database = good_state();
    struct schema_plan plan;

    database.role_statement_count = 1;
    assert_int_equal(make(&database, &plan, NULL), 0);
    assert_true(plan.roles && plan.functions);
    assert_null(plan.migration);
}

static void functions_are_missing_or_differ(void **state)
{
    (void)state;
    struct schema_state database = good_state();
    struct schema_plan plan;

    database.functions_checksum = "other";
    assert_int_equal(make(&database, &plan, NULL), 0);
    assert_true(plan.functions);
    database.functions_checksum = NULL;
    assert_int_equal(make(&database, &plan, NULL), 0);
    assert_true(plan.functions);
}

static void newer_databases_are_refused(void **state)
{
    (void)state;
    struct schema_record three[] = {both[0], both[1], {3, "three", "c3", "2.0.0"}};
    struct schema_state database = good_state();
    struct schema_plan plan;
    struct mr_error err;

    database.migrations = three;
    database.migration_count = 3;
    assert_int_equal(make(&database, &plan, &err), MR_ENEWER);
    assert_non_null(strstr(err.message, "0003_three"));
    assert_non_null(strstr(err.hint, "2.0.0"));

    database = good_state();
    database.functions_version = "1.0.1";
    assert_int_equal(make(&database, &plan, &err), 0);
    database.functions_checksum = "other";
    assert_int_equal(make(&database, &plan, &err), MR_ENEWER);
    assert_non_null(strstr(err.hint, "1.0.1"));
}

static void altered_migrations_are_refused(void **state)
{
    (void)state;
    struct schema_record altered[] = {both[0], {2, "two", "other", "1.0.0"}};
    struct schema_state database = good_state();
    struct schema_plan plan;
    struct mr_error err;

    database.migrations = altered;
    assert_int_equal(make(&database, &plan, &err), MR_EALTERED);
    assert_non_null(strstr(err.message, "0002_two"));
    assert_true(err.hint[0]);
}

static void foreign_schemas_are_refused(void **state)
{
    (void)state;
    struct schema_state database = {.schema_owner = "u", .owns_schema = true, .has_objects = true};
    struct schema_plan plan;
    struct mr_error err;

    assert_int_equal(make(&database, &plan, &err), MR_EFOREIGN);
    assert_true(err.hint[0]);
}

static void permission(void **state)
{
    (void)state;
    struct schema_state database = good_state();
    struct mr_error err;

    assert_int_equal(schema_plan_permit(&database, NULL), 0);
    database.in_recovery = true;
    assert_int_equal(schema_plan_permit(&database, &err), MR_EREADONLY);
    database = good_state();
    database.read_only = true;
    assert_int_equal(schema_plan_permit(&database, &err), MR_EREADONLY);
    database = good_state();
    database.owns_schema = false;
    database.schema_owner = "somebody";
    assert_int_equal(schema_plan_permit(&database, &err), MR_EPRIVILEGE);
    assert_non_null(strstr(err.hint, "somebody"));
    database.schema_owner = NULL;
    assert_int_equal(schema_plan_permit(&database, &err), 0);
}

static void old_servers_are_refused(void **state)
{
    (void)state;
    struct mr_error err;

    assert_int_equal(schema_check_server(130000, &err), 0);
    assert_int_equal(schema_check_server(180001, &err), 0);
    assert_int_equal(schema_check_server(120017, &err), MR_ESERVER);
    assert_non_null(strstr(err.message, "PostgreSQL 12.17"));
    assert_non_null(strstr(err.message, "needs 13"));
    assert_true(err.hint[0]);
    assert_int_equal(schema_check_server(90624, &err), MR_ESERVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(up_to_date),
        cmocka_unit_test(empty_database),
        cmocka_unit_test(empty_schema_is_ours),
        cmocka_unit_test(one_migration_is_missing),
        cmocka_unit_test(missing_role_needs_grants),
        cmocka_unit_test(functions_are_missing_or_differ),
        cmocka_unit_test(newer_databases_are_refused),
        cmocka_unit_test(altered_migrations_are_refused),
        cmocka_unit_test(foreign_schemas_are_refused),
        cmocka_unit_test(permission),
        cmocka_unit_test(old_servers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
