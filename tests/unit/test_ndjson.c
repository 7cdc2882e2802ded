// SPDX-License-Identifier: PostgreSQL
//
// Lines of a file or a stream.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/ndjson.h"

enum { SECOND_MS = 1000 };

// A pipe with a reader on it; what is written to *ret_writer is read.
static void open_pipe(struct ndjson *input, int *ret_writer)
{
    int ends[2];
    char path[64];

    assert_int_equal(pipe(ends), 0);
    snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
    assert_int_equal(ndjson_open(input, path, NULL), 0);
    close(ends[0]);
    *ret_writer = ends[1];
}

static void put(int writer, const char *text)
{
    assert_int_equal(write(writer, text, strlen(text)), (int)strlen(text));
}

static void expect_line(struct ndjson *input, const char *text, int64_t number)
{
    enum ndjson_event event = NDJSON_IDLE;
    struct json_slice line;

    assert_int_equal(ndjson_next(input, SECOND_MS, &event, &line, NULL), 0);
    assert_int_equal(event, NDJSON_LINE);
    assert_true(json_slice_is(line, text));
    assert_int_equal(input->line, number);
}

static void expect_event(struct ndjson *input, int timeout_ms, enum ndjson_event expected)
{
    enum ndjson_event event = NDJSON_LINE;
    struct json_slice line;

    assert_int_equal(ndjson_next(input, timeout_ms, &event, &line, NULL), 0);
    assert_int_equal(event, expected);
}

static void lines_as_they_come(void **state)
{
    (void)state;
    struct ndjson input;
    int writer = -1;

    open_pipe(&input, &writer);
    assert_int_equal(ndjson_size(&input), 0);
    expect_event(&input, 0, NDJSON_IDLE);
    put(writer, "one\n\n \t\r\ntw");
    expect_line(&input, "one", 1);
    expect_event(&input, 0, NDJSON_IDLE);
    put(writer, "o\nlast");
    expect_line(&input, "two", 4);
    close(writer);
    expect_line(&input, "last", 5);
    expect_event(&input, SECOND_MS, NDJSON_END);
    expect_event(&input, SECOND_MS, NDJSON_END);
    assert_int_equal(input.bytes, 17);
    ndjson_close(&input);
}

// A file with a line of `size` letters x between two short ones.
static void write_file(char *path, size_t size)
{
    int fd = mkstemp(path);
    char *letters = malloc(size);

    assert_true(fd >= 0);
    assert_non_null(letters);
    memset(letters, 'x', size);
    put(fd, "first\n");
    assert_int_equal(write(fd, letters, size), (long)size);
    put(fd, "\nlast\n");
    close(fd);
    free(letters);
}

static void longest_line(void **state)
{
    (void)state;
    char path[] = "/tmp/test_ndjson_XXXXXX";
    enum ndjson_event event = NDJSON_IDLE;
    struct ndjson input;
    struct json_slice line;

    write_file(path, NDJSON_LINE_MAX);
    assert_int_equal(ndjson_open(&input, path, NULL), 0);
    unlink(path);
    assert_int_equal(ndjson_size(&input), NDJSON_LINE_MAX + 12);
    expect_line(&input, "first", 1);
    assert_int_equal(ndjson_next(&input, SECOND_MS, &event, &line, NULL), 0);
    assert_int_equal(line.len, NDJSON_LINE_MAX);
    expect_line(&input, "last", 3);
    expect_event(&input, SECOND_MS, NDJSON_END);
    ndjson_close(&input);
}

static void too_long_a_line_can_only_be_skipped(void **state)
{
    (void)state;
    char path[] = "/tmp/test_ndjson_XXXXXX";
    enum ndjson_event event = NDJSON_IDLE;
    struct ndjson input;
    struct json_slice line;
    struct mr_error err;

    write_file(path, 5 * NDJSON_LINE_MAX);
    assert_int_equal(ndjson_open(&input, path, NULL), 0);
    expect_line(&input, "first", 1);
    assert_int_equal(ndjson_next(&input, SECOND_MS, &event, &line, &err), MR_ELIMIT);
    assert_string_equal(err.message, "longer than 4194304 bytes");
    assert_int_equal(input.line, 2);
    // it was not read to its end
    assert_true(input.capacity < 3 * (size_t)NDJSON_LINE_MAX);
    ndjson_close(&input);

    assert_int_equal(ndjson_open(&input, path, NULL), 0);
    unlink(path);
    assert_int_equal(ndjson_skip(&input, 2, NULL), 0);
    expect_line(&input, "last", 3);
    assert_true(input.capacity < (size_t)NDJSON_LINE_MAX);
    assert_int_equal(ndjson_skip(&input, 10, NULL), 0);
    assert_int_equal(input.line, 3);
    ndjson_close(&input);
}

static void what_cannot_be_read(void **state)
{
    (void)state;
    enum ndjson_event event = NDJSON_IDLE;
    struct ndjson input;
    struct json_slice line;
    struct mr_error err;

    assert_int_equal(ndjson_open(&input, "/nonexistent/file", &err), MR_EIO);
    assert_string_equal(err.message, "cannot open /nonexistent/file: No such file or directory");
    assert_int_equal(ndjson_open(&input, "/", NULL), 0);
    assert_int_equal(ndjson_next(&input, SECOND_MS, &event, &line, &err), MR_EIO);
    assert_string_equal(err.message, "cannot read /: Is a directory");
    ndjson_close(&input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_as_they_come),
        cmocka_unit_test(longest_line),
        cmocka_unit_test(too_long_a_line_can_only_be_skipped),
        cmocka_unit_test(what_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
