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

// -1: no digit.
static int value_of(char digit)
{
    if (digit >= 'A' && digit <= 'Z') {
        return digit - 'A';
    }
    if (digit >= 'a' && digit <= 'z') {
        return digit - 'a' + 26;
    }
    if (digit >= '0' && digit <= '9') {
        return digit - '0' + 52;
    }
    return digit == '+' ? 62 : digit == '/' ? 63 : -1;
}

// Four characters, of which the last `padding` are `=`.
static bool read_group(struct buf *out, const char *group, size_t padding)
{
    unsigned bits = 0;

    for (size_t i = 0; i < 4; i++) {
        int value = i < 4 - padding ? value_of(group[i]) : 0;
        if (value < 0) {
            return false;
        }
        bits = bits << 6 | (unsigned)value;
    }
    char bytes[3] = {(char)(bits >> 16), (char)(bits >> 8), (char)bits};
    buf_add(out, bytes, sizeof(bytes) - padding);
    return true;
}

bool base64_read(struct buf *out, const char *text, size_t length)
{
    size_t padding = 0;

    if (length % 4) {
        return false;
    }
    if (length && text[length - 1] == '=') {
        padding = text[length - 2] == '=' ? 2 : 1;
    }
    for (size_t i = 0; i < length; i += 4) {
        if (!read_group(out, text + i, i + 4 == length ? padding : 0)) {
            return false;
        }
    }
    return true;
}
