// SPDX-License-Identifier: PostgreSQL
//
// A job as others see it: as one line of JSON, as environment variables.

#ifndef MILLRACE_HANDLER_JOB_TEXT_H
#define MILLRACE_HANDLER_JOB_TEXT_H

#include <millrace/millrace.h>

#include "base/buf.h"

// The largest line: state and blob, 64 MiB each, travel in it as base64.
#define JOB_TEXT_MAX (256 * 1024 * 1024)

// Appends {"id","queue","kind","args","attempt","max_attempts","priority","created_at",
// "lease_until"} and, where the job has them, "meta","tenant","ref","source","timeout" (seconds),
// "state","blob" (base64). One line, no line break at the end. args and meta are the bytes that
// PostgreSQL sent.
void job_text_json(const mr_claimed_job *job, struct buf *out);

// The environment for a process: this one's, with MILLRACE_WORKER and, unless `job` is NULL,
// MILLRACE_JOB_ID, _QUEUE, _KIND, _ATTEMPT, _MAX_ATTEMPTS, and where the job has them _REF and
// _TENANT, and TRACEPARENT of its meta. The array and what it points to are one piece of memory, or
// this process's own; the caller frees it with free() and changes no environment before. NULL: out
// of memory.
char **job_text_env(const mr_claimed_job *job, const char *worker);

#endif
