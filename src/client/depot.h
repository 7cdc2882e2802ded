// SPDX-License-Identifier: PostgreSQL
//
// The blob store as clients use it, for payload parts that are objects: some handles of it, and a
// breaker, so that a store that does not answer is waited for once and not by every job.
//
// Any thread may call anything but depot_free(). A call takes no longer than DEPOT_CALL_MS.

#ifndef MILLRACE_CLIENT_DEPOT_H
#define MILLRACE_CLIENT_DEPOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/blob.h"

#define DEPOT_CALL_MS 15000

// What names a store, and nothing else.
struct depot_options {
    const char *address;                 // NULL: $MILLRACE_BLOBS
    struct blob_credentials credentials; // NULL members: of the environment
};

struct depot;

// *ret is NULL where no store is named. Talks to nobody, copies what it is given. The caller frees
// *ret with depot_free(). Fails with MR_ECONFIG (the address, no keys), MR_ENOMEM, MR_EIO.
int depot_new(const struct depot_options *options, struct depot **ret, struct mr_error *err);

// No call is under way. NULL is fine.
void depot_free(struct depot *depot);

// Calls that are under way end within moments, and so does every later one.
void depot_stop(struct depot *depot);

// All or nothing that counts: what was written of a batch that fails is an orphan, which the sweep
// of the daemon removes. The items have their results.
int depot_put(struct depot *depot, struct blob_item *items, size_t count, struct mr_error *err);

// Each item has its result; the caller frees the bodies with blob_items_done().
void depot_get(struct depot *depot, struct blob_item *items, size_t count);

// Whether any object's key begins with `prefix`. Fails as depot_put() does, and with MR_ECONFIG.
int depot_has(struct depot *depot, const char *prefix, bool *ret, struct mr_error *err);

// How long a job waits whose objects could not be read.
int64_t depot_pause_ms(struct depot *depot);
#define DEPOT_PAUSE_MIN_MS 2000
// Where there is no store to read them from.
#define DEPOT_NONE_PAUSE_MS 30000

#endif
