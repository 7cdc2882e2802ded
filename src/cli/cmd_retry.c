// SPDX-License-Identifier: PostgreSQL
//
// `millrace retry set|list`: attempts and backoff of a kind of job.

#include <stdio.h>

#include "cli/command.h"
#include "cli/name_list.h"
#include "cli/rows.h"
#include "cli/table.h"

enum { ATTEMPTS_MAX = 32000, FACTOR_MAX = 1000, PARAMS_MAX = 6, VALUE_SIZE = 32, SQL_MAX = 500 };

struct retry {
    struct command_shared shared;
    // -1: not given
    int64_t max_attempts;
    int64_t base_ms;
    int64_t cap_ms;
    double factor;
    double jitter;
};

static const struct command_form set_form = {
    "retry set",
    "KIND",
    1,
    1,
    "Sets how often a kind of job is tried, and how long it waits in between: base after the\n"
    "first attempt, factor times as long after each further one, at most cap, plus up to the\n"
    "share jitter of that. Replaces the whole policy: what is not given has its default.",
    "millrace-retry(1)",
};
static const struct command_form list_form = {
    "retry list", "", 0, 0, "Lists the kinds that have a policy of their own.", "millrace-retry(1)",
};

// ---- set ----

static int check(const struct retry *retry, struct mr_error *err)
{
    if (retry->max_attempts == 0 || retry->max_attempts > ATTEMPTS_MAX) {
        return mr_error_set(err, MR_EUSAGE, "--max-attempts must be from 1 to %d", ATTEMPTS_MAX);
    }
    if (retry->factor > FACTOR_MAX || (retry->factor >= 0 && retry->factor < 1)) {
        return mr_error_set(err, MR_EUSAGE, "--factor must be from 1 to %d", FACTOR_MAX);
    }
    if (retry->jitter > 1) {
        return mr_error_set(err, MR_EUSAGE, "--jitter must be from 0 to 1");
    }
    return 0;
}

// The call with what was given, by name, so that the function's own defaults count for the rest.
struct set_call {
    struct buf sql;
    const char *values[PARAMS_MAX];
    char texts[PARAMS_MAX][VALUE_SIZE];
    int count;
};

static void add_param(struct set_call *call, const char *name, const char *type)
{
    call->values[call->count] = call->texts[call->count];
    call->count++;
    buf_printf(&call->sql, ", %s => $%d::%s", name, call->count, type);
}

static void build_call(struct set_call *call, const struct retry *retry, const char *kind)
{
    call->values[call->count++] = kind;
    buf_puts(&call->sql, "select millrace.set_retry($1");
    if (retry->max_attempts >= 0) {
        snprintf(call->texts[call->count], VALUE_SIZE, "%lld", (long long)retry->max_attempts);
        add_param(call, "max_attempts", "int");
    }
    if (retry->base_ms >= 0) {
        snprintf(call->texts[call->count], VALUE_SIZE, "%lld ms", (long long)retry->base_ms);
        add_param(call, "base", "interval");
    }
    if (retry->factor >= 0) {
        snprintf(call->texts[call->count], VALUE_SIZE, "%.9g", retry->factor);
        add_param(call, "factor", "real");
    }
    if (retry->cap_ms >= 0) {
        snprintf(call->texts[call->count], VALUE_SIZE, "%lld ms", (long long)retry->cap_ms);
        add_param(call, "cap", "interval");
    }
    if (retry->jitter >= 0) {
        snprintf(call->texts[call->count], VALUE_SIZE, "%.9g", retry->jitter);
        add_param(call, "jitter", "real");
    }
    buf_puts(&call->sql, ")");
}

// ---- both ----

static const char *const list_sql =
    "select r.kind, r.max_attempts, r.base, r.factor, r.cap, r.jitter from millrace.retries r"
    " where $1::text is null or r.kind = $1 order by r.kind";

static int print_table(const PGresult *rows, struct mr_error *err)
{
    static const struct table_column columns[] = {
        {"KIND", false, 40}, {"ATTEMPTS", true, 0}, {"BASE", true, 0}, {"FACTOR", true, 0},
        {"CAP", true, 0},    {"JITTER", true, 0},   {NULL, false, 0},
    };
    AUTO_TABLE table;

    table_init(&table, columns);
    for (int i = 0; i < PQntuples(rows); i++) {
        for (int k = 0; k < PQnfields(rows); k++) {
            table_add(&table, rows_value(rows, i, k));
        }
    }
    return table_print(&table, stdout, err);
}

static int set(const struct retry *retry, const char *kind, struct mr_error *err)
{
    AUTO_CONN *conn = NULL;
    AUTO_RESULT *done = NULL;
    AUTO_RESULT *rows = NULL;
    struct set_call call = {0};
    int code = check(retry, err);

    if (code || (code = conn_open(retry->shared.dsn, &conn, err))) {
        return code;
    }
    buf_init(&call.sql, SQL_MAX);
    build_call(&call, retry, kind);
    code = command_query(conn, buf_peek(&call.sql), call.count, call.values, &done, err);
    buf_done(&call.sql);
    if (code == 0) {
        code = command_query(conn, list_sql, 1, &kind, &rows, err);
    }
    if (code) {
        return code;
    }
    return retry->shared.json ? rows_print_object(rows, 0, err) : print_table(rows, err);
}

static int retry_set(int argc, char **argv)
{
    struct retry retry = {
        .max_attempts = -1, .base_ms = -1, .cap_ms = -1, .factor = -1, .jitter = -1};
    const struct option_row rows[] = {
        {"max-attempts", OPTION_NUMBER, &retry.max_attempts, "NUMBER", "attempts at most (3)"},
        {"base", OPTION_SPAN, &retry.base_ms, "TIME", "wait after the first attempt (2s)"},
        {"factor", OPTION_REAL, &retry.factor, "NUMBER", "growth with each attempt (2)"},
        {"cap", OPTION_SPAN, &retry.cap_ms, "TIME", "longest wait (1h)"},
        {"jitter", OPTION_REAL, &retry.jitter, "SHARE", "random share on top, 0 to 1 (0.5)"},
        COMMAND_SHARED_ROWS(&retry.shared),
        {0},
    };
    struct mr_error err;
    int first = command_read(&set_form, rows, &retry.shared, argc, argv, &err);

    if (first >= 0 && retry.shared.help) {
        return command_help(&set_form, rows);
    }
    if (first < 0 || set(&retry, argv[first], &err)) {
        return command_fail(&err);
    }
    return command_finish(EXIT_DONE);
}

static int retry_list(int argc, char **argv)
{
    const struct name_list list = {
        &list_form, "retries", list_sql, list_sql, 1, print_table,
    };

    return name_list_run(&list, argc, argv);
}

int cmd_retry(int argc, char **argv)
{
    static const struct command_verb verbs[] = {
        {"set", retry_set},
        {"list", retry_list},
        {NULL, NULL},
    };

    return command_group("retry", verbs, argc, argv);
}
