// SPDX-License-Identifier: PostgreSQL
//
// `millrace cron list|set|remove|next|enable|disable|run`: schedules.

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/cron_times.h"
#include "cli/figure.h"
#include "cli/name_list.h"
#include "cli/rows.h"
#include "cli/table.h"

enum {
    CELL_MAX = 100,
    PARAMS_MAX = 9, // of schedule()
    SQL_MAX = 500,
    NUMBER_SIZE = 32,
    COUNT_DEFAULT = 5,
};

// A name as JSON: the database takes 200 bytes.
#define NAME_JSON_MAX (16 * 1024)

// ---- rows of the view ----

enum {
    COLUMN_NAME,
    COLUMN_CRON,
    COLUMN_TIMEZONE,
    COLUMN_KIND,
    COLUMN_QUEUE = 5,
    COLUMN_ACTIVE = 8,
    COLUMN_NEXT_AT,
    COLUMN_LAST_AT,
    COLUMN_LAST_ERROR = 12,
};

// One schedule, or all for null.
static const char rows_sql[] =
    "select s.name, s.cron, s.timezone, s.kind, s.args, s.queue, s.priority, s.catch_up, s.active,"
    " to_json(s.next_at) as next_at, to_json(s.last_at) as last_at, s.last_job_id, s.last_error,"
    " to_json(s.set_at) as set_at"
    " from millrace.schedules s where $1::text is null or s.name = $1 order by s.name";

static int unknown_schedule(struct conn *conn, const char *name, struct mr_error *err)
{
    AUTO_RESULT *rows = NULL;
    int code = command_query(conn, "select s.name from millrace.schedules s", 0, NULL, &rows, err);

    if (code) {
        return code;
    }
    const char *nearest = command_nearest(rows, name);
    mr_error_set(err, MR_EUNKNOWN, "there is no schedule '%s'", name);
    if (nearest) {
        mr_error_hint(err, "The nearest is '%s'; see them all with `millrace cron list`.", nearest);
    } else {
        mr_error_hint(err,
                      "See them all with `millrace cron list`; `millrace cron set` makes one.");
    }
    return MR_EUNKNOWN;
}

// *ret has one row and is the caller's.
static int find(struct conn *conn, const char *name, PGresult **ret, struct mr_error *err)
{
    AUTO_RESULT *rows = NULL;
    int code = command_query(conn, rows_sql, 1, &name, &rows, err);

    if (code == 0 && PQntuples(rows) == 0) {
        code = unknown_schedule(conn, name, err);
    }
    if (code == 0) {
        *ret = rows;
        rows = NULL;
    }
    return code;
}

// ---- rows for people ----

static const char *state_of(const PGresult *rows, int row)
{
    if (str_equal(PQgetvalue(rows, row, COLUMN_ACTIVE), "f")) {
        return "off";
    }
    return rows_value(rows, row, COLUMN_LAST_ERROR) ? "error" : "active";
}

static void add_clock(struct table *table, const char *time)
{
    AUTO_BUF text;

    buf_init(&text, CELL_MAX);
    if (time) {
        figure_add_clock(&text, time);
    }
    table_add(table, time ? buf_peek(&text) : NULL);
}

// Below the table: why schedules cannot enqueue.
static void print_errors(const PGresult *rows)
{
    int count = 0;

    for (int i = 0; i < PQntuples(rows); i++) {
        if (str_equal(state_of(rows, i), "error")) {
            fputs(count++ ? "error: " : "\nerror: ", stdout);
            table_put_text(PQgetvalue(rows, i, COLUMN_NAME), stdout);
            printf(": ");
            table_put_text(PQgetvalue(rows, i, COLUMN_LAST_ERROR), stdout);
            puts("");
        }
    }
}

static int print_table(const PGresult *rows, struct mr_error *err)
{
    static const struct table_column columns[] = {
        {"NAME", false, 40},  {"CRON", false, 40}, {"ZONE", false, 0},
        {"QUEUE", false, 30}, {"KIND", false, 30}, {"NEXT", false, 0},
        {"LAST", false, 0},   {"STATE", false, 0}, {NULL, false, 0},
    };
    static const int texts[] = {COLUMN_NAME, COLUMN_CRON, COLUMN_TIMEZONE, COLUMN_QUEUE,
                                COLUMN_KIND};
    AUTO_TABLE table;

    table_init(&table, columns);
    for (int i = 0; i < PQntuples(rows); i++) {
        for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
            table_add(&table, PQgetvalue(rows, i, texts[k]));
        }
        add_clock(&table, rows_value(rows, i, COLUMN_NEXT_AT));
        add_clock(&table, rows_value(rows, i, COLUMN_LAST_AT));
        table_add(&table, state_of(rows, i));
    }
    int code = table_print(&table, stdout, err);
    if (code == 0) {
        print_errors(rows);
    }
    return code;
}

// ---- list ----

static const struct command_form list_form = {
    "cron list",
    "",
    0,
    0,
    "Lists the schedules: when each fires next, and fired last. STATE is active, off (disabled),\n"
    "or error; then what is wrong stands below.",
    "millrace-cron(1)",
};

static int cron_list(int argc, char **argv)
{
    static const struct name_list list = {
        &list_form, "schedules", rows_sql, rows_sql, 1, print_table,
    };
    return name_list_run(&list, argc, argv);
}

// ---- set ----

struct set {
    struct command_shared shared;
    // NULL: not given
    const char *name;
    const char *cron;
    const char *kind;
    const char *args;
    const char *queue;
    const char *timezone;
    const char *catch_up;
    int64_t priority; // -1: not given
    bool inactive;
};

static const struct command_form set_form = {
    "cron set",
    "NAME CRON KIND [ARGS-JSON]",
    3,
    4,
    "Makes or replaces a schedule: a job of this kind each time the cron expression fires. CRON,\n"
    "in quotes, is minute, hour, day of the month, month and day of the week, with the second\n"
    "before them if there are six; or @hourly, @daily, @weekly, @monthly, @yearly. What is not\n"
    "given has its default, also in a schedule that is replaced.",
    "millrace-cron(1)",
};

// The call with what was given, by name, so that the function's own defaults count for the rest.
struct set_call {
    struct buf sql;
    const char *values[PARAMS_MAX];
    int count;
};

static void add_param(struct set_call *call, const char *name, const char *type, const char *value)
{
    if (value) {
        call->values[call->count++] = value;
        buf_printf(&call->sql, ", %s => $%d::%s", name, call->count, type);
    }
}

static void build_call(struct set_call *call, const struct set *set, const char *priority)
{
    call->values[call->count++] = set->name;
    call->values[call->count++] = set->cron;
    call->values[call->count++] = set->kind;
    buf_puts(&call->sql, "select millrace.schedule($1, $2, $3");
    add_param(call, "args", "jsonb", set->args);
    add_param(call, "queue", "text", set->queue);
    add_param(call, "timezone", "text", set->timezone);
    add_param(call, "catch_up", "text", set->catch_up);
    add_param(call, "active", "boolean", set->inactive ? "false" : NULL);
    add_param(call, "priority", "int", set->priority >= 0 ? priority : NULL);
    buf_puts(&call->sql, ")");
}

static int call_schedule(struct conn *conn, const struct set *set, struct mr_error *err)
{
    AUTO_RESULT *done = NULL;
    struct set_call call = {0};
    char priority[NUMBER_SIZE];

    snprintf(priority, sizeof(priority), "%lld", (long long)set->priority);
    buf_init(&call.sql, SQL_MAX);
    build_call(&call, set, priority);
    int code = command_query(conn, buf_peek(&call.sql), call.count, call.values, &done, err);
    buf_done(&call.sql);
    return code;
}

static int set_schedule(const struct set *set, struct mr_error *err)
{
    AUTO_CONN *conn = NULL;
    AUTO_RESULT *rows = NULL;
    int code = command_check_json("ARGS-JSON", set->args, err);

    if (code == 0) {
        code = conn_open(set->shared.dsn, &conn, err);
    }
    if (code == 0) {
        code = call_schedule(conn, set, err);
    }
    if (code == 0) {
        code = find(conn, set->name, &rows, err);
    }
    if (code) {
        return code;
    }
    return set->shared.json ? rows_print_object(rows, 0, err) : print_table(rows, err);
}

static int cron_set(int argc, char **argv)
{
    struct set set = {.priority = -1};
    const struct option_row rows[] = {
        {"queue", OPTION_STRING, &set.queue, "QUEUE", "where the jobs go (default)"},
        {"timezone", OPTION_STRING, &set.timezone, "ZONE",
         "whose clock is meant: Europe/Berlin (UTC)"},
        {"catch-up", OPTION_STRING, &set.catch_up, "MODE",
         "what was missed: none, last (one job for all), all (last)"},
        {"priority", OPTION_NUMBER, &set.priority, "NUMBER", "0 to 99, the lower runs first (50)"},
        {"inactive", OPTION_FLAG, &set.inactive, NULL, "enqueue nothing before `cron enable`"},
        COMMAND_SHARED_ROWS(&set.shared),
        {0},
    };
    struct mr_error err;
    int first = command_read(&set_form, rows, &set.shared, argc, argv, &err);

    if (first >= 0 && set.shared.help) {
        return command_help(&set_form, rows);
    }
    if (first >= 0) {
        set.name = argv[first];
        set.cron = argv[first + 1];
        set.kind = argv[first + 2];
        set.args = argv[first + 3]; // or the NULL at the end of argv
    }
    if (first < 0 || set_schedule(&set, &err)) {
        return command_fail(&err);
    }
    return command_finish(EXIT_DONE);
}

// ---- remove, enable, disable, run ----

struct act {
    const struct command_form *form;
    const char *sql;
    const char *done;  // for people, before the name; NULL: the value alone
    const char *key;   // for machines, beside the name
    const char *value; // of the key; NULL: what the call returns
};

static const struct command_form remove_form = {
    "cron remove",
    "NAME",
    1,
    1,
    "Removes a schedule: it enqueues nothing any more. Jobs that it has enqueued stay. What is to\n"
    "rest for a while is better disabled.",
    "millrace-cron(1)",
};
static const struct command_form enable_form = {
    "cron enable",
    "NAME",
    1,
    1,
    "Lets a schedule enqueue again, from now on. What it would have enqueued meanwhile is not\n"
    "caught up.",
    "millrace-cron(1)",
};
static const struct command_form disable_form = {
    "cron disable",
    "NAME",
    1,
    1,
    "Stops a schedule from enqueueing until it is enabled again. Jobs that it has enqueued\n"
    "stay.",
    "millrace-cron(1)",
};
static const struct command_form run_form = {
    "cron run",
    "NAME",
    1,
    1,
    "Enqueues the job of a schedule at once, active or not, and prints its id. When the schedule\n"
    "fires next stays as it is.",
    "millrace-cron(1)",
};

static int print_act_json(const struct act *act, const char *name, const char *value,
                          struct mr_error *err)
{
    AUTO_BUF text;

    buf_init(&text, NAME_JSON_MAX);
    json_add_string(&text, name);
    int code = buf_status(&text, err);
    if (code == 0) {
        printf("{\"name\":%s,\"%s\":%s}\n", buf_peek(&text), act->key, value);
    }
    return code;
}

static void print_act(const struct act *act, const char *name, const char *value)
{
    if (act->done) {
        printf("%s: ", act->done);
        table_put_text(name, stdout);
        puts("");
    } else {
        puts(value);
    }
}

static int apply(const struct act *act, const struct command_shared *shared, const char *name,
                 struct mr_error *err)
{
    AUTO_CONN *conn = NULL;
    AUTO_RESULT *rows = NULL;
    int code = conn_open(shared->dsn, &conn, err);

    if (code == 0) {
        code = command_query(conn, act->sql, 1, &name, &rows, err);
    }
    if (code == MR_EUNKNOWN) {
        code = unknown_schedule(conn, name, err);
    }
    if (code) {
        return code;
    }
    const char *value = act->value ? act->value : PQgetvalue(rows, 0, 0);
    if (shared->json) {
        return print_act_json(act, name, value, err);
    }
    print_act(act, name, value);
    return 0;
}

static int act_on_schedule(const struct act *act, int argc, char **argv)
{
    struct command_shared shared = {0};
    const struct option_row rows[] = {COMMAND_SHARED_ROWS(&shared), {0}};
    struct mr_error err;
    int first = command_read(act->form, rows, &shared, argc, argv, &err);

    if (first >= 0 && shared.help) {
        return command_help(act->form, rows);
    }
    if (first < 0 || apply(act, &shared, argv[first], &err)) {
        return command_fail(&err);
    }
    return command_finish(EXIT_DONE);
}

static int cron_remove(int argc, char **argv)
{
    static const struct act act = {
        .form = &remove_form,
        .sql = "select millrace.unschedule($1)",
        .done = "removed",
        .key = "removed",
        .value = "true",
    };

    return act_on_schedule(&act, argc, argv);
}

static int cron_enable(int argc, char **argv)
{
    static const struct act act = {
        .form = &enable_form,
        .sql = "select millrace.schedule_enable($1)",
        .done = "enabled",
        .key = "active",
        .value = "true",
    };

    return act_on_schedule(&act, argc, argv);
}

static int cron_disable(int argc, char **argv)
{
    static const struct act act = {
        .form = &disable_form,
        .sql = "select millrace.schedule_disable($1)",
        .done = "disabled",
        .key = "active",
        .value = "false",
    };

    return act_on_schedule(&act, argc, argv);
}

static int cron_run(int argc, char **argv)
{
    static const struct act act = {
        .form = &run_form,
        .sql = "select millrace.schedule_run($1)",
        .key = "id",
    };

    return act_on_schedule(&act, argc, argv);
}

// ---- next ----

struct next {
    struct command_shared shared;
    const char *what; // an expression or the name of a schedule
    int64_t count;
    const char *timezone; // NULL: not given
    const char *after;    // NULL: now
};

static const struct command_form next_form = {
    "cron next",
    "(NAME | CRON)",
    1,
    1,
    "Shows when a schedule or a cron expression fires next, by the clocks of its time zone and in\n"
    "UTC. What has blanks or begins with @ is an expression, anything else the name of a schedule.",
    "millrace-cron(1)",
};

static bool is_expression(const char *text)
{
    return text[0] == '@' || text[strcspn(text, " \t\r\n")];
}

static int check_next(const struct next *next, struct mr_error *err)
{
    if (next->count < 1 || next->count > CRON_TIMES_MAX) {
        return mr_error_set(err, MR_EUSAGE, "--count must be from 1 to %d", CRON_TIMES_MAX);
    }
    if (next->timezone && !is_expression(next->what)) {
        mr_error_set(err, MR_EUSAGE, "cron next: a schedule has a time zone of its own");
        mr_error_hint(err, "Leave --timezone out, or write an expression: '0 2 * * *'.");
        return MR_EUSAGE;
    }
    return 0;
}

// A word that is no schedule may be meant as an expression.
static int find_named(struct conn *conn, const char *name, PGresult **ret, struct mr_error *err)
{
    int code = find(conn, name, ret, err);
    char hint[MR_ERROR_HINT_SIZE];

    if (code == MR_EUNKNOWN) {
        memcpy(hint, err->hint, sizeof(hint));
        mr_error_hint(err, "%s An expression has blanks or begins with @.", hint);
    }
    return code;
}

static int show_next(const struct next *next, struct mr_error *err)
{
    AUTO_CONN *conn = NULL;
    AUTO_RESULT *rows = NULL;
    struct cron_times times = {
        .cron = next->what,
        .zone = next->timezone ? next->timezone : "UTC",
        .after = next->after,
        .count = (int)next->count,
    };
    int code = check_next(next, err);

    if (code == 0) {
        code = conn_open(next->shared.dsn, &conn, err);
    }
    if (code == 0 && !is_expression(next->what)) {
        code = find_named(conn, next->what, &rows, err);
    }
    if (code) {
        return code;
    }
    if (rows) {
        times.name = PQgetvalue(rows, 0, COLUMN_NAME);
        times.cron = PQgetvalue(rows, 0, COLUMN_CRON);
        times.zone = PQgetvalue(rows, 0, COLUMN_TIMEZONE);
    }
    return cron_times_print(conn, &times, next->shared.json, err);
}

static int cron_next(int argc, char **argv)
{
    struct next next = {.count = COUNT_DEFAULT};
    const struct option_row rows[] = {
        {"count", OPTION_NUMBER, &next.count, "NUMBER", "how many times, 1 to 100 (5)"},
        {"timezone", OPTION_STRING, &next.timezone, "ZONE", "of an expression (UTC)"},
        {"after", OPTION_STRING, &next.after, "TIME",
         "from this time on: 2030-01-31 08:00+01 (now)"},
        COMMAND_SHARED_ROWS(&next.shared),
        {0},
    };
    struct mr_error err;
    int first = command_read(&next_form, rows, &next.shared, argc, argv, &err);

    if (first >= 0 && next.shared.help) {
        return command_help(&next_form, rows);
    }
    if (first >= 0) {
        next.what = argv[first];
    }
    if (first < 0 || show_next(&next, &err)) {
        return command_fail(&err);
    }
    return command_finish(EXIT_DONE);
}

int cmd_cron(int argc, char **argv)
{
    static const struct command_verb verbs[] = {
        {"list", cron_list},     {"set", cron_set},
        {"remove", cron_remove}, {"next", cron_next},
        {"enable", cron_enable}, {"disable", cron_disable},
        {"run", cron_run},       {NULL, NULL},
    };

    return command_group("cron", verbs, argc, argv);
}
