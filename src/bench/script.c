// SPDX-License-Identifier: PostgreSQL
//
// The statements of sql/bench/: see script.h.

#include "bench/script.h"

#include <stdlib.h>

#include "base/str.h"
#include "client/embedded.h"

#define SCRIPT_MAX 65536

static int find(const char *name, const char **ret, struct mr_error *err)
{
    for (size_t i = 0; i < embedded.count; i++) {
        if (embedded.files[i].kind == EMBEDDED_BENCH && str_equal(embedded.files[i].name, name)) {
            *ret = embedded.files[i].sql;
            return 0;
        }
    }
    return mr_error_set(err, MR_EINTERNAL, "sql/bench/%s.sql is not part of this program", name);
}

static void fill(struct buf *out, const char *sql, const char *first, const char *second)
{
    for (; *sql; sql++) {
        const char *text = str_starts(sql, "$1") ? first : str_starts(sql, "$2") ? second : NULL;
        if (text) {
            buf_puts(out, text);
            sql++;
        } else {
            buf_add(out, sql, 1);
        }
    }
}

int script_run(struct conn *conn, const char *name, const char *first, const char *second,
               struct mr_error *err)
{
    const char *sql = NULL;
    AUTO_BUF text;
    int code = find(name, &sql, err);

    buf_init(&text, SCRIPT_MAX);
    if (code) {
        return code;
    }
    fill(&text, sql, first, second);
    if ((code = buf_status(&text, err))) {
        return code;
    }
    return conn_run(conn, buf_peek(&text), err);
}

int script_query(struct conn *conn, const char *name, int count, const char *const *values,
                 PGresult **ret, struct mr_error *err)
{
    const char *sql = NULL;
    int code = find(name, &sql, err);

    return code ? code : conn_query_params(conn, sql, count, values, ret, err);
}

int script_number(struct conn *conn, const char *name, int64_t *ret, struct mr_error *err)
{
    AUTO_RESULT *rows = NULL;
    int code = script_query(conn, name, 0, NULL, &rows, err);

    if (code == 0) {
        *ret = strtoll(PQgetvalue(rows, 0, 0), NULL, 10);
    }
    return code;
}
