// SPDX-License-Identifier: PostgreSQL
//
// Installs and upgrades the schema: see schema.h, which has the invariants.

#include "client/schema.h"

#include <inttypes.h>

#include "client/schema_plan.h"
#include "client/schema_script.h"
#include "client/schema_state.h"

#define SCRIPT_MAX (16 * 1024 * 1024)
#define HINT_MAX   (MR_ERROR_HINT_SIZE * 4)

// What one call of schema_migrate() works with.
struct migration {
    struct conn *conn;
    const struct embedded_set *set;
    const struct schema_options *options;
    size_t steps; // taken so far
};

int schema_check_server(int server_version, struct mr_error *err)
{
    if (server_version >= SCHEMA_SERVER_VERSION_MIN) {
        return 0;
    }
    mr_error_set(err, MR_ESERVER, "the server is PostgreSQL %d.%d: Millrace needs %d or later",
                 server_version / 10000, server_version % 10000, SCHEMA_SERVER_VERSION_MIN / 10000);
    mr_error_hint(err, "Upgrade the server, or choose another with --dsn.");
    return MR_ESERVER;
}

// What is left to do. Whoever changed a function or a grant by hand left no trace that could be
// compared, so that these are installed again on demand.
static int make_plan(const struct embedded_set *set, const struct schema_options *options,
                     const struct schema_state *state, struct schema_plan *ret,
                     struct mr_error *err)
{
    int code = schema_plan_make(set, state, options->program_version, ret, err);

    if (code == 0 && options->again) {
        ret->functions = true;
    }
    return code;
}

static void tell(const struct schema_options *options, size_t *steps, enum schema_step_kind kind,
                 const char *statement, const struct embedded_file *file)
{
    struct schema_step step = {.kind = kind, .statement = statement, .migration = file};

    ++*steps;
    if (options->on_step) {
        options->on_step(options->on_step_arg, &step);
    }
}

static void tell_roles(const struct schema_options *options, size_t *steps,
                       const struct schema_state *state)
{
    for (size_t i = 0; i < state->role_statement_count; i++) {
        tell(options, steps, SCHEMA_STEP_ROLE, state->role_statements[i], NULL);
    }
}

static void tell_plan(const struct embedded_set *set, const struct schema_options *options,
                      const struct schema_state *state, const struct schema_plan *plan,
                      size_t *steps)
{
    tell_roles(options, steps, state);
    if (plan->bootstrap) {
        tell(options, steps, SCHEMA_STEP_SCHEMA, NULL, NULL);
    }
    for (size_t i = 0; i < set->count; i++) {
        if (schema_plan_pending(state, &set->files[i])) {
            tell(options, steps, SCHEMA_STEP_MIGRATION, NULL, &set->files[i]);
        }
    }
    if (plan->functions) {
        tell(options, steps, SCHEMA_STEP_FUNCTIONS, NULL, NULL);
    }
}

int schema_check(struct conn *conn, const struct embedded_set *set,
                 const struct schema_options *options, size_t *ret_steps, struct mr_error *err)
{
    AUTO_SCHEMA_STATE state = {0};
    struct schema_plan plan;
    size_t steps = 0;
    int code = schema_check_server(conn_server_version(conn), err);

    if (code == 0) {
        // one snapshot: a migration may be under way
        code = conn_run(conn, "begin isolation level repeatable read read only", err);
    }
    if (code == 0) {
        code = schema_state_read(conn, set, &state, err);
    }
    conn_rollback(conn);
    if (code || (code = make_plan(set, options, &state, &plan, err))) {
        return code;
    }
    tell_plan(set, options, &state, &plan, &steps);
    *ret_steps = steps;
    return 0;
}

// Says in the hint who was in the way of a lock, and which option allows more time.
// Ends the transaction that waited; a failure to ask leaves the hint as it is.
static void hint_holders(const struct migration *m, const char *option, struct mr_error *err)
{
    const struct embedded_file *query = NULL;
    AUTO_RESULT *holders = NULL;
    AUTO_BUF text;

    buf_init(&text, HINT_MAX);
    conn_rollback(m->conn);
    if (schema_script_find(m->set, "lock_holders", &query, NULL) ||
        conn_query(m->conn, query->sql, &holders, NULL)) {
        return;
    }
    for (int row = 0; row < PQntuples(holders); row++) {
        buf_printf(&text, "%s%s (user %s, application \"%s\", %s)", row ? ", " : "",
                   PQgetvalue(holders, row, 0), PQgetvalue(holders, row, 1),
                   PQgetvalue(holders, row, 2), PQgetvalue(holders, row, 3));
    }
    if (text.len) {
        mr_error_hint(err,
                      "Locks here are held by process %s. Wait for it, end it with "
                      "pg_terminate_backend(), or allow more time with %s.",
                      buf_peek(&text), option);
    } else {
        mr_error_hint(err,
                      "The holder is gone meanwhile, or works in another database. Run the "
                      "command again, or allow more time with %s.",
                      option);
    }
}

static int run_script(const struct migration *m, const struct buf *script, struct mr_error *err)
{
    int code = buf_status(script, err);

    return code ? code : conn_run(m->conn, buf_peek(script), err);
}

// Opens the transaction of a step, under the migration lock.
static int open_step(const struct migration *m, struct mr_error *err)
{
    AUTO_BUF script;

    buf_init(&script, SCRIPT_MAX);
    int code = schema_script_begin(m->set, m->options, &script, err);
    if (code == 0) {
        code = run_script(m, &script, err);
    }
    if (code == MR_ELOCK) {
        mr_error_set(err, MR_ELOCK,
                     "cannot migrate: another migration did not end within %" PRId64 " ms",
                     m->options->wait_timeout_ms);
        hint_holders(m, "--wait-timeout", err);
    } else if (code) {
        mr_error_prefix(err, "cannot begin the migration");
    }
    return code;
}

static int close_step(const struct migration *m, struct mr_error *err)
{
    int code = conn_run(m->conn, "commit", err);

    if (code) {
        mr_error_prefix(err, "cannot commit");
    }
    return code;
}

// A file that ends the transaction would be recorded outside of it, so it is refused.
static int run_file(const struct migration *m, const struct embedded_file *file,
                    struct mr_error *err)
{
    int code = conn_run(m->conn, file->sql, err);

    if (code == 0 && !conn_in_transaction(m->conn)) {
        return mr_error_set(err, MR_EINTERNAL, "it ended its transaction");
    }
    return code;
}

static int apply_file(const struct migration *m, const struct embedded_file *file,
                      struct mr_error *err)
{
    int code = run_file(m, file, err);

    if (code) {
        mr_error_prefix(err, "cannot apply %s", file->path);
    }
    if (code && code != MR_ELOCK && err && !err->hint[0]) {
        mr_error_hint(err, "This step was rolled back; migrations before it stay applied.");
    }
    return code;
}

// The statements that a DBA has to run when this user may not.
static int roles_error(const struct schema_state *state, struct mr_error *err)
{
    AUTO_BUF statements;

    buf_init(&statements, HINT_MAX);
    for (size_t i = 0; i < state->role_statement_count; i++) {
        buf_printf(&statements, " %s;", state->role_statements[i]);
    }
    mr_error_recode(err, MR_EROLES);
    mr_error_prefix(err, "cannot create the roles");
    mr_error_hint(err, "Give %s the attribute CREATEROLE, or let a DBA run:%s", state->user_ident,
                  buf_peek(&statements));
    return MR_EROLES;
}

static int make_roles(const struct migration *m, const struct schema_state *state,
                      struct mr_error *err)
{
    AUTO_BUF script;

    buf_init(&script, SCRIPT_MAX);
    int code = schema_script_roles(m->set, &script, err);
    if (code == 0) {
        code = run_script(m, &script, err);
    }
    return code == MR_EPRIVILEGE ? roles_error(state, err) : code;
}

static int make_schema(const struct migration *m, const struct schema_state *state,
                       struct mr_error *err)
{
    AUTO_BUF script;

    buf_init(&script, SCRIPT_MAX);
    int code = schema_script_bootstrap(m->set, &script, err);
    if (code == 0) {
        code = run_script(m, &script, err);
    }
    if (code) {
        mr_error_prefix(err, "cannot create the schema");
    }
    if (code == MR_EPRIVILEGE) {
        mr_error_hint(err,
                      "Let a DBA run: grant create on database %s to %s; or: "
                      "create schema millrace authorization %s;",
                      state->database_ident, state->user_ident, state->user_ident);
    }
    return code;
}

// Roles and bookkeeping together, so that a user who may do only one of them leaves
// nothing behind.
static int step_prepare(struct migration *m, const struct schema_state *state,
                        const struct schema_plan *plan, struct mr_error *err)
{
    int code = plan->roles ? make_roles(m, state, err) : 0;

    if (code == 0) {
        code = make_schema(m, state, err);
    }
    if (code || (code = close_step(m, err))) {
        return code;
    }
    tell_roles(m->options, &m->steps, state);
    if (plan->bootstrap) {
        tell(m->options, &m->steps, SCHEMA_STEP_SCHEMA, NULL, NULL);
    }
    return 0;
}

// In the transaction that is open.
static int apply_migration(const struct migration *m, const struct embedded_file *file,
                           struct mr_error *err)
{
    AUTO_BUF script;

    buf_init(&script, SCRIPT_MAX);
    int code = schema_script_record_migration(m->set, m->options, file, &script, err);
    return code || (code = apply_file(m, file, err)) ? code : run_script(m, &script, err);
}

static int step_migration(struct migration *m, const struct embedded_file *file,
                          struct mr_error *err)
{
    int code = apply_migration(m, file, err);

    if (code || (code = close_step(m, err))) {
        return code;
    }
    tell(m->options, &m->steps, SCHEMA_STEP_MIGRATION, NULL, file);
    return 0;
}

// The engine's own last word, in the transaction that is open.
static int run_after(const struct migration *m, struct mr_error *err)
{
    AUTO_BUF script;

    buf_init(&script, SCRIPT_MAX);
    int code = schema_script_after(m->set, &script, err);
    if (code == 0 && (code = run_script(m, &script, err)) != 0) {
        mr_error_prefix(err, "millrace.after_migrate()");
    }
    return code;
}

// With the last migration, where that is missing; NULL: it is not.
static int step_functions(struct migration *m, const struct embedded_file *last,
                          struct mr_error *err)
{
    AUTO_BUF script;

    buf_init(&script, SCRIPT_MAX);
    int code = last ? apply_migration(m, last, err) : 0;
    if (code == 0) {
        code = schema_script_record_functions(m->set, m->options, &script, err);
    }
    for (size_t i = 0; code == 0 && i < m->set->count; i++) {
        if (m->set->files[i].kind >= EMBEDDED_INTERNAL) {
            code = apply_file(m, &m->set->files[i], err);
        }
    }
    if (code || (code = run_script(m, &script, err)) || (code = run_after(m, err)) ||
        (code = close_step(m, err))) {
        return code;
    }
    if (last) {
        tell(m->options, &m->steps, SCHEMA_STEP_MIGRATION, NULL, last);
    }
    tell(m->options, &m->steps, SCHEMA_STEP_FUNCTIONS, NULL, NULL);
    return 0;
}

// Nothing to install. The schema may still come from a dump, so its owner lets the
// engine look; for anybody else, and on a standby, there is nothing to do.
static int step_none(struct migration *m, const struct schema_state *state, struct mr_error *err)
{
    int code = schema_plan_permit(state, NULL) ? 0 : run_after(m, err);

    return code ? code : close_step(m, err);
}

// Takes the first of the steps that are left, in a transaction of its own.
static int take_step(struct migration *m, bool *ret_done, struct mr_error *err)
{
    AUTO_SCHEMA_STATE state = {0};
    struct schema_plan plan;
    int code = open_step(m, err);

    if (code || (code = schema_state_read(m->conn, m->set, &state, err)) ||
        (code = make_plan(m->set, m->options, &state, &plan, err))) {
        return code;
    }
    if (schema_plan_empty(&plan)) {
        *ret_done = true;
        return step_none(m, &state, err);
    }
    if ((code = schema_plan_permit(&state, err))) {
        return code;
    }
    if (plan.roles || plan.bootstrap) {
        return step_prepare(m, &state, &plan, err);
    }
    if (plan.migration && !plan.last) {
        return step_migration(m, plan.migration, err);
    }
    *ret_done = true;
    return step_functions(m, plan.migration, err);
}

int schema_migrate(struct conn *conn, const struct embedded_set *set,
                   const struct schema_options *options, size_t *ret_steps, struct mr_error *err)
{
    struct migration m = {.conn = conn, .set = set, .options = options};
    bool done = false;
    int code = schema_check_server(conn_server_version(conn), err);

    while (code == 0 && !done) {
        code = take_step(&m, &done, err);
    }
    if (code == MR_ELOCK && err && !err->hint[0]) {
        hint_holders(&m, "--lock-timeout", err);
    }
    conn_rollback(conn);
    *ret_steps = m.steps;
    return code;
}
