// SPDX-License-Identifier: PostgreSQL
//
// `millrace migrate`: installs or upgrades the schema.

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/options.h"
#include "client/conn.h"
#include "client/embedded.h"
#include "client/schema.h"
#include "config.h"

#define JSON_MAX (1024 * 1024)

struct migrate {
    const char *dsn;
    bool help;
    bool print;
    bool check;
    bool again;
    bool json;
    int64_t from;
    int64_t lock_timeout_ms;
    int64_t wait_timeout_ms;
    struct buf roles;      // JSON list items, as steps come in
    struct buf migrations; // the same
    bool schema;
    bool functions;
};

static int print_help(const struct option_row *rows)
{
    puts("usage: millrace migrate [OPTION...]\n"
         "\n"
         "Installs the schema millrace in a database, or upgrades it. Safe to run again,\n"
         "and by any number of programs at once.\n");
    options_help(rows, stdout);
    puts("\nExit status: 0 done or up to date, 1 failed or (--check) behind, 2 wrong usage,\n"
         "3 cannot reach the database. See millrace-migrate(1).");
    return command_finish(EXIT_DONE);
}

static void add_item(struct buf *list)
{
    if (list->len) {
        buf_puts(list, ",");
    }
}

static void collect_step(void *arg, const struct schema_step *step)
{
    struct migrate *migrate = arg;

    switch (step->kind) {
    case SCHEMA_STEP_ROLE:
        add_item(&migrate->roles);
        json_add_string(&migrate->roles, step->statement);
        return;
    case SCHEMA_STEP_SCHEMA: migrate->schema = true; return;
    case SCHEMA_STEP_MIGRATION:
        add_item(&migrate->migrations);
        buf_printf(&migrate->migrations, "{\"number\":%d,\"name\":", step->migration->number);
        json_add_string(&migrate->migrations, step->migration->name);
        buf_puts(&migrate->migrations, "}");
        return;
    case SCHEMA_STEP_FUNCTIONS: migrate->functions = true; return;
    }
}

// A line per step, at once: a migration may take a while, and a later one may fail.
static void print_step(void *arg, const struct schema_step *step)
{
    const struct migrate *migrate = arg;
    const char *verb = migrate->check ? "pending" : "done";

    switch (step->kind) {
    case SCHEMA_STEP_ROLE: printf("%s: %s\n", verb, step->statement); break;
    case SCHEMA_STEP_SCHEMA: printf("%s: create schema millrace\n", verb); break;
    case SCHEMA_STEP_MIGRATION:
        printf("%s: migration %04d_%s\n", verb, step->migration->number, step->migration->name);
        break;
    case SCHEMA_STEP_FUNCTIONS: printf("%s: functions, views and grants\n", verb); break;
    }
    fflush(stdout);
}

static const char *json_bool(bool value)
{
    return value ? "true" : "false";
}

static int print_json(const struct migrate *migrate, size_t steps, struct mr_error *err)
{
    int code = buf_status(&migrate->roles, err);

    if (code || (code = buf_status(&migrate->migrations, err))) {
        return code;
    }
    printf("{\"version\":\"%s\",\"up_to_date\":%s,\"changed\":%s,\"roles\":[%s],\"schema\":%s,"
           "\"migrations\":[%s],\"functions\":%s}\n",
           MILLRACE_VERSION, json_bool(!migrate->check || steps == 0),
           json_bool(!migrate->check && steps > 0), buf_peek(&migrate->roles),
           json_bool(migrate->schema), buf_peek(&migrate->migrations),
           json_bool(migrate->functions));
    return 0;
}

static void print_summary(const struct migrate *migrate, size_t steps)
{
    if (steps == 0) {
        puts("up to date");
    } else {
        puts(migrate->check ? "behind: run `millrace migrate`" : "up to date now");
    }
}

static struct schema_options schema_options_of(struct migrate *migrate)
{
    return (struct schema_options){
        .program_version = MILLRACE_VERSION,
        .lock_timeout_ms = migrate->lock_timeout_ms,
        .wait_timeout_ms = migrate->wait_timeout_ms,
        .again = migrate->again,
        .on_step = migrate->json ? collect_step : print_step,
        .on_step_arg = migrate,
    };
}

// --print: no connection at all.
static int run_print(struct migrate *migrate, struct mr_error *err)
{
    struct schema_options options = schema_options_of(migrate);
    AUTO_BUF text;

    buf_init(&text, SCHEMA_PRINT_MAX);
    int code = schema_print(&embedded, &options, (int)migrate->from, &text, err);
    if (code) {
        return command_fail(err);
    }
    fwrite(text.data, 1, text.len, stdout);
    return command_finish(EXIT_DONE);
}

static int run_database(struct migrate *migrate, struct mr_error *err)
{
    struct schema_options options = schema_options_of(migrate);
    AUTO_CONN *conn = NULL;
    size_t steps = 0;
    int code = conn_open(migrate->dsn, &conn, err);

    if (code == 0) {
        code = (migrate->check ? schema_check : schema_migrate)(conn, &embedded, &options, &steps,
                                                                err);
    }
    if (code == 0 && migrate->json) {
        code = print_json(migrate, steps, err);
    }
    if (code) {
        return command_fail(err);
    }
    if (!migrate->json) {
        print_summary(migrate, steps);
    }
    return command_finish(migrate->check && steps > 0 ? EXIT_FAILED : EXIT_DONE);
}

static int check_usage(const struct migrate *migrate, int argc, char **argv, int next,
                       struct mr_error *err)
{
    if (next < 0) {
        return next;
    }
    if (next < argc) {
        return mr_error_set(err, MR_EUSAGE, "migrate takes no argument: \"%s\"", argv[next]);
    }
    if (migrate->print && (migrate->check || migrate->json)) {
        return mr_error_set(err, MR_EUSAGE, "--print cannot be combined with --check or --json");
    }
    if (migrate->print && migrate->again) {
        return mr_error_set(err, MR_EUSAGE, "--print cannot be combined with --again");
    }
    if (migrate->from && !migrate->print) {
        return mr_error_set(err, MR_EUSAGE, "--from belongs to --print");
    }
    return 0;
}

int cmd_migrate(int argc, char **argv)
{
    struct migrate migrate = {.lock_timeout_ms = 5000, .wait_timeout_ms = 60000};
    const struct option_row rows[] = {
        {"dsn", OPTION_DSN, &migrate.dsn, "DSN", "the database; see millrace(1)"},
        {"check", OPTION_FLAG, &migrate.check, NULL, "say what would be done, change nothing"},
        {"again", OPTION_FLAG, &migrate.again, NULL,
         "install functions, views and grants though they are up to date"},
        {"print", OPTION_FLAG, &migrate.print, NULL, "write SQL for a DBA, do not connect"},
        {"from", OPTION_NUMBER, &migrate.from, "NUMBER",
         "print what comes after this migration (0)"},
        {"json", OPTION_FLAG, &migrate.json, NULL, "say what was done as JSON"},
        {"lock-timeout", OPTION_DURATION, &migrate.lock_timeout_ms, "TIME", "wait for a lock (5s)"},
        {"wait-timeout", OPTION_DURATION, &migrate.wait_timeout_ms, "TIME",
         "wait for another migration (60s)"},
        {"help", OPTION_FLAG, &migrate.help, NULL, "show this"},
        {0},
    };
    struct mr_error err;
    int next = options_parse(rows, argc, argv, &err);

    if (next > 0 && migrate.help) {
        return print_help(rows);
    }
    if (check_usage(&migrate, argc, argv, next, &err)) {
        return command_fail(&err);
    }
    buf_init(&migrate.roles, JSON_MAX);
    buf_init(&migrate.migrations, JSON_MAX);
    int status = migrate.print ? run_print(&migrate, &err) : run_database(&migrate, &err);
    buf_done(&migrate.migrations);
    buf_done(&migrate.roles);
    return status;
}
