// SPDX-License-Identifier: PostgreSQL
//
// A command that runs only as long as something is held for it, such as a lock.
//
// 1. Signals that reach us are passed on to it (TERM, HUP, INT, QUIT, USR1, USR2); those of the
//    terminal reach it by themselves.
// 2. On a terminal it stays in our process group, so that it can read from it; otherwise it leads
//    one of its own, and what is sent to it reaches all that it has started.
// 3. When we are gone, however that came about, it is killed: the system does so with the command
//    itself, a small process beside us with its group.

#ifndef MILLRACE_CLI_GUARDED_H
#define MILLRACE_CLI_GUARDED_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct guarded {
    pid_t pid;  // 0: not started
    bool group; // it leads one
    int keeper; // a pipe: what reads from it kills the group when it ends without a word
    pid_t keeper_pid;
    int signals; // a descriptor that is readable when a signal has come
    sigset_t before;
    bool ended;
    int status; // as the shell has it
};

// Holds signals back from now on.
int guarded_init(struct guarded *guarded, struct mr_error *err);
// Lets them through again. The command has ended, or was never started.
void guarded_done(struct guarded *guarded);

// Starts it. Fails with MR_EIO; guarded->status is 126 then, or 127 when there is no such command.
int guarded_start(struct guarded *guarded, char **argv, struct mr_error *err);

// Takes the signals that have come. Returns one that asks us to end while nothing is started, else
// 0; passes it on otherwise, and notices the end of the command.
int guarded_look(struct guarded *guarded);

void guarded_kill(const struct guarded *guarded, int signal_number);

#endif
