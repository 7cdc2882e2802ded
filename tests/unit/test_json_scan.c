// SPDX-License-Identifier: PostgreSQL
//
// Reading JSON without decoding it.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json_scan.h"

// In memory of exactly its size, so that a sanitizer sees a read behind the end.
static int check(const char *text, struct mr_error *err)
{
    size_t len = strlen(text);
    char *copy = malloc(len ? len : 1);

    assert_non_null(copy);
    // NOLINTNEXTLINE(bugprone-not-null-terminated-result): that is the point
    memcpy(copy, text, len);
    int code = json_check((struct json_slice){copy, len}, err);
    free(copy);
    return code;
}

static void good(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "0",
        "-0.5e+10",
        "12E3",
        "true",
        " null\r\n",
        "\"\"",
        "\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\uD83D\"",
        "\"üß€😀\"",
        "[]",
        "{}",
        "[1, [2, {\"a\": [ ]}], \"x\" ]",
        "{\"a\":1,\"a\":2,\"\":{}}",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(check(texts[i], NULL), 0);
    }
}

static void bad(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"", "invalid JSON at byte 1: the text ends too early"},
        {"{", "invalid JSON at byte 2: expected a key in double quotes"},
        {"[1", "invalid JSON at byte 3: the text ends too early"},
        {"[1,]", "invalid JSON at byte 4: expected a value"},
        {"[1 2]", "invalid JSON at byte 4: expected a comma or ]"},
        {"{\"a\":1 \"b\":2}", "invalid JSON at byte 8: expected a comma or }"},
        {"{a:1}", "invalid JSON at byte 2: expected a key in double quotes"},
        {"{\"a\" 1}", "invalid JSON at byte 6: expected a colon behind the key"},
        {"{\"a\":}", "invalid JSON at byte 6: expected a value"},
        {"01", "invalid JSON at byte 2: a number must not begin with 0"},
        {"-", "invalid JSON at byte 2: expected a digit"},
        {"1.", "invalid JSON at byte 3: expected a digit"},
        {"1e+", "invalid JSON at byte 4: expected a digit"},
        {"+1", "invalid JSON at byte 1: expected a value"},
        {"tru", "invalid JSON at byte 1: expected a value"},
        {"True", "invalid JSON at byte 1: expected a value"},
        {"'a'", "invalid JSON at byte 1: expected a value"},
        {"\"a", "invalid JSON at byte 3: the string does not end"},
        {"\"a\\", "invalid JSON at byte 4: unknown escape in a string"},
        {"\"\\x\"", "invalid JSON at byte 3: unknown escape in a string"},
        {"\"\\u12g4\"", "invalid JSON at byte 6: \\u needs four hexadecimal digits"},
        {"\"a\tb\"", "invalid JSON at byte 3: a control character in a string"},
        {"\"\xC3\"", "invalid JSON at byte 2: not UTF-8"},
        {"\"\xC0\x80\"", "invalid JSON at byte 2: not UTF-8"},
        {"\"\xED\xA0\x80\"", "invalid JSON at byte 2: not UTF-8"},
        {"\"\xF4\x90\x80\x80\"", "invalid JSON at byte 2: not UTF-8"},
        {"\"\xE2\x82", "invalid JSON at byte 2: not UTF-8"},
        {"1 2", "invalid JSON at byte 3: something follows the value"},
        {"nullx", "invalid JSON at byte 5: something follows the value"},
    };
    struct mr_error err;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(check(cases[i].text, &err), MR_EINVALID);
        assert_string_equal(err.message, cases[i].message);
    }
}

static void depth_is_limited(void **state)
{
    (void)state;
    struct mr_error err;
    AUTO_BUF text;

    buf_init(&text, 10000);
    for (int i = 0; i < JSON_DEPTH_MAX; i++) {
        buf_puts(&text, "[");
    }
    for (int i = 0; i < JSON_DEPTH_MAX; i++) {
        buf_puts(&text, "]");
    }
    assert_int_equal(check(buf_peek(&text), NULL), 0);
    buf_done(&text);
    for (int i = 0; i < 5000; i++) {
        buf_puts(&text, "[");
    }
    assert_int_equal(check(buf_peek(&text), &err), MR_EINVALID);
    assert_string_equal(err.message, "invalid JSON at byte 1001: nested too deeply");
}

static void add_member(void *arg, struct json_slice key, struct json_slice value)
{
    buf_printf(arg, "<%.*s=%.*s>", (int)key.len, key.at, (int)value.len, value.at);
}

static void members_of_an_object(void **state)
{
    (void)state;
    struct mr_error err;
    AUTO_BUF seen;

    buf_init(&seen, 1000);
    assert_int_equal(
        json_each_member(json_slice_of(" { \"a\" : {\"in\": [1]} , \"b\\n\":\"x\", \"c\": -1e5 } "),
                         add_member, &seen, NULL),
        0);
    assert_string_equal(buf_peek(&seen), "<a={\"in\": [1]}><b\\n=\"x\"><c=-1e5>");
    assert_int_equal(json_each_member(json_slice_of("[{}]"), add_member, &seen, &err), MR_EINVALID);
    assert_string_equal(err.message, "invalid JSON at byte 1: expected an object");
}

static void slices(void **state)
{
    (void)state;
    assert_true(json_slice_is(json_slice_of("kind"), "kind"));
    assert_false(json_slice_is(json_slice_of("kinds"), "kind"));
    assert_false(json_slice_is(json_slice_of("kin"), "kind"));
}

static void on_element(void *arg, struct json_slice value)
{
    char *seen = arg;
    size_t used = strlen(seen);

    snprintf(seen + used, 100 - used, "%.*s|", (int)value.len, value.at);
}

static void elements(void **state)
{
    char seen[100] = "";

    (void)state;
    assert_int_equal(
        json_each_element(json_slice_of(" [1, [2,3] ,{\"a\":[4]},\"x\"] "), on_element, seen, NULL),
        0);
    assert_string_equal(seen, "1|[2,3]|{\"a\":[4]}|\"x\"|");
    seen[0] = '\0';
    assert_int_equal(json_each_element(json_slice_of("[]"), on_element, seen, NULL), 0);
    assert_string_equal(seen, "");
    assert_int_equal(json_each_element(json_slice_of("{\"a\":[1]}"), on_element, seen, NULL),
                     MR_EINVALID);
    assert_int_equal(json_each_element(json_slice_of("[1,]"), on_element, seen, NULL), MR_EINVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements),
        cmocka_unit_test(good),
        cmocka_unit_test(bad),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(members_of_an_object),
        cmocka_unit_test(slices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
