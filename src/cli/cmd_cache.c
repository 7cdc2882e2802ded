// SPDX-License-Identifier: PostgreSQL
//
// `millrace cache get|set|delete|stats`: the cache from the command line.

#include <stdio.h>

#include <stdlib.h>

#include "base/json.h"
#include "cli/command.h"
#include "cli/rows.h"
#include "cli/table.h"

enum { VALUE_SIZE = 32 };

// To look at every key takes longer than to look at one.
#define LONG_MS 600000
// So many keys Redis counts in one go; with more, some may come or go meanwhile.
#define REDIS_EXACT_MAX 1000

static const struct command_form get_form = {
    "cache get",
    "KEY",
    1,
    1,
    "Prints the value of a key, JSON. Exit status 1 when it has none, or it has expired.",
    "millrace-cache(1)",
};
static const struct command_form set_form = {
    "cache set",
    "KEY VALUE",
    2,
    2,
    "Sets a key to a value, JSON, for a time, which has to be given.",
    "millrace-cache(1)",
};
static const struct command_form delete_form = {
    "cache delete",
    "[KEY]",
    0,
    1,
    "Deletes a key or, with --like, every key like a pattern: % stands for any text, _ for one\n"
    "character, a backslash takes their meaning away.",
    "millrace-cache(1)",
};
static const struct command_form stats_form = {
    "cache stats",
    "",
    0,
    0,
    "Prints how many keys there are, how many have a value, how many have expired, and their\n"
    "bytes on disk; estimated where the cache is large.",
    "millrace-cache(1)",
};

static int open_conn(const char *dsn, int64_t timeout_ms, mr_conn **ret, struct mr_error *err)
{
    mr_conn_options options = MR_CONN_OPTIONS_INIT;

    options.dsn = dsn;
    options.timeout_ms = timeout_ms;
    return mr_conn_open(&options, ret, err);
}

static int close_conn(mr_conn *conn, int code, struct mr_error *err)
{
    mr_conn_free(conn);
    if (code && err->error_class == MR_CLASS_REJECTED) {
        mr_error_detail(err, "%s", ""); // the place in the code of our functions
    }
    return code;
}

// ---- get ----

static int no_value(const char *key, struct mr_error *err)
{
    mr_error_set(err, MR_EUNKNOWN, "key \"%.200s\" has no value", key);
    mr_error_hint(err, "It was never set, was deleted, or has expired.");
    return MR_EUNKNOWN;
}

static int print_value(const char *key, const char *value, bool json, struct mr_error *err)
{
    AUTO_BUF text;

    buf_init(&text, ROWS_OBJECT_MAX);
    if (!json) {
        puts(value);
        return 0;
    }
    buf_puts(&text, "{\"key\":");
    json_add_string(&text, key);
    buf_puts(&text, ",\"value\":");
    buf_puts(&text, value);
    buf_puts(&text, "}");
    int code = buf_status(&text, err);
    if (code == 0) {
        puts(buf_peek(&text));
    }
    return code;
}

static int get(const struct command_shared *shared, const char *key, struct mr_error *err)
{
    mr_conn *conn = NULL;
    char *value = NULL;
    int code = open_conn(shared->dsn, 0, &conn, err);

    if (code == 0) {
        code = mr_cache_get(conn, key, &value, err);
    }
    code = close_conn(conn, code, err);
    if (code == 0) {
        code = value ? print_value(key, value, shared->json, err) : no_value(key, err);
    }
    mr_free(value);
    return code;
}

static int cache_get(int argc, char **argv)
{
    struct command_shared shared = {0};
    const struct option_row rows[] = {COMMAND_SHARED_ROWS(&shared), {0}};
    struct mr_error err;
    int first = command_read(&get_form, rows, &shared, argc, argv, &err);

    if (first >= 0 && shared.help) {
        return command_help(&get_form, rows);
    }
    if (first < 0 || get(&shared, argv[first], &err)) {
        return command_fail(&err);
    }
    return command_finish(EXIT_DONE);
}

// ---- set ----

static int set(const struct command_shared *shared, const char *key, const char *value,
               int64_t ttl_ms, struct mr_error *err)
{
    mr_conn *conn = NULL;
    int code = command_check_json("VALUE", value, err);

    if (code) {
        return code;
    }
    if (ttl_ms <= 0) {
        mr_error_set(err, MR_EUSAGE, ttl_ms < 0 ? "--ttl is missing" : "--ttl must be above 0");
        mr_error_hint(err, "Nothing is kept for ever: say for how long, such as --ttl 5min.");
        return MR_EUSAGE;
    }
    if ((code = open_conn(shared->dsn, 0, &conn, err)) == 0) {
        code = mr_cache_set(conn, key, value, ttl_ms, err);
    }
    code = close_conn(conn, code, err);
    return code == 0 && shared->json ? print_value(key, value, true, err) : code;
}

static int cache_set(int argc, char **argv)
{
    struct command_shared shared = {0};
    int64_t ttl_ms = -1;
    const struct option_row rows[] = {
        {"ttl", OPTION_SPAN, &ttl_ms, "TIME", "how long it is kept (must be given)"},
        COMMAND_SHARED_ROWS(&shared),
        {0},
    };
    struct mr_error err;
    int first = command_read(&set_form, rows, &shared, argc, argv, &err);

    if (first >= 0 && shared.help) {
        return command_help(&set_form, rows);
    }
    if (first < 0 || set(&shared, argv[first], argv[first + 1], ttl_ms, &err)) {
        return command_fail(&err);
    }
    return command_finish(EXIT_DONE);
}

// ---- delete ----

static int check_delete(const char *key, const char *pattern, struct mr_error *err)
{
    if (!key == !pattern) {
        mr_error_set(err, MR_EUSAGE,
                     key ? "cache delete: KEY and --like exclude each other"
                         : "cache delete: KEY is missing");
        mr_error_hint(err, "Write `millrace cache delete KEY` or `millrace cache delete --like "
                           "PATTERN`.");
        return MR_EUSAGE;
    }
    return 0;
}

static int delete (const struct command_shared *shared, const char *key, const char *pattern,
                   struct mr_error *err)
{
    mr_conn *conn = NULL;
    int64_t deleted = 0;
    int had = 0;
    int code = check_delete(key, pattern, err);

    if (code || (code = open_conn(shared->dsn, key ? 0 : LONG_MS, &conn, err))) {
        return code;
    }
    if (key) {
        code = mr_cache_delete(conn, key, &had, err);
        deleted = had;
    } else {
        code = mr_cache_delete_like(conn, pattern, &deleted, err);
    }
    code = close_conn(conn, code, err);
    if (code == 0) {
        printf(shared->json ? "{\"deleted\":%lld}\n" : "deleted: %lld\n", (long long)deleted);
    }
    return code;
}

static int cache_delete(int argc, char **argv)
{
    struct command_shared shared = {0};
    const char *pattern = NULL;
    const struct option_row rows[] = {
        {"like", OPTION_STRING, &pattern, "PATTERN", "all keys like this, instead of KEY (none)"},
        COMMAND_SHARED_ROWS(&shared),
        {0},
    };
    struct mr_error err;
    int first = command_read(&delete_form, rows, &shared, argc, argv, &err);

    if (first >= 0 && shared.help) {
        return command_help(&delete_form, rows);
    }
    if (first < 0 || delete (&shared, first < argc ? argv[first] : NULL, pattern, &err)) {
        return command_fail(&err);
    }
    return command_finish(EXIT_DONE);
}

// ---- stats ----

enum { FIGURES = 5 };

static int print_stats(const char *const *figures, struct mr_error *err)
{
    static const struct table_column columns[] = {
        {"TOTAL", true, 0}, {"VALID", true, 0},  {"EXPIRED", true, 0},
        {"BYTES", true, 0}, {"EXACT", false, 0}, {NULL, false, 0},
    };
    AUTO_TABLE table;

    table_init(&table, columns);
    for (int i = 0; i < FIGURES; i++) {
        table_add(&table, figures[i]);
    }
    return table_print(&table, stdout, err);
}

static int stats_pg(const struct command_shared *shared, struct mr_error *err)
{
    AUTO_RESULT *rows = NULL;
    const char *figures[FIGURES];
    int code = command_ask(shared->dsn,
                           "select s.total, s.valid, s.expired, s.bytes, s.exact"
                           " from millrace.cache_stats() s",
                           0, NULL, &rows, err);

    if (code || shared->json) {
        return code ? code : rows_print_object(rows, 0, err);
    }
    for (int i = 0; i < FIGURES; i++) {
        figures[i] = rows_value(rows, 0, i);
    }
    return print_stats(figures, err);
}

static int stats_redis(const struct command_shared *shared, struct mr_error *err)
{
    mr_conn *conn = NULL;
    int64_t total = 0, bytes = 0;
    char total_text[VALUE_SIZE], bytes_text[VALUE_SIZE];
    int code = open_conn(shared->dsn, LONG_MS, &conn, err);

    if (code == 0) {
        code = mr_cache_stats(conn, &total, NULL, NULL, &bytes, err);
    }
    if ((code = close_conn(conn, code, err))) {
        return code;
    }
    bool exact = total < REDIS_EXACT_MAX;
    snprintf(total_text, sizeof(total_text), "%lld", (long long)total);
    snprintf(bytes_text, sizeof(bytes_text), "%lld", (long long)bytes);
    if (shared->json) {
        printf("{\"total\":%s,\"valid\":%s,\"expired\":0,\"bytes\":%s,\"exact\":%s}\n", total_text,
               total_text, bytes_text, exact ? "true" : "false");
        return 0;
    }
    return print_stats((const char *[]){total_text, total_text, "0", bytes_text, exact ? "t" : "f"},
                       err);
}

static int stats(const struct command_shared *shared, struct mr_error *err)
{
    return (conn_redis_dsn(shared->dsn) ? stats_redis : stats_pg)(shared, err);
}

static int cache_stats(int argc, char **argv)
{
    struct command_shared shared = {0};
    const struct option_row rows[] = {COMMAND_SHARED_ROWS(&shared), {0}};
    struct mr_error err;
    int first = command_read(&stats_form, rows, &shared, argc, argv, &err);

    if (first >= 0 && shared.help) {
        return command_help(&stats_form, rows);
    }
    if (first < 0 || stats(&shared, &err)) {
        return command_fail(&err);
    }
    return command_finish(EXIT_DONE);
}

int cmd_cache(int argc, char **argv)
{
    static const struct command_verb verbs[] = {
        {"get", cache_get},     {"set", cache_set}, {"delete", cache_delete},
        {"stats", cache_stats}, {NULL, NULL},
    };

    return command_group("cache", verbs, argc, argv);
}
