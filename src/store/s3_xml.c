// SPDX-License-Identifier: PostgreSQL
//
// The XML of S3: see s3_xml.h.

#include "store/s3_xml.h"

#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

struct reader {
    const char *at;
    const char *end;
    s3_xml_fn *on_end;
    void *arg;
    char path[S3_XML_PATH_SIZE];
    size_t path_size;
    size_t starts[S3_XML_DEPTH_MAX]; // where in the path each name begins
    bool parents[S3_XML_DEPTH_MAX];  // which of them hold elements
    int depth;
    char text[S3_XML_TEXT_MAX + 1];
    size_t text_size;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_blanks(struct reader *reader)
{
    while (reader->at < reader->end && is_blank(*reader->at)) {
        reader->at++;
    }
}

static bool take(struct reader *reader, const char *what)
{
    size_t size = strlen(what);

    if ((size_t)(reader->end - reader->at) < size || memcmp(reader->at, what, size) != 0) {
        return false;
    }
    reader->at += size;
    return true;
}

// ---- text ----

static bool add_byte(struct reader *reader, char c)
{
    if (reader->text_size >= S3_XML_TEXT_MAX) {
        return false;
    }
    reader->text[reader->text_size++] = c;
    return true;
}

// A character by its number, as UTF-8. Those that XML does not have are none.
static bool add_number(struct reader *reader, uint32_t number)
{
    if ((number < ' ' && number != '\t' && number != '\n' && number != '\r') ||
        (number >= 0xd800 && number < 0xe000) || number > 0x10ffff) {
        return false;
    }
    if (number < 0x80) {
        return add_byte(reader, (char)number);
    }
    int more = number < 0x800 ? 1 : number < 0x10000 ? 2 : 3;
    static const unsigned char marks[] = {0, 0xc0, 0xe0, 0xf0};
    bool good = add_byte(reader, (char)(marks[more] | number >> 6 * more));
    while (good && more-- > 0) {
        good = add_byte(reader, (char)(0x80 | (number >> 6 * more & 0x3f)));
    }
    return good;
}

static int digit_of(char c, int base)
{
    int value = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : base;

    return value < base ? value : -1;
}

// Behind `&#`.
static bool read_number(struct reader *reader)
{
    int base = take(reader, "x") ? 16 : 10;
    uint32_t number = 0;
    int digits = 0;

    for (; reader->at < reader->end && digit_of(*reader->at, base) >= 0 && digits < 8; digits++) {
        number = number * (uint32_t)base + (uint32_t)digit_of(*reader->at++, base);
    }
    return digits > 0 && take(reader, ";") && add_number(reader, number);
}

static bool read_entity(struct reader *reader)
{
    static const struct {
        const char *text;
        char character;
    } entities[] = {
        {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''},
    };

    if (take(reader, "&#")) {
        return read_number(reader);
    }
    for (size_t i = 0; i < sizeof(entities) / sizeof(entities[0]); i++) {
        if (take(reader, entities[i].text)) {
            return add_byte(reader, entities[i].character);
        }
    }
    return false;
}

// Up to the next tag.
static bool read_text(struct reader *reader)
{
    bool good = true;

    while (good && reader->at < reader->end && *reader->at != '<') {
        char c = *reader->at;
        if (c == '&') {
            good = read_entity(reader);
        } else {
            good = ((unsigned char)c >= ' ' || is_blank(c)) && add_byte(reader, c);
            reader->at++;
        }
    }
    return good;
}

static bool text_is_blank(const struct reader *reader)
{
    for (size_t i = 0; i < reader->text_size; i++) {
        if (!is_blank(reader->text[i])) {
            return false;
        }
    }
    return true;
}

// ---- tags ----

static bool is_name_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == ':' || c == '.';
}

static size_t name_size(const struct reader *reader)
{
    const char *at = reader->at;

    while (at < reader->end && is_name_character(*at)) {
        at++;
    }
    return (size_t)(at - reader->at);
}

// NAME="VALUE" as often as it comes; nobody needs one.
static bool skip_attributes(struct reader *reader)
{
    for (;;) {
        const char *before = reader->at;
        skip_blanks(reader);
        size_t size = name_size(reader);
        if (size == 0) {
            return true;
        }
        reader->at += size;
        skip_blanks(reader);
        if (reader->at - size == before || !take(reader, "=")) {
            return false;
        }
        skip_blanks(reader);
        char quote = reader->at < reader->end ? *reader->at : '\0';
        if (quote != '"' && quote != '\'') {
            return false;
        }
        const char *close = memchr(reader->at + 1, quote, (size_t)(reader->end - reader->at - 1));
        if (!close || memchr(reader->at, '<', (size_t)(close - reader->at))) {
            return false;
        }
        reader->at = close + 1;
    }
}

static bool enter(struct reader *reader, size_t size)
{
    size_t slash = reader->depth > 0;

    if (size == 0 || reader->depth >= S3_XML_DEPTH_MAX ||
        reader->path_size + slash + size >= S3_XML_PATH_SIZE || !text_is_blank(reader)) {
        return false;
    }
    if (reader->depth > 0) {
        reader->parents[reader->depth - 1] = true;
        reader->path[reader->path_size++] = '/';
    }
    reader->starts[reader->depth] = reader->path_size;
    reader->parents[reader->depth++] = false;
    memcpy(reader->path + reader->path_size, reader->at, size);
    reader->path_size += size;
    reader->path[reader->path_size] = '\0';
    reader->at += size;
    reader->text_size = 0;
    return true;
}

static bool leave(struct reader *reader)
{
    int top = --reader->depth;
    bool parent = reader->parents[top];

    reader->text[reader->text_size] = '\0'; // it holds no other
    if ((parent && !text_is_blank(reader)) || utf8_wrong(reader->text)) {
        return false;
    }
    if (!reader->on_end(reader->arg, reader->path, parent ? NULL : reader->text)) {
        return false;
    }
    reader->path_size = reader->starts[top] - (top > 0);
    reader->path[reader->path_size] = '\0';
    reader->text_size = 0;
    return true;
}

// Behind `</`.
static bool read_close(struct reader *reader)
{
    size_t size = name_size(reader);
    const char *open = reader->depth > 0 ? reader->path + reader->starts[reader->depth - 1] : NULL;

    if (!open || strlen(open) != size || memcmp(open, reader->at, size) != 0) {
        return false;
    }
    reader->at += size;
    skip_blanks(reader);
    return take(reader, ">") && leave(reader);
}

// Behind `<`.
static bool read_open(struct reader *reader)
{
    if (!enter(reader, name_size(reader)) || !skip_attributes(reader)) {
        return false;
    }
    return take(reader, "/>") ? leave(reader) : take(reader, ">");
}

static bool read_prolog(struct reader *reader)
{
    take(reader, "\xef\xbb\xbf"); // a byte order mark
    if (!take(reader, "<?xml")) {
        return true;
    }
    return skip_attributes(reader) && take(reader, "?>");
}

bool s3_xml_read(const char *data, size_t size, s3_xml_fn *on_end, void *arg)
{
    struct reader reader = {.at = data, .end = data + size, .on_end = on_end, .arg = arg};

    if (size == 0 || !read_prolog(&reader)) {
        return false;
    }
    skip_blanks(&reader);
    if (!take(&reader, "<") || !read_open(&reader)) {
        return false;
    }
    while (reader.depth > 0) {
        if (!read_text(&reader) ||
            !(take(&reader, "</") ? read_close(&reader)
                                  : take(&reader, "<") && read_open(&reader))) {
            return false;
        }
    }
    skip_blanks(&reader);
    return reader.at == reader.end;
}
