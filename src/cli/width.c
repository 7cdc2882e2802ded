// SPDX-License-Identifier: PostgreSQL
//
// Text from elsewhere on a terminal: see width.h.

#include "cli/width.h"

#include <stdbool.h>

struct range {
    uint32_t first, last;
};

// Characters that no job may write to somebody's terminal: controls, separators of lines,
// directions of writing, and the invisible ones that make two names look alike.
static const struct range unsafe[] = {
    {0x00, 0x1F},     {0x7F, 0x9F},     {0xAD, 0xAD},     {0x61C, 0x61C},   {0x200B, 0x200F},
    {0x2028, 0x202E}, {0x2060, 0x206F}, {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE0FFF},
};

// Marks that are drawn over the character before them.
static const struct range zero[] = {
    {0x300, 0x36F},   {0x483, 0x489},   {0x591, 0x5BD},   {0x5BF, 0x5BF},   {0x5C1, 0x5C2},
    {0x610, 0x61A},   {0x64B, 0x65F},   {0x670, 0x670},   {0x6D6, 0x6DC},   {0x900, 0x902},
    {0x93C, 0x93C},   {0x941, 0x948},   {0x94D, 0x94D},   {0xE31, 0xE31},   {0xE34, 0xE3A},
    {0xE47, 0xE4E},   {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x20D0, 0x20FF}, {0x302A, 0x302D},
    {0x3099, 0x309A}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F},
};

// Those of East Asia, and pictures.
static const struct range wide[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x23E9, 0x23EC},   {0x2E80, 0x303E},
    {0x3041, 0x33FF},   {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},
    {0xA960, 0xA97F},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
    {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x16FE0, 0x18CFF}, {0x1B000, 0x1B2FF},
    {0x1F200, 0x1F2FF}, {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F7E0, 0x1F7EB},
    {0x1F900, 0x1FAFF}, {0x20000, 0x3FFFD},
};

#define IN(ranges, code) in_ranges(ranges, sizeof(ranges) / sizeof((ranges)[0]), code)

static bool in_ranges(const struct range *ranges, size_t count, uint32_t code)
{
    for (size_t i = 0; i < count; i++) {
        if (code >= ranges[i].first && code <= ranges[i].last) {
            return true;
        }
    }
    return false;
}

// The character at `text` and its bytes; 0 bytes when it is not UTF-8. Overlong forms,
// surrogates and what is beyond U+10FFFF are not.
static size_t decode(const unsigned char *text, uint32_t *ret)
{
    static const struct {
        unsigned char mask, lead;
        size_t len;
        uint32_t least;
    } forms[] = {{0x80, 0x00, 1, 0},
                 {0xE0, 0xC0, 2, 0x80},
                 {0xF0, 0xE0, 3, 0x800},
                 {0xF8, 0xF0, 4, 0x10000}};

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if ((text[0] & forms[i].mask) != forms[i].lead) {
            continue;
        }
        uint32_t code = text[0] & (unsigned char)~forms[i].mask;
        for (size_t k = 1; k < forms[i].len; k++) {
            if ((text[k] & 0xC0) != 0x80) {
                return 0; // also where the text ends
            }
            code = code << 6 | (text[k] & 0x3F);
        }
        *ret = code;
        bool valid = code >= forms[i].least && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
        return valid ? forms[i].len : 0;
    }
    return 0;
}

struct glyph glyph_of(const char *text)
{
    uint32_t code = 0;
    size_t len = decode((const unsigned char *)text, &code);

    if (len == 0) {
        return (struct glyph){"?", 1, 1, 1};
    }
    if (IN(unsafe, code)) {
        return (struct glyph){" ", 1, 1, len};
    }
    return (struct glyph){text, len, IN(zero, code) ? 0 : IN(wide, code) ? 2 : 1, len};
}

int width_of(const char *text)
{
    int columns = 0;

    while (*text) {
        struct glyph glyph = glyph_of(text);

        columns += glyph.columns;
        text += glyph.taken;
    }
    return columns;
}

// Stops before the first character that does not fit.
static int add_glyphs(struct buf *out, const char *text, int columns)
{
    int used = 0;

    while (*text) {
        struct glyph glyph = glyph_of(text);

        if (used + glyph.columns > columns) {
            break;
        }
        buf_add(out, glyph.bytes, glyph.len);
        used += glyph.columns;
        text += glyph.taken;
    }
    return used;
}

int width_add(struct buf *out, const char *text, int columns)
{
    if (columns <= 0) {
        return 0;
    }
    if (width_of(text) <= columns) {
        return add_glyphs(out, text, columns);
    }
    int used = add_glyphs(out, text, columns - 1);

    buf_puts(out, "…");
    return used + 1;
}

// The bytes of `text` up to the next blank or the end, and the columns that they take.
static size_t word_at(const char *text, int *ret_columns)
{
    size_t len = 0;

    *ret_columns = 0;
    while (text[len] && text[len] != ' ') {
        struct glyph glyph = glyph_of(text + len);

        *ret_columns += glyph.columns;
        len += glyph.taken;
    }
    return len;
}

void width_wrap(struct buf *out, const char *text, int columns, int indent)
{
    int used = 0;

    while (*text) {
        int width = 0;
        size_t len = word_at(text, &width);

        if (used > 0 && used + 1 + width > columns) {
            buf_printf(out, "\n%*s", indent, "");
            used = 0;
        } else if (used > 0) {
            buf_puts(out, " ");
            used++;
        }
        used += add_glyphs(out, text, width);
        text += len + (text[len] == ' ');
    }
}
