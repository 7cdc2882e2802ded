// SPDX-License-Identifier: PostgreSQL
//
// Writes a migration as plain SQL for a DBA: schema_print() of schema.h.

#include "client/schema.h"

#include "client/schema_script.h"

static bool has_migration(const struct embedded_set *set, int number)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->files[i].kind == EMBEDDED_MIGRATION && set->files[i].number == number) {
            return true;
        }
    }
    return false;
}

static void print_heading(const struct schema_options *options, int from, struct buf *out)
{
    buf_printf(out, "-- Millrace %s: ", options->program_version);
    if (from == 0) {
        buf_puts(out, "installs the schema millrace.\n");
    } else {
        buf_printf(out, "upgrades the schema millrace from migration %d.\n", from);
    }
    buf_puts(out, "-- Run it as the user that shall own the schema, or owns it already:\n"
                  "--     psql -v ON_ERROR_STOP=1 -f FILE\n");
}

static void print_file(const struct embedded_file *file, struct buf *out)
{
    buf_printf(out, "\n-- %s\n%s\n", file->path, file->sql);
}

static int print_bootstrap(const struct embedded_set *set, const struct schema_options *options,
                           int from, struct buf *out, struct mr_error *err)
{
    int code = schema_script_begin(set, options, out, err);

    if (code == 0) {
        code = schema_script_roles(set, out, err);
    }
    if (code == 0) {
        code = schema_script_bootstrap(set, out, err);
    }
    if (code == 0) {
        code = schema_script_guard(set, from, out, err);
    }
    buf_puts(out, "commit;\n");
    return code;
}

// In the transaction that is open.
static int print_migration(const struct embedded_set *set, const struct schema_options *options,
                           const struct embedded_file *file, struct buf *out, struct mr_error *err)
{
    print_file(file, out);
    return schema_script_record_migration(set, options, file, out, err);
}

// What has come so far is committed, but for the last migration, which goes with the functions.
static int print_migrations(const struct embedded_set *set, const struct schema_options *options,
                            int from, struct buf *out, struct mr_error *err)
{
    bool open = false;
    int code = 0;

    for (size_t i = 0; code == 0 && i < set->count; i++) {
        if (set->files[i].kind == EMBEDDED_MIGRATION && set->files[i].number > from) {
            buf_puts(out, open ? "commit;\n\n" : "\n");
            code = schema_script_begin(set, options, out, err);
            open = true;
            if (code == 0) {
                code = print_migration(set, options, &set->files[i], out, err);
            }
        }
    }
    if (!open) {
        buf_puts(out, "\n");
        code = schema_script_begin(set, options, out, err);
    }
    return code;
}

static int print_functions(const struct embedded_set *set, const struct schema_options *options,
                           struct buf *out, struct mr_error *err)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->files[i].kind >= EMBEDDED_INTERNAL) {
            print_file(&set->files[i], out);
        }
    }
    int code = schema_script_record_functions(set, options, out, err);
    if (code == 0) {
        code = schema_script_after(set, out, err);
    }
    buf_puts(out, "commit;\n");
    return code;
}

int schema_print(const struct embedded_set *set, const struct schema_options *options, int from,
                 struct buf *out, struct mr_error *err)
{
    if (from != 0 && !has_migration(set, from)) {
        return mr_error_set(err, MR_EUSAGE, "cannot print: there is no migration %d", from);
    }
    print_heading(options, from, out);
    int code = print_bootstrap(set, options, from, out, err);

    if (code == 0) {
        code = print_migrations(set, options, from, out, err);
    }
    if (code == 0) {
        code = print_functions(set, options, out, err);
    }
    return code ? code : buf_status(out, err);
}
