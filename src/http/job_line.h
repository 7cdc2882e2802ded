// SPDX-License-Identifier: PostgreSQL
//
// A job as a producer writes it: a JSON object that goes to the database as it is. Only what has to
// be known here is looked at.

#ifndef MILLRACE_HTTP_JOB_LINE_H
#define MILLRACE_HTTP_JOB_LINE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json_scan.h"
#include "http/tally.h"

struct job_line {
    struct json_slice text;
    struct json_slice kind, queue; // between the quotes; `at` NULL: not given, or with escapes
    struct json_slice meta;
    struct json_slice tenant, ordering_key, unique_key, ref; // JSON; `at` NULL: not given
    bool spelled; // a name has escapes: what it is called is not known here
    bool alone;   // it may wait for others: it shares no transaction with jobs of other clients
};

// Fails with MR_EINVALID when it is no object in JSON.
int job_line_read(struct json_slice text, struct job_line *ret, struct mr_error *err);

// Appends the job, with meta.traceparent where the job does not have it; `traceparent` may be NULL.
void job_line_add(const struct job_line *job, const char *traceparent, struct buf *out);

// Counts an enqueued job.
void job_line_count(struct json_slice queue, struct json_slice kind, struct tally *tally);

#endif
