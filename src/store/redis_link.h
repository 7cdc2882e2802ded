// SPDX-License-Identifier: PostgreSQL
//
// A connection to Redis for calls that wait: one command at a time, each with a deadline. For the
// library; what must not wait has redis_wire.h.
//
// 1. A connection that has ended is made again by the next call, with growing pauses, within that
//    call's time. Only one that is refused for good (a password) fails at once.
// 2. A command whose answer was lost is not repeated: MR_ECONNECT or MR_ETIMEOUT, and it may have
//    happened. While the server says that it does nothing yet (LOADING) it is sent again.
// 3. An error of Redis's is a failure of the call, with the code of redis_error.h.
// 4. Raises no SIGPIPE. Name resolution blocks.

#ifndef MILLRACE_STORE_REDIS_LINK_H
#define MILLRACE_STORE_REDIS_LINK_H

#include <hiredis/hiredis.h>
#include <stdint.h>

#include "base/err.h"
#include "store/redis_url.h"

struct redis_link;

// Connects, with one attempt. `name` is how CLIENT LIST shows it. Copies what it is given. The
// caller frees *ret with redis_link_free().
int redis_link_open(const struct redis_url *url, const char *name, int64_t timeout_ms,
                    struct redis_link **ret, struct mr_error *err);
// NULL is fine.
void redis_link_free(struct redis_link *link);

// Sends a command and waits for its reply, which the caller frees with freeReplyObject(). `sizes`
// may be NULL: strings.
int redis_link_ask(struct redis_link *link, int argc, const char *const *argv, const size_t *sizes,
                   redisReply **ret, struct mr_error *err);

// Runs the script of a file in src/store/lua, such as "rate_limit.lua"; one of a folder, such as
// "queue/claim.lua", with the folder's common.lua before it. argv has `keys` keys, then the
// arguments.
int redis_link_eval(struct redis_link *link, const char *script, int keys, int argc,
                    const char *const *argv, const size_t *sizes, redisReply **ret,
                    struct mr_error *err);

// HOST:PORT or the path, for messages; borrowed.
const char *redis_link_place(const struct redis_link *link);

// A reply that is not what the command answers: MR_EDATABASE.
int redis_link_strange(const struct redis_link *link, struct mr_error *err);

#endif
