// SPDX-License-Identifier: PostgreSQL
//
// Log lines: one line an event, whatever the texts contain.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/log.h"

static char line[1024 * 1024];

// Reads back what was written to the pipe.
static const char *take(int fd)
{
    ssize_t size = read(fd, line, sizeof(line) - 1);

    line[size > 0 ? size : 0] = '\0';
    return line;
}

static int open_log(enum log_format format, enum log_level least)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    log_setup(ends[1], format, least);
    return ends[0];
}

// Behind the time, `2026-11-15 09:10:11.123 UTC `.
#define TIME_LENGTH 28

static void text_line(void **state)
{
    int fd = open_log(LOG_TEXT, LEVEL_INFO);
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("worker", "email"),
        LOG_NUMBER_FIELD("job", 12),
        LOG_TEXT_FIELD("none", NULL),
        LOG_TEXT_FIELD("words", "two words"),
    };

    (void)state;
    log_put(LEVEL_WARNING, "worker.failed", fields, 4, "job %d failed: %s", 12, "no route");
    assert_string_equal(take(fd) + TIME_LENGTH, "warning worker.failed: job 12 failed: no route "
                                                "(worker=email job=12 words=\"two words\")\n");
    assert_memory_equal(line + TIME_LENGTH - 5, " UTC ", 5);
    log_put(LEVEL_INFO, "serve.ready", NULL, 0, "ready");
    assert_string_equal(take(fd) + TIME_LENGTH, "info serve.ready: ready\n");
}

static void nothing_below_the_level(void **state)
{
    int fd = open_log(LOG_TEXT, LEVEL_WARNING);

    (void)state;
    assert_false(log_wants(LEVEL_INFO));
    log_put(LEVEL_INFO, "a", NULL, 0, "not wanted");
    log_put(LEVEL_ERROR, "b", NULL, 0, "wanted");
    assert_string_equal(take(fd) + TIME_LENGTH, "error b: wanted\n");
}

static void one_line_whatever_comes(void **state)
{
    int fd = open_log(LOG_TEXT, LEVEL_INFO);

    (void)state;
    log_put(LEVEL_INFO, "a", NULL, 0, "%s", "x\ny\033[2J\t\xff z\xc3");
    assert_string_equal(take(fd) + TIME_LENGTH, "info a: x y [2J ? z\n");
}

static json_t *read_json(int fd)
{
    json_t *object = json_loads(take(fd), 0, NULL);

    assert_non_null(object);
    assert_int_equal(line[strlen(line) - 1], '\n');
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
    return object;
}

static void json_line(void **state)
{
    int fd = open_log(LOG_JSON, LEVEL_INFO);
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("worker", "e\"m\\ail"),
        LOG_NUMBER_FIELD("job", INT64_MAX),
        LOG_TEXT_FIELD("none", NULL),
    };

    (void)state;
    log_put(LEVEL_WARNING, "worker.failed", fields, 3, "h\xc3\xa9 \xed\xa0\x80 \"q\"\n%s", "z");
    json_t *object = read_json(fd);
    assert_string_equal(json_string_value(json_object_get(object, "level")), "warning");
    assert_string_equal(json_string_value(json_object_get(object, "event")), "worker.failed");
    assert_string_equal(json_string_value(json_object_get(object, "message")),
                        "h\xc3\xa9 ??? \"q\" z");
    assert_string_equal(json_string_value(json_object_get(object, "worker")), "e\"m\\ail");
    assert_true(json_integer_value(json_object_get(object, "job")) == INT64_MAX);
    assert_int_equal(json_object_size(object), 6);
    assert_int_equal(strlen(json_string_value(json_object_get(object, "time"))), 24);
    json_decref(object);
}

// The longest texts, all of which grow in JSON, still make a whole line.
static void long_texts_are_cut(void **state)
{
    static char text[LOG_MESSAGE_MAX * 2];
    struct log_field fields[40];
    int fd = open_log(LOG_JSON, LEVEL_INFO);

    (void)state;
    memset(text, '"', sizeof(text) - 1);
    for (int i = 0; i < 40; i++) {
        fields[i] = LOG_TEXT_FIELD("name", text);
    }
    log_put(LEVEL_INFO, "a", fields, 40, "%s", text);
    json_t *object = read_json(fd);
    assert_int_equal(strlen(json_string_value(json_object_get(object, "message"))),
                     LOG_MESSAGE_MAX);
    json_decref(object);
}

static void names(void **state)
{
    enum log_format format = LOG_TEXT;
    enum log_level level = LEVEL_INFO;

    (void)state;
    assert_true(log_parse_format("json", &format));
    assert_int_equal(format, LOG_JSON);
    assert_true(log_parse_level("error", &level));
    assert_int_equal(level, LEVEL_ERROR);
    assert_false(log_parse_format("xml", &format));
    assert_false(log_parse_level("loud", &level));
    assert_int_equal(format, LOG_JSON);
    assert_int_equal(level, LEVEL_ERROR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_line),
        cmocka_unit_test(nothing_below_the_level),
        cmocka_unit_test(one_line_whatever_comes),
        cmocka_unit_test(json_line),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
