// SPDX-License-Identifier: PostgreSQL
//
// GET /metrics: what the database knows, asked once for all who ask within a second, and what this
// process knows of itself. Every metric is a row of the table in metrics.c.

#ifndef MILLRACE_HTTP_METRICS_H
#define MILLRACE_HTTP_METRICS_H

#include <stdbool.h>

#define METRICS_FRESH_MS 1000

struct http;
struct metrics;

// NULL without memory.
struct metrics *metrics_new(struct http *http);
void metrics_free(struct metrics *metrics);

// Whether a metric is a figure of each queue, so that it can have aliases.
bool metrics_has_alias(const char *name);
// The next such name after the first `index`; NULL at the end.
const char *metrics_alias_name(int index);

#endif
