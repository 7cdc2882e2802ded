// SPDX-License-Identifier: PostgreSQL
//
// SQL's LIKE: see like.h.

#include "base/like.h"

#include <string.h>

#include "base/utf8.h"

static const char *next_character(const char *at)
{
    size_t length = utf8_length(at);

    return at + (length ? length : 1);
}

// Literals are compared byte by byte. Only the last % is ever tried again, a character further on:
// an earlier one could not match more than it did.
bool like_matches(const char *text, const char *pattern)
{
    const char *behind_any = NULL, *again = NULL;

    while (*text) {
        if (*pattern == '%') {
            behind_any = ++pattern;
            again = text;
            continue;
        }
        const char *literal = *pattern == '\\' ? pattern + 1 : pattern;
        if (*pattern == '_') {
            pattern++;
            text = next_character(text);
        } else if (*pattern && *literal == *text) {
            pattern = literal + 1;
            text++;
        } else if (behind_any) {
            text = again = next_character(again);
            pattern = behind_any;
        } else {
            return false;
        }
    }
    return pattern[strspn(pattern, "%")] == '\0';
}

bool like_is_cut(const char *pattern)
{
    size_t count = 0;

    for (size_t i = strlen(pattern); i > 0 && pattern[i - 1] == '\\'; i--) {
        count++;
    }
    return count % 2 == 1;
}
