// SPDX-License-Identifier: PostgreSQL
//
// SQL's LIKE, as PostgreSQL has it: % stands for any text, _ for one character, a backslash takes
// the meaning from what follows it; all else stands for itself, and case counts.

#ifndef MILLRACE_BASE_LIKE_H
#define MILLRACE_BASE_LIKE_H

#include <stdbool.h>
#include <stddef.h>

// Whether a text is like a pattern. Both are UTF-8; the pattern ends with no lone backslash.
bool like_matches(const char *text, const char *pattern);

// Whether the last character of a pattern is a backslash that escapes nothing.
bool like_is_cut(const char *pattern);

#endif
