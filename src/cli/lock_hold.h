// SPDX-License-Identifier: PostgreSQL
//
// A lock that is held while a command runs: of a session, or with a lease. Both are driven by
// lock_hold_beat(), called when its descriptor is readable and at the times it asks for.

#ifndef MILLRACE_CLI_LOCK_HOLD_H
#define MILLRACE_CLI_LOCK_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct lock_hold;

struct lock_hold_options {
    const char *dsn;
    const char *name;
    const char *owner; // of a lease
    int64_t ttl_ms;    // of a lease; 0: a lock of the session
    bool once;         // do not wait: MR_ELOCK when another has it
};

enum lock_hold_status {
    LOCK_WAITING, // another has it
    LOCK_HELD,
    LOCK_LOST,
};

// Connects and asks for the lock. The caller frees *ret with lock_hold_free().
int lock_hold_new(const struct lock_hold_options *options, struct lock_hold **ret,
                  struct mr_error *err);

// How it stands now; renews it where that is due. Fails when it cannot be had at all.
int lock_hold_beat(struct lock_hold *hold, enum lock_hold_status *ret, struct mr_error *err);
// Becomes readable when something has happened; -1: nothing to watch.
int lock_hold_fd(const struct lock_hold *hold);
// When to call lock_hold_beat() at the latest, in clock_ms().
int64_t lock_hold_next_ms(const struct lock_hold *hold);

// 0 for a lock of a session.
int64_t lock_hold_fence(const struct lock_hold *hold);
// Once it is LOCK_LOST: by when the command has to be gone, because another may have it from then
// on; in clock_ms().
int64_t lock_hold_end_ms(const struct lock_hold *hold);

// Gives it back, if it is held. NULL is fine.
void lock_hold_free(struct lock_hold *hold);

#endif
