// SPDX-License-Identifier: PostgreSQL
//
// Jobs of a stream that go to the database together, each with the number of its line: those of a
// shard are a transaction, and all shards are written to at the same time.
//
// 1. Where the stream has chosen a shard, or there is one database, all of it goes there, and a
//    refusal ends the stream.
// 2. Else each job goes where place_line() has it. What a shard has certainly not taken, and for
//    its own sake (it is full, read-only, not reached), goes to the next. Not so a job with a
//    unique_key or an ordering_key: it is sent there once more, without the others, whose fault it
//    may have been.
// 3. A chunk is over when all its jobs are in, or when one cannot be and no call is under way. What
//    is in by then stays; it is known which lines those are, unless an answer was lost.
// 4. Memory is bounded by the limits below and one line.

#ifndef MILLRACE_HTTP_CHUNK_H
#define MILLRACE_HTTP_CHUNK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json_scan.h"
#include "http/route.h"

struct exchange;

// A chunk ends with the job that reaches either for its shard,
#define CHUNK_JOBS  1000
#define CHUNK_BYTES (1024 * 1024)
// or either for all of them.
#define CHUNK_ALL_JOBS  4000
#define CHUNK_ALL_BYTES (4 * 1024 * 1024)

struct chunk;

struct chunk_hooks {
    // The chunk is over, and empty, unless `err` says why not all of it is in.
    void (*over)(struct exchange *exchange, const struct mr_error *err);
    route_fn *asked; // calls chunk_go_on()
};

// For the exchange's site, or, where that is NULL, for all. NULL without memory.
struct chunk *chunk_new(struct exchange *exchange, const struct chunk_hooks *hooks);
void chunk_free(struct chunk *chunk); // NULL is fine

// Takes the job of a line. Fails with MR_EINVALID, MR_ENOMEM, MR_ELIMIT, and as place_line() does;
// then the line is one that is missing.
int chunk_add(struct chunk *chunk, struct json_slice text, const char *traceparent, int64_t line,
              struct mr_error *err);
bool chunk_is_full(const struct chunk *chunk);
bool chunk_is_empty(const struct chunk *chunk);

// Sends what there is; hooks.over follows, now or later.
void chunk_send(struct chunk *chunk);
void chunk_go_on(struct chunk *chunk);

// How many jobs are in, of all that were ever sent.
int64_t chunk_enqueued(const struct chunk *chunk);
// Of a stream to all shards, members of a reply: how many each has taken and, where it stopped
// (`failed`), the lines of the chunk that are missing, and those of which that is not known.
void chunk_tell(const struct chunk *chunk, bool failed, struct buf *out);

#endif
