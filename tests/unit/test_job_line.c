// SPDX-License-Identifier: PostgreSQL
//
// Jobs as producers write them, the splitting of streams, and figures.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "handler/trace.h"
#include "http/job_line.h"
#include "http/ndjson.h"

#define TRACE "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

static void becomes(const char *text, const char *wanted)
{
    struct job_line job;
    AUTO_BUF out;

    buf_init(&out, 1000);
    assert_int_equal(job_line_read(json_slice_of(text), &job, NULL), 0);
    job_line_add(&job, TRACE, &out);
    assert_string_equal(buf_peek(&out), wanted);
}

static void traces(void **state)
{
    (void)state;
    becomes("{}", "{\"meta\":{\"traceparent\":\"" TRACE "\"}}");
    becomes(" {\"a\":1}", " {\"meta\":{\"traceparent\":\"" TRACE "\"},\"a\":1}");
    becomes("{\"meta\":{}}", "{\"meta\":{\"traceparent\":\"" TRACE "\"}}");
    becomes("{\"meta\": { \"x\":1}}", "{\"meta\": {\"traceparent\":\"" TRACE "\", \"x\":1}}");
    becomes("{\"meta\":{\"traceparent\":1}}", "{\"meta\":{\"traceparent\":1}}");
    becomes("{\"meta\":null}", "{\"meta\":null}");
    assert_true(trace_is_parent(TRACE));
    assert_false(trace_is_parent(NULL));
    assert_false(trace_is_parent("00-xyz"));
    assert_false(trace_is_parent(TRACE "\""));
}

static void parts(void **state)
{
    struct job_line job;

    (void)state;
    assert_int_equal(
        job_line_read(json_slice_of("{\"kind\":\"k\",\"queue\":\"q\\n\"}"), &job, NULL), 0);
    assert_true(json_slice_is(job.kind, "k"));
    assert_null(job.queue.at);
    assert_false(job.alone);
    assert_int_equal(job_line_read(json_slice_of("{\"unique_key\":\"k\"}"), &job, NULL), 0);
    assert_true(job.alone);
    assert_int_equal(job_line_read(json_slice_of("[]"), &job, NULL), MR_EINVALID);
    assert_int_equal(job_line_read(json_slice_of("{} {}"), &job, NULL), MR_EINVALID);
}

// Whatever the pieces, the lines are the same.
static void splitting(void **state)
{
    static const char text[] = "one\n\ntwo and more\nthree";

    (void)state;
    for (size_t piece = 1; piece < sizeof(text); piece++) {
        struct splitter splitter;
        char seen[64] = "";
        buf_init(&splitter.line, 100);
        for (size_t at = 0; at < strlen(text);) {
            size_t size = strlen(text) - at < piece ? strlen(text) - at : piece;
            struct json_slice line;
            size_t taken = splitter_take(&splitter, text + at, size, &line);
            assert_true(taken > 0 && taken <= size);
            at += taken;
            if (line.at) {
                size_t used = strlen(seen);
                snprintf(seen + used, sizeof(seen) - used, "%.*s|", (int)line.len, line.at);
                splitter.line.len = 0;
            }
        }
        assert_string_equal(seen, "one||two and more|");
        assert_true(json_slice_is(splitter_rest(&splitter), "three"));
        buf_done(&splitter.line);
    }
    assert_true(splitter_is_blank(json_slice_of(" \t\r")));
    assert_false(splitter_is_blank(json_slice_of(" x")));
}

static void figures(void **state)
{
    struct tally tally = {0};
    char kind[32];

    (void)state;
    for (int i = 0; i < 250; i++) {
        snprintf(kind, sizeof(kind), "kind %d", i);
        tally_count(&tally, "q", kind, TALLY_ENQUEUED, 1);
    }
    assert_int_equal(tally.queues[0].kind_count, TALLY_KINDS_MAX + 1);
    assert_string_equal(tally.queues[0].kinds[TALLY_KINDS_MAX].kind, TALLY_OTHER);
    assert_int_equal(tally.queues[0].kinds[TALLY_KINDS_MAX].counts[TALLY_ENQUEUED], 150);
    tally_run(&tally, "q", 0.005);
    tally_run(&tally, "q", 0.0051);
    tally_run(&tally, "q", -3);
    tally_run(&tally, "q", 1e9);
    assert_int_equal(tally.queues[0].run.buckets[0], 2);
    assert_int_equal(tally.queues[0].run.buckets[1], 1);
    assert_int_equal(tally.queues[0].run.buckets[TALLY_BUCKETS - 1], 1);
    for (int i = 0; i < 2 * TALLY_QUEUES_MAX; i++) {
        snprintf(kind, sizeof(kind), "queue %d", i);
        tally_count(&tally, kind, "k", TALLY_FAILED, 1);
    }
    assert_int_equal(tally.queue_count, TALLY_QUEUES_MAX);
    tally_done(&tally);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traces),
        cmocka_unit_test(parts),
        cmocka_unit_test(splitting),
        cmocka_unit_test(figures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
