// SPDX-License-Identifier: PostgreSQL
//
// A line in which a child says how far its job is:
//
//   {"id": 7, "progress": 40, "note": "page 2 of 5"}
//
// Nothing but these keys, of which `progress` is required: an object with any other key is not a
// report, so that an answer, which has no `progress`, cannot be taken for one.

#ifndef MILLRACE_HANDLER_REPORT_LINE_H
#define MILLRACE_HANDLER_REPORT_LINE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

// A longer line is none.
#define REPORT_LINE_MAX (16 * 1024)

struct report_line {
    int64_t id; // -1: not given
    double percent;
    const char *note; // or NULL
    json_t *holder;   // of the note
};

enum report_verdict {
    REPORT_NONE, // a line of another sort
    REPORT_GOOD, // *ret is ended with report_line_done()
    REPORT_BAD,  // a report, but not a good one; err says why
};

enum report_verdict report_line_parse(const char *text, size_t size, struct report_line *ret,
                                      struct mr_error *err);
void report_line_done(struct report_line *line);

#endif
