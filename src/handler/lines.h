// SPDX-License-Identifier: PostgreSQL
//
// Bytes that come in pieces, cut into lines of a limited length.

#ifndef MILLRACE_HANDLER_LINES_H
#define MILLRACE_HANDLER_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum line_end {
    LINE_WHOLE,
    LINE_CUT,  // longer than the limit: this is its beginning, the rest is thrown away
    LINE_OPEN, // the bytes ended before the line did
};

// A line without its line break (a carriage return before it is dropped, too). Borrowed, not
// ended by a NUL.
typedef void line_fn(void *arg, const char *text, size_t size, enum line_end end);

struct lines {
    struct buf part; // of a line that has not ended
    bool skipping;   // the rest of a line that was too long
};

// Lines of at most `max` bytes.
void lines_init(struct lines *lines, size_t max);
void lines_done(struct lines *lines);

void lines_feed(struct lines *lines, const char *data, size_t size, line_fn *line, void *arg);
// There will be no more bytes: hands out what is left, if anything.
void lines_end(struct lines *lines, line_fn *line, void *arg);

// The beginning of a line as text for people: printable UTF-8, at most out_size - 1 bytes.
void line_show(const char *text, size_t size, char *out, size_t out_size);

#endif
