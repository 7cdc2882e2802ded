// SPDX-License-Identifier: PostgreSQL
//
// One request and its reply.
//
// 1. A route's function runs once the whole body is there, and replies, now or later; meanwhile
//    the connection is suspended. Whoever replies resumes it.
// 2. An exchange ends (exchange_free) only while it is not suspended. Hence a call of the database
//    that is made for it finds it alive, provided that nothing else replies before the answer.
// 3. A client that leaves while it is suspended is noticed only where somebody watches.

#ifndef MILLRACE_HTTP_EXCHANGE_H
#define MILLRACE_HTTP_EXCHANGE_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json_scan.h"
#include "client/parcel.h"
#include "http/database.h"
#include "http/http_parts.h"
#include "http/route.h"
#include "http/target.h"

struct hangup;

#define EXCHANGE_VARIABLES_MAX 2

struct exchange {
    struct http *http;
    struct site *site; // whose database it is about; NULL: of several none, or not known yet
    struct MHD_Connection *connection;
    struct visit *visit; // of the connection
    struct target target;
    struct mr_error target_err; // why it cannot be read; code 0: it was
    const struct route *route;
    const char *variables[EXCHANGE_VARIABLES_MAX]; // of the route's path
    struct buf body;
    struct json_slice kind, queue; // of the single job that is the body, for the figures
    uint32_t tried;                // of several sites, those that did not take its job
    bool placed;                   // its job has its site
    bool pinned;                   // its job can go nowhere else: see place.h
    int questions;                 // about payloads, that were asked for it: see payloads.h
    route_fn *then;                // what goes on when the last one is answered
    struct parcel parcel;          // parts that became objects, until they are written
    struct buf packed;             // then: what is to be sent afterwards
    route_fn *shipped, *unshipped; // what goes on then, and where they could not be written
    bool inline_only;              // that was so: no part of it becomes an object
    bool offloaded;                // its body names objects, which are those of its site
    struct buf unpacked;           // then: the body as it came, for another site
    bool begun;                    // the head was looked at
    bool suspended;
    bool gone; // the client has left
    // the reply, once there is one
    struct MHD_Response *response;
    unsigned status;
    bool sent;
    size_t discarded; // bytes of the body since then
    bool endless;     // the reply is: it may take as long as it likes
    // what a route keeps here until the end: `ended` is called before the exchange is freed, with
    // whether the reply has gone out whole; `left` when the client leaves and it is watched
    void *work;
    void (*ended)(struct exchange *exchange, bool delivered);
    void (*left)(struct exchange *exchange);
    struct hangup *hangup;
    // of routes that take their body in pieces: how many bytes were taken; fewer than all when it
    // has to wait, until exchange_resume(). So it has to, whatever was taken, while `busy`: a call
    // is under way, and would not find an exchange that has ended meanwhile
    bool busy;
    size_t (*data)(struct exchange *exchange, const char *data, size_t size);
};

struct exchange *exchange_new(struct http *http, const char *uri);
void exchange_free(struct exchange *exchange, bool delivered);

// A header of the request; NULL when there is none.
const char *exchange_header(const struct exchange *exchange, const char *name);

// ---- replies: each may be called once ----

// A body that is taken from `body`.
void exchange_reply(struct exchange *exchange, unsigned status, struct buf *body);
// A body of JSON that is copied.
void exchange_reply_text(struct exchange *exchange, unsigned status, const char *json, size_t size);
// Any response of MHD's; it is taken.
void exchange_reply_with(struct exchange *exchange, unsigned status, struct MHD_Response *response);
// An error, with what the server or this program said.
void exchange_fail(struct exchange *exchange, const struct mr_error *err);
// The same with members beside "error": `, "enqueued": 3`.
void exchange_fail_with(struct exchange *exchange, const struct mr_error *err, const char *members);
// An error of HTTP itself.
void exchange_refuse(struct exchange *exchange, unsigned status, const char *message,
                     const char *hint);
bool exchange_replied(const struct exchange *exchange);

// ---- waiting ----

void exchange_suspend(struct exchange *exchange);
void exchange_resume(struct exchange *exchange);
// Calls `left` when the client leaves, as long as the exchange is suspended.
void exchange_watch(struct exchange *exchange, void (*left)(struct exchange *exchange));

// Makes a call whose answer replies. A call that cannot be made is replied to at once.
void exchange_call(struct exchange *exchange, enum database_lane lane, const struct call *call,
                   database_answer_fn *answer);

#endif
