// SPDX-License-Identifier: PostgreSQL
//
// What the files of the carrier share. Everything here runs on the carrier's thread.

#ifndef MILLRACE_DAEMON_CARRIER_PARTS_H
#define MILLRACE_DAEMON_CARRIER_PARTS_H

#include <stdatomic.h>

#include "base/breaker.h"
#include "client/call.h"
#include "client/conn.h"
#include "daemon/carrier.h"

// Jobs and bytes of one batch, which is in memory as a whole.
#define CARRIER_BATCH_JOBS  200
#define CARRIER_BATCH_BYTES (16 * 1024 * 1024)
// What was passed over is looked at again.
#define CARRIER_AGAIN_MS 60000

#define CARRIER_NAME_SIZE 200
#define CARRIER_HOME_SIZE 64

struct carrier {
    char *dsn; // NULL: of the environment
    int64_t sweep_ms, orphan_ms;
    char name[CARRIER_NAME_SIZE]; // how the database knows it

    uv_thread_t thread;
    uv_mutex_t lock;
    uv_cond_t wake;
    bool stopping; // under the lock
    uv_async_t done;
    void (*ended)(void *arg);
    void *ended_arg;
    atomic_bool open; // the breaker, for other threads

    struct blob_store *store;
    struct conn *conn; // NULL: not connected
    struct breaker breaker;
    bool down;                           // the log says so
    bool mine;                           // the turn, when it was last asked for
    char home[CARRIER_HOME_SIZE];        // what the names of this database's objects begin with
    char trouble[MR_ERROR_MESSAGE_SIZE]; // as last told; "": none

    int64_t out_after, out_again_ms;   // number of the last row seen; when to begin anew
    int64_t doom_after, doom_again_ms; // the same of doomed objects
    int64_t sweep_at_ms;
    bool sweeping;
    char sweep_after[BLOB_KEY_MAX + 1]; // the last object seen
};

// Runs a call on the connection. *ret is the caller's.
int carrier_call(struct carrier *carrier, const struct call *call, PGresult **ret,
                 struct mr_error *err);

// What a call of the store returned: good and bad news for the breaker. True where the store itself
// is in trouble, and the round ends.
bool carrier_store_failed(struct carrier *carrier, const struct blob_item *items, size_t count);
bool carrier_list_failed(struct carrier *carrier, int code, const struct mr_error *err);

// One batch each. *ret_more: there may be more. Fail with what the database said.
int carrier_out(struct carrier *carrier, bool *ret_more, struct mr_error *err);
int carrier_back(struct carrier *carrier, bool *ret_more, struct mr_error *err);
int carrier_remove_doomed(struct carrier *carrier, bool *ret_more, struct mr_error *err);
int carrier_sweep(struct carrier *carrier, bool *ret_more, struct mr_error *err);

#endif
