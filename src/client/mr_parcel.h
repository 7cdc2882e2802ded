// SPDX-License-Identifier: PostgreSQL
//
// Payload parts of the library's callers: coded for the queue before they are sent, with its policy
// asked for where it is not known; and what becomes of claimed jobs that cannot be decoded.
//
// A part that is small needs no policy: nothing is asked for it, and nothing copied.

#ifndef MILLRACE_CLIENT_MR_PARCEL_H
#define MILLRACE_CLIENT_MR_PARCEL_H

#include "client/mr_conn.h"
#include "client/parcel_json.h"

// Whether a call may wait for the answer to a question. One that may not (mr_send_...) asks as
// well, and codes nothing until the answer has come.
enum parcel_wait { PARCEL_WAITS, PARCEL_WAITS_NOT };

// Replace what they are given by what is to be sent, which lives as long as `parcel`. Fail as the
// question does, and as those of parcel.h.
int mr__parcel_job(mr_conn *conn, struct parcel *parcel, enum parcel_wait wait, mr_job_spec *job,
                   mr_error *err);
int mr__parcel_state(mr_conn *conn, struct parcel *parcel, enum parcel_wait wait, const char *lease,
                     const void **state, size_t *size, mr_error *err);
// An object of changes, as requeue() takes it, and an array of outcomes, as finish() does.
int mr__parcel_changes(mr_conn *conn, struct parcel *parcel, enum parcel_wait wait,
                       const char *lease, const char **changes, mr_error *err);
int mr__parcel_outcomes(mr_conn *conn, struct parcel *parcel, enum parcel_wait wait,
                        const char *lease, const char **outcomes, mr_error *err);

// Appends a job as enqueue_jobs() takes it, an object, for the queue that it names.
int mr__parcel_text(mr_conn *conn, struct parcel *parcel, enum parcel_wait wait,
                    struct json_slice job, struct buf *out, mr_error *err);

// The policy of a queue, for whoever codes by itself: *ret. NULL is the default queue.
int mr__parcel_policy(mr_conn *conn, enum parcel_wait wait, const char *queue, struct policy *ret,
                      mr_error *err);
// It is to be asked for again: what was known of it turned out to be old.
void mr__parcel_forget(mr_conn *conn, const char *queue);

// Parts that became objects are written, before the call that names them is made. True: they could
// not be, and everything is to be packed again, as it was given; this time nothing becomes an
// object.
bool mr__parcel_ship_fails(mr_conn *conn, struct parcel *parcel);

// Reads the objects of a batch. Waits for the store.
void mr__parcel_fetch(mr_conn *conn, mr_batch *batch);

// Jobs that cannot be decoded are failed for good, those whose store does not answer wait for a
// while, and others that cannot be here and now are given back; they are left out of the batch. The
// first waits for the answers, and fails as they do, and with MR_ECONFIG where nothing is left for
// want of a store; the other sends.
int mr__parcel_flaws(mr_conn *conn, mr_batch *batch, mr_error *err);
void mr__parcel_send_flaws(mr_conn *conn, mr_batch *batch);

#endif
