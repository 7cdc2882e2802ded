// SPDX-License-Identifier: PostgreSQL
//
// Commands that know one database, on several shards: each runs on all of them, on the one of its
// job, or on the one with the lowest number.

#ifndef MILLRACE_CLI_ACROSS_H
#define MILLRACE_CLI_ACROSS_H

#include "cli/command.h"

enum across {
    ACROSS_ITSELF, // it sees to it, or refuses
    ACROSS_EACH,   // on all, one after the other
    ACROSS_JOB,    // on the shard of the job whose id is its argument
    ACROSS_DEAD,   // `dead`: with an id as above, else on all
    ACROSS_FIRST,  // on the one with the lowest number
};

// Runs a command, argv[0] its name, on the shards of `dsn`, a list. Returns the exit status: the
// largest of all. With --json an array: {"shard", "status", "result"} for each.
int across_run(enum across across, command_fn *run, const char *dsn, int argc, char **argv);

#endif
