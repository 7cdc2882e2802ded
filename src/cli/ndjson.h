// SPDX-License-Identifier: PostgreSQL
//
// A file or a stream, line by line, in constant memory.

#ifndef MILLRACE_CLI_NDJSON_H
#define MILLRACE_CLI_NDJSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json_scan.h"

// The longest line, without its line break.
#define NDJSON_LINE_MAX (4 * 1024 * 1024)

struct ndjson {
    int fd;
    const char *name; // of the file, for messages; borrowed
    char *data;
    size_t begin, end, capacity; // what was read and not taken: data[begin..end)
    size_t searched;             // data[begin..searched) has no line break
    bool over;                   // the end was read
    int64_t line;                // number of the last line taken, from 1
    int64_t bytes;               // taken, for progress
};

enum ndjson_event {
    NDJSON_LINE,
    NDJSON_IDLE, // nothing came within the time allowed, or a signal came
    NDJSON_END,
};

// Opens a file, `-` for standard input. Fails with MR_EIO, MR_ENOMEM.
int ndjson_open(struct ndjson *ndjson, const char *path, struct mr_error *err);
void ndjson_close(struct ndjson *ndjson);

// The size of a regular file; 0: not known.
int64_t ndjson_size(const struct ndjson *ndjson);

// The next line that is not blank, waiting timeout_ms at most (-1: for as long as it takes).
// *ret_line is borrowed until the next call. Fails with MR_ELIMIT for a line that is too long
// (ndjson->line is its number) and MR_EIO.
int ndjson_next(struct ndjson *ndjson, int timeout_ms, enum ndjson_event *ret,
                struct json_slice *ret_line, struct mr_error *err);

// Skips the first lines, of any length; fewer when the end comes first, which is told by
// ndjson->line.
int ndjson_skip(struct ndjson *ndjson, int64_t lines, struct mr_error *err);

#endif
