// SPDX-License-Identifier: PostgreSQL
//
// Points in time as text, in the form of ISO 8601: 2026-11-16 14:05:00.25+01. Nothing here reads a
// clock or the machine's time zone.

#ifndef MILLRACE_BASE_ISO_TIME_H
#define MILLRACE_BASE_ISO_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum iso_time_fault {
    ISO_TIME_GOOD,
    ISO_TIME_FORM,  // not of this form
    ISO_TIME_RANGE, // of this form, but there is no such time
};

// With its zero byte.
enum { ISO_TIME_SIZE = 96 };

// Reads DATE[( |T)HH:MM[:SS[.FRACTION]][Z|(+|-)HH[[:]MM]]], the year of four to six digits and at
// most 294000, without a zone in UTC. Microseconds since 1970-01-01 UTC go to *ret_us, which is
// left alone otherwise.
enum iso_time_fault iso_time_parse(const char *text, int64_t *ret_us);

// Writes it as PostgreSQL does inside of JSON: 2026-11-16T13:05:00.25+00:00.
void iso_time_print(int64_t us, char ret[ISO_TIME_SIZE]);

#endif
