// SPDX-License-Identifier: PostgreSQL
//
// Fills in the statements of sql/schema/: see schema_script.h.

#include "client/schema_script.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

enum { NUMBER_SIZE = 24 };

// What stands for one $n: a literal, or SQL that is put in as it is.
struct argument {
    const char *text;
    bool is_sql;
};

int schema_script_find(const struct embedded_set *set, const char *name,
                       const struct embedded_file **ret, struct mr_error *err)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->files[i].kind == EMBEDDED_SCHEMA && str_equal(set->files[i].name, name)) {
            *ret = &set->files[i];
            return 0;
        }
    }
    mr_error_set(err, MR_EINTERNAL, "sql/schema/%s.sql is not part of this program", name);
    return MR_EINTERNAL;
}

// The texts are this program's own constants and have no backslashes.
static void add_argument(struct buf *out, const struct argument *argument)
{
    if (argument->is_sql) {
        buf_puts(out, argument->text);
        return;
    }
    buf_puts(out, "'");
    for (const char *c = argument->text; *c; c++) {
        buf_add(out, "''", *c == '\'' ? 2 : 0);
        buf_add(out, c, *c == '\'' ? 0 : 1);
    }
    buf_puts(out, "'");
}

// One line with its $n replaced; a line that is a comment stays as it is.
static void add_line(struct buf *out, const char *line, size_t len,
                     const struct argument *arguments, size_t count)
{
    if (str_starts(line, "--")) {
        buf_add(out, line, len);
        return;
    }
    for (size_t i = 0; i < len; i++) {
        size_t number = line[i] == '$' && i + 1 < len ? (size_t)(line[i + 1] - '0') : 0;
        if (number >= 1 && number <= count) {
            add_argument(out, &arguments[number - 1]);
            i++;
        } else {
            buf_add(out, &line[i], 1);
        }
    }
}

static int add_script(const struct embedded_set *set, const char *name,
                      const struct argument *arguments, size_t count, struct buf *out,
                      struct mr_error *err)
{
    const struct embedded_file *file = NULL;
    int code = schema_script_find(set, name, &file, err);

    if (code) {
        return code;
    }
    for (const char *line = file->sql; *line;) {
        size_t len = strcspn(line, "\n");
        len += line[len] == '\n';
        add_line(out, line, len, arguments, count);
        line += len;
    }
    return 0;
}

int schema_script_begin(const struct embedded_set *set, const struct schema_options *options,
                        struct buf *out, struct mr_error *err)
{
    char wait_ms[NUMBER_SIZE];
    char lock_ms[NUMBER_SIZE];

    snprintf(wait_ms, sizeof(wait_ms), "%" PRId64, options->wait_timeout_ms);
    snprintf(lock_ms, sizeof(lock_ms), "%" PRId64, options->lock_timeout_ms);
    return add_script(set, "begin", (struct argument[]){{wait_ms, false}, {lock_ms, false}}, 2, out,
                      err);
}

int schema_script_roles(const struct embedded_set *set, struct buf *out, struct mr_error *err)
{
    const struct embedded_file *query = NULL;
    int code = schema_script_find(set, "role_statements", &query, err);

    if (code) {
        return code;
    }
    return add_script(set, "roles", (struct argument[]){{query->sql, true}}, 1, out, err);
}

int schema_script_bootstrap(const struct embedded_set *set, struct buf *out, struct mr_error *err)
{
    return add_script(set, "bootstrap", NULL, 0, out, err);
}

int schema_script_guard(const struct embedded_set *set, int from, struct buf *out,
                        struct mr_error *err)
{
    char number[NUMBER_SIZE];

    snprintf(number, sizeof(number), "%d", from);
    return add_script(set, "guard", (struct argument[]){{number, true}}, 1, out, err);
}

int schema_script_record_migration(const struct embedded_set *set,
                                   const struct schema_options *options,
                                   const struct embedded_file *migration, struct buf *out,
                                   struct mr_error *err)
{
    char number[NUMBER_SIZE];

    snprintf(number, sizeof(number), "%d", migration->number);
    struct argument arguments[] = {
        {number, true},
        {migration->name, false},
        {migration->checksum, false},
        {options->program_version, false},
    };
    return add_script(set, "record_migration", arguments, 4, out, err);
}

int schema_script_record_functions(const struct embedded_set *set,
                                   const struct schema_options *options, struct buf *out,
                                   struct mr_error *err)
{
    struct argument arguments[] = {
        {set->functions_checksum, false},
        {options->program_version, false},
    };
    return add_script(set, "record_functions", arguments, 2, out, err);
}

int schema_script_after(const struct embedded_set *set, struct buf *out, struct mr_error *err)
{
    return add_script(set, "after", NULL, 0, out, err);
}
