// SPDX-License-Identifier: PostgreSQL
//
// When a cron expression fires next: see cron_times.h.

#include "cli/cron_times.h"

#include <stdio.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/table.h"

enum { TIME_SIZE = 64 };

// The answer: an expression has at most 200 bytes, a name too, and a time about thirty.
#define JSON_MAX (64 * 1024)

// The third column can be read back under every DateStyle: the next call begins there.
enum { TIME_JSON, TIME_WALL, TIME_UTC };
static const char *const next_sql =
    "select to_json(n.moment), to_char(n.moment at time zone $3::text, 'YYYY-MM-DD HH24:MI:SS'),"
    " to_char(n.moment at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS\"Z\"')"
    " from millrace.cron_next($1, coalesce($2::timestamptz, now()), $3::text) n(moment)";

// Adds the times to both; the table has one or two columns.
static int collect(struct conn *conn, const struct cron_times *times, struct table *table,
                   struct buf *list, struct mr_error *err)
{
    char after[TIME_SIZE];

    for (int i = 0; i < times->count; i++) {
        AUTO_RESULT *rows = NULL;
        const char *values[] = {times->cron, i ? after : times->after, times->zone};
        int code = command_query(conn, next_sql, 3, values, &rows, err);

        if (code) {
            return code;
        }
        snprintf(after, sizeof(after), "%s", PQgetvalue(rows, 0, TIME_UTC));
        buf_printf(list, "%s%s", i ? "," : "", PQgetvalue(rows, 0, TIME_JSON));
        table_add(table, PQgetvalue(rows, 0, TIME_WALL));
        if (table->width > 1) {
            table_add(table, after);
        }
    }
    return buf_status(list, err);
}

static int print_json(const struct cron_times *times, const struct buf *list, struct mr_error *err)
{
    AUTO_BUF text;

    buf_init(&text, JSON_MAX);
    buf_puts(&text, "{\"name\":");
    if (times->name) {
        json_add_string(&text, times->name);
    } else {
        buf_puts(&text, "null");
    }
    buf_puts(&text, ",\"cron\":");
    json_add_string(&text, times->cron);
    buf_puts(&text, ",\"timezone\":");
    json_add_string(&text, times->zone);
    buf_printf(&text, ",\"next\":[%s]}", buf_peek(list));
    int code = buf_status(&text, err);
    if (code == 0) {
        puts(buf_peek(&text));
    }
    return code;
}

int cron_times_print(struct conn *conn, const struct cron_times *times, bool json,
                     struct mr_error *err)
{
    // in UTC itself one column says it all
    const struct table_column columns[] = {
        {times->zone, false, 0},
        {str_equal(times->zone, "UTC") ? NULL : "UTC", false, 0},
        {NULL, false, 0},
    };
    AUTO_TABLE table;
    AUTO_BUF list;

    table_init(&table, columns);
    buf_init(&list, JSON_MAX);
    int code = collect(conn, times, &table, &list, err);
    if (code) {
        return code;
    }
    return json ? print_json(times, &list, err) : table_print(&table, stdout, err);
}
