// SPDX-License-Identifier: PostgreSQL
//
// Tells systemd how the service is (sd_notify's protocol, Type=notify); without systemd nothing
// happens.

#ifndef MILLRACE_DAEMON_NOTIFY_H
#define MILLRACE_DAEMON_NOTIFY_H

// `READY=1`, `STOPPING=1`. Never fails: it is only a word to the supervisor.
void notify_supervisor(const char *status);

// `RELOADING=1` with the time that the protocol asks for; READY=1 follows when it is done.
void notify_reloading(void);

#endif
