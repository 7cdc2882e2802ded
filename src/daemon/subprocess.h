// SPDX-License-Identifier: PostgreSQL
//
// Other programs, run by a process without a loop: started as another user where that is
// wanted, waited for with a deadline. Each is a session of its own, so that Ctrl-C reaches only
// us, and gets a signal from the system when we are gone, so that none outlives us.

#ifndef MILLRACE_DAEMON_SUBPROCESS_H
#define MILLRACE_DAEMON_SUBPROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "daemon/sigwatch.h"

// Whose rights a program runs with.
struct subprocess_user {
    uid_t uid;
    gid_t gid;
    const char *name; // borrowed, for messages
    const char *home; // borrowed; NULL: as ours
};

struct subprocess_plan {
    const char *const *argv; // argv[0] is a path
    const struct sigwatch *watch;
    const struct subprocess_user *user; // NULL: as we are
    int input;                          // a descriptor; -1: nothing
    int output;                         // for what it writes and complains; -1: nowhere
    int death_signal;                   // what it gets when we are gone
};

// How long a program that was asked to end may take for it.
#define SUBPROCESS_END_MS 10000

// Starts it, without libpq's variables and with messages in English. Fails with MR_EIO when it
// cannot be started.
int subprocess_start(const struct subprocess_plan *plan, pid_t *ret, struct mr_error *err);

// Waits for its end. When the time is over, or a stop signal comes (see watch->stops), it is
// ended and waited for, and the call fails with MR_ETIMEOUT. *ret_status is as waitpid() has it.
int subprocess_wait(struct sigwatch *watch, pid_t pid, int64_t timeout_ms, int *ret_status,
                    struct mr_error *err);

// Runs it to its end and collects what it writes, up to the buffer's maximum. Fails with
// MR_ETIMEOUT, and with MR_EIO unless its status is 0.
int subprocess_ask(const char *const *argv, struct sigwatch *watch, int64_t timeout_ms,
                   struct buf *out, struct mr_error *err);

// Removes libpq's variables (PG...) from the environment of this process.
void subprocess_forget_libpq(void);

// Children of ours that were left to us by a child that has ended (see prctl(2),
// PR_SET_CHILD_SUBREAPER): ends them and what they have started, all but `except`.
void subprocess_end_orphans(struct sigwatch *watch, pid_t except);

// How many of them at most.
#define SUBPROCESS_ORPHANS_MAX 4096

#endif
