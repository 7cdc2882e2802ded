// SPDX-License-Identifier: PostgreSQL
//
// Payload parts on their way through the API: coded as their queue wants it before they go to the
// database, decoded before they go to a client. See client/parcel.h.
//
// What the queues want is asked for once in ten seconds at most, and only for parts that are large
// enough. A question that cannot be answered is no reason to refuse a job: it goes as it is.

#ifndef MILLRACE_HTTP_PAYLOADS_H
#define MILLRACE_HTTP_PAYLOADS_H

#include "base/buf.h"
#include "client/parcel_json.h"
#include "client/policy.h"
#include "http/exchange.h"
#include "http/job_line.h"

// The longest name of a queue, with its zero byte.
#define PAYLOADS_NAME_SIZE 201

// Whether something of a job is to be coded: nearly never. *ret_unknown: that depends on what its
// queue wants, which is not known; the queue's name is in `queue` then.
bool payloads_codes(const struct exchange *exchange, const struct job_line *job,
                    char queue[PAYLOADS_NAME_SIZE], bool *ret_unknown);

// Appends a job as job_line_add() does, its parts coded where payloads_codes() says so.
int payloads_add_job(struct exchange *exchange, const struct job_line *job, const char *traceparent,
                     struct buf *out, char queue[PAYLOADS_NAME_SIZE], bool *ret_unknown,
                     struct mr_error *err);

// Whether parts of the exchange's jobs became objects, which are written now: `packed`, which names
// them, is taken over, and `then` is called when they are there. Where they cannot be written
// `again` is called instead, to pack everything anew, and this time nothing becomes an object.
bool payloads_ships(struct exchange *exchange, struct buf *packed, route_fn *then, route_fn *again);
// The body is what was packed.
void payloads_take_packed(struct exchange *exchange);
// The body is what it was before, where it names objects: those are of one database, which removes
// what it knows nothing of, so another one's row must not name them. False: it names none.
bool payloads_unpack(struct exchange *exchange);

// Asks what a queue wants, and calls `then`, now or later, whatever the answer.
void payloads_ask(struct exchange *exchange, const char *queue, route_fn *then);

// Codes the parts in the body of a request under the lease of its path, and calls `then`, now or
// later. An exchange that fails is replied to.
void payloads_code_body(struct exchange *exchange, route_fn *then);

#endif
