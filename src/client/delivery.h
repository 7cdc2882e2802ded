// SPDX-License-Identifier: PostgreSQL
//
// Jobs and outcomes as they stand in Redis between a relay and its workers: the names of keys and
// fields, the words for outcomes, and an entry of the stream as a job. Talks to nobody; see
// docs/delivery.md, and src/store/lua/delivery for what is done with them.

#ifndef MILLRACE_CLIENT_DELIVERY_H
#define MILLRACE_CLIENT_DELIVERY_H

#include <hiredis/hiredis.h>
#include <millrace/millrace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/outcome.h"
#include "store/redis_args.h"

#define DELIVERY_GROUP "workers"
// Room for a key: a queue's name has at most 200 bytes.
#define DELIVERY_KEY_SIZE 320
// And for an entry's number, a relay's epoch and a lease.
#define DELIVERY_ENTRY_SIZE 48
#define DELIVERY_EPOCH_SIZE 40
// The longest read of a worker's that waits for jobs.
#define DELIVERY_BLOCK_MS 1000

// mr:delivery:{QUEUE}:PART, in DELIVERY_KEY_SIZE bytes.
void delivery_key(const char *queue, const char *part, char *ret);

// Entries of one lease in a worker's hands, in the order of its jobs.
struct delivery {
    char epoch[DELIVERY_EPOCH_SIZE]; // of the relay
    int count;
    struct delivered {
        char entry[DELIVERY_ENTRY_SIZE];
        bool ended; // acknowledged, or somebody else's
    } items[];
};

struct delivery *delivery_new(const char *epoch, size_t count); // NULL: out of memory
void delivery_free(struct delivery *delivery);                  // NULL is fine

// The fields of an entry that makes a job known: XADD's words behind the number. What they point to
// is the job's.
void delivery_add_job(struct redis_args *args, const mr_claimed_job *job, const char *epoch);
// About how many bytes of Redis's memory that takes.
size_t delivery_job_size(const mr_claimed_job *job);

// Which lease of which relay an entry, [number, [field, value ...]], belongs to. False: it is none
// of a relay's. Borrowed from the reply.
struct delivery_origin {
    const char *entry, *epoch, *lease;
    int64_t id;
};
bool delivery_read_origin(const redisReply *entry, struct delivery_origin *ret);

// `count` entries of one lease as a batch of jobs, with copies of everything. Fails with MR_ENOMEM.
int delivery_read_jobs(redisReply *const *entries, size_t count, const char *queue,
                       int64_t lease_ms, mr_batch **ret, struct mr_error *err);

// How an outcome is called in Redis; and back, with the members as they came: what is no JSON, and
// a word that is none, makes a failure that says so.
const char *delivery_word(const struct outcome *outcome);
void delivery_read_outcome(const char *word, const char *members, struct outcome *ret);
// A worker codes nothing of what it writes to Redis: whoever gives an outcome to the database does.
// For one that is not settled by a worker of the relay's, which would: parts that begin like coded
// ones are wrapped. Without memory the outcome stays as it is.
void delivery_wrap(struct outcome *outcome);

#define DELIVERY_PROGRESS "progress"

// One entry of a stream of outcomes. Borrowed from the reply. False: it has another form.
struct delivery_outcome {
    const char *number; // of the entry
    int64_t id;
    const char *lease, *word, *members;
};
bool delivery_read_report(const redisReply *entry, struct delivery_outcome *ret);

// Compares numbers of entries, MS-SEQ: below, equal to or above zero.
int delivery_compare(const char *a, const char *b);

#endif
