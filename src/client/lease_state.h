// SPDX-License-Identifier: PostgreSQL
//
// What millrace.heartbeat() says of a lease, read from its binary form.

#ifndef MILLRACE_CLIENT_LEASE_STATE_H
#define MILLRACE_CLIENT_LEASE_STATE_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct lease_state {
    int64_t until_us;   // the end of the lease, since 1970-01-01 UTC
    int64_t *cancelled; // ids of open jobs that were cancelled, ascending; NULL: none
    size_t count;       // of these
};

// Borrows the result of a CALL_HEARTBEAT. *ret is ended with lease_state_done(). Fails with
// MR_ENOMEM, MR_ESCHEMA (an answer of another form).
int lease_state_read(const PGresult *result, struct lease_state *ret, struct mr_error *err);
void lease_state_done(struct lease_state *state);

// Whether a job is among the cancelled ones.
bool lease_state_has(const struct lease_state *state, int64_t id);

// Makes the ids the caller's, who frees them; *ret_count says how many.
int64_t *lease_state_take(struct lease_state *state, size_t *ret_count);

#endif
