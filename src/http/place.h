// SPDX-License-Identifier: PostgreSQL
//
// Which of several shards a request is about, as its route says (enum route_place). With one
// database there is nothing to find.
//
// 1. `shard=N` in the query chooses one, and is taken out of the query: what follows sees the
//    request as one to a single database. An id or a lease names its shard itself; that of a batch
//    unless one is chosen.
// 2. New jobs go as client/shards_enqueue.c has them: by their key, to the next shard where that
//    one is down, full, read-only or draining. One with a unique_key or an ordering_key, and one
//    under an Idempotency-Key, goes nowhere else: it would be there twice.

#ifndef MILLRACE_HTTP_PLACE_H
#define MILLRACE_HTTP_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct exchange;
struct job_line;
struct site;

// Finds exchange->site, as far as the head of the request says; it stays NULL where that is for the
// route to find. False: it has been replied to.
bool place(struct exchange *exchange);
// The same, and runs the route.
void place_and_run(struct exchange *exchange);

// Finds the site of the job, or the array of jobs, that is the body. `key`: the Idempotency-Key, or
// NULL. False: it has been replied to, or goes on when another shard has answered.
bool place_jobs(struct exchange *exchange, const char *key);
// Whether a job with keys may go where its stream goes, which has chosen. Fails with MR_EINVALID,
// MR_ECONNECT.
int place_check(const struct exchange *exchange, const struct job_line *job, struct mr_error *err);
// The site of a job of a stream that goes to all. `tried`: a bit for each site that is passed over.
// *ret_pinned: it can go nowhere else, and does not heed them. Fails with MR_EINVALID; MR_ECONNECT,
// MR_EREADONLY: none takes it.
int place_line(const struct exchange *exchange, const struct job_line *job, uint32_t tried,
               struct site **ret, bool *ret_pinned, struct mr_error *err);
// Finds another site for the single job of an exchange, whose own has failed with `err`. `sent`: it
// was sent there. False: there is none, or it may be there.
bool place_again(struct exchange *exchange, const struct mr_error *err, bool sent);

#endif
