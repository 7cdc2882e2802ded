// SPDX-License-Identifier: PostgreSQL
//
// Reads what is installed: see schema_state.h.

#include "client/schema_state.h"

#include <stdlib.h>

#include "client/schema_script.h"

enum { RESULT_FACTS, RESULT_ROLES, RESULT_MIGRATIONS, RESULT_FUNCTIONS };

// The value of a column by its name; NULL for null.
static const char *field(const PGresult *result, int row, const char *column)
{
    int number = PQfnumber(result, column);

    return number < 0 || PQgetisnull(result, row, number) ? NULL : PQgetvalue(result, row, number);
}

static bool flag(const PGresult *result, const char *column)
{
    const char *value = field(result, 0, column);

    return value && value[0] == 't';
}

// Runs one of the embedded queries and keeps its result in the state.
static int query(struct conn *conn, const struct embedded_set *set, const char *name,
                 PGresult **ret, struct mr_error *err)
{
    const struct embedded_file *file = NULL;
    int code = schema_script_find(set, name, &file, err);

    if (code == 0 && (code = conn_query(conn, file->sql, ret, err)) != 0) {
        mr_error_prefix(err, "cannot read what is installed");
    }
    if (code == MR_EPRIVILEGE) {
        mr_error_hint(
            err, "Connect as the owner of the schema millrace or as a member of millrace_reader.");
    }
    return code;
}

static int read_facts(struct conn *conn, const struct embedded_set *set, struct schema_state *state,
                      struct mr_error *err)
{
    PGresult **result = &state->results[RESULT_FACTS];
    int code = query(conn, set, "facts", result, err);

    if (code) {
        return code;
    }
    state->database_ident = field(*result, 0, "database_ident");
    state->user_ident = field(*result, 0, "user_ident");
    state->schema_owner = field(*result, 0, "schema_owner");
    state->in_recovery = flag(*result, "in_recovery");
    state->read_only = flag(*result, "read_only");
    state->owns_schema = flag(*result, "owns_schema");
    state->has_bookkeeping = flag(*result, "has_bookkeeping");
    state->has_objects = flag(*result, "has_objects");
    return 0;
}

static int read_roles(struct conn *conn, const struct embedded_set *set, struct schema_state *state,
                      struct mr_error *err)
{
    PGresult **result = &state->results[RESULT_ROLES];
    int code = query(conn, set, "role_statements", result, err);

    if (code) {
        return code;
    }
    int rows = PQntuples(*result);
    state->role_statements = calloc((size_t)rows + 1, sizeof(*state->role_statements));
    if (!state->role_statements) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    for (int row = 0; row < rows; row++) {
        state->role_statements[row] = PQgetvalue(*result, row, 0);
    }
    state->role_statement_count = (size_t)rows;
    return 0;
}

static int read_migrations(struct conn *conn, const struct embedded_set *set,
                           struct schema_state *state, struct mr_error *err)
{
    PGresult **result = &state->results[RESULT_MIGRATIONS];
    int code = query(conn, set, "applied_migrations", result, err);

    if (code) {
        return code;
    }
    int rows = PQntuples(*result);
    state->migrations = calloc((size_t)rows + 1, sizeof(*state->migrations));
    if (!state->migrations) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    for (int row = 0; row < rows; row++) {
        state->migrations[row] = (struct schema_record){
            .number = atoi(field(*result, row, "migration_number")),
            .name = field(*result, row, "migration_name"),
            .checksum = field(*result, row, "checksum"),
            .program_version = field(*result, row, "program_version"),
        };
    }
    state->migration_count = (size_t)rows;
    return 0;
}

static int read_functions(struct conn *conn, const struct embedded_set *set,
                          struct schema_state *state, struct mr_error *err)
{
    PGresult **result = &state->results[RESULT_FUNCTIONS];
    int code = query(conn, set, "applied_functions", result, err);

    if (code == 0 && PQntuples(*result) > 0) {
        state->functions_checksum = field(*result, 0, "checksum");
        state->functions_version = field(*result, 0, "program_version");
    }
    return code;
}

static int read_all(struct conn *conn, const struct embedded_set *set, struct schema_state *state,
                    struct mr_error *err)
{
    int code = read_facts(conn, set, state, err);

    if (code == 0) {
        code = read_roles(conn, set, state, err);
    }
    if (code == 0 && state->has_bookkeeping) {
        code = read_migrations(conn, set, state, err);
    }
    if (code == 0 && state->has_bookkeeping) {
        code = read_functions(conn, set, state, err);
    }
    return code;
}

int schema_state_read(struct conn *conn, const struct embedded_set *set, struct schema_state *ret,
                      struct mr_error *err)
{
    struct schema_state state = {0};
    int code = read_all(conn, set, &state, err);

    if (code) {
        schema_state_done(&state);
        return code;
    }
    *ret = state;
    return 0;
}

void schema_state_done(struct schema_state *state)
{
    for (size_t i = 0; i < sizeof(state->results) / sizeof(state->results[0]); i++) {
        PQclear(state->results[i]);
    }
    free(state->migrations);
    free(state->role_statements);
    *state = (struct schema_state){0};
}
