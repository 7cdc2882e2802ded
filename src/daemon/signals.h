// SPDX-License-Identifier: PostgreSQL
//
// What ends the process and what makes it read its configuration again: SIGTERM, SIGINT, SIGHUP
// on the loop. The first of the ending ones asks for a graceful end, the second ends the process
// at once.

#ifndef MILLRACE_DAEMON_SIGNALS_H
#define MILLRACE_DAEMON_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct signals_hooks {
    void (*stop)(void *arg); // once
    // NULL: SIGHUP ends, as it does for a program on a terminal, unless it is ignored (nohup).
    void (*reload)(void *arg);
    void *arg;
};

struct signals {
    struct signals_hooks hooks;
    uv_signal_t watchers[3];
    uv_timer_t limit;
    bool stopping;
};

// How long after the grace period the process waits for what does not end (a function of a
// plug-in cannot be stopped) before it ends without it.
#define SIGNALS_MARGIN_MS 7000

// Watches from now on and ignores SIGPIPE. Does not keep the loop alive.
void signals_init(struct signals *signals, uv_loop_t *loop, const struct signals_hooks *hooks);

// Ends the process after this time with status 1 unless the loop has ended before.
void signals_limit(struct signals *signals, int64_t ms);

// Closes its handles; `signals` must live until the loop has run once more.
void signals_close(struct signals *signals);

#endif
