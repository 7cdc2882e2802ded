// SPDX-License-Identifier: PostgreSQL
//
// Tells systemd how the service is (sd_notify's protocol, Type=notify); without systemd nothing
// happens.

#ifndef MILLRACE_DAEMON_NOTIFY_H
#define MILLRACE_DAEMON_NOTIFY_H

#include <stdbool.h>
#include <uv.h>

// `READY=1`, `STOPPING=1`. Never fails: it is only a word to the supervisor.
void notify_supervisor(const char *status);

// `RELOADING=1` with the time that the protocol asks for; READY=1 follows when it is done.
void notify_reloading(void);

// A sign of life from the loop, for WatchdogSec=: a loop that hangs sends none, and systemd starts
// the service anew. Does nothing where nobody asked for it. Does not keep the loop alive.
struct notify_watchdog {
    uv_timer_t timer;
    bool on;
};
void notify_watchdog_start(struct notify_watchdog *watchdog, uv_loop_t *loop);

// Closes its handle; the loop has to turn once more for that.
void notify_watchdog_stop(struct notify_watchdog *watchdog);

#endif
