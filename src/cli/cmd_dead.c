// SPDX-License-Identifier: PostgreSQL
//
// `millrace dead list|show|replay|purge`: dead letters.

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/command.h"
#include "cli/figure.h"
#include "cli/redis_jobs.h"
#include "cli/rows.h"
#include "cli/table.h"

enum { CELL_MAX = 100, NUMBER_SIZE = 32, LIMIT_DEFAULT = 50 };

// Which dead letters: what the verbs take. Not every verb has all.
struct dead {
    struct command_shared shared;
    const char *queue;
    const char *kind;
    const char *error_like;
    int64_t limit;    // 0: all
    int64_t older_ms; // 0: any age
    bool yes;
};

// A number as a parameter, null for 0.
static const char *number_text(int64_t number, const char *unit, char *text)
{
    snprintf(text, NUMBER_SIZE, "%lld%s", (long long)number, unit);
    return number ? text : NULL;
}

// ---- list ----

static const struct command_form list_form = {
    "dead list",
    "[QUEUE]",
    0,
    1,
    "Lists dead letters, the newest first: jobs that failed for the last time.",
    "millrace-dead(1)",
};

static int print_table(const PGresult *rows, struct mr_error *err)
{
    static const struct table_column columns[] = {
        {"ID", true, 0},       {"QUEUE", false, 30}, {"KIND", false, 30},  {"CAUSE", false, 0},
        {"ATTEMPTS", true, 0}, {"DIED", false, 0},   {"ERROR", false, 80}, {NULL, false, 0},
    };
    AUTO_TABLE table;

    table_init(&table, columns);
    for (int i = 0; i < PQntuples(rows); i++) {
        AUTO_BUF died;

        buf_init(&died, CELL_MAX);
        figure_add_clock(&died, PQgetvalue(rows, i, 5));
        for (int k = 0; k < 5; k++) {
            table_add(&table, rows_value(rows, i, k));
        }
        table_add(&table, buf_peek(&died));
        table_add(&table, rows_value(rows, i, 6));
    }
    return table_print(&table, stdout, err);
}

static int check_queue(struct conn *conn, const char *queue, struct mr_error *err)
{
    AUTO_RESULT *rows = NULL;
    int code = command_query(conn, "select q.queue from millrace.queues q where q.queue = $1", 1,
                             &queue, &rows, err);

    if (code || PQntuples(rows) > 0) {
        return code;
    }
    return command_unknown_queue(conn, queue, err);
}

static int list_redis(const struct dead *dead, struct mr_error *err)
{
    if (dead->error_like) {
        return redis_jobs_refuse("--error-like", err);
    }
    return redis_jobs_list_dead(dead->shared.dsn, dead->queue, dead->kind, (int)dead->limit,
                                dead->shared.json, err);
}

static int list(const struct dead *dead, struct mr_error *err)
{
    if (conn_redis_dsn(dead->shared.dsn)) {
        return list_redis(dead, err);
    }
    AUTO_CONN *conn = NULL;
    AUTO_RESULT *rows = NULL;
    char limit[NUMBER_SIZE];
    const char *values[] = {dead->queue, dead->kind, dead->error_like,
                            number_text(dead->limit, "", limit)};
    int code = conn_open(dead->shared.dsn, &conn, err);

    if (code == 0) {
        code = command_query(conn,
                             "select d.id, d.queue, d.kind, d.cause, d.attempt,"
                             " to_json(d.died_at) as died_at, d.error, d.max_attempts, d.tenant,"
                             " d.ref, to_json(d.created_at) as created_at"
                             " from millrace.dead_letters d"
                             " where ($1::text is null or d.queue = $1)"
                             " and ($2::text is null or d.kind = $2)"
                             " and ($3::text is null or d.error like $3)"
                             " order by d.died_at desc, d.id desc limit $4::bigint",
                             4, values, &rows, err);
    }
    if (code == 0 && dead->queue && PQntuples(rows) == 0) {
        code = check_queue(conn, dead->queue, err);
    }
    if (code) {
        return code;
    }
    return dead->shared.json ? rows_print_list("dead_letters", rows, err) : print_table(rows, err);
}

static int dead_list(int argc, char **argv)
{
    struct dead dead = {.limit = LIMIT_DEFAULT};
    const struct option_row rows[] = {
        {"kind", OPTION_STRING, &dead.kind, "KIND", "only of this kind"},
        {"error-like", OPTION_STRING, &dead.error_like, "PATTERN",
         "only with an error like this (SQL LIKE: % and _)"},
        {"limit", OPTION_NUMBER, &dead.limit, "NUMBER", "at most this many, 0 for all (50)"},
        COMMAND_SHARED_ROWS(&dead.shared),
        {0},
    };
    struct mr_error err;
    int first = command_read(&list_form, rows, &dead.shared, argc, argv, &err);

    if (first >= 0 && dead.shared.help) {
        return command_help(&list_form, rows);
    }
    if (first >= 0) {
        dead.queue = argv[first];
    }
    if (first < 0 || list(&dead, &err)) {
        return command_fail(&err);
    }
    return command_finish(EXIT_DONE);
}

// ---- show ----

static const struct command_form show_form = {
    "dead show",        "ID", 1, 1, "Shows a dead letter with the errors of its attempts.",
    "millrace-dead(1)",
};

static int no_letter(const char *id, struct mr_error *err)
{
    mr_error_set(err, MR_EUNKNOWN, "there is no dead letter %s", id);
    mr_error_hint(err,
                  "See them with `millrace dead list`, and what became of the job with "
                  "`millrace job %s`.",
                  id);
    return MR_EUNKNOWN;
}

static bool is_time(const char *column)
{
    return str_equal(column, "created_at") || str_equal(column, "died_at");
}

// All but the history, which is the last column.
static void print_letter(const PGresult *rows)
{
    for (int i = 0; i + 1 < PQnfields(rows); i++) {
        const char *value = rows_value(rows, 0, i);
        AUTO_BUF text;

        buf_init(&text, ROWS_OBJECT_MAX);
        if (value && is_time(PQfname(rows, i))) {
            figure_add_clock(&text, value);
        } else if (value) {
            buf_puts(&text, value);
        }
        if (value) {
            printf("%-13s ", PQfname(rows, i));
            table_put_text(buf_peek(&text), stdout);
            puts("");
        }
    }
}

static void print_history(const PGresult *rows)
{
    puts("\nhistory");
    for (int i = 0; i < PQntuples(rows); i++) {
        AUTO_BUF at;

        buf_init(&at, CELL_MAX);
        figure_add_clock(&at, PQgetvalue(rows, i, 0));
        printf("  %s  attempt %s %s", buf_peek(&at), PQgetvalue(rows, i, 1),
               PQgetvalue(rows, i, 2));
        if (rows_value(rows, i, 3)) {
            printf(": ");
            table_put_text(PQgetvalue(rows, i, 3), stdout);
        }
        puts("");
    }
}

static int show(const struct dead *dead, const char *id, struct mr_error *err)
{
    if (conn_redis_dsn(dead->shared.dsn)) {
        return redis_jobs_refuse("`millrace dead show`", err);
    }
    AUTO_CONN *conn = NULL;
    AUTO_RESULT *rows = NULL;
    AUTO_RESULT *past = NULL;
    int code = conn_open(dead->shared.dsn, &conn, err);

    if (code == 0) {
        code = command_query(conn,
                             "select d.id, d.queue, d.kind, d.cause, d.error, d.attempt,"
                             " d.max_attempts, d.lost, d.args, d.meta, d.tenant, d.ref, d.source,"
                             " to_json(d.created_at) as created_at,"
                             " to_json(d.died_at) as died_at, d.bytes, d.history"
                             " from millrace.dead_letters d where d.id = $1::bigint",
                             1, &id, &rows, err);
    }
    if (code || PQntuples(rows) == 0) {
        return code ? code : no_letter(id, err);
    }
    if (dead->shared.json) {
        return rows_print_object(rows, 0, err);
    }
    print_letter(rows);
    code = command_query(conn,
                         "select h ->> 'at', h ->> 'attempt', h ->> 'outcome', h ->> 'error'"
                         " from millrace.dead_letters d, jsonb_array_elements(d.history) h"
                         " where d.id = $1::bigint",
                         1, &id, &past, err);
    if (code == 0) {
        print_history(past);
    }
    return code;
}

static int dead_show(int argc, char **argv)
{
    struct dead dead = {0};
    const struct option_row rows[] = {COMMAND_SHARED_ROWS(&dead.shared), {0}};
    struct mr_error err;
    int first = command_read(&show_form, rows, &dead.shared, argc, argv, &err);

    if (first >= 0 && dead.shared.help) {
        return command_help(&show_form, rows);
    }
    if (first < 0 || command_check_id(argv[first], &err) || show(&dead, argv[first], &err)) {
        return command_fail(&err);
    }
    return command_finish(EXIT_DONE);
}

// ---- replay ----

static const struct command_form replay_form = {
    "dead replay",
    "(ID | --queue QUEUE)",
    0,
    1,
    "Enqueues dead letters again under their ids, with all their attempts: one by its id, or\n"
    "those of a queue, the oldest first.",
    "millrace-dead(1)",
};

static int check_replay(const struct dead *dead, const char *id, struct mr_error *err)
{
    if (id && (dead->queue || dead->kind || dead->error_like || dead->limit)) {
        return mr_error_set(err, MR_EUSAGE,
                            "dead replay: an id excludes --queue, --kind, "
                            "--error-like and --max-jobs");
    }
    if (!id && !dead->queue) {
        mr_error_set(err, MR_EUSAGE, "dead replay: neither an id nor --queue is given");
        mr_error_hint(err,
                      "Write `millrace dead replay ID` or `millrace dead replay --queue QUEUE`.");
        return MR_EUSAGE;
    }
    return id ? command_check_id(id, err) : 0;
}

static int replay_one(const struct dead *dead, const char *id, struct mr_error *err)
{
    if (conn_redis_dsn(dead->shared.dsn)) {
        return redis_jobs_replay(dead->shared.dsn, strtoll(id, NULL, 10), dead->shared.json, err);
    }
    AUTO_RESULT *rows = NULL;
    int code =
        command_ask(dead->shared.dsn, "select millrace.replay($1::bigint)", 1, &id, &rows, err);

    if (code == MR_EUNKNOWN) {
        return no_letter(id, err);
    }
    if (code == 0) {
        printf(dead->shared.json ? "{\"replayed\":1,\"id\":%s}\n" : "replayed: job %s\n",
               PQgetvalue(rows, 0, 0));
    }
    return code;
}

static int replay_many_redis(const struct dead *dead, struct mr_error *err)
{
    if (dead->error_like) {
        return redis_jobs_refuse("--error-like", err);
    }
    return redis_jobs_replay_all(dead->shared.dsn, dead->queue, dead->kind, dead->limit,
                                 dead->shared.json, err);
}

static int replay_many(const struct dead *dead, struct mr_error *err)
{
    if (conn_redis_dsn(dead->shared.dsn)) {
        return replay_many_redis(dead, err);
    }
    AUTO_CONN *conn = NULL;
    AUTO_RESULT *rows = NULL;
    char most[NUMBER_SIZE];
    const char *values[] = {dead->queue, dead->kind, dead->error_like,
                            number_text(dead->limit, "", most)};
    int code = conn_open(dead->shared.dsn, &conn, err);

    if (code == 0) {
        code = command_query(conn, "select millrace.replay_all($1, $2, $3, $4::int)", 4, values,
                             &rows, err);
    }
    if (code == MR_EUNKNOWN) {
        return command_unknown_queue(conn, dead->queue, err);
    }
    if (code == 0) {
        printf(dead->shared.json ? "{\"replayed\":%s}\n" : "replayed: %s jobs\n",
               PQgetvalue(rows, 0, 0));
    }
    return code;
}

static int dead_replay(int argc, char **argv)
{
    struct dead dead = {0};
    const struct option_row rows[] = {
        {"queue", OPTION_STRING, &dead.queue, "QUEUE", "all of this queue"},
        {"kind", OPTION_STRING, &dead.kind, "KIND", "only of this kind"},
        {"error-like", OPTION_STRING, &dead.error_like, "PATTERN",
         "only with an error like this (SQL LIKE: % and _)"},
        {"max-jobs", OPTION_NUMBER, &dead.limit, "NUMBER", "at most this many (all)"},
        COMMAND_SHARED_ROWS(&dead.shared),
        {0},
    };
    struct mr_error err;
    int first = command_read(&replay_form, rows, &dead.shared, argc, argv, &err);

    if (first >= 0 && dead.shared.help) {
        return command_help(&replay_form, rows);
    }
    const char *id = first >= 0 ? argv[first] : NULL;
    if (first < 0 || check_replay(&dead, id, &err) ||
        (id ? replay_one(&dead, id, &err) : replay_many(&dead, &err))) {
        return command_fail(&err);
    }
    return command_finish(EXIT_DONE);
}

// ---- purge ----

static const struct command_form purge_form = {
    "dead purge",
    "QUEUE",
    1,
    1,
    "Removes dead letters of a queue for good. Asks before it does; without a terminal it needs\n"
    "--yes.",
    "millrace-dead(1)",
};

static bool has_person(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

static int check_consent(const struct dead *dead, struct mr_error *err)
{
    if (dead->yes || has_person()) {
        return 0;
    }
    mr_error_set(err, MR_EUSAGE, "dead purge: cannot ask without a terminal");
    mr_error_hint(err, "Add --yes to remove dead letters without being asked.");
    return MR_EUSAGE;
}

// On standard error, so that standard output has the answer alone. `count` may be empty.
static int confirm(const char *count, const char *queue, struct mr_error *err)
{
    char answer[16] = "";

    fprintf(stderr, "Remove %s%sdead letters of queue ", count, *count ? " " : "");
    table_put_text(queue, stderr);
    fprintf(stderr, " for good? [y/N] ");
    fflush(stderr);
    if (fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y')) {
        return 0;
    }
    return mr_error_set(err, MR_EINVALID, "dead purge: not confirmed, nothing was removed");
}

static int ask_person(const struct dead *dead, struct conn *conn, const char *const *values,
                      struct mr_error *err)
{
    AUTO_RESULT *rows = NULL;
    int code = command_query(conn,
                             "select count(*) from millrace.dead_letters d where d.queue = $1"
                             " and ($2::interval is null or d.died_at < now() - $2::interval)",
                             2, values, &rows, err);

    return code ? code : confirm(PQgetvalue(rows, 0, 0), dead->queue, err);
}

static int purge_redis(const struct dead *dead, struct mr_error *err)
{
    int code = check_consent(dead, err);

    if (code == 0 && !dead->yes) {
        code = confirm("", dead->queue, err);
    }
    return code ? code
                : redis_jobs_purge(dead->shared.dsn, dead->queue, dead->older_ms, dead->shared.json,
                                   err);
}

static int purge(const struct dead *dead, struct mr_error *err)
{
    if (conn_redis_dsn(dead->shared.dsn)) {
        return purge_redis(dead, err);
    }
    AUTO_CONN *conn = NULL;
    AUTO_RESULT *rows = NULL;
    char older[NUMBER_SIZE];
    const char *values[] = {dead->queue, number_text(dead->older_ms, " ms", older)};
    int code = check_consent(dead, err);

    if (code == 0) {
        code = conn_open(dead->shared.dsn, &conn, err);
    }
    if (code == 0) {
        code = check_queue(conn, dead->queue, err);
    }
    if (code == 0 && !dead->yes) {
        code = ask_person(dead, conn, values, err);
    }
    if (code == 0) {
        code = command_query(conn, "select millrace.purge_dead($1, $2::interval)", 2, values, &rows,
                             err);
    }
    if (code == 0) {
        printf(dead->shared.json ? "{\"purged\":%s}\n" : "removed: %s dead letters\n",
               PQgetvalue(rows, 0, 0));
    }
    return code;
}

static int dead_purge(int argc, char **argv)
{
    struct dead dead = {0};
    const struct option_row rows[] = {
        {"older-than", OPTION_SPAN, &dead.older_ms, "TIME", "only older ones: 12h, 7d"},
        {"yes", OPTION_FLAG, &dead.yes, NULL, "do not ask"},
        COMMAND_SHARED_ROWS(&dead.shared),
        {0},
    };
    struct mr_error err;
    int first = command_read(&purge_form, rows, &dead.shared, argc, argv, &err);

    if (first >= 0 && dead.shared.help) {
        return command_help(&purge_form, rows);
    }
    if (first >= 0) {
        dead.queue = argv[first];
    }
    if (first < 0 || purge(&dead, &err)) {
        return command_fail(&err);
    }
    return command_finish(EXIT_DONE);
}

int cmd_dead(int argc, char **argv)
{
    static const struct command_verb verbs[] = {
        {"list", dead_list},   {"show", dead_show}, {"replay", dead_replay},
        {"purge", dead_purge}, {NULL, NULL},
    };

    return command_group("dead", verbs, argc, argv);
}
