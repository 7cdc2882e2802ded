// SPDX-License-Identifier: PostgreSQL
//
// Commands about jobs on Redis: see redis_jobs.h.

#include "cli/redis_jobs.h"

#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/figure.h"
#include "cli/table.h"
#include "client/conn.h"
#include "client/mr_conn.h"
#include "store/redis_queue.h"

enum { CELL_MAX = 100, NUMBER_SIZE = 24, LIST_MAX = 200 };

int redis_jobs_refuse(const char *what, struct mr_error *err)
{
    mr_error_set(err, MR_EUSAGE, "%s needs PostgreSQL; the address is one of Redis", what);
    mr_error_hint(err, "docs/redis.md lists what works where.");
    return MR_EUSAGE;
}

static void close_conn(mr_conn **conn)
{
    mr_conn_free(*conn);
}

#define AUTO_MR_CONN __attribute__((cleanup(close_conn))) mr_conn

static int open_conn(const char *dsn, mr_conn **ret, struct mr_error *err)
{
    mr_conn_options options = MR_CONN_OPTIONS_INIT;

    options.dsn = dsn;
    return mr_conn_open(&options, ret, err);
}

int redis_jobs_enqueue(const char *dsn, const mr_job_spec *job, int64_t *ret_id,
                       struct mr_error *err)
{
    AUTO_MR_CONN *conn = NULL;
    int code = open_conn(dsn, &conn, err);

    return code ? code : mr_enqueue(conn, job, ret_id, err);
}

// ---- queues ----

struct names {
    char **list;
    size_t count;
};

static void names_done(struct names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free(names->list[i]);
    }
    free(names->list);
}

#define AUTO_NAMES __attribute__((cleanup(names_done))) struct names

static int unknown_queue(const char *queue, struct mr_error *err)
{
    mr_error_set(err, MR_EUNKNOWN, "queue '%s' does not exist", queue);
    mr_error_hint(err, "`millrace status` lists those there are; enqueue makes a new one.");
    return MR_EUNKNOWN;
}

// The names of all queues, or of the one that is asked for, which has to be there.
static int read_names(mr_conn *conn, const char *queue, struct names *ret, struct mr_error *err)
{
    int code = redis_queue_names(mr__conn_redis(conn), &ret->list, &ret->count, err);
    size_t kept = 0;

    if (code || !queue) {
        return code;
    }
    for (size_t i = 0; i < ret->count; i++) {
        if (str_equal(ret->list[i], queue)) {
            ret->list[kept++] = ret->list[i];
        } else {
            free(ret->list[i]);
        }
    }
    ret->count = kept;
    return kept ? 0 : unknown_queue(queue, err);
}

static void add_number(struct table *table, int64_t number)
{
    char text[NUMBER_SIZE];

    snprintf(text, sizeof(text), "%" PRId64, number);
    table_add(table, text);
}

static void print_stats(const char *queue, const struct redis_queue_stats *stats, bool first)
{
    AUTO_BUF name;

    buf_init(&name, 64 * 1024);
    json_add_string(&name, queue);
    printf("%s{\"queue\":%s,\"available\":%" PRId64 ",\"running\":%" PRId64
           ",\"scheduled\":%" PRId64 ",\"dead\":%" PRId64 "}",
           first ? "" : ",", buf_peek(&name), stats->available, stats->running, stats->scheduled,
           stats->dead);
}

int redis_jobs_status(const char *dsn, const char *queue, bool json, struct mr_error *err)
{
    static const struct table_column columns[] = {
        {"QUEUE", false, 30},   {"AVAILABLE", true, 0}, {"RUNNING", true, 0},
        {"SCHEDULED", true, 0}, {"DEAD", true, 0},      {NULL, false, 0},
    };
    AUTO_MR_CONN *conn = NULL;
    AUTO_NAMES names = {0};
    AUTO_TABLE table;
    struct redis_queue_stats stats;
    int code = open_conn(dsn, &conn, err);

    table_init(&table, columns);
    if (code || (code = read_names(conn, queue, &names, err))) {
        return code;
    }
    printf("%s", json ? "{\"queues\":[" : "");
    for (size_t i = 0; i < names.count; i++) {
        code = redis_queue_stats(mr__conn_redis(conn), names.list[i], &stats, err);
        if (code) {
            return code;
        }
        if (json) {
            print_stats(names.list[i], &stats, i == 0);
            continue;
        }
        table_add(&table, names.list[i]);
        add_number(&table, stats.available);
        add_number(&table, stats.running);
        add_number(&table, stats.scheduled);
        add_number(&table, stats.dead);
    }
    return json ? (puts("]}"), 0) : table_print(&table, stdout, err);
}

// ---- dead letters ----

static void add_text(struct table *table, const json_t *letter, const char *member)
{
    table_add(table, json_string_value(json_object_get(letter, member)));
}

static void add_letter(struct table *table, const json_t *letter)
{
    const char *died = json_string_value(json_object_get(letter, "died_at"));
    AUTO_BUF when, quoted;

    buf_init(&when, CELL_MAX);
    buf_init(&quoted, CELL_MAX);
    json_add_string(&quoted, died ? died : "");
    figure_add_clock(&when, buf_peek(&quoted));
    add_number(table, json_integer_value(json_object_get(letter, "id")));
    add_text(table, letter, "queue");
    add_text(table, letter, "kind");
    add_text(table, letter, "cause");
    add_number(table, json_integer_value(json_object_get(letter, "attempt")));
    table_add(table, buf_peek(&when));
    add_text(table, letter, "error");
}

// Adds the dead letters of a queue to an array.
static int gather(mr_conn *conn, const char *queue, const char *kind, int limit, json_t *all,
                  struct mr_error *err)
{
    char *text = NULL;
    int code =
        mr_list_dead(conn, queue, kind, limit && limit < LIST_MAX ? limit : LIST_MAX, &text, err);

    if (code) {
        return code;
    }
    json_t *page = json_loads(text, JSON_DECODE_ANY, NULL);
    json_array_extend(all, json_object_get(page, "jobs"));
    json_decref(page);
    mr_free(text);
    return 0;
}

static int print_letters(json_t *all, bool json, struct mr_error *err)
{
    static const struct table_column columns[] = {
        {"ID", true, 0},       {"QUEUE", false, 30}, {"KIND", false, 30},  {"CAUSE", false, 0},
        {"ATTEMPTS", true, 0}, {"DIED", false, 0},   {"ERROR", false, 80}, {NULL, false, 0},
    };
    AUTO_TABLE table;

    table_init(&table, columns);
    if (json) {
        char *text = json_dumps(all, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_ENCODE_ANY);
        printf("{\"dead_letters\":%s}\n", text ? text : "[]");
        free(text);
        return 0;
    }
    for (size_t i = 0; i < json_array_size(all); i++) {
        add_letter(&table, json_array_get(all, i));
    }
    return table_print(&table, stdout, err);
}

int redis_jobs_list_dead(const char *dsn, const char *queue, const char *kind, int limit, bool json,
                         struct mr_error *err)
{
    AUTO_MR_CONN *conn = NULL;
    AUTO_NAMES names = {0};
    int code = open_conn(dsn, &conn, err);

    if (code || (code = read_names(conn, queue, &names, err))) {
        return code;
    }
    json_t *all = json_array();
    for (size_t i = 0; code == 0 && i < names.count; i++) {
        code = gather(conn, names.list[i], kind, limit, all, err);
    }
    if (code == 0) {
        code = print_letters(all, json, err);
    }
    json_decref(all);
    return code;
}

int redis_jobs_replay(const char *dsn, int64_t id, bool json, struct mr_error *err)
{
    AUTO_MR_CONN *conn = NULL;
    int code = open_conn(dsn, &conn, err);

    if (code == 0 && (code = mr_replay(conn, id, err)) == 0) {
        printf(json ? "{\"replayed\":1,\"id\":%" PRId64 "}\n" : "replayed: job %" PRId64 "\n", id);
    }
    return code;
}

int redis_jobs_replay_all(const char *dsn, const char *queue, const char *kind, int64_t max_jobs,
                          bool json, struct mr_error *err)
{
    AUTO_MR_CONN *conn = NULL;
    int64_t done = 0;
    int most = max_jobs > INT_MAX ? INT_MAX : (int)max_jobs;
    int code = open_conn(dsn, &conn, err);

    if (code == 0 && (code = mr_replay_all(conn, queue, kind, most, &done, err)) == 0) {
        printf(json ? "{\"replayed\":%" PRId64 "}\n" : "replayed: %" PRId64 " jobs\n", done);
    }
    return code;
}

int redis_jobs_purge(const char *dsn, const char *queue, int64_t older_ms, bool json,
                     struct mr_error *err)
{
    AUTO_MR_CONN *conn = NULL;
    int64_t done = 0;
    int code = open_conn(dsn, &conn, err);

    if (code == 0 && (code = mr_purge_dead(conn, queue, older_ms, &done, err)) == 0) {
        printf(json ? "{\"purged\":%" PRId64 "}\n" : "removed: %" PRId64 " dead letters\n", done);
    }
    return code;
}
