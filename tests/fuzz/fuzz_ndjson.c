// SPDX-License-Identifier: PostgreSQL
//
// Streams of jobs in pieces of any size: the same lines come out, and what is passed on to the
// database is JSON. The first byte is the size of the pieces.

#include <string.h>

#include "fuzz.h"
#include "http/job_line.h"
#include "http/ndjson.h"

#define TRACE "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

static void check_line(struct json_slice line)
{
    struct job_line job;
    AUTO_BUF out;

    buf_init(&out, 1 << 24);
    if (splitter_is_blank(line) || job_line_read(line, &job, NULL)) {
        return;
    }
    job_line_add(&job, TRACE, &out);
    MUST(out.status == 0);
    MUST(json_check((struct json_slice){out.data, out.len}, NULL) == 0);
    MUST(!memchr(line.at, '\n', line.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct splitter splitter;
    size_t total = 0, breaks = 0, lines = 0;

    buf_init(&splitter.line, 1 << 20);
    for (size_t at = 1; at < size;) {
        size_t piece = size - at < (size_t)data[0] + 1 ? size - at : (size_t)data[0] + 1;
        struct json_slice line;
        size_t taken = splitter_take(&splitter, (const char *)data + at, piece, &line);
        MUST(taken > 0 && taken <= piece);
        at += taken;
        total += taken;
        if (line.at) {
            lines++;
            check_line(line);
            splitter.line.len = 0;
        }
    }
    for (size_t i = 1; i < size; i++) {
        breaks += data[i] == '\n';
    }
    MUST(lines == breaks && (size == 0 || total == size - 1));
    check_line(splitter_rest(&splitter));
    buf_done(&splitter.line);
    return 0;
}
