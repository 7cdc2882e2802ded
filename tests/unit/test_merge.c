// SPDX-License-Identifier: PostgreSQL
//
// Histories of several shards as one.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "http/merge.h"

enum { ANSWERS_MAX = 4 };

// The points of histories, which are given as the text of theirs, together.
static void expect(const char *const *texts, const char *points)
{
    json_t *answers[ANSWERS_MAX], *expected = json_loads(points, 0, NULL);
    size_t count = 0;

    for (; texts[count]; count++) {
        answers[count] =
            json_pack("{s:n, s:o}", "queue", "points", json_loads(texts[count], 0, NULL));
    }
    json_t *all = merge_history(answers, count), *got = json_object_get(all, "points");
    if (!json_equal(got, expected)) {
        fail_msg("%s", json_dumps(got, JSON_COMPACT));
    }
    assert_true(json_is_null(json_object_get(all, "queue")));
    json_decref(all);
    json_decref(expected);
    for (size_t i = 0; i < count; i++) {
        json_decref(answers[i]);
    }
}

#define EXPECT(points, ...) expect((const char *const[]){__VA_ARGS__, NULL}, points)

static void rates_and_gauges_are_added_up(void **state)
{
    (void)state;
    EXPECT("[{\"at\": \"a\", \"enqueued\": 2.5, \"available\": 7}]",
           "[{\"at\": \"a\", \"enqueued\": 1.25, \"available\": 3}]",
           "[{\"at\": \"b\", \"enqueued\": 1.25, \"available\": 4}]");
    EXPECT("[]", "[]", "[]");
}

// Half a figure is none, unless there was nothing yet: a shard that has joined since.
static void what_is_not_known_is_left_out(void **state)
{
    (void)state;
    EXPECT(
        "[{\"at\": \"1\", \"available\": 1}, {\"at\": \"2\", \"available\": 12, \"enqueued\": 3},"
        " {\"at\": \"3\", \"available\": 13}, {\"at\": \"4\", \"enqueued\": 7}]",
        "[{\"at\": \"1\", \"available\": 1}, {\"at\": \"2\", \"available\": 2, \"enqueued\": 1},"
        " {\"at\": \"3\", \"available\": 3}, {\"at\": \"4\", \"available\": 4, \"enqueued\": 5}]",
        "[{\"at\": \"x\"}, {\"at\": \"x\", \"available\": 10, \"enqueued\": 2},"
        " {\"at\": \"x\", \"available\": 10, \"enqueued\": 2}, {\"at\": \"x\", \"enqueued\": 2}]");
}

// Points go together from the end, which is now.
static void a_shorter_history_is_that_of_the_last_minutes(void **state)
{
    (void)state;
    EXPECT("[{\"at\": \"1\", \"dead\": 1}, {\"at\": \"2\", \"dead\": 5}]",
           "[{\"at\": \"1\", \"dead\": 1}, {\"at\": \"2\", \"dead\": 2}]",
           "[{\"at\": \"y\", \"dead\": 3}]");
}

static void means_count_by_jobs_and_percentiles_by_the_worst(void **state)
{
    (void)state;
    EXPECT("[{\"at\": \"1\", \"completed\": 4, \"failed\": 0, \"run_seconds\": 2.5,"
           " \"wait\": {\"p50\": 0.5, \"p99\": 9}}]",
           "[{\"at\": \"1\", \"completed\": 1, \"failed\": 0, \"run_seconds\": 1.0,"
           " \"wait\": {\"p50\": 0.5, \"p99\": 1}}]",
           "[{\"at\": \"2\", \"completed\": 3, \"failed\": 0, \"run_seconds\": 3.0,"
           " \"wait\": {\"p50\": 0.25, \"p99\": 9}}]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_and_gauges_are_added_up),
        cmocka_unit_test(what_is_not_known_is_left_out),
        cmocka_unit_test(a_shorter_history_is_that_of_the_last_minutes),
        cmocka_unit_test(means_count_by_jobs_and_percentiles_by_the_worst),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
