// SPDX-License-Identifier: PostgreSQL
//
// When a cron expression fires next, for `millrace cron next`.

#ifndef MILLRACE_CLI_CRON_TIMES_H
#define MILLRACE_CLI_CRON_TIMES_H

#include <stdbool.h>

#include "base/err.h"
#include "client/conn.h"

// The most times at once: each is a call.
#define CRON_TIMES_MAX 100

struct cron_times {
    const char *name; // of the schedule; NULL: an expression alone
    const char *cron;
    const char *zone;
    const char *after; // as PostgreSQL reads it; NULL: now
    int count;         // 1 to CRON_TIMES_MAX
};

// Asks for the times and writes them to stdout: a table with the clocks of the zone and UTC, or
// {"name","cron","timezone","next":[...]}. Writes nothing when it fails.
int cron_times_print(struct conn *conn, const struct cron_times *times, bool json,
                     struct mr_error *err);

#endif
