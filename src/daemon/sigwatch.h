// SPDX-License-Identifier: PostgreSQL
//
// Signals for a process that has no loop and one thread: they are held back, and taken one at a
// time where the process waits anyway. Nothing is ever interrupted in its middle.

#ifndef MILLRACE_DAEMON_SIGWATCH_H
#define MILLRACE_DAEMON_SIGWATCH_H

#include <signal.h>
#include <stdint.h>

enum sigwatch_event {
    SIGWATCH_TIME,   // nothing came
    SIGWATCH_CHILD,  // a child may have ended
    SIGWATCH_STOP,   // SIGTERM, SIGINT
    SIGWATCH_RELOAD, // SIGHUP
};

struct sigwatch {
    sigset_t held;
    sigset_t before; // the mask to go back to
    int stops;       // how often SIGWATCH_STOP came
    int reloads;     // and SIGWATCH_RELOAD
};

// Holds the signals back from now on.
void sigwatch_begin(struct sigwatch *watch);

// Lets signals through as before; in a forked child, before it becomes something else.
void sigwatch_end(const struct sigwatch *watch);

// The next event, at the latest after this time.
enum sigwatch_event sigwatch_wait(struct sigwatch *watch, int64_t timeout_ms);

#endif
