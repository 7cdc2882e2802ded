// SPDX-License-Identifier: PostgreSQL
//
// The coding 'z' of payload parts: one zstd frame that declares its size. See part.h.

#ifndef MILLRACE_CLIENT_PART_ZSTD_H
#define MILLRACE_CLIENT_PART_ZSTD_H

#include "client/part.h"

// What compressing and decompressing need, made when they need it first: worth keeping for many
// values. For one thread at a time. {0} is one.
struct part_zstd {
    struct ZSTD_CCtx_s *out;
    struct ZSTD_DCtx_s *in;
};

void part_zstd_done(struct part_zstd *zstd);

// Appends `data` as a whole 'z', if that is smaller by a tenth at least and `size` is within
// PART_SIZE_MAX. *ret_pays: whether it is, and was appended. Fails with MR_ENOMEM, MR_ELIMIT (of
// the buffer).
int part_zstd_add(struct part_zstd *zstd, struct buf *out, const void *data, size_t size,
                  bool *ret_pays, struct mr_error *err);

// *ret: the original, part->size bytes and a zero byte behind them, freed by the caller. Allocates
// no more than that for it, whatever the frame says. Fails with MR_EDAMAGED, MR_ENOMEM.
int part_zstd_read(struct part_zstd *zstd, const struct part *part, char **ret,
                   struct mr_error *err);

#endif
