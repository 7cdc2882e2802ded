// SPDX-License-Identifier: PostgreSQL
//
// The library's connection: a wire, a connection of the caller's, a link to Redis, or several wires
// to shards.
//
// On a wire every request has a deadline, whoever waits for it: at that time it is taken back if
// it was not sent yet, so that it will never happen, else the connection is given up.

#ifndef MILLRACE_CLIENT_MR_CONN_H
#define MILLRACE_CLIENT_MR_CONN_H

#include <millrace/millrace.h>
#include <stdbool.h>

#include "client/call.h"
#include "client/depot.h"
#include "client/mr_reply.h"
#include "client/policy.h"
#include "client/queue_ops.h"
#include "client/toolbox.h"
#include "store/redis_link.h"

// Sends the call, waits, and gives its reply to the caller, who frees it. `queue` is that of a
// claim, else NULL.
int mr__conn_ask(mr_conn *conn, const struct call *call, const char *queue, mr_reply **ret,
                 mr_error *err);

// The same for several of one kind: one transaction, one reply. More than one only on a wire.
int mr__conn_ask_all(mr_conn *conn, const struct call *calls, size_t count, mr_reply **ret,
                     mr_error *err);

// mr__conn_ask_all() for calls that enqueue: while the queue is full they are made again, as long
// as full_wait_ms allows.
int mr__conn_ask_room(mr_conn *conn, const struct call *calls, size_t count, mr_reply **ret,
                      mr_error *err);

// Whether it is the caller's: what breaks is not made again then.
bool mr__conn_is_wrapped(const mr_conn *conn);

// Whether what belongs to a session lasts as long as the connection: not behind a pooler.
bool mr__conn_has_session(const mr_conn *conn);

// The backend, of the toolbox and of the calls about jobs.
const struct toolbox_ops *mr__conn_toolbox(const mr_conn *conn);
const struct queue_ops *mr__conn_queue(const mr_conn *conn);

// The shards of a connection to several; NULL for any other. How long it waits for room.
struct shards *mr__conn_shards(const mr_conn *conn);
int64_t mr__conn_full_wait_ms(const mr_conn *conn);

// ---- for shards.c: connections of its own ----

// A connection that is made while others are waited for: nothing has happened yet. Options are
// complete. Fails with MR_EUSAGE, MR_ENOMEM, MR_EIO.
int mr__conn_new(const mr_conn_options *options, mr_conn **ret, mr_error *err);
// Does what can be done without waiting. Whether it is connected; else *err, where given, says why
// not.
bool mr__conn_up(mr_conn *conn, mr_error *err);
// The same after waiting for it.
bool mr__conn_wait_up(mr_conn *conn, int64_t deadline_ms, mr_error *err);
// Whether an attempt to connect has failed since it was connected last.
bool mr__conn_refused(const mr_conn *conn);
// How often it was connected.
int mr__conn_connects(const mr_conn *conn);

// The link of a connection to Redis; NULL for any other.
struct redis_link *mr__conn_redis(const mr_conn *conn);

// Refuses what a connection to Redis cannot do, by its name. Returns MR_EUSAGE.
int mr__conn_needs_pg(const char *what, mr_error *err);

// Sends the call; its reply comes out of mr_reply_next().
int mr__conn_send(mr_conn *conn, const struct call *call, const char *queue, mr_error *err);

// The same for the library itself: the reply goes to `note` with `name` as its queue, and is freed.
int mr__conn_note(mr_conn *conn, const struct call *call, const char *name, reply_note_fn *note,
                  mr_error *err);

// Whether calls without waiting can be made of it: MR_EUSAGE.
int mr__conn_check_wire(const mr_conn *conn, mr_error *err);

// What the connection was told of payloads.
struct policies *mr__conn_policies(mr_conn *conn);

// The blob store for payload parts, opened when it is first asked for: *ret, NULL where none is
// named. Fails as depot_new() does.
int mr__conn_depot(mr_conn *conn, struct depot **ret, mr_error *err);
// Whether parts may be written to it. Not in a transaction of the caller's: nobody knows when it
// ends, and until then a sweep would take the object for an orphan; nor where a full queue may be
// waited for as long as that.
bool mr__conn_offloads(const mr_conn *conn);
// A wrapped connection of the program's own, whose transactions are short: it may.
void mr__conn_let_offload(mr_conn *conn);

#endif
