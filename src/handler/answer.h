// SPDX-License-Identifier: PostgreSQL
//
// What a handler in another language says about a job: one JSON object with the keys of an
// entry of the SQL function finish(),
//
//   {"id": 7, "outcome": "completed", "result": {...}}
//   {"id": 7, "outcome": "failed", "error": "why", "retry_in": "10 s", "retry": false, "state":
//   "base64"}
//   {"id": 7, "outcome": "snoozed", "delay": "5 s"}          numbers are seconds
//   {"id": 7, "outcome": "requeued", "changes": {"queue": "other"}, "state": "base64"}
//   {"id": 7, "outcome": "released"}
//
// `outcome` is "failed" where only an error is given and "completed" otherwise.

#ifndef MILLRACE_HANDLER_ANSWER_H
#define MILLRACE_HANDLER_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "client/outcome.h"

// Reads an answer. *ret_id is -1 where it has none. `ret` was initialized and is replaced. Payload
// parts (result, changes) are passed on as the bytes they came as where that is possible. Fails
// with MR_EINVALID, whose message says what is wrong with it in words for the job's error.
int answer_parse(const char *text, size_t size, int64_t *ret_id, struct outcome *ret,
                 struct mr_error *err);

// Whether a text that may be anything is an object with an `outcome`: meant as an answer, though it
// may not be a good one.
bool answer_is_meant(const char *text, size_t size);

#endif
