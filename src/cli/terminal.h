// SPDX-License-Identifier: PostgreSQL
//
// What a terminal can do, by its name and by what its user wants: colours where neither TERM=dumb
// nor NO_COLOR (https://no-color.org) speaks against them, a moving cursor unless TERM=dumb.

#ifndef MILLRACE_CLI_TERMINAL_H
#define MILLRACE_CLI_TERMINAL_H

#include <stdbool.h>

// The descriptor is a terminal on which the cursor can be moved.
bool terminal_moves(int fd);

// And one that may be coloured.
bool terminal_colours(int fd);

// How many columns it has; 0 where the descriptor is none, or does not say.
int terminal_columns(int fd);

#endif
