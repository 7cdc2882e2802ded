// SPDX-License-Identifier: PostgreSQL
//
// Reading JSON without decoding it: see json_scan.h.
//
// Each scan_ function expects scan->at on the first character of its part and leaves it behind
// the last; on failure scan->why is set and scan->at is where.

#include "base/json_scan.h"

#include <stdint.h>
#include <string.h>

struct scan {
    const char *begin;
    const char *at;
    const char *end;
    const char *why;
    json_member_fn *on_member;   // of the outermost object; or NULL
    json_element_fn *on_element; // NULL: nobody asks
    void *on_member_arg;         // of either
    bool only_object;
};

static bool refuse(struct scan *scan, const char *why)
{
    scan->why = why;
    return false;
}

static char peek(const struct scan *scan)
{
    return scan->at < scan->end ? *scan->at : '\0';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static void skip_blanks(struct scan *scan)
{
    while (scan->at < scan->end &&
           (*scan->at == ' ' || *scan->at == '\t' || *scan->at == '\n' || *scan->at == '\r')) {
        scan->at++;
    }
}

// A character of more than one byte. The table is the one of the Unicode standard: lead bytes,
// and what the second byte may be after them.
static bool scan_utf8(struct scan *scan)
{
    static const struct {
        uint8_t first, last, least, most;
        int width;
    } forms[] = {
        {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3},
        {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
        {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };
    const uint8_t *byte = (const uint8_t *)scan->at;

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (byte[0] < forms[i].first || byte[0] > forms[i].last) {
            continue;
        }
        if (scan->end - scan->at < forms[i].width || byte[1] < forms[i].least ||
            byte[1] > forms[i].most) {
            break;
        }
        for (int k = 2; k < forms[i].width; k++) {
            if ((byte[k] & 0xC0) != 0x80) {
                return refuse(scan, "not UTF-8");
            }
        }
        scan->at += forms[i].width;
        return true;
    }
    return refuse(scan, "not UTF-8");
}

static bool scan_escape(struct scan *scan)
{
    scan->at++;
    if (peek(scan) != 'u') {
        if (scan->at == scan->end || !strchr("\"\\/bfnrt", *scan->at) || !*scan->at) {
            return refuse(scan, "unknown escape in a string");
        }
        scan->at++;
        return true;
    }
    scan->at++;
    for (int i = 0; i < 4; i++, scan->at++) {
        if (!is_hex(peek(scan))) {
            return refuse(scan, "\\u needs four hexadecimal digits");
        }
    }
    return true;
}

static bool scan_string(struct scan *scan)
{
    scan->at++;
    while (scan->at < scan->end) {
        unsigned char c = (unsigned char)*scan->at;

        if (c == '"') {
            scan->at++;
            return true;
        }
        if (c < 0x20) {
            return refuse(scan, "a control character in a string");
        }
        if (c != '\\' && c < 0x80) {
            scan->at++;
        } else if (!(c == '\\' ? scan_escape(scan) : scan_utf8(scan))) {
            return false;
        }
    }
    return refuse(scan, "the string does not end");
}

static bool scan_digits(struct scan *scan)
{
    if (!is_digit(peek(scan))) {
        return refuse(scan, "expected a digit");
    }
    while (is_digit(peek(scan))) {
        scan->at++;
    }
    return true;
}

static bool scan_number(struct scan *scan)
{
    if (peek(scan) == '-') {
        scan->at++;
    }
    if (peek(scan) == '0') {
        scan->at++;
        if (is_digit(peek(scan))) {
            return refuse(scan, "a number must not begin with 0");
        }
    } else if (!scan_digits(scan)) {
        return false;
    }
    if (peek(scan) == '.') {
        scan->at++;
        if (!scan_digits(scan)) {
            return false;
        }
    }
    if (peek(scan) != 'e' && peek(scan) != 'E') {
        return true;
    }
    scan->at++;
    if (peek(scan) == '+' || peek(scan) == '-') {
        scan->at++;
    }
    return scan_digits(scan);
}

static bool scan_word(struct scan *scan)
{
    static const char *const words[] = {"true", "false", "null"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t len = strlen(words[i]);
        if ((size_t)(scan->end - scan->at) >= len && memcmp(scan->at, words[i], len) == 0) {
            scan->at += len;
            return true;
        }
    }
    return refuse(scan, scan->at < scan->end ? "expected a value" : "the text ends too early");
}

static bool scan_value(struct scan *scan, int depth);

static bool scan_member(struct scan *scan, int depth)
{
    if (peek(scan) != '"') {
        return refuse(scan, "expected a key in double quotes");
    }
    const char *key = scan->at + 1;
    if (!scan_string(scan)) {
        return false;
    }
    size_t key_len = (size_t)(scan->at - key) - 1;
    skip_blanks(scan);
    if (peek(scan) != ':') {
        return refuse(scan, "expected a colon behind the key");
    }
    scan->at++;
    skip_blanks(scan);
    const char *value = scan->at;
    if (!scan_value(scan, depth)) {
        return false;
    }
    if (scan->on_member && depth == 1) {
        scan->on_member(scan->on_member_arg, (struct json_slice){key, key_len},
                        (struct json_slice){value, (size_t)(scan->at - value)});
    }
    return true;
}

static bool scan_element(struct scan *scan, int depth)
{
    const char *value = scan->at;

    if (!scan_value(scan, depth)) {
        return false;
    }
    if (scan->on_element && depth == 1) {
        scan->on_element(scan->on_member_arg,
                         (struct json_slice){value, (size_t)(scan->at - value)});
    }
    return true;
}

// An object or an array: parts, separated by commas, up to `close`.
static bool scan_list(struct scan *scan, char close, int depth)
{
    if (depth > JSON_DEPTH_MAX) {
        return refuse(scan, "nested too deeply");
    }
    scan->at++;
    skip_blanks(scan);
    if (peek(scan) == close) {
        scan->at++;
        return true;
    }
    for (;;) {
        if (!(close == '}' ? scan_member(scan, depth) : scan_element(scan, depth))) {
            return false;
        }
        skip_blanks(scan);
        if (peek(scan) == close) {
            scan->at++;
            return true;
        }
        if (peek(scan) != ',') {
            return refuse(scan, scan->at == scan->end ? "the text ends too early"
                                : close == '}'        ? "expected a comma or }"
                                                      : "expected a comma or ]");
        }
        scan->at++;
        skip_blanks(scan);
    }
}

// `depth` is how many lists are around the value.
static bool scan_value(struct scan *scan, int depth)
{
    char c = peek(scan);

    if (c == '{' || c == '[') {
        return scan_list(scan, c == '{' ? '}' : ']', depth + 1);
    }
    if (c == '"') {
        return scan_string(scan);
    }
    return c == '-' || is_digit(c) ? scan_number(scan) : scan_word(scan);
}

static bool scan_text(struct scan *scan)
{
    skip_blanks(scan);
    if (scan->only_object && peek(scan) != '{') {
        return refuse(scan, "expected an object");
    }
    if (scan->on_element && peek(scan) != '[') {
        return refuse(scan, "expected an array");
    }
    if (!scan_value(scan, 0)) {
        return false;
    }
    skip_blanks(scan);
    return scan->at == scan->end || refuse(scan, "something follows the value");
}

static int run(struct scan *scan, struct json_slice text, struct mr_error *err)
{
    scan->begin = scan->at = text.at;
    scan->end = text.at + text.len;
    if (scan_text(scan)) {
        return 0;
    }
    return mr_error_set(err, MR_EINVALID, "invalid JSON at byte %zu: %s",
                        (size_t)(scan->at - scan->begin) + 1, scan->why);
}

int json_check(struct json_slice text, struct mr_error *err)
{
    struct scan scan = {0};

    return run(&scan, text, err);
}

int json_each_member(struct json_slice text, json_member_fn *on_member, void *arg,
                     struct mr_error *err)
{
    struct scan scan = {.on_member = on_member, .on_member_arg = arg, .only_object = true};

    return run(&scan, text, err);
}

int json_each_element(struct json_slice text, json_element_fn *on_element, void *arg,
                      struct mr_error *err)
{
    struct scan scan = {.on_element = on_element, .on_member_arg = arg};

    return run(&scan, text, err);
}

struct json_slice json_slice_of(const char *text)
{
    return (struct json_slice){text, strlen(text)};
}

bool json_slice_is(struct json_slice slice, const char *text)
{
    return slice.len == strlen(text) && memcmp(slice.at, text, slice.len) == 0;
}
