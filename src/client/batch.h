// SPDX-License-Identifier: PostgreSQL
//
// What a claim brought: the rows of millrace.claim_packs(), read in place, or what another backend
// made of its own answer.

#ifndef MILLRACE_CLIENT_BATCH_H
#define MILLRACE_CLIENT_BATCH_H

#include <libpq-fe.h>
#include <millrace/millrace.h>
#include <stdbool.h>

#include "client/depot.h"

// Takes over `result` (binary), also on failure. `queue` is copied. *ret is the caller's, who
// frees it with mr_batch_free(). Coded parts are decoded; a job of which one cannot be has a flaw.
// Jobs with a part that is an object of a blob store are away: batch_fetch() and batch_open_away()
// come next.
// Fails with MR_ENOMEM, MR_ESCHEMA (columns that are not those of claimed_pack).
int batch_take(PGresult *result, const char *queue, mr_batch **ret, mr_error *err);

// How many jobs are away, and whether one is.
size_t batch_away(const mr_batch *batch);
bool batch_is_away(const mr_batch *batch, size_t index);
// Reads the objects of jobs that are away; without a depot none. Waits for the store, and may do so
// on any thread: it touches nothing that the other functions here look at, but for
// batch_open_away(), which decodes what was read, so that no job is away any more. It fails with
// MR_ENOMEM.
void batch_fetch(mr_batch *batch, struct depot *depot);
int batch_open_away(mr_batch *batch, mr_error *err);

// Why a job is not to be run as it is; NULL: nothing is wrong with it. MR_EDAMAGED: it can never
// be, and has to fail. MR_ECONNECT and MR_ECONFIG: its blob store cannot be read, and it has to
// wait for a while. Anything else: not here and now, and has to be given back.
const struct mr_error *batch_flaw(const mr_batch *batch, size_t index);
// Whether that is an object's.
bool batch_flaw_is_object(const mr_batch *batch, size_t index);
// Whether any has one.
bool batch_has_flaws(const mr_batch *batch);
// Leaves out the jobs that have one.
void batch_drop_flaws(mr_batch *batch);

// A batch of `count` jobs, at most CLAIM_JOBS_MAX of request.h, which the caller fills in:
// *ret_jobs are in it. Takes over `memory`, also on failure: what the strings of the jobs lie in,
// freed with the batch. Fails with MR_ENOMEM.
int batch_of(size_t count, int64_t lease_ms, void *memory, void (*free_memory)(void *memory),
             mr_batch **ret, mr_claimed_job **ret_jobs, mr_error *err);

// The jobs are of a shard: the lease that callers see gets its number. Fails with MR_ENOMEM.
int batch_of_shard(mr_batch *batch, int number, mr_error *err);
// The lease as the database knows it, NULL when the batch is empty.
const char *batch_lease(const mr_batch *batch);

// The jobs in such a result.
size_t batch_jobs_in(const PGresult *result);

// What the limits of its queue say in such a result. Borrowed until the result is cleared.
struct batch_limit {
    const char *name; // "concurrency" or "rate"; NULL: the queue has no limit
    int64_t wait_ms;  // no jobs: until the next may be started; 0: when one has ended
};
struct batch_limit batch_limit(const PGresult *result);

// How long the lease is, from the moment of the claim; 0 for an empty batch.
int64_t batch_lease_ms(const mr_batch *batch);

// A timestamptz of a binary result, in microseconds since 1970-01-01 UTC.
int64_t batch_time_us(const PGresult *result, int row, int column);

#endif
