// SPDX-License-Identifier: PostgreSQL
//
// Bytes as base64 text (RFC 4648, with padding, no line breaks).

#ifndef MILLRACE_BASE_BASE64_H
#define MILLRACE_BASE_BASE64_H

#include <stddef.h>

#include "base/buf.h"

void base64_add(struct buf *out, const void *data, size_t size);

#endif
