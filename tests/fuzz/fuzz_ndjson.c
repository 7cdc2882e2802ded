// SPDX-License-Identifier: PostgreSQL
//
// Streams of jobs in pieces of any sizes: the same lines come out, and what is passed on to the
// database is JSON. The first two bytes are the seed of the sizes.

#include <string.h>

#include "fuzz.h"
#include "http/job_line.h"
#include "http/ndjson.h"

#define TRACE "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

static void check_job(struct json_slice line, const char *trace)
{
    struct job_line job;
    AUTO_BUF out;

    buf_init(&out, 1 << 24);
    if (splitter_is_blank(line) || job_line_read(line, &job, NULL)) {
        return;
    }
    job_line_add(&job, trace, &out);
    MUST(out.status == 0);
    MUST(json_check((struct json_slice){out.data, out.len}, NULL) == 0);
    MUST(!memchr(line.at, '\n', line.len));
}

// A line is what stood between two breaks, wherever the stream was cut.
static void check_line(struct json_slice line, const char *expected, size_t length)
{
    MUST(line.len == length && (length == 0 || memcmp(line.at, expected, length) == 0));
    check_job(line, TRACE);
    check_job(line, NULL);
}

// Mostly a few bytes, now and then many.
static size_t next_piece(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return 1 + (*seed >> 24 < 32 ? *seed >> 8 & 0xFFFF : *seed >> 16 & 7);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct splitter splitter;

    if (size < 2) {
        return 0;
    }
    uint32_t seed = (uint32_t)data[0] << 8 | data[1];
    const char *at = (const char *)data + 2, *end = (const char *)data + size, *begin = at;
    buf_init(&splitter.line, 1 << 20);
    while (at < end) {
        size_t wanted = next_piece(&seed), left = (size_t)(end - at);
        struct json_slice line;
        size_t taken = splitter_take(&splitter, at, wanted < left ? wanted : left, &line);
        MUST(taken > 0 && taken <= left && splitter.line.status == 0);
        at += taken;
        MUST((line.at != NULL) == (at[-1] == '\n'));
        if (line.at) {
            check_line(line, begin, (size_t)(at - 1 - begin));
            begin = at;
            splitter.line.len = 0;
        }
    }
    check_line(splitter_rest(&splitter), begin, (size_t)(end - begin));
    buf_done(&splitter.line);
    return 0;
}
