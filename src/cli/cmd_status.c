// SPDX-License-Identifier: PostgreSQL
//
// `millrace status`: all there is to know in one screen: the queues in figures, what health() says
// of them, workers, schedules, dead letters.

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/figure.h"
#include "cli/redis_jobs.h"
#include "cli/rows.h"
#include "cli/table.h"

enum { CELL_MAX = 100, JSON_MAX = 64 * 1024, LISTED_MAX = 3 };

// The columns of both queries, in their order.
enum {
    STATS_QUEUE,
    STATS_AVAILABLE,
    STATS_RUNNING,
    STATS_SCHEDULED,
    STATS_RETRYING,
    STATS_DEAD,
    STATS_COMPLETED,
    STATS_FAILED,
    STATS_OLDEST,
    STATS_WAIT,
    STATS_RUN,
    STATS_PAUSED, // of tenants
};
enum { HEALTH_QUEUE, HEALTH_STATUS, HEALTH_MESSAGE };
enum { REST_WORKERS, REST_SCHEDULES, REST_PAUSED };

struct status {
    struct command_shared shared;
    bool tenants; // of one queue, instead of the queues
    PGresult *stats;
    PGresult *health;
    json_t *workers, *schedules, *paused; // arrays
};

static const struct command_form form = {
    "status",
    "[QUEUE]",
    0,
    1,
    "Shows the queues: how many jobs are available, running, scheduled, retrying and dead, what\n"
    "the last hour brought, and what is wrong; below them workers, schedules and\n"
    "the log. With --tenants the same of a fair queue's tenants.",
    "millrace-status(1)",
};

// The row of health() about a queue, NULL for the log; -1 without one.
static int health_of(const PGresult *health, const char *queue)
{
    for (int i = 0; i < PQntuples(health); i++) {
        const char *about = rows_value(health, i, HEALTH_QUEUE);
        if (queue ? about && str_equal(about, queue) : !about) {
            return i;
        }
    }
    return -1;
}

// ---- for people ----

static void add_seconds(struct table *table, const char *seconds)
{
    AUTO_BUF text;

    buf_init(&text, CELL_MAX);
    if (seconds) {
        figure_add_short_time(&text, strtod(seconds, NULL));
    }
    table_add(table, seconds ? buf_peek(&text) : NULL);
}

static void add_row(struct table *table, const struct status *status, int row)
{
    for (int i = STATS_QUEUE; i <= STATS_FAILED; i++) {
        table_add(table, rows_value(status->stats, row, i));
    }
    for (int i = STATS_OLDEST; i <= STATS_RUN; i++) {
        add_seconds(table, rows_value(status->stats, row, i));
    }
}

static void print_troubles(const struct status *status)
{
    for (int i = 0; i < PQntuples(status->health); i++) {
        const char *queue = rows_value(status->health, i, HEALTH_QUEUE);
        const char *level = PQgetvalue(status->health, i, HEALTH_STATUS);

        if (!str_equal(level, "OK")) {
            printf("%s: ", level);
            table_put_text(queue ? queue : "log", stdout);
            printf(": ");
            table_put_text(PQgetvalue(status->health, i, HEALTH_MESSAGE), stdout);
            puts("");
        }
    }
}

// Puts a few names into a line, and how many there are more.
struct listing {
    const char *title;
    int count;
};

static bool list_more(struct listing *listing)
{
    if (listing->count++ >= LISTED_MAX) {
        return false;
    }
    printf("%s%s", listing->count == 1 ? listing->title : ", ", listing->count == 1 ? ": " : "");
    return true;
}

static void list_end(const struct listing *listing)
{
    if (listing->count > LISTED_MAX) {
        printf(" and %d more", listing->count - LISTED_MAX);
    }
    if (listing->count) {
        puts("");
    }
}

static void print_paused(const struct status *status)
{
    struct listing listing = {.title = "paused"};

    for (size_t i = 0; i < json_array_size(status->paused); i++) {
        if (list_more(&listing)) {
            table_put_text(json_string_value(json_array_get(status->paused, i)), stdout);
        }
    }
    list_end(&listing);
}

static void print_dead(const struct status *status)
{
    struct listing listing = {.title = "dead letters"};

    for (int i = 0; i < PQntuples(status->stats); i++) {
        const char *dead = PQgetvalue(status->stats, i, STATS_DEAD);

        if (!str_equal(dead, "0") && list_more(&listing)) {
            printf("%s of ", dead);
            table_put_text(PQgetvalue(status->stats, i, STATS_QUEUE), stdout);
        }
    }
    list_end(&listing);
}

static void print_workers(const struct status *status)
{
    struct listing listing = {.title = "workers"};

    for (size_t i = 0; i < json_array_size(status->workers); i++) {
        const json_t *worker = json_array_get(status->workers, i);

        if (list_more(&listing)) {
            table_put_text(json_string_value(json_object_get(worker, "worker")), stdout);
            printf(" (%" JSON_INTEGER_FORMAT " of ",
                   json_integer_value(json_object_get(worker, "jobs_running")));
            table_put_text(json_string_value(json_object_get(worker, "queue")), stdout);
            printf(")");
        }
    }
    list_end(&listing);
}

static void print_schedules(const struct status *status)
{
    struct listing listing = {.title = "schedules"};

    for (size_t i = 0; i < json_array_size(status->schedules); i++) {
        const json_t *schedule = json_array_get(status->schedules, i);
        const json_t *next = json_object_get(schedule, "next_in_seconds");
        AUTO_BUF text;

        buf_init(&text, CELL_MAX);
        if (json_is_number(next)) {
            buf_puts(&text, "in ");
            figure_add_short_time(&text, json_number_value(next));
        } else {
            buf_puts(&text, "off");
        }
        if (list_more(&listing)) {
            table_put_text(json_string_value(json_object_get(schedule, "name")), stdout);
            printf(" %s", buf_peek(&text));
        }
    }
    list_end(&listing);
}

static void print_log(const struct status *status)
{
    int log = health_of(status->health, NULL);

    if (log >= 0 && str_equal(PQgetvalue(status->health, log, HEALTH_STATUS), "OK")) {
        printf("log: %s\n", PQgetvalue(status->health, log, HEALTH_MESSAGE));
    }
}

static int print_table(const struct status *status, struct mr_error *err)
{
    static const struct table_column columns[] = {
        {"QUEUE", false, 40}, {"AVAIL", true, 0}, {"RUN", true, 0},    {"SCHED", true, 0},
        {"RETRY", true, 0},   {"DEAD", true, 0},  {"DONE/H", true, 0}, {"FAIL/H", true, 0},
        {"OLDEST", true, 0},  {"WAIT", true, 0},  {"TOOK", true, 0},   {NULL, false, 0},
    };
    AUTO_TABLE table;

    table_init(&table, columns);
    for (int i = 0; i < PQntuples(status->stats); i++) {
        add_row(&table, status, i);
    }
    int code = table_print(&table, stdout, err);
    if (code) {
        return code;
    }
    puts("");
    print_troubles(status);
    print_paused(status);
    print_dead(status);
    print_workers(status);
    print_schedules(status);
    print_log(status);
    return 0;
}

// ---- for machines ----

static void add_health(struct buf *out, const PGresult *health, int row)
{
    buf_puts(out, "\"status\":");
    json_add_string(out, PQgetvalue(health, row, HEALTH_STATUS));
    buf_puts(out, ",\"message\":");
    json_add_string(out, PQgetvalue(health, row, HEALTH_MESSAGE));
    buf_puts(out, "}");
}

// The members of the row and, in the same object, those of its health.
static void add_queue(struct buf *out, const struct status *status, int row)
{
    int about = health_of(status->health, PQgetvalue(status->stats, row, STATS_QUEUE));

    rows_add_object(out, status->stats, row);
    if (about >= 0 && out->len) {
        out->data[out->len - 1] = ',';
        add_health(out, status->health, about);
    }
}

static void put_json(const char *name, const json_t *list)
{
    printf(",\n\"%s\":", name);
    json_dumpf(list, stdout, JSON_COMPACT);
}

static int print_json(const struct status *status, struct mr_error *err)
{
    int log = health_of(status->health, NULL);
    AUTO_BUF text;
    int code = 0;

    buf_init(&text, JSON_MAX);
    printf("{\"queues\":[");
    for (int i = 0; i < PQntuples(status->stats) && code == 0; i++) {
        add_queue(&text, status, i);
        printf("%s\n%s", i ? "," : "", buf_peek(&text));
        code = buf_status(&text, err);
        buf_done(&text);
    }
    printf("],\n\"log\":");
    if (log >= 0) {
        buf_puts(&text, "{");
        add_health(&text, status->health, log);
    }
    printf("%s", log >= 0 ? buf_peek(&text) : "null");
    put_json("workers", status->workers);
    put_json("schedules", status->schedules);
    puts("}");
    return code ? code : buf_status(&text, err);
}

// ---- tenants ----

static int ask_tenants(struct status *status, const char *queue, struct mr_error *err)
{
    AUTO_CONN *conn = NULL;
    int code = conn_open(status->shared.dsn, &conn, err);

    if (code == 0) {
        code = command_query(conn,
                             "select s.tenant, s.available, s.running, s.scheduled, s.retrying,"
                             " s.dead, s.completed_1h, s.failed_1h, s.oldest_seconds,"
                             " s.avg_wait_seconds_1h, s.avg_run_seconds_1h, s.paused"
                             " from millrace.tenant_stats($1, null, 1000000) s",
                             1, &queue, &status->stats, err);
    }
    return code == MR_EUNKNOWN ? command_unknown_queue(conn, queue, err) : code;
}

static int print_tenants(const struct status *status, struct mr_error *err)
{
    static const struct table_column columns[] = {
        {"TENANT", false, 40}, {"AVAILABLE", true, 0}, {"RUNNING", true, 0}, {"SCHEDULED", true, 0},
        {"RETRYING", true, 0}, {"DEAD", true, 0},      {"DONE/H", true, 0},  {"FAILED/H", true, 0},
        {"OLDEST", true, 0},   {"WAIT", true, 0},      {"RUN", true, 0},     {"STATUS", false, 0},
        {NULL, false, 0},
    };
    AUTO_TABLE table;

    table_init(&table, columns);
    for (int row = 0; row < PQntuples(status->stats); row++) {
        for (int i = STATS_QUEUE; i <= STATS_FAILED; i++) {
            table_add(&table, rows_value(status->stats, row, i));
        }
        for (int i = STATS_OLDEST; i <= STATS_RUN; i++) {
            add_seconds(&table, rows_value(status->stats, row, i));
        }
        bool paused = str_equal(PQgetvalue(status->stats, row, STATS_PAUSED), "t");
        table_add(&table, paused ? "paused" : "active");
    }
    return table_print(&table, stdout, err);
}

static int print_tenants_json(const struct status *status, struct mr_error *err)
{
    AUTO_BUF text;
    int code = 0;

    buf_init(&text, JSON_MAX);
    printf("{\"tenants\":[");
    for (int i = 0; i < PQntuples(status->stats) && code == 0; i++) {
        rows_add_object(&text, status->stats, i);
        printf("%s\n%s", i ? "," : "", buf_peek(&text));
        code = buf_status(&text, err);
        buf_done(&text);
    }
    puts("]}");
    return code;
}

static int run_tenants(struct status *status, const char *queue, struct mr_error *err)
{
    if (conn_redis_dsn(status->shared.dsn)) {
        return redis_jobs_refuse("--tenants", err);
    }
    int code = ask_tenants(status, queue, err);

    if (code == 0) {
        code = (status->shared.json ? print_tenants_json : print_tenants)(status, err);
    }
    PQclear(status->stats);
    return code;
}

// ---- both ----

static json_t *array_of(const PGresult *rows, int column)
{
    const char *text = rows_value(rows, 0, column);

    return text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;
}

// Workers, schedules and paused queues; of one queue its own. The busiest workers and the schedules
// that fire next come first.
static int ask_rest(struct status *status, struct conn *conn, const char *queue,
                    struct mr_error *err)
{
    AUTO_RESULT *rows = NULL;
    int code = command_query(
        conn,
        "select (select coalesce(jsonb_agg(to_jsonb(w) order by w.jobs_running desc, w.worker,"
        " w.queue), '[]') from millrace.workers w where $1::text is null or w.queue = $1),"
        " (select coalesce(jsonb_agg(to_jsonb(s) - 'args' || jsonb_build_object('next_in_seconds',"
        " date_part('epoch', s.next_at - now())) order by s.next_at, s.name), '[]')"
        " from millrace.schedules s where $1::text is null or s.queue = $1),"
        " (select coalesce(jsonb_agg(q.queue order by q.queue), '[]') from millrace.queues q"
        " where q.paused and ($1::text is null or q.queue = $1))",
        1, &queue, &rows, err);

    if (code) {
        return code;
    }
    status->workers = array_of(rows, REST_WORKERS);
    status->schedules = array_of(rows, REST_SCHEDULES);
    status->paused = array_of(rows, REST_PAUSED);
    if (!status->workers || !status->schedules || !status->paused) {
        return mr_error_set(err, MR_EINTERNAL, "an answer that is not JSON");
    }
    return 0;
}

static int ask(struct status *status, const char *queue, struct mr_error *err)
{
    AUTO_CONN *conn = NULL;
    int code = conn_open(status->shared.dsn, &conn, err);

    if (code == 0) {
        code = command_query(conn,
                             "select s.queue, s.available, s.running, s.scheduled, s.retrying,"
                             " s.dead, s.completed_1h, s.failed_1h, s.oldest_seconds,"
                             " s.avg_wait_seconds_1h, s.avg_run_seconds_1h"
                             " from millrace.stats($1) s order by s.queue",
                             1, &queue, &status->stats, err);
    }
    if (code == 0 && queue && PQntuples(status->stats) == 0) {
        return command_unknown_queue(conn, queue, err);
    }
    if (code == 0) {
        // of one queue: what is wrong with the others is not asked for
        code = command_query(conn,
                             "select h.queue, h.status, h.message from millrace.health() h"
                             " where $1::text is null or h.queue is null or h.queue = $1",
                             1, &queue, &status->health, err);
    }
    return code ? code : ask_rest(status, conn, queue, err);
}

static int run(struct status *status, const char *queue, struct mr_error *err)
{
    if (conn_redis_dsn(status->shared.dsn)) {
        return redis_jobs_status(status->shared.dsn, queue, status->shared.json, err);
    }
    int code = ask(status, queue, err);

    if (code == 0) {
        code = (status->shared.json ? print_json : print_table)(status, err);
    }
    PQclear(status->stats);
    PQclear(status->health);
    json_decref(status->workers);
    json_decref(status->schedules);
    json_decref(status->paused);
    return code;
}

int cmd_status(int argc, char **argv)
{
    struct status status = {0};
    const struct option_row rows[] = {
        {"tenants", OPTION_FLAG, &status.tenants, NULL, "the tenants of a fair queue"},
        COMMAND_SHARED_ROWS(&status.shared),
        {0},
    };
    struct mr_error err;
    int first = command_read(&form, rows, &status.shared, argc, argv, &err);

    if (first < 0) {
        return command_fail(&err);
    }
    if (status.shared.help) {
        return command_help(&form, rows);
    }
    const char *queue = first < argc ? argv[first] : NULL;
    if (status.tenants && !queue) {
        mr_error_set(&err, MR_EUSAGE, "status: --tenants needs a queue");
        mr_error_hint(&err, "Name the queue: millrace status QUEUE --tenants.");
        return command_fail(&err);
    }
    if ((status.tenants ? run_tenants : run)(&status, queue, &err)) {
        return command_fail(&err);
    }
    return command_finish(EXIT_DONE);
}
