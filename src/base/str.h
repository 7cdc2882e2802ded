// SPDX-License-Identifier: PostgreSQL
//
// Small questions about strings. Nothing here allocates or keeps a pointer.

#ifndef MILLRACE_BASE_STR_H
#define MILLRACE_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The longest word that str_distance() compares.
#define STR_DISTANCE_MAX 64

// The longest duration that str_parse_duration_ms() accepts: 24 hours.
#define STR_DURATION_MAX_MS (INT64_C(24) * 60 * 60 * 1000)

// And str_parse_span_ms(): ten years.
#define STR_SPAN_MAX_MS (3650 * STR_DURATION_MAX_MS)

bool str_equal(const char *a, const char *b);
bool str_starts(const char *text, const char *prefix);

// NULL and "" are both nothing.
bool str_empty(const char *text);

// Cuts an incomplete UTF-8 character off the end, as left by a fixed-size buffer.
void str_trim_utf8(char *text);

// Turns line breaks and tabs into spaces.
void str_one_line(char *text);

// The line, counted from 1, on which the character `position` (counted from 1, in
// UTF-8 characters as PostgreSQL counts) of `text` stands.
int str_line_of(const char *text, int position);

// How many insertions, deletions, replacements and swaps of neighbours turn `a` into
// `b`; INT_MAX when either is longer than STR_DISTANCE_MAX.
int str_distance(const char *a, const char *b);

// Reads `500ms`, `5s`, `2min`, `1h`: a whole number with a unit, more than zero, at
// most STR_DURATION_MAX_MS. Returns false and leaves *ret_ms alone for anything else.
bool str_parse_duration_ms(const char *text, int64_t *ret_ms);

// The same with the unit `d` too, at most STR_SPAN_MAX_MS.
bool str_parse_span_ms(const char *text, int64_t *ret_ms);

// Reads a decimal number, 0 or more and finite: `2`, `0.5`. Returns false and leaves *ret alone
// for anything else.
bool str_parse_real(const char *text, double *ret);

// Reads a whole decimal number within [min, max]. Returns false and leaves *ret alone
// for anything else.
bool str_parse_int(const char *text, int64_t min, int64_t max, int64_t *ret);

// Compares dotted version numbers part by part (`1.10.0` is after `1.9.2`): below,
// equal to or above zero. What follows the first character that is neither digit nor
// dot is ignored.
int str_version_compare(const char *a, const char *b);

#endif
