// SPDX-License-Identifier: PostgreSQL
//
// Brings what the configuration says about queues, retries and schedules into the database: the
// sections `queue`, `retry` and `schedule`, and for every queue that the configuration names
// $QUEUE_RETENTION_HOURS and $MAX_RETRY_ATTEMPTS where the file does not say it.

#ifndef MILLRACE_DAEMON_SETTINGS_H
#define MILLRACE_DAEMON_SETTINGS_H

#include <uv.h>

#include "base/err.h"
#include "daemon/config.h"

struct settings;

// Begins to apply them on a connection of its own, which waits for the database as long as it
// takes, and ends by itself; refusals go to the log. `ended` is called on the loop, later, when
// the memory is freed. *ret is NULL when there is nothing to apply: then `ended` is not called.
// Fails with MR_ENOMEM, MR_EIO, MR_EUSAGE (the dsn).
int settings_apply(const struct config *config, uv_loop_t *loop, void (*ended)(void *arg),
                   void *arg, struct settings **ret, struct mr_error *err);

// Ends it where it is.
void settings_stop(struct settings *settings);

#endif
