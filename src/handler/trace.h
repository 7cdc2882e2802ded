// SPDX-License-Identifier: PostgreSQL
//
// Traces of W3C's kind: which one a job belongs to is in its meta, as traceparent.

#ifndef MILLRACE_HANDLER_TRACE_H
#define MILLRACE_HANDLER_TRACE_H

#include <millrace/millrace.h>
#include <stdbool.h>

// 00-32 digits-16 digits-2 digits, and its zero byte.
#define TRACE_SIZE 56

bool trace_is_parent(const char *text);

// The traceparent of a job; false when it has none, or something else of that name.
bool trace_of_job(const mr_claimed_job *job, char ret[TRACE_SIZE]);

#endif
