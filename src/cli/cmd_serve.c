// SPDX-License-Identifier: PostgreSQL
//
// `millrace serve`: the daemon.

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "cli/command.h"
#include "cli/options.h"
#include "config.h"
#include "daemon/serve.h"

static int print_help(const struct option_row *rows)
{
    puts(
        "usage: millrace serve [-c FILE] [OPTION...]\n"
        "\n"
        "The daemon: runs the workers, bridges and relays of a configuration file, upkeep, and the\n"
        "HTTP API.\n");
    options_help(rows, stdout);
    puts("\nSIGTERM or SIGINT ends it gracefully, the second one at once; SIGHUP reads the file\n"
         "again. Exit status: 0 done, 1 failed, 2 wrong usage. See millrace-serve(1),\n"
         "millrace.conf(5).");
    return command_finish(EXIT_DONE);
}

static int check_usage(struct serve_options *options, const char *roles, int argc, char **argv,
                       int next, struct mr_error *err)
{
    if (next < 0) {
        return next;
    }
    if (next < argc) {
        return mr_error_set(err, MR_EUSAGE, "serve takes no argument: \"%s\"", argv[next]);
    }
    if (!options->config_path && !str_empty(getenv("MILLRACE_CONFIG"))) {
        options->config_path = getenv("MILLRACE_CONFIG");
    }
    int code = serve_parse_roles(roles, &options->roles, err);
    if (code == 0 && !options->config_path &&
        (options->roles & (SERVE_WORK | SERVE_BRIDGE | SERVE_RELAY))) {
        mr_error_set(err, MR_EUSAGE, "no configuration file");
        mr_error_hint(err, "Give one with -c FILE or MILLRACE_CONFIG; upkeep alone needs none: "
                           "--roles maintain.");
        return MR_EUSAGE;
    }
    return code;
}

static int check_only(const struct serve_options *options, struct mr_error *err)
{
    struct config *config = NULL;

    if (serve_load(options, &config, err)) {
        return command_fail(err);
    }
    printf("%s: good: %zu workers, %zu queues, %zu retry policies, %zu schedules, %zu bridges, "
           "%zu relays\n",
           options->config_path ? options->config_path : "no file", config->worker_count,
           config->queue_count, config->retry_count, config->schedule_count, config->bridge_count,
           config->relay_count);
    config_free(config);
    return command_finish(EXIT_DONE);
}

int cmd_serve(int argc, char **argv)
{
    struct serve_options options = {.version = MILLRACE_VERSION};
    const char *roles = "work,maintain,http,bridge,relay";
    bool check = false;
    bool help = false;
    const struct option_row rows[] = {
        {"c", OPTION_STRING, &options.config_path, "FILE", "the configuration ($MILLRACE_CONFIG)"},
        {"config", OPTION_STRING, &options.config_path, "FILE", "the same"},
        {"roles", OPTION_STRING, &roles, "LIST", "what it does (work,maintain,http,bridge,relay)"},
        {"dsn", OPTION_DSN, &options.dsn, "DSN", "the database (the file's; see millrace(1))"},
        {"pid-file", OPTION_STRING, &options.pid_file, "FILE", "where to write the pid (nowhere)"},
        {"check", OPTION_FLAG, &check, NULL, "check the configuration and end"},
        {"help", OPTION_FLAG, &help, NULL, "show this"},
        {0},
    };
    struct mr_error err;
    int next = options_parse(rows, argc, argv, &err);

    if (next > 0 && help) {
        return print_help(rows);
    }
    if (check_usage(&options, roles, argc, argv, next, &err)) {
        return command_fail(&err);
    }
    if (check) {
        return check_only(&options, &err);
    }
    return serve_run(&options, &err) ? command_fail(&err) : EXIT_DONE;
}
