// SPDX-License-Identifier: PostgreSQL
//
// Characters in UTF-8: see utf8.h.

#include "base/utf8.h"

size_t utf8_length(const char *at)
{
    static const struct {
        unsigned char first, last; // of the first byte
        unsigned char second_min, second_max;
        size_t length;
    } rows[] = {
        {0x01, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    const unsigned char *c = (const unsigned char *)at;
    size_t row = 0;

    while (row < sizeof(rows) / sizeof(rows[0]) && (*c < rows[row].first || *c > rows[row].last)) {
        row++;
    }
    if (row == sizeof(rows) / sizeof(rows[0])) {
        return 0;
    }
    for (size_t i = 1; i < rows[row].length; i++) {
        unsigned char least = i == 1 ? rows[row].second_min : 0x80;
        unsigned char most = i == 1 ? rows[row].second_max : 0xbf;
        if (c[i] < least || c[i] > most) {
            return 0;
        }
    }
    return rows[row].length;
}

const char *utf8_wrong(const char *text)
{
    while (*text) {
        size_t length = utf8_length(text);
        if (!length) {
            return text;
        }
        text += length;
    }
    return NULL;
}
