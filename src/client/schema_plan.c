// SPDX-License-Identifier: PostgreSQL
//
// Decides what is left to do: see schema_plan.h.

#include "client/schema_plan.h"

#include "base/str.h"

static const struct embedded_file *carried(const struct embedded_set *set, int number)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->files[i].kind == EMBEDDED_MIGRATION && set->files[i].number == number) {
            return &set->files[i];
        }
    }
    return NULL;
}

static int check_record(const struct embedded_set *set, const struct schema_record *record,
                        const char *program_version, struct mr_error *err)
{
    const struct embedded_file *file = carried(set, record->number);

    if (!file) {
        mr_error_set(err, MR_ENEWER,
                     "the database is newer than this program: migration %04d_%s is not known here",
                     record->number, record->name);
        mr_error_hint(err,
                      "It was applied by millrace %s; this is %s. Use that version or a later one.",
                      record->program_version, program_version);
        return MR_ENEWER;
    }
    if (!str_equal(file->checksum, record->checksum)) {
        mr_error_set(err, MR_EALTERED,
                     "migration %04d_%s was altered: the database has another one", record->number,
                     record->name);
        mr_error_detail(err, "Applied: %s by millrace %s. Here: %s.", record->checksum,
                        record->program_version, file->checksum);
        mr_error_hint(err,
                      "A migration never changes once it is applied; use an unmodified build of "
                      "Millrace, and put changes into a new migration.");
        return MR_EALTERED;
    }
    return 0;
}

// Functions of a later version may have no migration of their own; an older program
// must not put its own over them.
static int check_functions(const struct embedded_set *set, const struct schema_state *state,
                           const char *program_version, struct mr_error *err)
{
    if (!state->functions_checksum ||
        str_equal(state->functions_checksum, set->functions_checksum) ||
        str_version_compare(state->functions_version, program_version) <= 0) {
        return 0;
    }
    mr_error_set(err, MR_ENEWER,
                 "the database is newer than this program: its functions are of millrace %s",
                 state->functions_version);
    mr_error_hint(err, "This is millrace %s. Use version %s or a later one.", program_version,
                  state->functions_version);
    return MR_ENEWER;
}

static int check_foreign(const struct schema_state *state, struct mr_error *err)
{
    if (state->has_bookkeeping || !state->has_objects) {
        return 0;
    }
    mr_error_set(err, MR_EFOREIGN,
                 "the schema millrace exists, but it is not Millrace's: "
                 "it has objects and no table schema_migration");
    mr_error_hint(
        err, "Rename it (alter schema millrace rename to something_else) or use another database.");
    return MR_EFOREIGN;
}

bool schema_plan_pending(const struct schema_state *state, const struct embedded_file *file)
{
    if (file->kind != EMBEDDED_MIGRATION) {
        return false;
    }
    for (size_t i = 0; i < state->migration_count; i++) {
        if (state->migrations[i].number == file->number) {
            return false;
        }
    }
    return true;
}

static int check_all(const struct embedded_set *set, const struct schema_state *state,
                     const char *program_version, struct mr_error *err)
{
    int code = check_foreign(state, err);

    for (size_t i = 0; code == 0 && i < state->migration_count; i++) {
        code = check_record(set, &state->migrations[i], program_version, err);
    }
    return code ? code : check_functions(set, state, program_version, err);
}

int schema_plan_make(const struct embedded_set *set, const struct schema_state *state,
                     const char *program_version, struct schema_plan *ret, struct mr_error *err)
{
    int code = check_all(set, state, program_version, err);

    if (code) {
        return code;
    }
    struct schema_plan plan = {
        .roles = state->role_statement_count > 0,
        .bootstrap = !state->has_bookkeeping,
    };
    for (size_t i = set->count; i-- > 0;) {
        if (schema_plan_pending(state, &set->files[i])) {
            plan.last = !plan.migration;
            plan.migration = &set->files[i];
        }
    }
    plan.functions = plan.roles || plan.migration || !state->functions_checksum ||
                     !str_equal(state->functions_checksum, set->functions_checksum);
    *ret = plan;
    return 0;
}

bool schema_plan_empty(const struct schema_plan *plan)
{
    return !plan->roles && !plan->bootstrap && !plan->migration && !plan->functions;
}

int schema_plan_permit(const struct schema_state *state, struct mr_error *err)
{
    if (state->in_recovery) {
        mr_error_set(err, MR_EREADONLY, "cannot migrate: this server is a standby");
        mr_error_hint(err, "Connect to the primary.");
        return MR_EREADONLY;
    }
    if (state->read_only) {
        mr_error_set(err, MR_EREADONLY, "cannot migrate: transactions are read-only here");
        mr_error_hint(
            err, "default_transaction_read_only is on for this server, database %s or user %s.",
            state->database_ident, state->user_ident);
        return MR_EREADONLY;
    }
    if (state->schema_owner && !state->owns_schema) {
        mr_error_set(err, MR_EPRIVILEGE,
                     "cannot migrate: %s is not the owner of the schema millrace",
                     state->user_ident);
        mr_error_hint(err, "Connect as %s, which owns it.", state->schema_owner);
        return MR_EPRIVILEGE;
    }
    return 0;
}
