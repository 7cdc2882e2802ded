// SPDX-License-Identifier: PostgreSQL
//
// What a request is aimed at: see target.h.

#include "http/target.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static int digit_of(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Decodes in place what stands between `at` and `end`. NULL, or what is wrong.
static const char *decode(char *at, const char *end, bool plus)
{
    char *out = at;

    for (; at < end; at++) {
        char c = *at;
        if (c == '%') {
            int high = end - at > 2 ? digit_of(at[1]) : -1;
            int low = high >= 0 ? digit_of(at[2]) : -1;
            if (low < 0) {
                return "a % that is not followed by two hexadecimal digits";
            }
            c = (char)(high * 16 + low);
            at += 2;
            if (c == '\0') {
                return "a zero byte";
            }
        } else if (c == '+' && plus) {
            c = ' ';
        } else if ((unsigned char)c <= ' ' || c == 0x7f) {
            return "a blank or control character that is not escaped";
        }
        *out++ = c;
    }
    *out = '\0';
    return NULL;
}

// Overlong forms and surrogates are none.
static bool is_utf8(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    while (*at) {
        int more = *at < 0x80                   ? 0
                   : *at >= 0xc2 && *at <= 0xdf ? 1
                   : *at >= 0xe0 && *at <= 0xef ? 2
                   : *at >= 0xf0 && *at <= 0xf4 ? 3
                                                : -1;
        if (more < 0 || (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
            (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f)) {
            return false;
        }
        for (at++; more > 0; more--, at++) {
            if ((*at & 0xc0) != 0x80) {
                return false;
            }
        }
    }
    return true;
}

static int refuse(struct mr_error *err, const char *where, const char *why)
{
    return mr_error_set(err, MR_EINVALID, "the %s has %s", where, why);
}

static int add_part(struct target *target, char *part, char *end, struct mr_error *err)
{
    const char *wrong = decode(part, end, false);

    if (wrong) {
        return refuse(err, "path", wrong);
    }
    if (!part[0]) {
        return refuse(err, "path", "an empty part");
    }
    if (str_equal(part, ".") || str_equal(part, "..")) {
        return refuse(err, "path", "a part that is . or ..");
    }
    if (!is_utf8(part)) {
        return refuse(err, "path", "bytes that are not UTF-8");
    }
    if (target->part_count == TARGET_PARTS_MAX) {
        return mr_error_set(err, MR_ELIMIT, "the path has more than %d parts", TARGET_PARTS_MAX);
    }
    target->parts[target->part_count++] = part;
    return 0;
}

// `path` begins with its first slash and ends with a zero byte.
static int read_path(struct target *target, char *path, struct mr_error *err)
{
    char *at = path + 1;

    while (*at) {
        char *end = at + strcspn(at, "/");
        bool last = *end == '\0';
        *end = '\0';
        int code = add_part(target, at, end, err);
        if (code) {
            return code;
        }
        at = last ? end : end + 1;
        if (!last && !*at) {
            return refuse(err, "path", "a slash at its end");
        }
    }
    return 0;
}

static int add_pair(struct target *target, char *name, char *end, struct mr_error *err)
{
    char *equals = memchr(name, '=', (size_t)(end - name));
    char *value = equals ? equals + 1 : end;
    const char *wrong = decode(value, end, true);

    wrong = wrong ? wrong : decode(name, equals ? equals : end, true);
    if (wrong) {
        return refuse(err, "query", wrong);
    }
    if (!equals) { // decode() of the name has cut it where its end was
        value = strchr(name, '\0');
    }
    if (!is_utf8(name) || !is_utf8(value)) {
        return refuse(err, "query", "bytes that are not UTF-8");
    }
    if (target_value(target, name)) {
        return mr_error_set(err, MR_EINVALID, "\"%s\" is given twice", name);
    }
    if (target->query_count == TARGET_QUERY_MAX) {
        return mr_error_set(err, MR_ELIMIT, "more than %d names in the query", TARGET_QUERY_MAX);
    }
    target->query[target->query_count++] = (struct target_pair){name, value};
    return 0;
}

static int read_query(struct target *target, char *query, struct mr_error *err)
{
    char *at = query;

    while (*at) {
        char *end = at + strcspn(at, "&");
        bool last = *end == '\0';
        *end = '\0';
        int code = end > at ? add_pair(target, at, end, err) : 0;
        if (code) {
            return code;
        }
        at = last ? end : end + 1;
    }
    return 0;
}

static int read_text(struct target *target, struct mr_error *err)
{
    char *query = strchr(target->text, '?');

    if (target->text[0] != '/') {
        return mr_error_set(err, MR_EINVALID, "the target does not begin with a slash");
    }
    if (query) {
        *query++ = '\0';
    }
    int code = read_path(target, target->text, err);
    return code || !query ? code : read_query(target, query, err);
}

int target_read(const char *uri, struct target *ret, struct mr_error *err)
{
    struct target target = {0};

    if (strnlen(uri, TARGET_SIZE_MAX + 1) > TARGET_SIZE_MAX) {
        return mr_error_set(err, MR_ELIMIT, "the target is longer than %d bytes", TARGET_SIZE_MAX);
    }
    target.text = strdup(uri);
    if (!target.text) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    int code = read_text(&target, err);
    if (code) {
        free(target.text);
        return code;
    }
    *ret = target;
    return 0;
}

void target_done(struct target *target)
{
    free(target->text);
    target->text = NULL;
    target->part_count = target->query_count = 0;
}

const char *target_value(const struct target *target, const char *name)
{
    for (size_t i = 0; i < target->query_count; i++) {
        if (str_equal(target->query[i].name, name)) {
            return target->query[i].value;
        }
    }
    return NULL;
}
