// SPDX-License-Identifier: PostgreSQL
//
// `millrace pause` and `millrace resume`: whether a queue hands out jobs, or one tenant of a
// fair queue.

#include <stdio.h>

#include "base/json.h"
#include "cli/command.h"
#include "cli/table.h"

enum { QUEUE_JSON_MAX = 16 * 1024 };

struct act {
    struct command_form form;
    const char *sql;
    const char *done; // for people
    bool paused;      // afterwards
};

static void print_text(const struct act *act, const char *queue, const char *tenant)
{
    printf("%s: ", act->done);
    table_put_text(queue, stdout);
    if (tenant) {
        printf(", tenant ");
        table_put_text(tenant, stdout);
    }
    puts("");
}

static int print_json(const struct act *act, const char *queue, const char *tenant,
                      struct mr_error *err)
{
    AUTO_BUF text;

    buf_init(&text, QUEUE_JSON_MAX);
    json_add_string(&text, queue);
    if (tenant) {
        buf_puts(&text, ",\"tenant\":");
        json_add_string(&text, tenant);
    }
    int code = buf_status(&text, err);
    if (code == 0) {
        printf("{\"queue\":%s,\"paused\":%s}\n", buf_peek(&text), act->paused ? "true" : "false");
    }
    return code;
}

static int run(const struct act *act, const struct command_shared *shared, const char *queue,
               const char *tenant, struct mr_error *err)
{
    AUTO_CONN *conn = NULL;
    AUTO_RESULT *rows = NULL;
    const char *values[] = {queue, tenant};
    int code = conn_open(shared->dsn, &conn, err);

    if (code == 0) {
        code = command_query(conn, act->sql, 2, values, &rows, err);
    }
    if (code == MR_EUNKNOWN && !tenant) {
        code = command_unknown_queue(conn, queue, err);
    }
    if (code == 0 && shared->json) {
        return print_json(act, queue, tenant, err);
    }
    if (code == 0) {
        print_text(act, queue, tenant);
    }
    return code;
}

static int act_on_queue(const struct act *act, int argc, char **argv)
{
    struct command_shared shared = {0};
    const char *tenant = NULL;
    const struct option_row rows[] = {
        {"tenant", OPTION_STRING, &tenant, "NAME",
         "one tenant of a fair queue (default: all jobs)"},
        COMMAND_SHARED_ROWS(&shared),
        {0},
    };
    struct mr_error err;
    int first = command_read(&act->form, rows, &shared, argc, argv, &err);

    if (first < 0) {
        return command_fail(&err);
    }
    if (shared.help) {
        return command_help(&act->form, rows);
    }
    if (run(act, &shared, argv[first], tenant, &err)) {
        return command_fail(&err);
    }
    return command_finish(EXIT_DONE);
}

int cmd_pause(int argc, char **argv)
{
    static const struct act pause = {
        .form = {"pause", "QUEUE", 1, 1,
                 "The queue hands out no more jobs. Running ones go on, new ones are taken in.",
                 "millrace-pause(1)"},
        .sql = "select millrace.pause($1, $2)",
        .done = "paused",
        .paused = true,
    };

    return act_on_queue(&pause, argc, argv);
}

int cmd_resume(int argc, char **argv)
{
    static const struct act resume = {
        .form = {"resume", "QUEUE", 1, 1,
                 "The queue hands out jobs again, and its waiting workers are woken.",
                 "millrace-resume(1)"},
        .sql = "select millrace.resume($1, $2)",
        .done = "resumed",
    };

    return act_on_queue(&resume, argc, argv);
}
