// SPDX-License-Identifier: PostgreSQL
//
// What callers of the library ask for, with its arguments checked, as calls. The blocking and
// the non-blocking form of a call begin here.
//
// Each function initializes `call`, also when it fails; the caller ends it with call_done(). A
// wrong argument is MR_EUSAGE.

#ifndef MILLRACE_CLIENT_REQUEST_H
#define MILLRACE_CLIENT_REQUEST_H

#include <millrace/millrace.h>

#include "client/call.h"

// Copies what the caller's header knew of a job over the defaults, and checks it.
int request_read_job(const mr_job_spec *from, mr_job_spec *ret, mr_error *err);

// The same for a claim; max_jobs is 1 at least then.
int request_read_claim(const mr_claim_options *from, mr_claim_options *ret, mr_error *err);
#define CLAIM_JOBS_MAX 10000

// What the functions below check, for backends that make no calls of it.
int request_check_lease(const char *lease, mr_error *err);
int request_check_ids(const int64_t *ids, size_t count, mr_error *err);
// Where mr_heartbeat_cancelled() writes to.
int request_check_cancelled(int64_t **ret_ids, const size_t *ret_count, mr_error *err);
int request_check_bytes(const void *data, size_t size, const char *what, mr_error *err);
int request_check_ms(int64_t ms, const char *what, mr_error *err);
int request_check_fail(const char *lease, const char *error, int64_t retry_in_ms, const void *state,
                       size_t state_size, mr_error *err);

// A job that request_read_job() has read.
void request_enqueue(struct call *call, const mr_job_spec *job);
// *ret_queue is borrowed from `options`, NULL for the default.
int request_claim(struct call *call, const mr_claim_options *options, const char **ret_queue,
                  mr_error *err);
int request_complete(struct call *call, const char *lease, const int64_t *ids, size_t count,
                     const char *result, mr_error *err);
int request_complete_many(struct call *call, const char *const *leases, size_t count,
                          mr_error *err);
int request_fail(struct call *call, const char *lease, int64_t id, const char *error,
                 int64_t retry_in_ms, int no_retry, const void *state, size_t state_size,
                 mr_error *err);
int request_finish(struct call *call, const char *lease, const char *outcomes, mr_error *err);
int request_requeue(struct call *call, const char *lease, int64_t id, const char *changes,
                    const void *state, size_t state_size, const void *blob, size_t blob_size,
                    mr_error *err);
int request_release(struct call *call, const char *lease, const int64_t *ids, size_t count,
                    mr_error *err);
int request_heartbeat(struct call *call, const char *lease, int64_t extend_ms, mr_error *err);
int request_progress(struct call *call, const char *lease, int64_t id, double percent,
                     const char *note, mr_error *err);
int request_depth(struct call *call, const char *queue, mr_error *err);
int request_job(struct call *call, int64_t id, mr_error *err);
int request_outcome(struct call *call, int64_t id, mr_error *err);

#endif
