// SPDX-License-Identifier: PostgreSQL
//
// The two clocks of the machine.

#ifndef MILLRACE_BASE_CLOCK_H
#define MILLRACE_BASE_CLOCK_H

#include <stdint.h>

// Milliseconds of a clock that only goes forward; for intervals.
int64_t clock_ms(void);

// Microseconds of the same clock.
int64_t clock_us(void);

// Microseconds since 1970-01-01 UTC, as the machine believes; for showing.
int64_t clock_wall_us(void);

#endif
