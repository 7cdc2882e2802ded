// SPDX-License-Identifier: PostgreSQL
//
// Writing JSON.

#ifndef MILLRACE_BASE_JSON_H
#define MILLRACE_BASE_JSON_H

#include "base/buf.h"

// Appends `text`, which is UTF-8, as a JSON string with its quotes.
void json_add_string(struct buf *out, const char *text);

#endif
