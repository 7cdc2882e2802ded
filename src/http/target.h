// SPDX-License-Identifier: PostgreSQL
//
// What a request is aimed at: the path, part by part, and the query, name by name. Read strictly:
// whatever could mean one thing here and another elsewhere is refused.

#ifndef MILLRACE_HTTP_TARGET_H
#define MILLRACE_HTTP_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

// The longest target; what is longer has no meaning here.
#define TARGET_SIZE_MAX  8192
#define TARGET_PARTS_MAX 8
#define TARGET_QUERY_MAX 32

struct target_pair {
    const char *name;
    const char *value;
};

// All decoded, UTF-8, without zero bytes. Strings live in `text`.
struct target {
    char *text;
    const char *parts[TARGET_PARTS_MAX]; // of the path; none for "/"
    size_t part_count;
    struct target_pair query[TARGET_QUERY_MAX];
    size_t query_count;
};

// Reads a target such as `/api/v1/jobs?queue=mail`. Fails with MR_EINVALID: no path, empty parts
// (`//`), `.` and `..` in whatever form, a wrong escape, %00, bytes that are not UTF-8, a name
// given twice; MR_ELIMIT: too long, too many parts; MR_ENOMEM. On failure nothing is to be freed.
int target_read(const char *uri, struct target *ret, struct mr_error *err);
void target_done(struct target *target);

// The value of a name in the query; NULL when it is not given.
const char *target_value(const struct target *target, const char *name);

#endif
