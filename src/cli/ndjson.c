// SPDX-License-Identifier: PostgreSQL
//
// A file or a stream, line by line: see ndjson.h.

#include "cli/ndjson.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

enum { READ_SIZE = 256 * 1024 };

int ndjson_open(struct ndjson *ndjson, const char *path, struct mr_error *err)
{
    bool standard = str_equal(path, "-");

    *ndjson = (struct ndjson){.fd = STDIN_FILENO, .name = standard ? "standard input" : path};
    if (!standard) {
        ndjson->fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    if (ndjson->fd < 0) {
        return mr_error_set(err, MR_EIO, "cannot open %s: %s", path, strerror(errno));
    }
    ndjson->capacity = READ_SIZE;
    ndjson->data = malloc(ndjson->capacity);
    if (!ndjson->data) {
        ndjson_close(ndjson);
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    return 0;
}

void ndjson_close(struct ndjson *ndjson)
{
    free(ndjson->data);
    ndjson->data = NULL;
    if (ndjson->fd > STDIN_FILENO) {
        close(ndjson->fd);
    }
    ndjson->fd = -1;
}

int64_t ndjson_size(const struct ndjson *ndjson)
{
    struct stat info;

    return fstat(ndjson->fd, &info) == 0 && S_ISREG(info.st_mode) ? info.st_size : 0;
}

// Room for READ_SIZE bytes behind data[end]: moves what is there to the front, then grows. A
// line that is too long was refused before, so the buffer stays below the longest line and a
// read.
static int make_room(struct ndjson *ndjson, struct mr_error *err)
{
    memmove(ndjson->data, ndjson->data + ndjson->begin, ndjson->end - ndjson->begin);
    ndjson->searched -= ndjson->begin;
    ndjson->end -= ndjson->begin;
    ndjson->begin = 0;
    if (ndjson->capacity - ndjson->end >= READ_SIZE) {
        return 0;
    }
    size_t wanted = 2 * ndjson->capacity;
    char *grown = realloc(ndjson->data, wanted);
    if (!grown) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    ndjson->data = grown;
    ndjson->capacity = wanted;
    return 0;
}

// Waits for input; false when none came.
static bool await(const struct ndjson *ndjson, int timeout_ms)
{
    struct pollfd ready = {.fd = ndjson->fd, .events = POLLIN};

    return poll(&ready, 1, timeout_ms) > 0;
}

static int read_more(struct ndjson *ndjson, struct mr_error *err)
{
    int code = make_room(ndjson, err);

    if (code) {
        return code;
    }
    ssize_t got = read(ndjson->fd, ndjson->data + ndjson->end, READ_SIZE);
    if (got < 0 && errno != EINTR && errno != EAGAIN) {
        return mr_error_set(err, MR_EIO, "cannot read %s: %s", ndjson->name, strerror(errno));
    }
    ndjson->over = got == 0;
    ndjson->end += got > 0 ? (size_t)got : 0;
    return 0;
}

// The next line of what was read; false when there is no whole one. The last one of all may
// lack its line break.
static bool take_line(struct ndjson *ndjson, struct json_slice *ret)
{
    char *begin = ndjson->data + ndjson->begin;
    char *from = ndjson->data + ndjson->searched;
    char *end = memchr(from, '\n', ndjson->end - ndjson->searched);

    ndjson->searched = ndjson->end;
    if (!end && (!ndjson->over || ndjson->begin == ndjson->end)) {
        return false;
    }
    size_t len = end ? (size_t)(end - begin) : ndjson->end - ndjson->begin;
    *ret = (struct json_slice){begin, len};
    ndjson->line++;
    ndjson->begin += len + (end ? 1 : 0);
    ndjson->bytes += (int64_t)len + (end ? 1 : 0);
    ndjson->searched = ndjson->begin;
    return true;
}

static bool is_blank(struct json_slice line)
{
    for (size_t i = 0; i < line.len; i++) {
        if (!strchr(" \t\r", line.at[i]) || !line.at[i]) {
            return false;
        }
    }
    return true;
}

static int too_long(struct mr_error *err)
{
    mr_error_set(err, MR_ELIMIT, "longer than %d bytes", NDJSON_LINE_MAX);
    mr_error_hint(err, "One job a line; put what is large elsewhere and pass its address.");
    return MR_ELIMIT;
}

// Any line, blank ones too.
static int next_line(struct ndjson *ndjson, int timeout_ms, enum ndjson_event *ret,
                     struct json_slice *ret_line, struct mr_error *err)
{
    while (!take_line(ndjson, ret_line)) {
        if (ndjson->over) {
            *ret = NDJSON_END;
            return 0;
        }
        if (ndjson->end - ndjson->begin > NDJSON_LINE_MAX) {
            ndjson->line++;
            return too_long(err);
        }
        if (!await(ndjson, timeout_ms)) {
            *ret = NDJSON_IDLE;
            return 0;
        }
        int code = read_more(ndjson, err);
        if (code) {
            return code;
        }
    }
    *ret = NDJSON_LINE;
    return ret_line->len > NDJSON_LINE_MAX ? too_long(err) : 0;
}

int ndjson_next(struct ndjson *ndjson, int timeout_ms, enum ndjson_event *ret,
                struct json_slice *ret_line, struct mr_error *err)
{
    int code = 0;

    do {
        code = next_line(ndjson, timeout_ms, ret, ret_line, err);
    } while (code == 0 && *ret == NDJSON_LINE && is_blank(*ret_line));
    return code;
}

// Drops what was read up to the next line break, or all of it.
static void drop_line(struct ndjson *ndjson)
{
    char *begin = ndjson->data + ndjson->begin;
    char *end = memchr(begin, '\n', ndjson->end - ndjson->begin);
    size_t len = end ? (size_t)(end - begin) + 1 : ndjson->end - ndjson->begin;

    ndjson->line += end != NULL;
    ndjson->begin += len;
    ndjson->searched = ndjson->begin;
    ndjson->bytes += (int64_t)len;
}

int ndjson_skip(struct ndjson *ndjson, int64_t lines, struct mr_error *err)
{
    int code = 0;

    while (ndjson->line < lines && code == 0) {
        if (ndjson->begin < ndjson->end) {
            drop_line(ndjson);
        } else if (ndjson->over) {
            break;
        } else {
            code = read_more(ndjson, err);
        }
    }
    return code;
}
