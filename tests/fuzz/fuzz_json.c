// SPDX-License-Identifier: PostgreSQL
//
// The JSON scanner against another reader of JSON: both say the same, and what the scanner hands
// out is JSON again.

#include <jansson.h>
#include <string.h>

#include "base/json_scan.h"
#include "fuzz.h"

struct seen {
    size_t count;
    struct json_slice whole;
};

static void check_value(void *arg, struct json_slice value)
{
    struct seen *seen = arg;

    seen->count++;
    MUST(value.at >= seen->whole.at && value.at + value.len <= seen->whole.at + seen->whole.len);
    MUST(json_check(value, NULL) == 0);
}

static void check_member(void *arg, struct json_slice key, struct json_slice value)
{
    MUST(key.at[-1] == '"' && key.at[key.len] == '"');
    check_value(arg, value);
}

// Jansson takes a zero byte for the end, refuses numbers that it cannot hold and escapes that are
// no characters, and is deeper.
static void compare(struct json_slice text, bool good)
{
    json_error_t error;

    if (memchr(text.at, '\0', text.len)) {
        MUST(!good);
        return;
    }
    json_t *value = json_loadb(text.at, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);

    if (value && !good) {
        struct mr_error err;
        MUST(json_check(text, &err) && strstr(err.message, "deep"));
    }
    if (!value && good) {
        enum json_error_code code = json_error_code(&error);
        MUST(code == json_error_numeric_overflow || code == json_error_null_byte_in_key ||
             memmem(text.at, text.len, "\\u", 2));
    }
    json_decref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_slice text = {(const char *)data, size};
    struct seen members = {.whole = text}, elements = {.whole = text};
    bool good = json_check(text, NULL) == 0;

    bool object = json_each_member(text, check_member, &members, NULL) == 0;
    bool array = json_each_element(text, check_value, &elements, NULL) == 0;
    MUST(!(object && array) && (good || (!object && !array)));
    compare(text, good);
    return 0;
}
