// SPDX-License-Identifier: PostgreSQL
//
// The program `millrace`: finds the command and runs it.

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "cli/across.h"
#include "cli/command.h"
#include "client/conn.h"
#include "client/dsn_list.h"
#include "config.h"

// What a command can be pointed at.
enum backends {
    ON_POSTGRESQL,
    ON_EITHER, // Redis, too
    ON_ITS_OWN // it finds its database itself, or needs none
};

static const struct command {
    const char *name;
    command_fn *run;
    enum backends backends;
    enum across across; // where the address is a list
    const char *help;
} commands[] = {
    {"up", cmd_up, ON_ITS_OWN, ACROSS_ITSELF,
     "a private PostgreSQL, the schema and the daemon, all in one"},
    {"migrate", cmd_migrate, ON_ITS_OWN, ACROSS_EACH, "install or upgrade the schema"},
    {"enqueue", cmd_enqueue, ON_EITHER, ACROSS_ITSELF,
     "enqueue a job, or one for each line of a file"},
    {"status", cmd_status, ON_EITHER, ACROSS_EACH, "the queues in figures, and what is wrong"},
    {"top", cmd_top, ON_POSTGRESQL, ACROSS_ITSELF, "the queues, live"},
    {"job", cmd_job, ON_POSTGRESQL, ACROSS_JOB, "the story of a job"},
    {"wait", cmd_wait, ON_POSTGRESQL, ACROSS_JOB, "until a job has ended, and what came of it"},
    {"pause", cmd_pause, ON_POSTGRESQL, ACROSS_EACH, "a queue hands out no more jobs"},
    {"resume", cmd_resume, ON_POSTGRESQL, ACROSS_EACH, "a queue hands out jobs again"},
    {"cancel", cmd_cancel, ON_POSTGRESQL, ACROSS_JOB,
     "a job that waits ends, one that runs is told to"},
    {"dead", cmd_dead, ON_EITHER, ACROSS_DEAD, "dead letters: list, show, replay, purge"},
    {"queue", cmd_queue, ON_POSTGRESQL, ACROSS_EACH, "queues and their settings: list, show, set"},
    {"shard", cmd_shard, ON_POSTGRESQL, ACROSS_ITSELF,
     "databases behind one client: add, list, drain, resume, remove"},
    {"retry", cmd_retry, ON_POSTGRESQL, ACROSS_EACH, "attempts and backoff of a kind: set, list"},
    {"cron", cmd_cron, ON_POSTGRESQL, ACROSS_FIRST,
     "schedules: list, set, remove, next, enable, disable, run"},
    {"cache", cmd_cache, ON_EITHER, ACROSS_FIRST, "the cache: get, set, delete, stats"},
    {"lock", cmd_lock, ON_EITHER, ACROSS_FIRST, "a command under a lock"},
    {"capture", cmd_capture, ON_POSTGRESQL, ACROSS_ITSELF,
     "tables whose changes become jobs: add, remove, list, enable, disable"},
    {"serve", cmd_serve, ON_ITS_OWN, ACROSS_ITSELF,
     "the daemon: workers of a configuration file, upkeep, HTTP"},
    {"token", cmd_token, ON_ITS_OWN, ACROSS_ITSELF,
     "a token of the HTTP API, and its hash for the configuration"},
    {"work", cmd_work, ON_POSTGRESQL, ACROSS_ITSELF, "a worker from the command line"},
    {"doctor", cmd_doctor, ON_POSTGRESQL, ACROSS_EACH,
     "what is wrong with the server or the schema, and the remedy"},
    {"bench", cmd_bench, ON_ITS_OWN, ACROSS_ITSELF, "measure a server, in a scratch database"},
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static int print_help(void)
{
    puts("usage: millrace COMMAND [OPTION...]\n"
         "       millrace --help | --version\n"
         "\n"
         "Jobs on PostgreSQL.\n"
         "\n"
         "Commands:");
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        printf("  %-12s %s\n", commands[i].name, commands[i].help);
    }
    puts("\nThe database is chosen with --dsn, else MILLRACE_DSN, else DATABASE_URL, else\n"
         "libpq's own environment (PGHOST, PGPORT, PGDATABASE, PGUSER).\n"
         "See `millrace COMMAND --help` and millrace(1).");
    return command_finish(EXIT_DONE);
}

static int print_version(void)
{
    printf("millrace %s\n", MILLRACE_VERSION);
    return command_finish(EXIT_DONE);
}

static const char *nearest_command(const char *typed)
{
    const char *nearest = commands[0].name;
    int nearest_distance = INT_MAX;

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        int distance = str_distance(typed, commands[i].name);
        if (distance < nearest_distance) {
            nearest = commands[i].name;
            nearest_distance = distance;
        }
    }
    return nearest;
}

static int unknown_command(const char *typed)
{
    struct mr_error err;

    mr_error_set(&err, MR_EUSAGE, "unknown command: %s", typed);
    mr_error_hint(&err, "The nearest is `millrace %s`; see them all with `millrace --help`.",
                  nearest_command(typed));
    return command_fail(&err);
}

// The values of --dsn as one, NULL where it is not given. What follows `--` belongs to another
// program. *list lives as long as what is returned.
static const char *find_dsn(int argc, char **argv, struct buf *list)
{
    for (int i = 2; i < argc && !str_equal(argv[i], "--"); i++) {
        if (str_starts(argv[i], "--dsn=")) {
            dsn_list_add(list, argv[i] + strlen("--dsn="));
        } else if (str_equal(argv[i], "--dsn") && i + 1 < argc) {
            dsn_list_add(list, argv[++i]);
        }
    }
    return list->len ? buf_peek(list) : NULL;
}

static bool wants_help(int argc, char **argv)
{
    for (int i = 2; i < argc && !str_equal(argv[i], "--"); i++) {
        if (str_equal(argv[i], "--help")) {
            return true;
        }
    }
    return false;
}

static int refuse_redis(const struct command *command)
{
    struct mr_error err;

    mr_error_set(&err, MR_EUSAGE, "`millrace %s` needs PostgreSQL; the address is one of Redis",
                 command->name);
    mr_error_hint(&err, "Give the address of a PostgreSQL database with --dsn or MILLRACE_DSN. "
                        "docs/redis.md lists what works where.");
    return command_fail(&err);
}

static int run_command(const struct command *command, int argc, char **argv)
{
    AUTO_BUF list;

    buf_init(&list, DSN_LIST_SIZE_MAX);
    const char *dsn = find_dsn(argc, argv, &list);
    if (wants_help(argc, argv)) {
        return command->run(argc - 1, argv + 1);
    }
    if (command->backends == ON_POSTGRESQL && conn_redis_dsn(dsn)) {
        return refuse_redis(command);
    }
    if (command->across != ACROSS_ITSELF && conn_shards_dsn(dsn)) {
        return across_run(command->across, command->run, dsn, argc - 1, argv + 1);
    }
    return command->run(argc - 1, argv + 1);
}

static int no_command(void)
{
    struct mr_error err;

    mr_error_set(&err, MR_EUSAGE, "no command given");
    mr_error_hint(&err, "See the commands with `millrace --help`.");
    return command_fail(&err);
}

int main(int argc, char **argv)
{
    // A reader that leaves is an error of the write that notices, with a message.
    signal(SIGPIPE, SIG_IGN);
    if (argc < 2) {
        return no_command();
    }
    if (str_equal(argv[1], "--help") || str_equal(argv[1], "-h")) {
        return print_help();
    }
    if (str_equal(argv[1], "--version")) {
        return print_version();
    }
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (str_equal(argv[1], commands[i].name)) {
            return run_command(&commands[i], argc, argv);
        }
    }
    return unknown_command(argv[1]);
}
