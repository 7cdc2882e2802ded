// SPDX-License-Identifier: PostgreSQL
//
// Waiting for room in a full queue: when to ask again, and when to give up. Nobody tells a
// producer that a queue has room, so it asks, with growing pauses.

#ifndef MILLRACE_CLIENT_ROOM_H
#define MILLRACE_CLIENT_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { ROOM_PAUSE_FIRST_MS = 50, ROOM_PAUSE_MAX_MS = 1000 };

struct room_wait {
    int64_t begun_ms, until_ms;
    int64_t pause_ms; // the next one
};

// From now on, for at most wait_ms; 0: not at all.
void room_wait_begin(struct room_wait *wait, int64_t now_ms, int64_t wait_ms);

// What to do after a call that ended with `code`. True: wait *ret_pause_ms and call again; the
// last call is made at the very end of the time. False: that is the result. The detail of an err
// that says the queue is full tells how long it was waited for, if it was.
bool room_wait_again(struct room_wait *wait, int64_t now_ms, int code, int64_t *ret_pause_ms,
                     struct mr_error *err);

#endif
