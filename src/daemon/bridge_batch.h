// SPDX-License-Identifier: PostgreSQL
//
// Entries of a stream as Redis answers with them, each as its id and its fields in JSON.
//
// A field is a member of the object: text where it is UTF-8 without zero bytes, {"base64": "..."}
// otherwise; a name that occurs more than once has an array of its values, in order; a name that
// is no UTF-8 is "base64:..." instead.

#ifndef MILLRACE_DAEMON_BRIDGE_BATCH_H
#define MILLRACE_DAEMON_BRIDGE_BATCH_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

// The JSON of one entry at most; a larger one is not passed on.
#define BRIDGE_ENTRY_MAX (64 * 1024 * 1024)
// Entries in one call at most, in bytes, unless one entry is larger.
#define BRIDGE_CALL_MAX (16 * 1024 * 1024)
#define BRIDGE_ID_SIZE  48

struct bridge_entry {
    char id[BRIDGE_ID_SIZE];
    char *fields; // JSON
    size_t size;  // of it
    bool gone;    // the stream does not have it any more: nothing but the id
    bool huge;    // larger than the limit: `fields` says only how large
};

struct bridge_batch {
    struct bridge_entry *entries;
    size_t count;
    size_t bytes; // of all fields
};

void bridge_batch_done(struct bridge_batch *batch);

// Appends the entries of an array [[id, [name, value, ...]], ...]. Fails with MR_EINVALID when it
// is none, MR_ENOMEM; what was appended before stays.
int bridge_batch_add(struct bridge_batch *batch, const redisReply *entries, struct mr_error *err);

// The entries in the answer to XREADGROUP for one stream, NULL when there are none; fails with
// MR_EINVALID.
int bridge_read_entries(const redisReply *reply, const redisReply **ret, struct mr_error *err);

// The same of XAUTOCLAIM; *ret_next is where to go on, "0-0" at the end.
int bridge_claimed_entries(const redisReply *reply, const redisReply **ret,
                           char ret_next[BRIDGE_ID_SIZE], struct mr_error *err);

// The value of a name in a flat list [name, value, ...]; NULL when it is not there.
const redisReply *bridge_member(const redisReply *list, const char *name);

// Appends the fields of an entry as an object. `fields` may be anything; false when it is no list
// of pairs.
bool bridge_fields_json(const redisReply *fields, struct buf *out);

// Whether bytes are UTF-8 as PostgreSQL has it: no zero bytes, no surrogates, nothing overlong.
bool bridge_is_text(const char *data, size_t size);

#endif
