// SPDX-License-Identifier: PostgreSQL
//
// Bytes as base64 text (RFC 4648, with padding, no line breaks).

#ifndef MILLRACE_BASE_BASE64_H
#define MILLRACE_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

void base64_add(struct buf *out, const void *data, size_t size);

// Appends the bytes that `text` stands for. False for what is not base64 of that form; some may
// have been appended then. Bits that are left over are ignored, as PostgreSQL does.
bool base64_read(struct buf *out, const char *text, size_t length);

#endif
