// SPDX-License-Identifier: PostgreSQL
//
// `millrace cache get|set|delete|stats`: the cache from the command line.

#include <stdio.h>

#include "base/json.h"
#include "cli/command.h"
#include "cli/rows.h"
#include "cli/table.h"

enum { VALUE_SIZE = 32 };

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
    AUTO_RESULT *rows = NULL;
    int code = command_ask(shared->dsn, "select millrace.cache_get($1)", 1, &key, &rows, err);

    if (code) {
        return code;
    }
    return PQgetisnull(rows, 0, 0) ? no_value(key, err)
                                   : print_value(key, PQgetvalue(rows, 0, 0), shared->json, err);
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
    AUTO_RESULT *rows = NULL;
    char ttl[VALUE_SIZE];
    const char *const values[] = {key, value, ttl};
    int code = command_check_json("VALUE", value, err);

    if (code) {
        return code;
    }
    if (ttl_ms <= 0) {
        mr_error_set(err, MR_EUSAGE, ttl_ms < 0 ? "--ttl is missing" : "--ttl must be above 0");
        mr_error_hint(err, "Nothing is kept for ever: say for how long, such as --ttl 5min.");
        return MR_EUSAGE;
    }
    snprintf(ttl, sizeof(ttl), "%lld ms", (long long)ttl_ms);
    code = command_ask(shared->dsn, "select millrace.cache_set($1, $2::jsonb, $3::interval)", 3,
                       values, &rows, err);
    if (code == 0 && shared->json) {
        return print_value(key, value, true, err);
    }
    return code;
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
    AUTO_RESULT *rows = NULL;
    int code = check_delete(key, pattern, err);

    if (code == 0 && key) {
        code =
            command_ask(shared->dsn, "select millrace.cache_delete($1)::int", 1, &key, &rows, err);
    } else if (code == 0) {
        code = command_ask(shared->dsn, "select millrace.cache_delete_like($1)", 1, &pattern, &rows,
                           err);
    }
    if (code == 0) {
        printf(shared->json ? "{\"deleted\":%s}\n" : "deleted: %s\n", PQgetvalue(rows, 0, 0));
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

static int print_stats(const PGresult *rows, struct mr_error *err)
{
    static const struct table_column columns[] = {
        {"TOTAL", true, 0}, {"VALID", true, 0},  {"EXPIRED", true, 0},
        {"BYTES", true, 0}, {"EXACT", false, 0}, {NULL, false, 0},
    };
    AUTO_TABLE table;

    table_init(&table, columns);
    for (int i = 0; i < PQnfields(rows); i++) {
        table_add(&table, rows_value(rows, 0, i));
    }
    return table_print(&table, stdout, err);
}

static int stats(const struct command_shared *shared, struct mr_error *err)
{
    AUTO_RESULT *rows = NULL;
    int code = command_ask(shared->dsn,
                           "select s.total, s.valid, s.expired, s.bytes, s.exact"
                           " from millrace.cache_stats() s",
                           0, NULL, &rows, err);

    if (code) {
        return code;
    }
    return shared->json ? rows_print_object(rows, 0, err) : print_stats(rows, err);
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
