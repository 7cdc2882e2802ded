// SPDX-License-Identifier: PostgreSQL
//
// Numbers and times as people read them.

#ifndef MILLRACE_CLI_FIGURE_H
#define MILLRACE_CLI_FIGURE_H

#include <stdint.h>

#include "base/buf.h"

// 1,234,567
void figure_add_number(struct buf *out, int64_t number);

// `350 ms`, `12 s`, `2 min 5 s`, `1 h 20 min`, `3 d 4 h`: the two largest units.
void figure_add_time(struct buf *out, int64_t ms);

// The same of seconds, with a tenth below ten: `1.4 s`.
void figure_add_seconds(struct buf *out, double seconds);

// A point in time as PostgreSQL's JSON has it, with its quotes or without, as
// `2026-11-15 09:10:11+00:00`. Anything else as it is.
void figure_add_clock(struct buf *out, const char *iso);

#endif
