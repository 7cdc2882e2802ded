// SPDX-License-Identifier: PostgreSQL
//
// Coding and decoding payload parts in JSON texts: jobs as producers write them, outcomes as
// finish() takes them, and what the server tells of jobs. See parcel.h.
//
// In a text that goes out, `state` and `blob` are base64 and `args` is JSON: in the object itself,
// in the objects of its `outcomes`, or (args) in `changes` of either. In one that came from the
// server, written as it writes jsonb, jobs are the object itself or the elements of its `jobs`.
// Texts end with a zero byte, behind the slice or later.

#ifndef MILLRACE_CLIENT_PARCEL_JSON_H
#define MILLRACE_CLIENT_PARCEL_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json_scan.h"
#include "client/parcel.h"

// Whether an object may have something to be coded if its queue's policy says so; and whether it
// has something to be wrapped, whatever the policy.
bool parcel_json_asks(struct json_slice object);
bool parcel_json_must(struct json_slice object);

// Appends an object, its parts coded. What is not base64, or not an object, is appended as it is:
// the server says what is wrong with it. Fails with MR_ENOMEM, MR_ELIMIT, MR_EINVALID.
int parcel_json_pack(struct parcel *parcel, const struct policy *policy, struct json_slice object,
                     struct buf *out, struct mr_error *err);

// Whether a text of the server's has something coded in it: nearly none has.
bool parcel_json_is_coded(struct json_slice text);

// Notes the objects that the answer of claim_json() names: see parcel_want(). Fails with MR_ENOMEM.
int parcel_json_want_claim(struct parcel *parcel, struct json_slice text, struct mr_error *err);

// Appends the answer of claim_json(), its jobs decoded. Those that cannot be are left out, and told
// to on_flaw (see batch_flaw(); `object`: for an object's sake). *ret_jobs: how many are left.
// Fails with MR_ENOMEM, MR_ELIMIT, MR_EINVALID.
typedef void parcel_flaw_fn(void *arg, int64_t id, const struct mr_error *flaw, bool object);
int parcel_json_open_claim(struct parcel *parcel, struct json_slice text, parcel_flaw_fn *on_flaw,
                           void *arg, struct buf *out, size_t *ret_jobs, struct mr_error *err);

// Appends the story of a job or a page of them, with args decoded, and state and blob shown as
// payload_face() shows what is not coded. What cannot be decoded is left as it is.
int parcel_json_show(struct json_slice text, struct buf *out, struct mr_error *err);

#endif
