// SPDX-License-Identifier: PostgreSQL
//
// A request of the library's caller and the answer to it: one object, from sending to freeing.

#ifndef MILLRACE_CLIENT_MR_REPLY_H
#define MILLRACE_CLIENT_MR_REPLY_H

#include <libpq-fe.h>
#include <millrace/millrace.h>
#include <stdbool.h>

#include "client/call.h"
#include "client/lease_state.h"

// What the library does with a reply of its own, which nobody else sees.
typedef void reply_note_fn(mr_conn *conn, const mr_reply *reply);

struct mr_reply {
    mr_conn *conn; // while it is pending
    enum call_kind kind;
    reply_note_fn *note; // it is for this alone; NULL: for the caller
    char *queue;         // claim: of the batch; NULL for the default. note: its name
    int64_t deadline_ms; // of clock_ms()
    bool awaited;        // by a blocking call, who frees it
    bool answered;
    bool expired; // its deadline passed after it was sent
    int code;
    struct mr_error *err; // with a code, where there was memory for it
    int64_t number;
    mr_batch *batch;
    struct lease_state state; // of a heartbeat
    PGresult *result;         // of calls that return rows: enqueue_many, enqueue_jobs, job, outcome
    PGresult **more;          // of the calls after the first, where the request has several
    size_t more_count;
    struct mr_reply *next;
};

// NULL: out of memory.
mr_reply *reply_new(enum call_kind kind, const char *queue);

// Makes room for the results of `count` calls. Fails with MR_ENOMEM.
int reply_expect(mr_reply *reply, size_t count, struct mr_error *err);

// The server's answer. Takes over `result`.
void reply_succeed(mr_reply *reply, PGresult *result);
void reply_fail(mr_reply *reply, const struct mr_error *err);

#endif
