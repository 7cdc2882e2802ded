// SPDX-License-Identifier: PostgreSQL
//
// Text from elsewhere on a terminal: how many columns a character takes, and what may not be
// written there as it is. Depends on no locale: a terminal is taken to be one of UTF-8.

#ifndef MILLRACE_CLI_WIDTH_H
#define MILLRACE_CLI_WIDTH_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

// One character of `text`, which does not end there. `bytes` are to be written for it, `len` of
// them: the character itself, or a blank for one that could move the cursor, change colours or
// turn the direction of writing, or a question mark for what is not UTF-8.
struct glyph {
    const char *bytes;
    size_t len;
    int columns;  // 0, 1 or 2
    size_t taken; // bytes of the text that it stands for
};

struct glyph glyph_of(const char *text);

// The columns that `text` takes.
int width_of(const char *text);

// Appends as much of `text` as fits into `columns` columns, with an ellipsis where it is cut.
// Returns the columns that it took.
int width_add(struct buf *out, const char *text, int columns);

// Appends `text` in lines of at most `columns` columns, broken at blanks, each but the first behind
// `indent` blanks, which the columns do not count. A word that is longer than a line is not broken.
void width_wrap(struct buf *out, const char *text, int columns, int indent);

#endif
