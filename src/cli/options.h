// SPDX-License-Identifier: PostgreSQL
//
// Command-line options as tables.

#ifndef MILLRACE_CLI_OPTIONS_H
#define MILLRACE_CLI_OPTIONS_H

#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

enum option_type {
    OPTION_FLAG,     // bool
    OPTION_STRING,   // const char *, borrowed from argv
    OPTION_DSN,      // const char *; given again, it is one of a list (see client/dsn_list.h)
    OPTION_DURATION, // int64_t, milliseconds, at most 24 hours: a wait
    OPTION_SPAN,     // int64_t, milliseconds, at most ten years: an age, a delay
    OPTION_NUMBER,   // int64_t, from 0 to INT32_MAX
    OPTION_COUNT,    // int64_t, 0 or more
    OPTION_REAL,     // double, 0 or more
};

// One row; a table ends with a row without a name.
struct option_row {
    const char *name; // without the dashes; a single letter is typed with one dash
    enum option_type type;
    void *target;      // of the type's C type
    const char *value; // what the help calls the value; NULL for a flag
    const char *help;  // ends with the default
};

// Reads the options of argv[1..] into their targets, which hold the defaults before.
// Options and arguments may be mixed: argv is put in order, options first, arguments
// as they came behind them. All that follows `--` are arguments. Returns the index of
// the first argument (argc: there is none), or MR_EUSAGE. `--name value` and
// `--name=value` are the same; `-` is an argument.
int options_parse(const struct option_row *rows, int argc, char **argv, struct mr_error *err);

// Writes the rows as the lines of a help text.
void options_help(const struct option_row *rows, FILE *out);

#endif
