// SPDX-License-Identifier: PostgreSQL
//
// `millrace queue list|show|set`: the queues and their settings.

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_scan.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/figure.h"
#include "cli/name_list.h"
#include "cli/rows.h"
#include "cli/table.h"

enum { SETTINGS_JSON_MAX = 64 * 1024, CELL_MAX = 100, ARGUMENTS_MAX = 100 };

static const struct command_form list_form = {
    "queue list",        "", 0, 0, "Lists the queues with the settings that matter most.",
    "millrace-queue(1)",
};
static const struct command_form show_form = {
    "queue show", "QUEUE", 1, 1, "Shows all settings of a queue.", "millrace-queue(1)",
};
static const struct command_form set_form = {
    "queue set",
    "QUEUE [NAME=VALUE...]",
    1,
    ARGUMENTS_MAX,
    "Creates a queue or changes its settings. Those that are not named stay; NAME=null sets the\n"
    "default again. All or none.",
    "millrace-queue(1)",
};

// ---- list ----

static int print_queues(const PGresult *rows, struct mr_error *err)
{
    static const struct table_column columns[] = {
        {"QUEUE", false, 40},   {"STATE", false, 0}, {"LEASE", true, 0},    {"ATTEMPTS", true, 0},
        {"RETENTION", true, 0}, {"PARTS", true, 0},  {"CREATED", false, 0}, {NULL, false, 0},
    };
    AUTO_TABLE table;

    table_init(&table, columns);
    for (int i = 0; i < PQntuples(rows); i++) {
        AUTO_BUF created;

        buf_init(&created, CELL_MAX);
        figure_add_clock(&created, PQgetvalue(rows, i, 6));
        table_add(&table, PQgetvalue(rows, i, 0));
        table_add(&table, str_equal(PQgetvalue(rows, i, 1), "t") ? "paused" : "active");
        for (int k = 2; k < 6; k++) {
            table_add(&table, rows_value(rows, i, k));
        }
        table_add(&table, buf_peek(&created));
    }
    return table_print(&table, stdout, err);
}

static int queue_list(int argc, char **argv)
{
    static const struct name_list list = {
        &list_form,
        "queues",
        "select q.queue, q.paused, q.settings ->> 'lease', q.settings ->> 'max_attempts',"
        " q.settings ->> 'retention', q.settings ->> 'parts', to_json(q.created_at)"
        " from millrace.queues q order by q.queue",
        "select q.queue, q.paused, to_json(q.created_at) as created_at, q.settings"
        " from millrace.queues q order by q.queue",
        0,
        print_queues,
    };
    return name_list_run(&list, argc, argv);
}

// ---- show ----

static int print_settings(struct conn *conn, const char *queue, struct mr_error *err)
{
    static const struct table_column columns[] = {
        {"SETTING", false, 0},
        {"VALUE", false, 0},
        {NULL, false, 0},
    };
    AUTO_RESULT *rows = NULL;
    AUTO_TABLE table;
    int code = command_query(conn,
                             "select t.key, t.value from millrace.queues q,"
                             " jsonb_each_text(q.settings) t where q.queue = $1 order by t.key",
                             1, &queue, &rows, err);

    table_init(&table, columns);
    if (code) {
        return code;
    }
    for (int i = 0; i < PQntuples(rows); i++) {
        table_add(&table, PQgetvalue(rows, i, 0));
        table_add(&table, rows_value(rows, i, 1));
    }
    return table_print(&table, stdout, err);
}

static void print_title(const PGresult *rows)
{
    AUTO_BUF created;

    buf_init(&created, CELL_MAX);
    figure_add_clock(&created, PQgetvalue(rows, 0, 2));
    printf("queue ");
    table_put_text(PQgetvalue(rows, 0, 0), stdout);
    printf(": %s, created %s\n\n", str_equal(PQgetvalue(rows, 0, 1), "t") ? "paused" : "active",
           buf_peek(&created));
}

static int show(struct conn *conn, const char *queue, bool json, struct mr_error *err)
{
    AUTO_RESULT *rows = NULL;
    int code = command_query(conn,
                             "select q.queue, q.paused, to_json(q.created_at) as created_at,"
                             " q.settings from millrace.queues q where q.queue = $1",
                             1, &queue, &rows, err);

    if (code) {
        return code;
    }
    if (PQntuples(rows) == 0) {
        return command_unknown_queue(conn, queue, err);
    }
    if (json) {
        return rows_print_object(rows, 0, err);
    }
    print_title(rows);
    return print_settings(conn, queue, err);
}

static int connect_and_show(const struct command_shared *shared, const char *queue,
                            struct mr_error *err)
{
    AUTO_CONN *conn = NULL;
    int code = conn_open(shared->dsn, &conn, err);

    return code ? code : show(conn, queue, shared->json, err);
}

static int queue_show(int argc, char **argv)
{
    struct command_shared shared = {0};
    const struct option_row rows[] = {COMMAND_SHARED_ROWS(&shared), {0}};
    struct mr_error err;
    int first = command_read(&show_form, rows, &shared, argc, argv, &err);

    if (first >= 0 && shared.help) {
        return command_help(&show_form, rows);
    }
    if (first < 0 || connect_and_show(&shared, argv[first], &err)) {
        return command_fail(&err);
    }
    return command_finish(EXIT_DONE);
}

// ---- set ----

// NAME=VALUE as a member of a JSON object: a value that is JSON stays as it is, anything else is
// a string.
static int add_setting(struct buf *out, const char *setting, struct mr_error *err)
{
    const char *equals = strchr(setting, '=');
    char name[STR_DISTANCE_MAX + 1];

    if (!equals || equals == setting || (size_t)(equals - setting) > STR_DISTANCE_MAX) {
        mr_error_set(err, MR_EUSAGE, "queue set: \"%s\" is not NAME=VALUE", setting);
        mr_error_hint(err,
                      "Write `millrace queue set mail lease=1min max_attempts=5`, for example.");
        return MR_EUSAGE;
    }
    snprintf(name, sizeof(name), "%.*s", (int)(equals - setting), setting);
    buf_puts(out, out->len > 1 ? "," : "");
    json_add_string(out, name);
    buf_puts(out, ":");
    if (json_check(json_slice_of(equals + 1), NULL) == 0) {
        buf_puts(out, equals + 1);
    } else {
        json_add_string(out, equals + 1);
    }
    return 0;
}

static int build_settings(struct buf *out, char **settings, struct mr_error *err)
{
    int code = 0;

    buf_puts(out, "{");
    for (; *settings && code == 0; settings++) {
        code = add_setting(out, *settings, err);
    }
    buf_puts(out, "}");
    return code ? code : buf_status(out, err);
}

// The server's hint has all names, `Settings are a, b, c.`: puts the one that was probably meant
// in front.
static void hint_nearest(struct mr_error *err)
{
    const char *begin = strchr(err->message, '\'');
    const char *list = strstr(err->hint, "Settings are ");
    char typed[STR_DISTANCE_MAX + 1], names[MR_ERROR_HINT_SIZE], hint[MR_ERROR_HINT_SIZE];
    const char *nearest = NULL;
    int nearest_distance = INT_MAX;
    char *rest = NULL;

    if (!begin || !list) {
        return;
    }
    snprintf(typed, sizeof(typed), "%.*s", (int)strcspn(begin + 1, "'"), begin + 1);
    snprintf(names, sizeof(names), "%s", list + strlen("Settings are "));
    for (char *name = strtok_r(names, ", .", &rest); name; name = strtok_r(NULL, ", .", &rest)) {
        int distance = str_distance(typed, name);
        if (distance < nearest_distance) {
            nearest = name;
            nearest_distance = distance;
        }
    }
    if (nearest) {
        memcpy(hint, err->hint, sizeof(hint));
        mr_error_hint(err, "Did you mean %s? %s", nearest, hint);
    }
}

static int set(const struct command_shared *shared, const char *queue, char **settings,
               struct mr_error *err)
{
    AUTO_CONN *conn = NULL;
    AUTO_RESULT *rows = NULL;
    AUTO_BUF json;

    buf_init(&json, SETTINGS_JSON_MAX);
    int code = build_settings(&json, settings, err);
    if (code == 0) {
        code = conn_open(shared->dsn, &conn, err);
    }
    if (code == 0) {
        const char *values[] = {queue, buf_peek(&json)};
        code =
            command_query(conn, "select millrace.set_queue($1, $2::jsonb)", 2, values, &rows, err);
    }
    if (code == MR_EINVALID) {
        hint_nearest(err);
    }
    return code ? code : show(conn, queue, shared->json, err);
}

static int queue_set(int argc, char **argv)
{
    struct command_shared shared = {0};
    const struct option_row rows[] = {COMMAND_SHARED_ROWS(&shared), {0}};
    struct mr_error err;
    int first = command_read(&set_form, rows, &shared, argc, argv, &err);

    if (first >= 0 && shared.help) {
        return command_help(&set_form, rows);
    }
    if (first < 0 || set(&shared, argv[first], argv + first + 1, &err)) {
        return command_fail(&err);
    }
    return command_finish(EXIT_DONE);
}

int cmd_queue(int argc, char **argv)
{
    static const struct command_verb verbs[] = {
        {"list", queue_list},
        {"show", queue_show},
        {"set", queue_set},
        {NULL, NULL},
    };

    return command_group("queue", verbs, argc, argv);
}
