// SPDX-License-Identifier: PostgreSQL
//
// Bytes cut into lines: see lines.h.

#include "handler/lines.h"

#include <jansson.h>
#include <string.h>

#include "base/str.h"

void lines_init(struct lines *lines, size_t max)
{
    buf_init(&lines->part, max);
    lines->skipping = false;
}

void lines_done(struct lines *lines)
{
    buf_done(&lines->part);
}

static size_t without_return(const char *text, size_t size)
{
    return size && text[size - 1] == '\r' ? size - 1 : size;
}

// The limit is on the whole line; memory that is lacking counts as reaching it.
static void keep(struct lines *lines, const char *data, size_t size, line_fn *line, void *arg)
{
    size_t room = lines->part.max - lines->part.len;

    buf_add(&lines->part, data, size < room ? size : room);
    if (size > room || lines->part.status) {
        lines->skipping = true;
        line(arg, buf_peek(&lines->part), lines->part.len, LINE_CUT);
        buf_done(&lines->part);
    }
}

static void finish(struct lines *lines, line_fn *line, void *arg)
{
    struct buf whole = lines->part;

    // the callee may feed more
    buf_init(&lines->part, whole.max);
    line(arg, buf_peek(&whole), without_return(buf_peek(&whole), whole.len), LINE_WHOLE);
    buf_done(&whole);
}

// A piece up to and without a line break.
static void take(struct lines *lines, const char *data, size_t size, line_fn *line, void *arg)
{
    if (!lines->skipping && !lines->part.len && size <= lines->part.max) {
        line(arg, data, without_return(data, size), LINE_WHOLE);
        return;
    }
    if (!lines->skipping) {
        keep(lines, data, size, line, arg);
    }
    if (!lines->skipping) {
        finish(lines, line, arg);
    }
    lines->skipping = false;
}

void lines_feed(struct lines *lines, const char *data, size_t size, line_fn *line, void *arg)
{
    const char *end = data + size;

    for (const char *at = data; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (stop) {
            take(lines, at, (size_t)(stop - at), line, arg);
        } else if (!lines->skipping) {
            keep(lines, at, (size_t)(end - at), line, arg);
        }
        at = stop ? stop + 1 : end;
    }
}

void lines_end(struct lines *lines, line_fn *line, void *arg)
{
    if (lines->part.len) {
        line(arg, lines->part.data, lines->part.len, LINE_OPEN);
    }
    buf_done(&lines->part);
    lines->skipping = false;
}

static bool is_utf8(const char *text)
{
    json_t *string = json_string(text);
    bool valid = string != NULL;

    json_decref(string);
    return valid;
}

void line_show(const char *text, size_t size, char *out, size_t out_size)
{
    size_t len = size < out_size - 1 ? size : out_size - 1;

    memcpy(out, text, len);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)out[i];
        out[i] = c < 0x20 || c == 0x7f ? ' ' : out[i];
    }
    out[len] = '\0';
    if (len < size) {
        str_trim_utf8(out);
    }
    if (!is_utf8(out)) {
        for (char *c = out; *c; c++) {
            *c = (unsigned char)*c >= 0x80 ? '?' : *c;
        }
    }
}
