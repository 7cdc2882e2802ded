// SPDX-License-Identifier: PostgreSQL
//
// Carries payload parts between the tables and a blob store: out where jobs wait for long or are
// dead letters, back before they are due; and removes objects that no job names any more. What is
// to be carried is decided by the SQL core (offload_take() and its sisters), and whether what was
// carried still counts.
//
// All of it happens on a thread of its own, with a connection of its own: the loop never waits for
// the store. Of several daemons one carries at a time (offload_turn()). A store that does not
// answer opens a breaker: nothing is lost, jobs whose payload is there wait, others do not notice.

#ifndef MILLRACE_DAEMON_CARRIER_H
#define MILLRACE_DAEMON_CARRIER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "store/blob.h"

struct carrier;

struct carrier_options {
    const char *dsn;                     // NULL: of the environment
    const char *address;                 // of the store
    struct blob_credentials credentials; // NULL members: of the environment
    int64_t sweep_ms;                    // between two looks for orphans
    int64_t orphan_ms;                   // an object that is younger is no orphan
};

// Defaults of the last two.
#define CARRIER_SWEEP_MS  (INT64_C(10) * 60 * 1000)
#define CARRIER_ORPHAN_MS (INT64_C(60) * 60 * 1000)

// Copies what it is given and begins at once. Fails like blob_open(), and with MR_ENOMEM, MR_EIO.
int carrier_new(const struct carrier_options *options, uv_loop_t *loop, struct carrier **ret,
                struct mr_error *err);

// Ends soon: transfers under way are given up, which leaves objects for the next sweep and nothing
// else. `ended` is called on the loop when the memory is freed.
void carrier_stop(struct carrier *carrier, void (*ended)(void *arg), void *arg);

// Whether the store is left alone for a while because it did not answer.
bool carrier_breaker_open(const struct carrier *carrier);

#endif
