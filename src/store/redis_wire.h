// SPDX-License-Identifier: PostgreSQL
//
// A connection to Redis that never blocks and mends itself, on a libuv loop. redis_link.h is the
// one that waits; nothing but the two calls hiredis, newer versions of it differ.
//
// 1. A command gets exactly one answer: a reply, which may be an error of Redis's, or MR_ECONNECT
//    when the connection broke before it came; then it may or may not have happened.
// 2. Callbacks run on the loop, never inside of a call of this file but redis_wire_close() and
//    redis_wire_reset(). In an answer with MR_ECONNECT nothing can be sent.
// 3. Commands can be sent between REDIS_CONNECTED and REDIS_LOST. Attempts to connect are spaced
//    out (100 ms doubling to 5 s). Name resolution blocks.
// 4. A command that is not answered in its time breaks the connection.

#ifndef MILLRACE_STORE_REDIS_WIRE_H
#define MILLRACE_STORE_REDIS_WIRE_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "store/redis_url.h"

struct redis_wire;

enum redis_event {
    REDIS_CONNECTED_EVENT, // logged in, the database selected
    REDIS_LOST_EVENT,      // err says why; reconnecting
    REDIS_REFUSED_EVENT,   // an attempt to connect or to log in failed; err says why
};

// `reply` is borrowed, NULL on failure; then `err` is set, else NULL.
typedef void redis_answer_fn(void *arg, const redisReply *reply, const struct mr_error *err);

struct redis_hooks {
    void (*event)(void *arg, enum redis_event event, const struct mr_error *err);
    void *arg;
};

// Connects with the next turn of the loop. `name` is how CLIENT LIST shows it. Copies what it is
// given. Fails with MR_ENOMEM.
int redis_wire_new(const struct redis_url *url, const char *name, const struct redis_hooks *hooks,
                   uv_loop_t *loop, struct redis_wire **ret, struct mr_error *err);

// Ends it; commands without an answer get MR_ECONNECT inside of this call. `closed` is called on
// the loop when the memory is freed. Not from inside of an answer.
void redis_wire_close(struct redis_wire *wire, void (*closed)(void *arg), void *arg);

bool redis_wire_connected(const struct redis_wire *wire);

// Sends a command. Fails with MR_ECONNECT while there is no connection, MR_ENOMEM; then `answer`
// is not called.
int redis_wire_send(struct redis_wire *wire, int argc, const char **argv, const size_t *sizes,
                    int64_t timeout_ms, redis_answer_fn *answer, void *arg, struct mr_error *err);

// Breaks the connection and makes it again: behind its address another server may be the one that
// is meant. Not from inside of an answer.
void redis_wire_reset(struct redis_wire *wire, const char *why);

// Whether a reply is an error that begins with this word: NOGROUP, LOADING.
bool redis_reply_is(const redisReply *reply, const char *word);

#endif
