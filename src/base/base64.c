// SPDX-License-Identifier: PostgreSQL

#include "base/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_add(struct buf *out, const void *data, size_t size)
{
    const unsigned char *in = data;

    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        unsigned bits = (unsigned)in[i] << 16;
        bits |= left > 1 ? (unsigned)in[i + 1] << 8 : 0;
        bits |= left > 2 ? in[i + 2] : 0;
        char group[4] = {
            digits[bits >> 18],
            digits[bits >> 12 & 63],
            left > 1 ? digits[bits >> 6 & 63] : '=',
            left > 2 ? digits[bits & 63] : '=',
        };
        buf_add(out, group, sizeof(group));
    }
}
