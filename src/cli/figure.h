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

// In few columns, for tables that are looked at: `999`, `12.3k`, `4.5M`; below ten with a tenth
// where there is one.
void figure_add_short(struct buf *out, double number);

// The same of seconds: `0`, `350ms`, `1.4s`, `29s`, `12m`, `3.2h`, `4d`.
void figure_add_short_time(struct buf *out, double seconds);

// And of bytes: `512 B`, `12.3 MB`.
void figure_add_bytes(struct buf *out, double bytes);

// A point in time as PostgreSQL's JSON has it, with its quotes or without, as
// `2026-11-15 09:10:11+00:00`. Anything else as it is.
void figure_add_clock(struct buf *out, const char *iso);

#endif
