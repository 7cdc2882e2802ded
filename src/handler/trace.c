// SPDX-License-Identifier: PostgreSQL
//
// Traces of W3C's kind: see trace.h.

#include "handler/trace.h"

#include <string.h>

#include "base/json_scan.h"

bool trace_is_parent(const char *text)
{
    static const char form[] = "xx-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";

    if (!text || strlen(text) != strlen(form)) {
        return false;
    }
    for (size_t i = 0; form[i]; i++) {
        const char *allowed = form[i] == '-' ? "-" : "0123456789abcdef";
        if (!strchr(allowed, text[i])) {
            return false;
        }
    }
    return true;
}

static void on_member(void *arg, struct json_slice key, struct json_slice value)
{
    char *ret = arg;

    if (json_slice_is(key, "traceparent") && value.len == TRACE_SIZE + 1 && value.at[0] == '"') {
        memcpy(ret, value.at + 1, TRACE_SIZE - 1);
        ret[TRACE_SIZE - 1] = '\0';
    }
}

bool trace_of_job(const mr_claimed_job *job, char ret[TRACE_SIZE])
{
    ret[0] = '\0';
    return job && job->meta && job->meta[0] == '{' &&
           json_each_member(json_slice_of(job->meta), on_member, ret, NULL) == 0 &&
           trace_is_parent(ret);
}
