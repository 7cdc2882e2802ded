// SPDX-License-Identifier: PostgreSQL
//
// What the toolbox refuses: see toolbox_check.h. The SQL is in sql/internal/cache_at.sql and
// sql/internal/rate_limit_at.sql; tests/conformance compares the two.

#include "client/toolbox_check.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/json_scan.h"
#include "base/like.h"
#include "base/utf8.h"

#define KEY_MAX    16384
#define VALUE_MAX  (16 * 1024 * 1024)
#define KEYS_MAX   10000
#define MS_PER_DAY (INT64_C(24) * 60 * 60 * 1000)
// As PostgreSQL compares intervals: a year has 360 days.
#define TTL_MAX_MS (1000 * 360 * MS_PER_DAY)
#define PER_MAX_MS (31 * MS_PER_DAY)

enum { INTERVAL_SIZE = 40, BYTES_SIZE = 32 };

static int refuse(mr_error *err, const char *sqlstate, const char *hint)
{
    mr_error_sqlstate(err, sqlstate);
    mr_error_hint(err, "%s", hint);
    return MR_EINVALID;
}

// Milliseconds as PostgreSQL prints an interval.
static void interval_text(int64_t ms, char ret[INTERVAL_SIZE])
{
    int64_t s = ms / 1000;
    int n = snprintf(ret, INTERVAL_SIZE, "%02lld:%02d:%02d", (long long)(s / 3600),
                     (int)(s / 60 % 60), (int)(s % 60));

    if (ms % 1000) {
        n += snprintf(ret + n, INTERVAL_SIZE - (size_t)n, ".%03d", (int)(ms % 1000));
        while (ret[n - 1] == '0') {
            ret[--n] = '\0';
        }
    }
}

// As many bytes as the first of them promises, as PostgreSQL shows them.
static int check_utf8(const char *text, mr_error *err)
{
    static const struct {
        unsigned char mask, lead;
        int width;
    } forms[] = {{0xe0, 0xc0, 2}, {0xf0, 0xe0, 3}, {0xf8, 0xf0, 4}};
    const char *at = utf8_wrong(text);
    char bytes[BYTES_SIZE] = "";
    int width = 1, used = 0;

    if (!at) {
        return 0;
    }
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        width = ((unsigned char)*at & forms[i].mask) == forms[i].lead ? forms[i].width : width;
    }
    for (int i = 0; i < width && at[i]; i++) {
        used += snprintf(bytes + used, sizeof(bytes) - (size_t)used, "%s0x%02x", i ? " " : "",
                         (unsigned char)at[i]);
    }
    mr_error_set(err, MR_EINVALID, "invalid byte sequence for encoding \"UTF8\": %s", bytes);
    return refuse(err, "22021", "Texts are UTF-8.");
}

int toolbox_check_key(const char *what, const char *text, mr_error *err)
{
    size_t size = strlen(text);
    char hint[256];
    int code = check_utf8(text, err);

    if (code) {
        return code;
    }
    if (size == 0) {
        mr_error_set(err, MR_EINVALID, "%s must not be empty", what);
        snprintf(hint, sizeof(hint), "Pass a text of 1 to %d bytes as the %s.", KEY_MAX, what);
        return refuse(err, "22023", hint);
    }
    if (size > KEY_MAX) {
        mr_error_set(err, MR_EINVALID, "%s is %zu bytes long, the limit is %d", what, size,
                     KEY_MAX);
        snprintf(hint, sizeof(hint),
                 "Choose a shorter %s, or a hash of it: encode(sha256(convert_to(%s, 'UTF8')), "
                 "'hex').",
                 what, what);
        return refuse(err, "22023", hint);
    }
    return 0;
}

int toolbox_check_pattern(const char *pattern, mr_error *err)
{
    int code = toolbox_check_key("pattern", pattern, err);

    if (code || !like_is_cut(pattern)) {
        return code;
    }
    mr_error_set(err, MR_EINVALID, "pattern ends with a lone backslash");
    return refuse(err, "22023",
                  "A backslash takes the meaning from the % or _ behind it; write two for one that "
                  "is meant.");
}

// jsonb has no place for U+0000.
static bool has_zero(const char *json)
{
    for (const char *at = json; (at = strchr(at, '\\')); at += 2) {
        if (strncmp(at, "\\u0000", strlen("\\u0000")) == 0) {
            return true;
        }
    }
    return false;
}

int toolbox_check_value(const char *value, mr_error *err)
{
    size_t size = strlen(value);
    mr_error why;
    int code = check_utf8(value, err);

    if (code) {
        return code;
    }
    if (json_check(json_slice_of(value), &why)) {
        mr_error_set(err, MR_EINVALID, "invalid input syntax for type json");
        mr_error_detail(err, "%s.", why.message);
        return refuse(err, "22P02", "Give one JSON value.");
    }
    if (has_zero(value)) {
        mr_error_set(err, MR_EINVALID, "unsupported Unicode escape sequence");
        mr_error_detail(err, "\\u0000 cannot be converted to text.");
        return refuse(err, "22P05", "Leave the character out.");
    }
    if (size > VALUE_MAX) {
        mr_error_set(err, MR_EINVALID, "value is %zu bytes long, the limit is %d", size, VALUE_MAX);
        return refuse(err, "22023",
                      "Keep large values elsewhere, such as in an object store, and cache where "
                      "they are.");
    }
    return 0;
}

int toolbox_check_ttl(int64_t ttl_ms, mr_error *err)
{
    char text[INTERVAL_SIZE];

    if (ttl_ms <= TTL_MAX_MS) {
        return 0;
    }
    interval_text(ttl_ms, text);
    mr_error_set(err, MR_EINVALID, "ttl must be longer than zero and at most 1000 years, not %s",
                 text);
    return refuse(err, "22023", "Nothing is kept for ever: pass an interval such as '5 minutes'.");
}

int toolbox_check_per(int64_t per_ms, mr_error *err)
{
    char text[INTERVAL_SIZE];

    if (per_ms <= PER_MAX_MS) {
        return 0;
    }
    interval_text(per_ms, text);
    mr_error_set(err, MR_EINVALID, "per must be longer than zero and at most 31 days, not %s",
                 text);
    return refuse(err, "22023", "Pass a period such as '1 minute'.");
}

int toolbox_check_count(size_t count, mr_error *err)
{
    if (count <= KEYS_MAX) {
        return 0;
    }
    mr_error_set(err, MR_EINVALID, "%zu keys at once, the limit is %d", count, KEYS_MAX);
    return refuse(err, "22023", "Ask for fewer keys in one call.");
}
