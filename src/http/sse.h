// SPDX-License-Identifier: PostgreSQL
//
// Server-sent events for the dashboard: one overview() a second for all who listen, none when
// nobody does.

#ifndef MILLRACE_HTTP_SSE_H
#define MILLRACE_HTTP_SSE_H

struct http;
struct sse;

#define SSE_EVERY_MS      1000
#define SSE_LISTENERS_MAX 10000

// NULL without memory.
struct sse *sse_new(struct http *http);
void sse_free(struct sse *sse);
// Every stream ends.
void sse_stop(struct sse *sse);

#endif
