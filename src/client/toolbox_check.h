// SPDX-License-Identifier: PostgreSQL
//
// What the SQL functions of the toolbox refuse, for backends without SQL: the same limits, codes,
// messages and hints. Each fails with MR_EINVALID.

#ifndef MILLRACE_CLIENT_TOOLBOX_CHECK_H
#define MILLRACE_CLIENT_TOOLBOX_CHECK_H

#include <millrace/millrace.h>

// A key, name, owner or pattern: UTF-8, 1 to 16,384 bytes.
int toolbox_check_key(const char *what, const char *text, mr_error *err);
// The same for a pattern, which must not end with a lone backslash.
int toolbox_check_pattern(const char *pattern, mr_error *err);
// JSON that jsonb takes, at most 16 MiB.
int toolbox_check_value(const char *value, mr_error *err);
int toolbox_check_ttl(int64_t ttl_ms, mr_error *err);
// The period of a limiter.
int toolbox_check_per(int64_t per_ms, mr_error *err);
// How many keys at once.
int toolbox_check_count(size_t count, mr_error *err);

#endif
