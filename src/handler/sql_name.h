// SPDX-License-Identifier: PostgreSQL
//
// The name of a function as people write it, made safe to put into a statement.

#ifndef MILLRACE_HANDLER_SQL_NAME_H
#define MILLRACE_HANDLER_SQL_NAME_H

#include "base/buf.h"
#include "base/err.h"

// What PostgreSQL allows of one part, in bytes.
#define SQL_NAME_PART_MAX 63

// Reads `function`, `schema.function`, or the same with quotes ("My Function"), and appends it
// with every part quoted; what was not in quotes is folded to lower case, as SQL does. Fails with
// MR_ECONFIG for anything else.
int sql_name_quote(const char *text, struct buf *out, struct mr_error *err);

#endif
