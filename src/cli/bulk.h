// SPDX-License-Identifier: PostgreSQL
//
// Many jobs, a chunk at a time. A chunk is one statement, hence one transaction. Lines are JSON
// objects with the keys of enqueue_jobs(); a chunk whose jobs differ in nothing but their args
// goes the faster way, through enqueue_many().
//
// When the server refuses a chunk, it is sent in halves until the line is found that is to
// blame: all lines before it are in then, and nothing behind it. So a chunk that is larger than
// a queue's depth_limit goes in, in pieces. A queue that is full refuses a transaction without a
// trace; the same one is sent again as long as wait_ms allows: nothing is lost or there twice.

#ifndef MILLRACE_CLI_BULK_H
#define MILLRACE_CLI_BULK_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json_scan.h"
#include "client/conn.h"
#include "client/parcel.h"

// The keys of a job, in the order of bulk_options.
enum bulk_option {
    BULK_KIND,
    BULK_QUEUE,
    BULK_PRIORITY,
    BULK_ARGS,
    BULK_RUN_AT,
    BULK_DELAY,
    BULK_UNIQUE_KEY,
    BULK_ON_CONFLICT,
    BULK_UNIQUE_FOR,
    BULK_ORDERING_KEY,
    BULK_TENANT,
    BULK_REF,
    BULK_MAX_ATTEMPTS,
    BULK_TIMEOUT,
    BULK_EXPIRES_IN,
    BULK_META,
    BULK_OPTIONS,
};

extern const char *const bulk_options[BULK_OPTIONS];

// A chunk is sent when it has this many bytes, whatever its number of jobs.
#define BULK_BYTES_MAX (8 * 1024 * 1024)

// Jobs in a chunk at most.
enum { BULK_CHUNK_MAX = 100000 };

struct bulk_job {
    size_t object; // where it begins in `objects`; each ends with a zero byte
    size_t args;   // the same in `args`, while all are alike
    int64_t line;  // where it came from
};

struct bulk {
    struct conn *conn;           // borrowed
    mr_conn *wrapped;            // the same, for what queues want with payloads; made when needed
    const char *const *defaults; // JSON values by bulk_option, NULL for none; borrowed
    // Told the ids of what was just committed; the rows are int8 in binary. Borrowed.
    void (*on_ids)(void *arg, const PGresult *rows);
    void *arg;
    int64_t wait_ms;                     // for room in a full queue, at each transaction anew
    const volatile sig_atomic_t *cancel; // not 0: wait no longer; NULL: never. Borrowed.

    struct buf objects;
    struct buf args;
    struct bulk_job *jobs;
    size_t count, capacity;
    bool alike;      // kind, queue and priority are the same, and there is nothing but args
    struct buf same; // kind, queue and priority of the first job, as JSON, with zero bytes

    int64_t jobs_in; // committed
    int64_t line_in; // the last line that is
};

void bulk_init(struct bulk *bulk, struct conn *conn, const char *const *defaults);
void bulk_done(struct bulk *bulk);

// Adds a line to the chunk. Fails with MR_EINVALID when it is no job; the chunk stays as it was.
int bulk_add(struct bulk *bulk, struct json_slice line, int64_t number, struct mr_error *err);

// Sends the chunk, and empties it. On failure *ret_line is the line that is to blame, or 0 when
// it is none: then what is not counted in jobs_in may be in nevertheless if the code is
// MR_ECONNECT.
int bulk_send(struct bulk *bulk, int64_t *ret_line, struct mr_error *err);

#endif
