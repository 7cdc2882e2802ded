// SPDX-License-Identifier: PostgreSQL
//
// A terminal as a screen: lines are put together, and those that changed are drawn. On something
// that is no terminal lines are written once, without colours.
//
// Whatever ends the program, the terminal is left as it was found: screen_close() is also called
// at exit. Nothing but ANSI sequences that every terminal of the last decades knows, and none that
// colours where the user wants no colours (terminal.h).

#ifndef MILLRACE_CLI_SCREEN_H
#define MILLRACE_CLI_SCREEN_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

enum style {
    STYLE_PLAIN,
    STYLE_BOLD,
    STYLE_DIM,
    STYLE_TITLE,    // reversed
    STYLE_SELECTED, // reversed, the line under the cursor
    STYLE_GOOD,
    STYLE_WARNING,
    STYLE_CRITICAL,
};

enum { SCREEN_ROWS_MAX = 500, SCREEN_COLUMNS_MAX = 1000, SCREEN_ROWS_PLAIN = 10000 };

struct screen; // one a process

// Takes the terminal: the other screen, no echo, keys one by one. `terminal` false writes to
// stdout as to a file. Fails with MR_EUSAGE when the terminal cannot be had.
int screen_open(bool terminal, struct screen **ret, struct mr_error *err);

// Gives the terminal back, as it was. Safe to call twice, and with NULL.
void screen_close(struct screen *screen);

// For a while, as a shell's Ctrl-Z wants it, and again.
void screen_leave(struct screen *screen);
void screen_enter(struct screen *screen);

// The size, asked of the terminal with each frame; 80 columns and as many rows as there are lines
// without one.
int screen_rows(const struct screen *screen);
int screen_columns(const struct screen *screen);

// A frame: begin, text from left to right, the end of each line, end. Text comes from anywhere: it
// is made harmless (see width.h) and cut at the right edge. Lines beyond the last row are lost.
void screen_begin(struct screen *screen);
void screen_put(struct screen *screen, enum style style, const char *text);

// In a field of so many columns, flush left or right, cut where it is longer.
void screen_field(struct screen *screen, enum style style, const char *text, int columns,
                  bool right);
void screen_blanks(struct screen *screen, int columns);

// From here to the end of the line everything has this style, blanks too.
void screen_tint(struct screen *screen, enum style style);
void screen_end_line(struct screen *screen);

// Throws away what was put since the last line ended.
void screen_drop_line(struct screen *screen);

// The lines that are left in the frame.
int screen_left(const struct screen *screen);

// Draws the lines that differ from those on the terminal.
int screen_end(struct screen *screen, struct mr_error *err);

// Draw all of it next time: the terminal changed its size, or somebody else wrote to it.
void screen_forget(struct screen *screen);

#endif
