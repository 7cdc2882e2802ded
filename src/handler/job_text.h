// SPDX-License-Identifier: PostgreSQL
//
// A job as others see it: as one line of JSON, as environment variables, as placeholders.

#ifndef MILLRACE_HANDLER_JOB_TEXT_H
#define MILLRACE_HANDLER_JOB_TEXT_H

#include <millrace/millrace.h>

#include "base/buf.h"

// Appends {"id","queue","kind","args","attempt","max_attempts","priority","created_at",
// "lease_until"} and, where the job has them, "meta","tenant","ref","source","timeout" (seconds),
// "state","blob" (base64). One line, no line break at the end. args and meta are the bytes that
// PostgreSQL sent.
void job_text_json(const mr_claimed_job *job, struct buf *out);

#endif
