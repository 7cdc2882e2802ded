// SPDX-License-Identifier: PostgreSQL
//
// The commands, and what each of them needs: a connection, signals, words for errors.

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "toolbox.h"

static const struct command {
    const char *name;
    const char *arguments;
    int least, most; // arguments
    int (*run)(int argc, char **argv);
} commands[] = {
    {"web", "TENANT_DIRECTORY", 1, 1, command_web},
    {"work", "QUEUE TENANT_DIRECTORY VERIFIER_URL [BREAKER_OPEN_MS]", 3, 4, command_work},
    {"verifier", "", 0, 0, command_verifier},
    {"nightly", "TENANT_DIRECTORY REPORT_DIRECTORY TTL_MS WAIT_MS [GO_FILE]", 4, 5,
     command_nightly},
};

int complain(const char *what, const mr_error *err)
{
    fprintf(stderr, "toolbox: %s: %s\n", what, err->message);
    if (err->hint[0] != '\0') {
        fprintf(stderr, "hint: %s\n", err->hint);
    }
    return 1;
}

int db_open(mr_conn **ret)
{
    mr_conn_options options = MR_CONN_OPTIONS_INIT;
    mr_error err;

    options.application_name = "toolbox";
    return mr_conn_open(&options, ret, &err) == 0 ? 0 : complain("connecting", &err);
}

bool name_is_good(const char *name)
{
    size_t size = strlen(name);

    return size > 0 && size <= NAME_MAX_BYTES &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == size;
}

static sigset_t end_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return set;
}

bool signal_came(int wait_ms)
{
    sigset_t set = end_signals();
    struct timespec time = {wait_ms / 1000, wait_ms % 1000 * 1000000L};

    return (wait_ms < 0 ? sigwaitinfo(&set, NULL) : sigtimedwait(&set, NULL, &time)) > 0;
}

static int usage(void)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        fprintf(stderr, "usage: toolbox %s %s\n", commands[i].name, commands[i].arguments);
    }
    return 2;
}

int main(int argc, char **argv)
{
    sigset_t set = end_signals();

    pthread_sigmask(SIG_BLOCK, &set, NULL); // for all threads
    setvbuf(stdout, NULL, _IOLBF, 0);       // a line is read by others as soon as it is there
    for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++) {
        const struct command *command = &commands[i];

        if (strcmp(argv[1], command->name) == 0 && argc - 2 >= command->least &&
            argc - 2 <= command->most) {
            return command->run(argc - 2, argv + 2);
        }
    }
    return usage();
}
