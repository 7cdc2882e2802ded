// SPDX-License-Identifier: PostgreSQL
//
// A growing buffer: see buf.h.

#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUF_FIRST_CAPACITY 256

void buf_init(struct buf *buf, size_t max)
{
    *buf = (struct buf){.max = max};
}

void buf_done(struct buf *buf)
{
    free(buf->data);
    buf_init(buf, buf->max);
}

// Makes room for `len` more bytes and the NUL; marks the buffer when it cannot.
static int reserve(struct buf *buf, size_t len)
{
    if (buf->status) {
        return buf->status;
    }
    if (len > buf->max - buf->len) {
        return buf->status = MR_ELIMIT;
    }
    size_t wanted = buf->len + len + 1;
    size_t capacity = buf->capacity ? buf->capacity : BUF_FIRST_CAPACITY;
    if (wanted <= buf->capacity) {
        return 0;
    }
    while (capacity < wanted) {
        capacity *= 2;
    }
    char *data = realloc(buf->data, capacity);
    if (!data) {
        return buf->status = MR_ENOMEM;
    }
    buf->data = data;
    buf->capacity = capacity;
    return 0;
}

void buf_add(struct buf *buf, const char *data, size_t len)
{
    if (reserve(buf, len)) {
        return;
    }
    memcpy(buf->data + buf->len, data, len);
    buf->len += len;
    buf->data[buf->len] = '\0';
}

void buf_puts(struct buf *buf, const char *text)
{
    buf_add(buf, text, strlen(text));
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args;
    va_list again;

    va_start(args, format);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    if (len >= 0 && reserve(buf, (size_t)len) == 0) {
        vsnprintf(buf->data + buf->len, (size_t)len + 1, format, again);
        buf->len += (size_t)len;
    }
    va_end(again);
    va_end(args);
}

int buf_status(const struct buf *buf, struct mr_error *err)
{
    if (buf->status == MR_ELIMIT) {
        return mr_error_set(err, MR_ELIMIT, "text is longer than its limit of %zu bytes", buf->max);
    }
    if (buf->status) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    return 0;
}

const char *buf_peek(const struct buf *buf)
{
    return buf->data ? buf->data : "";
}
