// SPDX-License-Identifier: PostgreSQL
//
// `millrace wait`: waits for the end of a job and tells what came of it.

#include <millrace/millrace.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/rows.h"
#include "cli/table.h"

static const struct command_form form = {
    "wait",
    "ID",
    1,
    1,
    "Waits until a job has ended and prints its outcome: its status, and the result that its\n"
    "handler left or why it failed. Exit status: 0 completed, 4 dead, cancelled or expired,\n"
    "5 not ended in time.",
    "millrace-wait(1)",
};

struct ending {
    const char *status; // static
    char *result, *failure;
};

// The result stands on a line of its own, as it is.
static void print(const char *id, const struct ending *ending)
{
    printf("job %s: %s", id, ending->status);
    if (ending->failure) {
        printf(": ");
        table_put_text(ending->failure, stdout);
    }
    puts("");
    if (ending->result) {
        puts(ending->result);
    }
}

static int print_json(const char *id, const struct ending *ending, struct mr_error *err)
{
    AUTO_BUF text;

    buf_init(&text, ROWS_OBJECT_MAX);
    buf_printf(&text, "{\"id\":%s,\"status\":\"%s\",\"result\":", id, ending->status);
    buf_puts(&text, ending->result ? ending->result : "null");
    buf_puts(&text, ",\"failure\":");
    if (ending->failure) {
        json_add_string(&text, ending->failure);
    } else {
        buf_puts(&text, "null");
    }
    buf_puts(&text, "}");
    int code = buf_status(&text, err);
    if (code == 0) {
        puts(buf_peek(&text));
    }
    return code;
}

static int wait_for(const char *dsn, int64_t id, int64_t timeout_ms, struct ending *ret,
                    struct mr_error *err)
{
    mr_conn_options options = MR_CONN_OPTIONS_INIT;
    mr_conn *conn = NULL;

    options.dsn = dsn;
    int code = mr_conn_open(&options, &conn, err);
    if (code == 0) {
        code = mr_wait(conn, id, timeout_ms, &ret->status, &ret->result, &ret->failure, err);
    }
    mr_conn_free(conn);
    if (code && err->error_class == MR_CLASS_REJECTED) {
        mr_error_detail(err, "%s", ""); // the place in the code of our functions
    }
    return code;
}

static int run(const struct command_shared *shared, const char *text, int64_t timeout_ms)
{
    struct ending ending = {0};
    struct mr_error err;
    char id[24];
    int64_t number = 0;

    if (command_check_id(text, &err)) {
        return command_fail(&err);
    }
    str_parse_int(text, 1, INT64_MAX, &number);
    snprintf(id, sizeof(id), "%lld", (long long)number);
    int code = wait_for(shared->dsn, number, timeout_ms, &ending, &err);
    if (code == 0 && shared->json) {
        code = print_json(id, &ending, &err);
    } else if (code == 0) {
        print(id, &ending);
    }
    free(ending.result);
    free(ending.failure);
    if (code) {
        int status = command_fail(&err);
        return code == MR_ETIMEOUT ? EXIT_LATE : status;
    }
    return command_finish(str_equal(ending.status, "completed") ? EXIT_DONE : EXIT_NOT_COMPLETED);
}

int cmd_wait(int argc, char **argv)
{
    struct command_shared shared = {0};
    int64_t timeout_ms = STR_SPAN_MAX_MS;
    const struct option_row rows[] = {
        {"timeout", OPTION_SPAN, &timeout_ms, "TIME", "give up after this long (never)"},
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
    return run(&shared, argv[first], timeout_ms);
}
