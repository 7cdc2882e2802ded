// SPDX-License-Identifier: PostgreSQL
//
// How far a long command is, on standard error: a bar that is drawn again and again on a
// terminal, a line every few seconds elsewhere, nothing when it has to be quiet.
//
//   [=========>            ]  45 %   450,000 jobs  51,234/s  10 s left

#ifndef MILLRACE_CLI_PROGRESS_H
#define MILLRACE_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"

struct progress {
    FILE *out;        // NULL: quiet
    bool terminal;    // out is one
    const char *noun; // what is counted, borrowed: "jobs"
    int64_t whole;    // of what `part` is a part; 0: not known, and there is no bar
    int64_t start_ms;
    int64_t drawn_ms; // when it was drawn last
    bool drawn;       // the terminal's line is in use
};

// How often, at most, it is drawn.
enum { PROGRESS_TERMINAL_MS = 100, PROGRESS_LINE_MS = 5000 };

void progress_init(struct progress *progress, const char *noun, int64_t whole, bool quiet);

// `count` of the noun are done; `part` of `whole`, which may be another measure. Cheap when it
// is too early to draw.
void progress_update(struct progress *progress, int64_t count, int64_t part);

// Frees the terminal's line for other output. The next update draws again.
void progress_clear(struct progress *progress);

// The text that is drawn, without time: `width` is the number of characters there are.
void progress_text(struct buf *out, const char *noun, int64_t count, int64_t part, int64_t whole,
                   int64_t elapsed_ms, int width);

#endif
