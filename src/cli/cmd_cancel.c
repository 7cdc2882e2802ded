// SPDX-License-Identifier: PostgreSQL
//
// `millrace cancel`: a job that waits ends, one that runs is told to.

#include <stdio.h>

#include "base/str.h"
#include "cli/command.h"

// Columns of the query: the id as the server reads it, and what became of the job.
enum { ANSWER_ID, ANSWER_STATUS };

static const struct command_form form = {
    "cancel",
    "ID",
    1,
    1,
    "Cancels a job: one that waits is not run any more, one that runs is stopped by its worker.",
    "millrace-cancel(1)",
};

// One that had ended before is no failure: it does not run, which is what was asked for.
static void print(const char *id, const char *status)
{
    if (str_equal(status, "cancelled")) {
        printf("job %s: cancelled\n", id);
    } else if (str_equal(status, "running")) {
        printf("job %s: running (its worker will be told)\n", id);
    } else {
        printf("job %s had ended already: %s\n", id, status);
    }
}

static int run(const struct command_shared *shared, const char *id, const char *reason,
               struct mr_error *err)
{
    const char *const values[] = {id, reason};
    AUTO_RESULT *rows = NULL;
    int code = command_ask(shared->dsn, "select $1::bigint, millrace.cancel($1::bigint, $2)", 2,
                           values, &rows, err);

    if (code) {
        return code;
    }
    const char *shown = PQgetvalue(rows, 0, ANSWER_ID);
    const char *status = PQgetvalue(rows, 0, ANSWER_STATUS);
    if (shared->json) {
        printf("{\"id\":%s,\"status\":\"%s\"}\n", shown, status);
    } else {
        print(shown, status);
    }
    return 0;
}

int cmd_cancel(int argc, char **argv)
{
    struct command_shared shared = {0};
    const char *reason = NULL;
    const struct option_row rows[] = {
        {"reason", OPTION_STRING, &reason, "TEXT", "why; kept with the job (none)"},
        COMMAND_SHARED_ROWS(&shared),
        {0},
    };
    struct mr_error err;
    int first = command_read(&form, rows, &shared, argc, argv, &err);

    if (first < 0) {
        return command_fail(&err);
    }
    if (shared.help) {
        return command_help(&form, rows);
    }
    if (command_check_id(argv[first], &err) || run(&shared, argv[first], reason, &err)) {
        return command_fail(&err);
    }
    return command_finish(EXIT_DONE);
}
