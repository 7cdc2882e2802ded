// SPDX-License-Identifier: PostgreSQL
//
// A growing buffer of bytes that names its maximum at birth.
//
// Appending never fails in place: the first append that cannot be done (no memory, or
// the maximum is reached) marks the buffer, later ones do nothing, and the owner asks
// once, with buf_status(), whether all of it is there.

#ifndef MILLRACE_BASE_BUF_H
#define MILLRACE_BASE_BUF_H

#include <stddef.h>

#include "base/err.h"

struct buf {
    char *data; // NUL-terminated once anything was appended; else NULL
    size_t len; // without the NUL
    size_t capacity;
    size_t max; // of len
    int status; // 0, MR_ENOMEM or MR_ELIMIT
};

// An empty buffer of at most `max` bytes. Allocates nothing.
void buf_init(struct buf *buf, size_t max);

// Frees the content; the buffer is empty and can be used again. Safe to call twice.
void buf_done(struct buf *buf);

void buf_add(struct buf *buf, const char *data, size_t len);
void buf_puts(struct buf *buf, const char *text);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

// 0 when every append succeeded, else the code of the first that did not.
int buf_status(const struct buf *buf, struct mr_error *err);

// The content as a string, "" when empty. Borrowed until the next append.
const char *buf_peek(const struct buf *buf);

// A buffer that frees itself at the end of its scope.
#define AUTO_BUF __attribute__((cleanup(buf_done))) struct buf

#endif
