// SPDX-License-Identifier: PostgreSQL
//
// What a terminal can do: see terminal.h.

#include "cli/terminal.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/str.h"

bool terminal_moves(int fd)
{
    const char *name = getenv("TERM");

    return isatty(fd) && !(name && str_equal(name, "dumb"));
}

bool terminal_colours(int fd)
{
    const char *unwanted = getenv("NO_COLOR");

    return terminal_moves(fd) && !(unwanted && unwanted[0]);
}

int terminal_columns(int fd)
{
    struct winsize size = {0};

    return isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}
