// SPDX-License-Identifier: PostgreSQL
//
// Waiting for room in a full queue: see room.h.

#include "client/room.h"

void room_wait_begin(struct room_wait *wait, int64_t now_ms, int64_t wait_ms)
{
    *wait = (struct room_wait){
        .begun_ms = now_ms,
        .until_ms = wait_ms > INT64_MAX - now_ms ? INT64_MAX : now_ms + wait_ms,
        .pause_ms = ROOM_PAUSE_FIRST_MS,
    };
}

bool room_wait_again(struct room_wait *wait, int64_t now_ms, int code, int64_t *ret_pause_ms,
                     struct mr_error *err)
{
    int64_t left_ms = wait->until_ms - now_ms;

    if (code != MR_EFULL) {
        return false;
    }
    mr_error_detail(err, "%s", ""); // where in the schema it was raised
    if (left_ms <= 0) {
        if (wait->until_ms > wait->begun_ms) {
            mr_error_detail(err, "There was no room within %lld ms.",
                            (long long)(wait->until_ms - wait->begun_ms));
        }
        return false;
    }
    *ret_pause_ms = wait->pause_ms < left_ms ? wait->pause_ms : left_ms;
    wait->pause_ms *= 2;
    if (wait->pause_ms > ROOM_PAUSE_MAX_MS) {
        wait->pause_ms = ROOM_PAUSE_MAX_MS;
    }
    return true;
}
