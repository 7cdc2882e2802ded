// SPDX-License-Identifier: PostgreSQL
//
// How a command ends: see command.h.

#include "cli/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int command_fail(const struct mr_error *err)
{
    fflush(stdout);
    fprintf(stderr, "millrace: %s\n", err->message);
    if (err->detail[0]) {
        fprintf(stderr, "detail: %s\n", err->detail);
    }
    if (err->hint[0]) {
        fprintf(stderr, "hint: %s\n", err->hint);
    }
    if (err->code == MR_ECONNECT) {
        return EXIT_UNREACHABLE;
    }
    return err->code == MR_EUSAGE ? EXIT_USAGE : EXIT_FAILED;
}

int command_finish(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return status;
    }
    fprintf(stderr, "millrace: cannot write to standard output: %s\n", strerror(errno));
    return EXIT_FAILED;
}
