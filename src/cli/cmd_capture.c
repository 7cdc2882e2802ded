// SPDX-License-Identifier: PostgreSQL
//
// `millrace capture add|remove|list|enable|disable`: tables whose changes become jobs.

#include <stdio.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/name_list.h"
#include "cli/rows.h"
#include "cli/table.h"

enum {
    PARAMS_MAX = 11, // of capture()
    SQL_MAX = 1000,
};

// Two names as JSON: the database takes 200 bytes of a queue's, and of a table's about as many.
#define NAMES_JSON_MAX (32 * 1024)

// ---- rows of the view ----

// For people.
enum {
    COLUMN_SOURCE,
    COLUMN_QUEUE,
    COLUMN_KIND,
    COLUMN_EVENTS,
    COLUMN_STRICT,
    COLUMN_ENABLED,
    COLUMN_MISSED,
    COLUMN_MISSED_CODE,
};

// Both: the capture of a table into a queue, or all for null. The view has names with their
// schema, whatever the caller's search_path.
static const char *const table_sql =
    "select c.source, c.queue, c.kind, array_to_string(c.events, ' ') as events, c.strict,"
    " c.enabled, c.missed, c.missed_code from millrace.captures c"
    " where $1::text is null or (c.queue = $2 and c.source ="
    " (pg_identify_object('pg_class'::regclass, $1::regclass, 0)).identity)"
    " order by c.source, c.queue";
static const char *const facts_sql =
    "select c.source, c.queue, c.kind, to_json(c.events) as events, c.condition,"
    " to_json(c.columns) as columns, to_json(c.carry) as carry,"
    " to_json(c.unique_on) as unique_on, c.on_conflict, c.notify, c.strict, c.enabled, c.owner,"
    " c.missed, to_json(c.missed_at) as missed_at, c.missed_code from millrace.captures c"
    " where $1::text is null or (c.queue = $2 and c.source ="
    " (pg_identify_object('pg_class'::regclass, $1::regclass, 0)).identity)"
    " order by c.source, c.queue";

static void add_state(struct table *table, const PGresult *rows, int row)
{
    const char *state = "active";

    if (str_equal(PQgetvalue(rows, row, COLUMN_ENABLED), "f")) {
        state = "off";
    } else if (str_equal(PQgetvalue(rows, row, COLUMN_STRICT), "t")) {
        state = "strict";
    }
    table_add(table, state);
}

static int print_table(const PGresult *rows, struct mr_error *err)
{
    static const struct table_column columns[] = {
        {"TABLE", false, 60}, {"QUEUE", false, 30}, {"KIND", false, 30},  {"EVENTS", false, 0},
        {"STATE", false, 0},  {"MISSED", true, 0},  {"REASON", false, 0}, {NULL, false, 0},
    };
    AUTO_TABLE table;

    table_init(&table, columns);
    for (int i = 0; i < PQntuples(rows); i++) {
        table_add(&table, PQgetvalue(rows, i, COLUMN_SOURCE));
        table_add(&table, PQgetvalue(rows, i, COLUMN_QUEUE));
        table_add(&table, PQgetvalue(rows, i, COLUMN_KIND));
        table_add(&table, PQgetvalue(rows, i, COLUMN_EVENTS));
        add_state(&table, rows, i);
        table_add(&table, PQgetvalue(rows, i, COLUMN_MISSED));
        table_add(&table, rows_value(rows, i, COLUMN_MISSED_CODE));
    }
    return table_print(&table, stdout, err);
}

// ---- list ----

static const struct command_form list_form = {
    "capture list",
    "",
    0,
    0,
    "Lists the tables that are captured. STATE is active, strict, or off (disabled). MISSED counts\n"
    "rows that were written but could not be enqueued, REASON is the SQLSTATE of the last.",
    "millrace-capture(1)",
};

static int capture_list(int argc, char **argv)
{
    const struct name_list list = {
        &list_form, "captures", table_sql, facts_sql, 2, print_table,
    };

    return name_list_run(&list, argc, argv);
}

// ---- add ----

struct add {
    struct command_shared shared;
    // NULL: not given
    const char *source;
    const char *queue;
    const char *kind;
    const char *events; // and the other lists: with commas
    const char *condition;
    const char *columns;
    const char *unique_on;
    const char *carry;
    const char *notify;
    bool replace;
    bool strict;
};

static const struct command_form add_form = {
    "capture add",
    "TABLE QUEUE KIND",
    3,
    3,
    "Captures a table: each row that is inserted becomes a job of this kind, in the writer's\n"
    "transaction. Run it as the owner of the table, who must be able to enqueue. Replaces what\n"
    "was there for the same table and queue. Lists are names with commas between them.",
    "millrace-capture(1)",
};

// The call with what was given, by name, so that the function's own defaults count for the rest.
struct add_call {
    struct buf sql;
    const char *values[PARAMS_MAX];
    int count;
};

static void add_text(struct add_call *call, const char *name, const char *value)
{
    if (value) {
        call->values[call->count++] = value;
        buf_printf(&call->sql, ", %s => $%d::text", name, call->count);
    }
}

static void add_list(struct add_call *call, const char *name, const char *value)
{
    if (value) {
        call->values[call->count++] = value;
        buf_printf(&call->sql, ", %s => string_to_array($%d::text, ',')", name, call->count);
    }
}

static void build_call(struct add_call *call, const struct add *add)
{
    call->values[call->count++] = add->source;
    call->values[call->count++] = add->queue;
    call->values[call->count++] = add->kind;
    buf_puts(&call->sql, "select millrace.capture($1::regclass, $2, $3");
    add_list(call, "events", add->events);
    add_text(call, "condition", add->condition);
    add_list(call, "columns", add->columns);
    add_list(call, "unique_on", add->unique_on);
    add_text(call, "on_conflict", add->replace ? "replace" : NULL);
    add_list(call, "carry", add->carry);
    add_text(call, "notify", add->notify);
    buf_puts(&call->sql, add->strict ? ", strict => true)" : ")");
}

static int call_capture(struct conn *conn, const struct add *add, struct mr_error *err)
{
    AUTO_RESULT *done = NULL;
    struct add_call call = {0};

    buf_init(&call.sql, SQL_MAX);
    build_call(&call, add);
    int code = command_query(conn, buf_peek(&call.sql), call.count, call.values, &done, err);
    buf_done(&call.sql);
    return code;
}

static int add_capture(const struct add *add, struct mr_error *err)
{
    AUTO_CONN *conn = NULL;
    AUTO_RESULT *rows = NULL;
    const char *key[] = {add->source, add->queue};
    int code = conn_open(add->shared.dsn, &conn, err);

    if (code == 0) {
        code = call_capture(conn, add, err);
    }
    if (code == 0) {
        code = command_query(conn, add->shared.json ? facts_sql : table_sql, 2, key, &rows, err);
    }
    if (code) {
        return code;
    }
    return add->shared.json ? rows_print_object(rows, 0, err) : print_table(rows, err);
}

static int capture_add(int argc, char **argv)
{
    struct add add = {0};
    const struct option_row rows[] = {
        {"events", OPTION_STRING, &add.events, "LIST",
         "of insert, update, delete, truncate (insert)"},
        {"when", OPTION_STRING, &add.condition, "CONDITION",
         "only rows for which it is true: \"new.status = 'open'\""},
        {"columns", OPTION_STRING, &add.columns, "LIST", "of updates only those that change one"},
        {"unique-on", OPTION_STRING, &add.unique_on, "LIST",
         "one job at a time for each value of these columns"},
        {"replace", OPTION_FLAG, &add.replace, NULL,
         "a job that waits gets the new values (it keeps the first ones)"},
        {"carry", OPTION_STRING, &add.carry, "LIST", "the columns that jobs hold (all)"},
        {"notify", OPTION_STRING, &add.notify, "CHANNEL", "tell this channel, too"},
        {"strict", OPTION_FLAG, &add.strict, NULL,
         "what cannot be enqueued cannot be written (it is counted)"},
        COMMAND_SHARED_ROWS(&add.shared),
        {0},
    };
    struct mr_error err;
    int first = command_read(&add_form, rows, &add.shared, argc, argv, &err);

    if (first >= 0 && add.shared.help) {
        return command_help(&add_form, rows);
    }
    if (first >= 0) {
        add.source = argv[first];
        add.queue = argv[first + 1];
        add.kind = argv[first + 2];
    }
    if (first < 0 || add_capture(&add, &err)) {
        return command_fail(&err);
    }
    return command_finish(EXIT_DONE);
}

// ---- remove, enable, disable ----

struct act {
    struct command_form form;
    const char *sql;
    const char *done; // for people, before the names
    const char *key;  // for machines, beside the names
    const char *value;
};

static int print_act_json(const struct act *act, char **names, struct mr_error *err)
{
    AUTO_BUF text;

    buf_init(&text, NAMES_JSON_MAX);
    buf_puts(&text, "{\"source\":");
    json_add_string(&text, names[0]);
    buf_puts(&text, ",\"queue\":");
    json_add_string(&text, names[1]);
    int code = buf_status(&text, err);
    if (code == 0) {
        printf("%s,\"%s\":%s}\n", buf_peek(&text), act->key, act->value);
    }
    return code;
}

static int apply(const struct act *act, const struct command_shared *shared, char **names,
                 struct mr_error *err)
{
    AUTO_RESULT *rows = NULL;
    const char *key[] = {names[0], names[1]};
    int code = command_ask(shared->dsn, act->sql, 2, key, &rows, err);

    if (code) {
        return code;
    }
    if (shared->json) {
        return print_act_json(act, names, err);
    }
    printf("%s: ", act->done);
    table_put_text(names[0], stdout);
    fputs(" to ", stdout);
    table_put_text(names[1], stdout);
    puts("");
    return 0;
}

static int act_on_capture(const struct act *act, int argc, char **argv)
{
    struct command_shared shared = {0};
    const struct option_row rows[] = {COMMAND_SHARED_ROWS(&shared), {0}};
    struct mr_error err;
    int first = command_read(&act->form, rows, &shared, argc, argv, &err);

    if (first >= 0 && shared.help) {
        return command_help(&act->form, rows);
    }
    if (first < 0 || apply(act, &shared, argv + first, &err)) {
        return command_fail(&err);
    }
    return command_finish(EXIT_DONE);
}

static int capture_remove(int argc, char **argv)
{
    static const struct act act = {
        .form =
            {"capture remove", "TABLE QUEUE", 2, 2,
             "Removes the capture of a table into a queue. Jobs that it has enqueued stay. What\n"
             "is to rest for a while is better disabled.",
             "millrace-capture(1)"},
        .sql = "select millrace.uncapture($1::regclass, $2)",
        .done = "removed",
        .key = "removed",
        .value = "true",
    };

    return act_on_capture(&act, argc, argv);
}

static int capture_enable(int argc, char **argv)
{
    static const struct act act = {
        .form = {"capture enable", "TABLE QUEUE", 2, 2,
                 "Lets a capture enqueue again, from now on.", "millrace-capture(1)"},
        .sql = "select millrace.capture_enable($1::regclass, $2)",
        .done = "enabled",
        .key = "enabled",
        .value = "true",
    };

    return act_on_capture(&act, argc, argv);
}

static int capture_disable(int argc, char **argv)
{
    static const struct act act = {
        .form = {"capture disable", "TABLE QUEUE", 2, 2,
                 "Stops a capture until it is enabled again. What is written meanwhile is not\n"
                 "captured.",
                 "millrace-capture(1)"},
        .sql = "select millrace.capture_disable($1::regclass, $2)",
        .done = "disabled",
        .key = "enabled",
        .value = "false",
    };

    return act_on_capture(&act, argc, argv);
}

int cmd_capture(int argc, char **argv)
{
    static const struct command_verb verbs[] = {
        {"add", capture_add},       {"remove", capture_remove},   {"list", capture_list},
        {"enable", capture_enable}, {"disable", capture_disable}, {NULL, NULL},
    };

    return command_group("capture", verbs, argc, argv);
}
