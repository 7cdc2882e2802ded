// SPDX-License-Identifier: PostgreSQL
//
// Requests to one endpoint of S3, many at once on the caller's thread: signed, with time limits,
// and tried again where that may help.
//
// 1. A request that fails in passing keeps its place while it waits, so that a store in trouble
// gets
//    fewer requests and not more.
// 2. What was answered for the set-up (BLOB_CONFIG), or as often in a row as there are places with
//    nothing good in between (BLOB_TRANSIENT), is the answer for what was not begun yet.
// 3. Redirects are not followed: credentials go where the address says.
// 4. Connections are kept for the next run.

#ifndef MILLRACE_STORE_S3_WIRE_H
#define MILLRACE_STORE_S3_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"
#include "store/blob.h"
#include "store/s3_address.h"
#include "store/s3_fault.h"

// The path of an object: prefix and key, with a zero byte.
#define S3_PATH_SIZE (S3_PREFIX_MAX + BLOB_KEY_MAX + 1)

// A store that removes a thousand objects says nothing until it is through.
#define S3_PATIENCE 10

enum s3_method {
    S3_GET,
    S3_PUT,
    S3_POST,
};

struct s3_request {
    // what is asked: set by the caller
    enum s3_method method;
    char path[S3_PATH_SIZE]; // behind the bucket
    const char *query;       // sorted and escaped; NULL: none. Borrowed until it is done
    const void *body;        // borrowed until it is done; NULL: none
    size_t body_size;
    char body_sha256[SHA256_HEX_SIZE];
    const char *content_md5; // base64; NULL: none
    size_t answer_max;       // of a body that comes with 2xx
    bool laborious; // the store may be silent for longer, S3_PATIENCE times idle_timeout_ms
    size_t at;      // for the caller: which item it is for
    // what came of it: set by the wire
    char *answer; // with a zero byte behind it; freed with the request, unless it was taken
    size_t answer_size;
    char sha256[SHA256_HEX_SIZE]; // that the object says of itself; "": nothing
    struct s3_head head;
    long status; // 0: no answer
    int attempts;
    struct s3_fault fault; // of the last attempt
};

// Who runs a batch. All are called on the thread of s3_wire_run().
struct s3_batch {
    // Fills in the next request, which is zero; false: there is no other.
    bool (*next)(void *arg, struct s3_request *request);
    // A 2xx: looks whether it is what was wanted, and sets the fault if not. May be NULL.
    void (*judge)(void *arg, struct s3_request *request);
    // It has its result. May take the answer.
    void (*done)(void *arg, struct s3_request *request);
    void *arg;
};

struct s3_wire;

// Credentials are complete. Options have no zeros. Copies what it is given; freed with
// s3_wire_free(). Fails with MR_ENOMEM, MR_EIO, MR_ECONFIG.
int s3_wire_new(const struct s3_address *address, const struct blob_credentials *credentials,
                const struct blob_options *options, struct s3_wire **ret, struct mr_error *err);
void s3_wire_free(struct s3_wire *wire);

// From any thread: see blob_stop().
void s3_wire_stop(struct s3_wire *wire);

// Until each request of the batch is done, which is by deadline_ms of clock_ms(), by and large.
void s3_wire_run(struct s3_wire *wire, const struct s3_batch *batch, int64_t deadline_ms);

// Waits before what is tried for the nth time, as the wire does itself. Not beyond the deadline.
void s3_wire_pause(struct s3_wire *wire, int attempts, int64_t deadline_ms);

bool s3_wire_is_stopped(const struct s3_wire *wire);

// How often a request may be tried.
int s3_wire_attempts(const struct s3_wire *wire);

// When a call that begins now has to end.
int64_t s3_wire_deadline(const struct s3_wire *wire);

#endif
