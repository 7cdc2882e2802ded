// SPDX-License-Identifier: PostgreSQL
//
// What the commands of the program share: how one is declared and how it ends.

#ifndef MILLRACE_CLI_COMMAND_H
#define MILLRACE_CLI_COMMAND_H

#include "base/err.h"

enum exit_status {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_UNREACHABLE = 3,
};

// argv[0] is the command's own name. Returns the exit status of the program.
typedef int command_fn(int argc, char **argv);

// Writes the error to stderr, `millrace: what: why` and its detail and hint, and
// returns the exit status that belongs to it.
int command_fail(const struct mr_error *err);

// Returns `status`, or EXIT_FAILED with a message when stdout could not be written.
int command_finish(int status);

command_fn cmd_migrate;
command_fn cmd_serve;
command_fn cmd_work;

#endif
