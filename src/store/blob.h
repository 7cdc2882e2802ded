// SPDX-License-Identifier: PostgreSQL
//
// Objects outside of the database: a blob store behind one table of operations. S3 is one, and so
// far the only one (s3.h).
//
// A call takes a batch, runs up to `parallel` transfers at once on the caller's thread, and returns
// when each item has a result. What passes by itself is tried again inside of the call.
//
// 1. A handle is used by one thread at a time. Only blob_stop() may be called from any thread.
// 2. Every wait has an end: a connection, a transfer that stands still, the call as a whole.
// 3. What was not written whole is not there: an object has the bytes of one put or does not exist.
// 4. What is read is what was written: its SHA-256 is stored with the object and compared on the
// way
//    back, and with the one that the caller expects. Nothing else is handed out.
// 5. A body takes memory only after its size was announced and found to be at most what the caller
//    allows; more than that is not received.
// 6. No message, result or log line has a secret. Credentials are sent to the endpoint alone.
//
// Keys are relative to the prefix of the store's address, which callers never see. They are made of
// A-Z a-z 0-9 - _ . ~ /, with no empty part and no part "." or "..", at most BLOB_KEY_MAX bytes;
// others are refused (BLOB_REJECTED).

#ifndef MILLRACE_STORE_BLOB_H
#define MILLRACE_STORE_BLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sha256.h"

#define BLOB_KEY_MAX 512
// What one put takes, and the most that a get may allow: an object is one request.
#define BLOB_SIZE_MAX  ((size_t)1 << 30)
#define BLOB_TEXT_SIZE 320
// Entries of a list and keys of a delete that are one request.
#define BLOB_PAGE_MAX 1000
// Limits and defaults of struct blob_options.
#define BLOB_PARALLEL_MAX    256
#define BLOB_PARALLEL        32
#define BLOB_CALL_TIMEOUT_MS 60000
#define BLOB_IDLE_TIMEOUT_MS 10000
#define BLOB_CONNECT_MS      5000
#define BLOB_ATTEMPTS        5
#define BLOB_ATTEMPTS_MAX    100
#define BLOB_TIMEOUT_MAX_MS  (INT64_C(24) * 60 * 60 * 1000)

struct blob_store;

// ---- open and close ----

// NULL members are taken from the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
// AWS_SESSION_TOKEN. The token is for temporary keys and may be absent; it is only read from the
// environment where the keys are.
struct blob_credentials {
    const char *access_key;
    const char *secret_key;
    const char *session_token;
};

// 0 is the default of each.
struct blob_options {
    int parallel;               // transfers at once, at most BLOB_PARALLEL_MAX; 32
    int attempts;               // of one request, the first one counted; 5
    int64_t connect_timeout_ms; // to a connection, TLS included; 5 s
    int64_t idle_timeout_ms; // a transfer in which not a byte moves, a delete ten times that; 10 s
    int64_t call_timeout_ms; // a whole call; 60 s
};

// Opens the store that an address names:
//
//   s3://BUCKET[/PREFIX][?endpoint=http://HOST:PORT&region=R&style=path|host&ca=FILE]
//
// Talks to nobody: blob_probe() does. `credentials` and `options` may be NULL. Copies what it is
// given. The caller frees *ret with blob_free(). Fails with MR_ECONFIG (the address, no keys),
// MR_EUSAGE (options), MR_ENOMEM, MR_EIO.
int blob_open(const char *address, const struct blob_credentials *credentials,
              const struct blob_options *options, struct blob_store **ret, struct mr_error *err);

// Checks an address without opening it: MR_ECONFIG.
int blob_check_address(const char *address, struct mr_error *err);

// NULL is fine. No call is under way.
void blob_free(struct blob_store *store);

// From any thread, not from a signal handler: the call that is under way, if any, ends within
// moments, and so does every later one. What was not done by then is BLOB_STOPPED. The store must
// not be freed meanwhile.
void blob_stop(struct blob_store *store);

// Where it is, for people: `s3://BUCKET/PREFIX at http://HOST:PORT`. Borrowed, lives as long as the
// store.
const char *blob_place(const struct blob_store *store);

// ---- objects ----

enum blob_result {
    BLOB_OK,
    // The store is down, overloaded or slow: 500, 502, 503, 504, 429, a connection that is refused,
    // breaks or stands still, the call's time was up. It was tried as often as `attempts` allows,
    // with growing pauses, or as long as the store asked for (Retry-After). The same may work
    // later.
    BLOB_TRANSIENT,
    // blob_stop() was called before it was done. A put or delete may have happened.
    BLOB_STOPPED,
    // The set-up is wrong, for every object alike: a wrong secret, a clock that is wrong, no
    // permission, no such bucket, a redirect, a certificate that is not trusted. Nothing changes
    // until a person does.
    BLOB_CONFIG,
    // This item is never accepted: its key, its size, 400.
    BLOB_REJECTED,
    // Get: there is no such object.
    BLOB_MISSING,
    // Get: there is one, and it is not what was written, found so twice: its checksum is another,
    // it is larger than allowed, it has no checksum and none was expected. A body of which the
    // connection delivers a part only is BLOB_TRANSIENT.
    BLOB_DAMAGED,
};

// Whether it says something about the store and not about the object: the caller keeps the job and
// comes back later.
bool blob_result_is_of_store(enum blob_result result);

// `ok`, `transient`, `stopped`, `config`, `rejected`, `missing`, `damaged`. Constant.
const char *blob_result_name(enum blob_result result);

// Whether it is a key, see above.
bool blob_key_is_good(const char *key);

// One object of a batch. What is not for this call is ignored.
struct blob_item {
    const char *key; // borrowed during the call

    // put: what is written, borrowed during the call; NULL where size is 0.
    const void *data;
    // put: of data. get: of body, written.
    size_t size;
    // get: the largest body that is accepted, at most BLOB_SIZE_MAX; 0: only an empty one.
    size_t max;
    // put: of data, 64 lower-case digits, as the caller has it, or "": it is computed and written
    // here. One that is given is trusted; the store refuses the object when it is wrong.
    // get: what is expected; "": what the object itself says. Where neither is there: BLOB_DAMAGED.
    char sha256[SHA256_HEX_SIZE];
    // get: what was read, and a zero byte behind it, where result is BLOB_OK, else NULL. The
    // caller's, free().
    char *body;

    // Written for every item in any case.
    enum blob_result result;
    long status;               // of HTTP; 0: there was no answer
    int attempts;              // requests that were made for it
    char text[BLOB_TEXT_SIZE]; // why not, one line; "" where BLOB_OK
    const char *hint;          // what to do about it, a sentence; constant or NULL
};

// Each returns 0 when every item is BLOB_OK. Otherwise the code of the first that is not, and `err`
// tells of it: MR_ECONNECT (transient), MR_EIO (stopped), MR_ECONFIG, MR_EINVALID
// (rejected), MR_EUNKNOWN (missing), MR_EDAMAGED. The other items have their results all the same:
// one does not hold up another, but where an answer is BLOB_CONFIG those that were not begun get
// it, too, and are not sent. MR_EUSAGE and MR_ENOMEM are of the call: then nothing was sent. No
// items is fine.

// Writes objects; one that is there is replaced.
int blob_put_many(struct blob_store *store, struct blob_item *items, size_t count,
                  struct mr_error *err);
// Reads objects. The caller frees the bodies, also after a failure.
int blob_get_many(struct blob_store *store, struct blob_item *items, size_t count,
                  struct mr_error *err);
// Removes objects, BLOB_PAGE_MAX with a request. One that is not there is BLOB_OK.
int blob_delete_many(struct blob_store *store, struct blob_item *items, size_t count,
                     struct mr_error *err);

// Frees the bodies of items, which are NULL afterwards.
void blob_items_done(struct blob_item *items, size_t count);

// ---- what is there ----

struct blob_entry {
    char *key;
    int64_t size;
    int64_t modified_us; // since 1970-01-01 UTC, by the clock of the store
};

struct blob_page {
    struct blob_entry *entries; // sorted by key
    size_t count;               // at most BLOB_PAGE_MAX
    bool more;                  // there are others behind the last one
};

// The objects whose keys begin with `prefix` ("": all) and come after `after` (NULL: from the
// first): one page. The next one comes after the last key of this one, whatever was removed in
// between. The caller frees *ret with blob_page_done().
int blob_list(struct blob_store *store, const char *prefix, const char *after,
              struct blob_page *ret, struct mr_error *err);
void blob_page_done(struct blob_page *page);

#define AUTO_BLOB_PAGE __attribute__((cleanup(blob_page_done))) struct blob_page

// ---- for `doctor` ----

// Days after which the store itself removes what lies under the store's prefix: the shortest of its
// rules that cover it; 0: none does; BLOB_LIFECYCLE_UNKNOWN: the store does not tell (it has no
// such rules, or not for these keys). Fails as the others do.
#define BLOB_LIFECYCLE_UNKNOWN (-1)
int blob_lifecycle(struct blob_store *store, int *ret_days, struct mr_error *err);

// Whether the store can be used: writes a small object, reads it, lists it and removes it. The
// message says which of these failed.
int blob_probe(struct blob_store *store, struct mr_error *err);

// ---- what a kind of store has to offer ----

// Called by the functions above, which have checked what is above: keys, sizes, `count` > 0; and
// have reset what items return. `result` of an item that was refused is set, and it is left alone.
struct blob_ops {
    const char *scheme; // of its addresses: `s3`
    int (*check_address)(const char *address, struct mr_error *err);
    int (*open)(const char *address, const struct blob_credentials *credentials,
                const struct blob_options *options, struct blob_store **ret, struct mr_error *err);
    void (*free)(struct blob_store *store);
    void (*stop)(struct blob_store *store);
    const char *(*place)(const struct blob_store *store);
    // 0, or MR_ENOMEM before anything was sent.
    int (*put_many)(struct blob_store *store, struct blob_item *items, size_t count,
                    struct mr_error *err);
    int (*get_many)(struct blob_store *store, struct blob_item *items, size_t count,
                    struct mr_error *err);
    int (*delete_many)(struct blob_store *store, struct blob_item *items, size_t count,
                       struct mr_error *err);
    int (*list)(struct blob_store *store, const char *prefix, const char *after,
                struct blob_page *ret, struct mr_error *err);
    int (*lifecycle)(struct blob_store *store, int *ret_days, struct mr_error *err);
};

// For operations that are about no single object: the error that a result stands for, `cannot WHAT
// PLACE: TEXT`. `hint` may be NULL. Returns its code.
int blob_failure(const struct blob_store *store, const char *what, enum blob_result result,
                 const char *text, const char *hint, struct mr_error *err);

// Every store begins with it.
struct blob_store {
    const struct blob_ops *ops;
};

extern const struct blob_ops blob_s3;

#endif
