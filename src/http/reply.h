// SPDX-License-Identifier: PostgreSQL
//
// What a reply says: the status and word for an error, and the headers of every reply.

#ifndef MILLRACE_HTTP_REPLY_H
#define MILLRACE_HTTP_REPLY_H

#include <microhttpd.h>

#include "base/buf.h"
#include "base/err.h"

#define REPLY_ERROR_MAX (64 * 1024)

// The status for an error, and the word that programs look for.
unsigned reply_status(const struct mr_error *err, const char **ret_code);
// The word for a status.
const char *reply_code(unsigned status);

// {"error":{"code","message","hint"}<members>}
void reply_error_body(struct buf *out, const char *code, const char *message, const char *hint,
                      const char *members);

// Headers that keep a browser from doing anything but what the page is for. `type`: of the content.
// NULL `policy`: that of what is no page.
void reply_headers(struct MHD_Response *response, const char *type, const char *policy);

#endif
