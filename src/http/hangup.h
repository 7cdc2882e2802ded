// SPDX-License-Identifier: PostgreSQL
//
// Tells when the other end of a socket hangs up while nobody reads it. A half-closed connection
// counts as one: a client that waits for an answer keeps its end open.

#ifndef MILLRACE_HTTP_HANGUP_H
#define MILLRACE_HTTP_HANGUP_H

#include <uv.h>

struct hangup;

// Calls `left` at most once. The socket stays the caller's, who closes it only after hangup_forget:
// ten thousand who listen are not to need twenty thousand descriptors. *ret is NULL when it cannot
// be watched; then it is just not noticed.
void hangup_watch(uv_loop_t *loop, int fd, void (*left)(void *arg), void *arg, struct hangup **ret);
// From then on `left` is not called. NULL is fine; *hangup becomes NULL.
void hangup_forget(struct hangup **hangup);

#endif
