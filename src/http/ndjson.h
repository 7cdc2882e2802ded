// SPDX-License-Identifier: PostgreSQL
//
// A stream of jobs, one JSON object a line, of any length in constant memory: a chunk is sent to
// the database (see chunk.h), and the client waits meanwhile.

#ifndef MILLRACE_HTTP_NDJSON_H
#define MILLRACE_HTTP_NDJSON_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json_scan.h"

struct exchange;

// From now on the exchange's body is taken as it comes. False: it has been replied to.
bool ndjson_begin(struct exchange *exchange);
// The body has ended.
void ndjson_end(struct exchange *exchange);

// ---- lines, apart from where they come from ----

struct splitter {
    struct buf line; // what has come of one that is not complete
};

// Takes bytes up to and with the next line break. *ret_line is a whole line, borrowed until the
// next call, with `at` NULL when none is complete yet. Returns how many bytes were taken; the
// buffer's status says when a line is too long.
size_t splitter_take(struct splitter *splitter, const char *data, size_t size,
                     struct json_slice *ret_line);
// What remains at the end.
struct json_slice splitter_rest(const struct splitter *splitter);
bool splitter_is_blank(struct json_slice line);

#endif
