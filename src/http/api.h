// SPDX-License-Identifier: PostgreSQL
//
// What the routes do. Each function replies to its exchange, now or later.

#ifndef MILLRACE_HTTP_API_H
#define MILLRACE_HTTP_API_H

#include <libpq-fe.h>

#include "base/err.h"
#include "client/call.h"
#include "http/route.h"

struct params;

route_fn api_call;    // the route's call, whose first column is the body
route_fn api_settle;  // the same with parts of a payload in the body
route_fn api_enqueue; // a job, an array of them, a stream of them
route_fn api_claim;   // waits for jobs
route_fn api_outcome; // waits for the end of a job
route_fn api_replay;  // dead letters: one, some, or what a filter says
route_fn api_events;  // server-sent events
route_fn api_metrics;
route_fn api_system;
route_fn api_healthz;
route_fn api_readyz;
route_fn api_file; // what is embedded

// Reads what the request gives. False: it has been replied to.
bool api_params(struct exchange *exchange, struct params *ret);
// Answers an exchange with the first column of the first row.
void api_answer(void *arg, PGresult *result, const struct mr_error *err);

#endif
