// SPDX-License-Identifier: PostgreSQL
//
// Characters in UTF-8. Nothing here allocates or keeps a pointer.

#ifndef MILLRACE_BASE_UTF8_H
#define MILLRACE_BASE_UTF8_H

#include <stddef.h>

// The length of the character at `at`, a byte of a text that ends with a zero byte; 0 when there is
// none. Overlong forms, surrogates and what is beyond U+10FFFF are none.
size_t utf8_length(const char *at);

// The first byte of a text that begins no character; NULL: it is UTF-8.
const char *utf8_wrong(const char *text);

#endif
