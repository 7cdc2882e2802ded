// SPDX-License-Identifier: PostgreSQL
//
// `millrace pause` and `millrace resume`: whether a queue hands out jobs.

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

static int print(const struct act *act, const char *queue, bool json, struct mr_error *err)
{
    AUTO_BUF text;

    buf_init(&text, QUEUE_JSON_MAX);
    if (!json) {
        printf("%s: ", act->done);
        table_put_text(queue, stdout);
        puts("");
        return 0;
    }
    json_add_string(&text, queue);
    int code = buf_status(&text, err);
    if (code == 0) {
        printf("{\"queue\":%s,\"paused\":%s}\n", buf_peek(&text), act->paused ? "true" : "false");
    }
    return code;
}

static int run(const struct act *act, const struct command_shared *shared, const char *queue,
               struct mr_error *err)
{
    AUTO_CONN *conn = NULL;
    AUTO_RESULT *rows = NULL;
    int code = conn_open(shared->dsn, &conn, err);

    if (code == 0) {
        code = command_query(conn, act->sql, 1, &queue, &rows, err);
    }
    if (code == MR_EUNKNOWN) {
        code = command_unknown_queue(conn, queue, err);
    }
    return code ? code : print(act, queue, shared->json, err);
}

static int act_on_queue(const struct act *act, int argc, char **argv)
{
    struct command_shared shared = {0};
    const struct option_row rows[] = {COMMAND_SHARED_ROWS(&shared), {0}};
    struct mr_error err;
    int first = command_read(&act->form, rows, &shared, argc, argv, &err);

    if (first < 0) {
        return command_fail(&err);
    }
    if (shared.help) {
        return command_help(&act->form, rows);
    }
    if (run(act, &shared, argv[first], &err)) {
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
        .sql = "select millrace.pause($1)",
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
        .sql = "select millrace.resume($1)",
        .done = "resumed",
    };

    return act_on_queue(&resume, argc, argv);
}
