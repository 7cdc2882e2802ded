// SPDX-License-Identifier: PostgreSQL
//
// Compressed payload parts: see part_zstd.h.

#include "client/part_zstd.h"

#include <stdlib.h>
#include <zstd.h>

// zstd's own default: JSON becomes three to ten times smaller, at some hundred MB a second.
#define LEVEL 3

void part_zstd_done(struct part_zstd *zstd)
{
    ZSTD_freeCCtx(zstd->out);
    ZSTD_freeDCtx(zstd->in);
    *zstd = (struct part_zstd){0};
}

// ---- compressing ----

// With a checksum: what was changed on its way is noticed before a handler sees it.
static bool begin_out(struct part_zstd *zstd)
{
    if (zstd->out) {
        return true;
    }
    zstd->out = ZSTD_createCCtx();
    return zstd->out &&
           !ZSTD_isError(ZSTD_CCtx_setParameter(zstd->out, ZSTD_c_compressionLevel, LEVEL)) &&
           !ZSTD_isError(ZSTD_CCtx_setParameter(zstd->out, ZSTD_c_checksumFlag, 1));
}

// The largest value that pays, with its header; 0: none would.
static size_t worth(size_t size)
{
    size_t most = size - size / 10;

    return size <= PART_SIZE_MAX && most > PART_HEADER_SIZE ? most - PART_HEADER_SIZE : 0;
}

int part_zstd_add(struct part_zstd *zstd, struct buf *out, const void *data, size_t size,
                  bool *ret_pays, struct mr_error *err)
{
    size_t room = worth(size);

    *ret_pays = false;
    if (room == 0) {
        return 0;
    }
    char *frame = malloc(room);
    if (!frame || !begin_out(zstd)) {
        free(frame);
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    // one that does not fit is one that does not pay
    size_t length = ZSTD_compress2(zstd->out, frame, room, data, size);
    if (!ZSTD_isError(length)) {
        part_add_header(out, PART_ZSTD, size);
        buf_add(out, frame, length);
        *ret_pays = true;
    }
    free(frame);
    return buf_status(out, err);
}

// ---- decompressing ----

static int damaged(struct mr_error *err, const char *what, const char *why)
{
    mr_error_set(err, MR_EDAMAGED, "%s%s%s", what, why ? ": " : "", why ? why : "");
    mr_error_hint(err, "It was changed since it was written, or was not written by Millrace; "
                       "docs/compression.md says what the bytes are.");
    return MR_EDAMAGED;
}

// One frame, all of the body, that says the size of the header. The sizes are compared before
// anything is allocated for them.
static int check_frame(const struct part *part, struct mr_error *err)
{
    unsigned long long declared = ZSTD_getFrameContentSize(part->body, part->body_size);

    if (part->coding != PART_ZSTD || part->size > PART_SIZE_MAX ||
        declared == ZSTD_CONTENTSIZE_ERROR) {
        return damaged(err, "the compressed value is damaged", "it has no zstd frame");
    }
    if (declared != part->size) {
        return damaged(err, "the compressed value is damaged",
                       "header and frame declare different sizes");
    }
    size_t length = ZSTD_findFrameCompressedSize(part->body, part->body_size);
    if (ZSTD_isError(length)) {
        return damaged(err, "the compressed value is damaged", ZSTD_getErrorName(length));
    }
    return length == part->body_size
               ? 0
               : damaged(err, "the compressed value is damaged", "bytes follow the zstd frame");
}

static int expand(struct part_zstd *zstd, const struct part *part, char *original,
                  struct mr_error *err)
{
    if (!zstd->in && !(zstd->in = ZSTD_createDCtx())) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    size_t length =
        ZSTD_decompressDCtx(zstd->in, original, part->size, part->body, part->body_size);
    if (ZSTD_isError(length)) {
        return damaged(err, "the compressed value is damaged", ZSTD_getErrorName(length));
    }
    return length == part->size
               ? 0
               : damaged(err, "the compressed value is damaged", "it is shorter than declared");
}

int part_zstd_read(struct part_zstd *zstd, const struct part *part, char **ret,
                   struct mr_error *err)
{
    int code = check_frame(part, err);

    if (code) {
        return code;
    }
    char *original = malloc(part->size + 1);
    if (!original) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    if ((code = expand(zstd, part, original, err))) {
        free(original);
        return code;
    }
    original[part->size] = '\0';
    *ret = original;
    return 0;
}
