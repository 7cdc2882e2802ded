// SPDX-License-Identifier: PostgreSQL
//
// Wake-ups for those who wait for jobs of a queue, over one connection that is made when somebody
// first waits.
//
// 1. `woken` is called when there may be jobs: after a notification, and once when a registration
//    has come to stand, because what came before it woke nobody. It is called on the loop, never
//    inside of these functions. A wake-up is a hint: keep polling.
// 2. A registration holds for some seconds, and a producer that notifies takes it back: whoever
//    found nothing asks for it again, with wakeup_renew().
// 3. Behind a pooler there are none: a registration never stands.

#ifndef MILLRACE_HTTP_WAKEUP_H
#define MILLRACE_HTTP_WAKEUP_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct wakeup;
struct wakeup_queue;

// Copies the dsn. NULL without memory.
struct wakeup *wakeup_new(const char *dsn, bool pooler, uv_loop_t *loop);
// All queues go with it. `closed` follows on the loop.
void wakeup_close(struct wakeup *wakeup, void (*closed)(void *arg), void *arg);
// Times that the connection was lost.
int64_t wakeup_reconnects(const struct wakeup *wakeup);

// Copies the name. NULL without memory, or where no connection can be made.
struct wakeup_queue *wakeup_add(struct wakeup *wakeup, const char *queue, void (*woken)(void *arg),
                                void *arg);
// False while a call is under way for it: then it is to be tried again later. NULL is fine.
bool wakeup_remove(struct wakeup_queue *queue);
// Registers as waiting, unless that stands or is under way. NULL is fine.
void wakeup_renew(struct wakeup_queue *queue);
// Whether a producer would notify. NULL is false.
bool wakeup_stands(const struct wakeup_queue *queue);

#endif
