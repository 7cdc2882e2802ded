// SPDX-License-Identifier: PostgreSQL
//
// How far a consumer group is behind its stream, from what Redis tells: five commands, each with
// what is read from its answer.

#ifndef MILLRACE_DAEMON_BRIDGE_LOOK_H
#define MILLRACE_DAEMON_BRIDGE_LOOK_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/bridge_batch.h"

struct bridge_look {
    int64_t length;                     // entries in the stream
    int64_t lag;                        // not delivered to the group; -1: not known
    int64_t excess;                     // by which Redis counts the lag too high: see settle_lag
    int64_t pending;                    // delivered, not acknowledged; -1: not known
    int64_t now_ms;                     // Redis's clock
    char last[BRIDGE_ID_SIZE];          // the last id of the stream
    char delivered[BRIDGE_ID_SIZE];     // the last id that was delivered; empty: no such group
    char first_pending[BRIDGE_ID_SIZE]; // empty: none is pending
    char first_waiting[BRIDGE_ID_SIZE]; // the first that was not delivered; empty: none, not known
};

// Forgets what an earlier look saw, but for the excess. The first time `look` must be all zero.
void bridge_look_init(struct bridge_look *look);

#define BRIDGE_LOOK_ARGS 6
// The command of a step from 0 on: fills `argv` and returns how many; 0 after the last one.
int bridge_look_command(const struct bridge_look *look, int step, const char *stream,
                        const char *group, const char *argv[BRIDGE_LOOK_ARGS], char *scratch);
#define BRIDGE_LOOK_SCRATCH (BRIDGE_ID_SIZE + 1)

// Takes what the answer to a step says; anything unexpected leaves the figures as they are.
void bridge_look_take(struct bridge_look *look, int step, const char *group,
                      const redisReply *reply);

// Age of the oldest entry that has not been acknowledged, in seconds; 0 when there is none.
double bridge_look_age(const struct bridge_look *look);

// The id below which every entry has been acknowledged. False when it is not known.
bool bridge_look_floor(const struct bridge_look *look, char ret[BRIDGE_ID_SIZE]);

#endif
