// SPDX-License-Identifier: PostgreSQL
//
// A connection to Redis or to a Redis Cluster that never blocks, mends itself and follows what it
// is for: commands go out in a pipeline, answers come back in order through callbacks. It knows
// neither threads nor an event loop: poll redis_pipe_fd() for reading and call
// redis_pipe_advance(). redis_link.h is the one that waits, redis_wire.h the one on libuv.
//
// 1. A command gets exactly one answer: a reply, which may be an error of Redis's, or MR_ECONNECT
//    when the connection broke before it came; then it may or may not have happened.
// 2. Callbacks run inside redis_pipe_advance() and redis_pipe_free() only; they may send, except
//    in an answer with MR_ECONNECT.
// 3. Commands can be sent between REDIS_PIPE_CONNECTED and REDIS_PIPE_LOST. Attempts to connect
//    are spaced out (100 ms doubling to 5 s). Name resolution blocks.
// 4. A command that is not answered in its time breaks the connection.
// 5. In a cluster all keys of a pipe are in one slot. MOVED takes the pipe to the node that has it,
//    and what was refused is sent there: REDIS_PIPE_CONNECTED comes again, without a loss before.
//    ASK sends the one command to the other node. A node that is gone is looked for among those
//    that the cluster named: whoever took its slot over is found by its MOVED.

#ifndef MILLRACE_STORE_REDIS_PIPE_H
#define MILLRACE_STORE_REDIS_PIPE_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/redis_args.h"
#include "store/redis_url.h"

struct redis_pipe;

enum redis_pipe_event {
    REDIS_PIPE_CONNECTED, // logged in, the database selected; also after a move
    REDIS_PIPE_LOST,      // err says why; reconnecting
    REDIS_PIPE_REFUSED,   // an attempt to connect or to log in failed; err says why
};

// `reply` is borrowed, NULL on failure; then `err` is set, else NULL.
typedef void redis_pipe_answer_fn(void *arg, const redisReply *reply, const struct mr_error *err);

struct redis_pipe_hooks {
    void (*event)(void *arg, enum redis_pipe_event event, const struct mr_error *err);
    void *arg;
};

// Nothing is connected before the first redis_pipe_advance(). `name` is how CLIENT LIST shows it.
// Copies what it is given. Fails with MR_ENOMEM, MR_EIO.
int redis_pipe_new(const struct redis_url *url, const char *name,
                   const struct redis_pipe_hooks *hooks, struct redis_pipe **ret,
                   struct mr_error *err);
// Commands without an answer get MR_ECONNECT. NULL is fine.
void redis_pipe_free(struct redis_pipe *pipe);

int redis_pipe_fd(const struct redis_pipe *pipe);
void redis_pipe_advance(struct redis_pipe *pipe);

bool redis_pipe_connected(const struct redis_pipe *pipe);
// How many commands have no answer yet, and clock_ms() of the last answer.
int redis_pipe_pending(const struct redis_pipe *pipe);
int64_t redis_pipe_answered_at(const struct redis_pipe *pipe);
// HOST:PORT or the path of the server that it talks to, for people; borrowed.
const char *redis_pipe_place(const struct redis_pipe *pipe);

// Sends a command. Fails with MR_ECONNECT while there is no connection, MR_ENOMEM; then `answer`
// is not called. An answer of NULL is for those that nobody waits for.
int redis_pipe_send(struct redis_pipe *pipe, int argc, const char *const *argv, const size_t *sizes,
                    int64_t timeout_ms, redis_pipe_answer_fn *answer, void *arg,
                    struct mr_error *err);

// Runs the script of a file in src/store/lua, such as "delivery/look.lua", as redis_link_eval()
// does.
int redis_pipe_eval(struct redis_pipe *pipe, const char *script, const struct redis_args *args,
                    int64_t timeout_ms, redis_pipe_answer_fn *answer, void *arg,
                    struct mr_error *err);

// Breaks the connection and makes it again, with the next redis_pipe_advance(): behind its address
// another server may be the one that is meant.
void redis_pipe_reset(struct redis_pipe *pipe);

// Reads where a node is from the words of MOVED or ASK, "MOVED 866 10.0.0.7:6381", into a copy of
// the address of the server that said so. False: it has another form.
bool redis_pipe_read_redirect(const char *text, const struct redis_url *from,
                              struct redis_url *ret);

#endif
