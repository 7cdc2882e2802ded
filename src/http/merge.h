// SPDX-License-Identifier: PostgreSQL
//
// Answers of several shards as one. Knows nothing of where they come from.

#ifndef MILLRACE_HTTP_MERGE_H
#define MILLRACE_HTTP_MERGE_H

#include <jansson.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/json_scan.h"

// Adds the figures of `from`, which is that of a shard, to those of `into`. Ages and percentiles
// are those of the worst; of a status the worst counts, with its message; true wins over false.
// Queues are added by name; what is in other lists stays apart and gets a member "shard". Of
// everything else that of `into` stays. Not for texts of users: numbers are read as doubles.
void merge_figures(json_t *into, const json_t *from);
// The same before the first: marks what is in its lists.
void merge_mark(json_t *value, int shard);

// The answers of history() as one, which the caller frees; NULL without memory. Points go together
// by how long ago they are, whatever each server's clock says: rates and gauges are added up, means
// count by how many jobs ended, percentiles are those of the worst. Of what a shard did not know at
// a point nothing is known; before the first that it knows it had nothing.
json_t *merge_history(json_t *const *answers, size_t count);

// A page of a shard: an object with one list.
struct merge_page {
    int shard;
    struct json_slice text;
};

// Appends the members of one object with all elements, the newest first where `by` names the member
// to go by; each has a member "shard" besides. `next` goes on where each of them ended. Elements
// are not decoded. Fails with MR_EINVALID, MR_ENOMEM.
int merge_pages(const struct merge_page *pages, size_t count, const char *by, struct buf *out,
                struct mr_error *err);
// What `next` has for a shard, in a text that the caller frees; NULL: it has no more, or memory is
// out.
char *merge_cursor(const char *next, int shard);

#endif
