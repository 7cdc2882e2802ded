// SPDX-License-Identifier: PostgreSQL
//
// The parts of a job on their way out and in: coded as its queue wants it (policy.h) before they
// are written, and decoded before anybody sees them. The one place for either, whatever the coding;
// part.h has the form. parcel_json.h does the same with jobs that are JSON texts.

#ifndef MILLRACE_CLIENT_PARCEL_H
#define MILLRACE_CLIENT_PARCEL_H

#include <millrace/millrace.h>
#include <stdbool.h>
#include <stddef.h>

#include "client/depot.h"
#include "client/part_zstd.h"
#include "client/policy.h"

// Values that were coded or decoded, for as long as somebody points to them. {0} is an empty one.
struct parcel {
    struct part_zstd zstd;
    struct parcel_value *values; // all of them, newest first
    size_t decoded;              // bytes of originals among them
    bool offloads;               // out: parts may become objects
    bool inline_only;            // out: they may not, after all
    struct blob_item *objects;   // out: to be written; in: to be read, and read
    size_t object_count;
    size_t object_next; // in: where to look for the next one first
};

void parcel_done(struct parcel *parcel);

#define AUTO_PARCEL __attribute__((cleanup(parcel_done))) struct parcel

// All originals of a batch together: more are left coded (MR_ELIMIT). A batch is small where it is
// stored, and need not be so here.
#define PARCEL_DECODED_MAX ((size_t)256 * 1024 * 1024)

// ---- out ----

// Whether the policy of the queue has to be known: one of the parts is large enough.
bool parcel_asks(const char *args, size_t state_size, size_t blob_size);

// Each replaces what it is given by what is to be written, which lives as long as `parcel`; nearly
// always it stays as it is. `policy` NULL: only what has to be wrapped is. Fail with MR_ENOMEM,
// MR_EINVALID (bytes that would have to be wrapped and are more than PART_SIZE_MAX).
int parcel_pack_bytes(struct parcel *parcel, const struct policy *policy, const void **data,
                      size_t *size, struct mr_error *err);
int parcel_pack_args(struct parcel *parcel, const struct policy *policy, const char **args,
                     struct mr_error *err);
int parcel_pack_job(struct parcel *parcel, const struct policy *policy, mr_job_spec *job,
                    struct mr_error *err);

// The same of what an object held or a row had: it is coded as it is to be, and may only become an
// object.
int parcel_pack_stored(struct parcel *parcel, const struct policy *policy, const void **data,
                       size_t *size, struct mr_error *err);

// Parts that became objects: they are written before the row that names them. Where `offloads` is
// not set none does. What was given to be packed lives until then. Fails as depot_put() does, and
// then everything has to be packed again without `offloads`: parcel_pack_again().
int parcel_ship(struct parcel *parcel, struct depot *depot, struct mr_error *err);
void parcel_pack_again(struct parcel *parcel);

// Keeps what a buffer holds, for as long as the others; it is empty afterwards. Also on failure, of
// the buffer or for want of memory, what it held is nobody's any more.
int parcel_keep(struct parcel *parcel, struct buf *buf, struct mr_error *err);

// ---- in ----

// Parts that are objects have to be read before the job is opened. parcel_want() notes those that a
// value names (MR_ENOMEM; nothing for any other value, and for more than PARCEL_DECODED_MAX
// together); parcel_fetch() reads all that were noted, on any thread while nobody else uses the
// parcel. Without a store (NULL) none are read, and opening says so.
int parcel_want(struct parcel *parcel, const void *data, size_t size, struct mr_error *err);
int parcel_want_job(struct parcel *parcel, const mr_claimed_job *job, struct mr_error *err);
void parcel_fetch(struct parcel *parcel, struct depot *depot);

// Of what was noted, the object that a value names, for whoever wants the bytes and not the
// original. NULL: none. Borrowed.
const struct blob_item *parcel_object(struct parcel *parcel, const void *data, size_t size);

// Whether a value is an object, and a part of a job.
bool parcel_is_object(const void *data, size_t size);
bool parcel_has_object(const mr_claimed_job *job);

// Replaces args, state and blob of a job by their originals, which live as long as `parcel`. Fails
// with MR_EDAMAGED (the message says which part), MR_ELIMIT, MR_ENOMEM; for objects that cannot be
// read now with MR_ECONNECT (the store does not answer) and MR_ECONFIG (there is none, or it does
// not let us). The job is as it was then.
int parcel_open_job(struct parcel *parcel, mr_claimed_job *job, struct mr_error *err);

// One value, and args. *data, *size and *args are the original, living as long as `parcel`.
int parcel_open_bytes(struct parcel *parcel, const void **data, size_t *size, struct mr_error *err);
int parcel_open_args(struct parcel *parcel, const char **args, struct mr_error *err);

// Whether a job has a coded part: a byte or two of each are looked at.
bool parcel_is_coded(const mr_claimed_job *job);

#endif
