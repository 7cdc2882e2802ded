// SPDX-License-Identifier: PostgreSQL
//
// Jobs and outcomes as they stand in Redis: an entry and back, words, numbers of entries, and where
// a cluster sends somebody.

#include "client/delivery.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/batch.h"
#include "store/redis_pipe.h"

static redisReply *text(const char *data, size_t size)
{
    redisReply *reply = calloc(1, sizeof(*reply));

    reply->type = REDIS_REPLY_STRING;
    reply->str = calloc(1, size + 1);
    memcpy(reply->str, data, size);
    reply->len = (int)size;
    return reply;
}

static redisReply *array(size_t count)
{
    redisReply *reply = calloc(1, sizeof(*reply));

    reply->type = REDIS_REPLY_ARRAY;
    reply->elements = count;
    reply->element = calloc(count + 1, sizeof(*reply->element));
    return reply;
}

// The entry that Redis would give back for the fields of an XADD.
static redisReply *entry_of(const struct redis_args *args, const char *number)
{
    redisReply *entry = array(2);
    const char **argv = NULL;
    size_t *sizes = NULL;

    assert_int_equal(redis_args_words(args, 0, &argv, &sizes, NULL), 0);
    entry->element[0] = text(number, strlen(number));
    entry->element[1] = array(args->count);
    for (size_t i = 0; i < args->count; i++) {
        entry->element[1]->element[i] = text(argv[i], sizes[i]);
    }
    free(argv);
    free(sizes);
    return entry;
}

static void test_job(void **state)
{
    static const char blob[] = {0, 1, 0};
    mr_claimed_job job = {
        .id = 7,
        .attempt = 2,
        .max_attempts = 3,
        .priority = 9,
        .lease = "lease-1",
        .kind = "mail",
        .args = "{\"a\": 1}",
        .ref = "",
        .source = "sql",
        .created_at_us = 1234567890123456,
        .timeout_ms = 5000,
        .blob = blob,
        .blob_size = sizeof(blob),
    };
    struct delivery_origin origin;
    mr_batch *batch = NULL;
    AUTO_REDIS_ARGS args;

    (void)state;
    redis_args_init(&args);
    delivery_add_job(&args, &job, "e1");
    redisReply *entry = entry_of(&args, "5-1");
    assert_true(delivery_read_origin(entry, &origin));
    assert_string_equal(origin.entry, "5-1");
    assert_string_equal(origin.epoch, "e1");
    assert_string_equal(origin.lease, "lease-1");
    assert_int_equal(origin.id, 7);
    assert_int_equal(delivery_read_jobs(&entry, 1, "hog", 1000, &batch, NULL), 0);
    freeReplyObject(entry);
    const mr_claimed_job *got = mr_batch_job(batch, 0);
    assert_int_equal(got->id, 7);
    assert_int_equal(got->attempt, 2);
    assert_int_equal(got->max_attempts, 3);
    assert_int_equal(got->priority, 9);
    assert_int_equal(got->created_at_us, 1234567890123456);
    assert_int_equal(got->timeout_ms, 5000);
    assert_string_equal(got->queue, "hog");
    assert_string_equal(got->lease, "lease-1");
    assert_string_equal(got->kind, "mail");
    assert_string_equal(got->args, "{\"a\": 1}");
    assert_string_equal(got->ref, ""); // which is not none
    assert_null(got->tenant);
    assert_null(got->meta);
    assert_null(got->state);
    assert_int_equal(got->blob_size, sizeof(blob));
    assert_memory_equal(got->blob, blob, sizeof(blob));
    assert_true(delivery_job_size(&job) > 200);
    mr_batch_free(batch);
}

static void test_no_job(void **state)
{
    static const char *const fields[][6] = {
        {"hello", "world", "a", "b", "c", "d"},
        {"relay", "e", "lease", "l", "kind", "k"},                  // no id
        {"relay", "e", "id", "7", "kind", "k"},                     // no lease
        {"lease", "l", "id", "7", "kind", "k"},                     // no relay
        {"relay", "e", "lease", "l", "id", "7"},                    // no kind
        {"relay", "e", "lease", "l", "id", "99999999999999999999"}, // no number
    };
    struct delivery_origin origin;

    (void)state;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        AUTO_REDIS_ARGS args;
        redis_args_init(&args);
        for (size_t k = 0; k < 6; k++) {
            redis_args_text(&args, fields[i][k]);
        }
        redisReply *entry = entry_of(&args, "1-1");
        assert_false(delivery_read_origin(entry, &origin));
        freeReplyObject(entry);
    }
    redisReply *gone = array(2); // what a read of pending entries has for one that was deleted
    gone->element[0] = text("1-1", 3);
    gone->element[1] = calloc(1, sizeof(redisReply));
    gone->element[1]->type = REDIS_REPLY_NIL;
    assert_false(delivery_read_origin(gone, &origin));
    freeReplyObject(gone);
}

static void test_outcomes(void **state)
{
    struct outcome told, heard;

    (void)state;
    outcome_init(&told);
    outcome_init(&heard);
    outcome_fail(&told, "no \"luck\"", 500, true);
    delivery_read_outcome(delivery_word(&told), buf_peek(&told.members), &heard);
    assert_int_equal(heard.kind, OUTCOME_FAILED);
    assert_string_equal(buf_peek(&heard.members), buf_peek(&told.members));
    outcome_elsewhere(&told, true);
    assert_string_equal(delivery_word(&told), "elsewhere_failed");
    delivery_read_outcome("elsewhere_failed", "", &heard);
    assert_true(heard.kind == OUTCOME_ELSEWHERE && heard.failed);
    delivery_read_outcome("lost", "", &heard);
    assert_int_equal(heard.kind, OUTCOME_LOST);
    // what could become another job's outcome
    delivery_read_outcome("completed", "\"result\":1},{\"id\":8,\"outcome\":\"completed\"", &heard);
    assert_int_equal(heard.kind, OUTCOME_FAILED);
    assert_non_null(strstr(buf_peek(&heard.members), "cannot be read"));
    delivery_read_outcome("vanished", "", &heard);
    assert_int_equal(heard.kind, OUTCOME_FAILED);
    outcome_done(&told);
    outcome_done(&heard);
}

static void test_numbers(void **state)
{
    (void)state;
    assert_true(delivery_compare("1-2", "1-10") < 0);
    assert_true(delivery_compare("10-0", "9-9") > 0);
    assert_int_equal(delivery_compare("1700000000000-3", "1700000000000-3"), 0);
    assert_true(delivery_compare("0-0", "18446744073709551615-1") < 0);
}

static void test_redirects(void **state)
{
    const struct redis_url from = {.host = "10.0.0.1", .port = 6379, .password = "p"};
    static const char *const wrong[] = {"MOVED",        "MOVED 1",     "MOVED x h:1",
                                        "MOVED 1 h",    "MOVED 1 h:0", "MOVED 1 h:65536",
                                        "MOVED 1 h:12x"};
    struct redis_url url;

    (void)state;
    assert_true(redis_pipe_read_redirect("MOVED 866 10.0.0.7:6381", &from, &url));
    assert_string_equal(url.host, "10.0.0.7");
    assert_int_equal(url.port, 6381);
    assert_string_equal(url.password, "p");
    assert_true(redis_pipe_read_redirect("ASK 866 :7000", &from, &url));
    assert_string_equal(url.host, "10.0.0.1"); // the one that says so
    assert_true(redis_pipe_read_redirect("MOVED 1 fe80::1:6380", &from, &url));
    assert_string_equal(url.host, "fe80::1");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_false(redis_pipe_read_redirect(wrong[i], &from, &url));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_job),       cmocka_unit_test(test_no_job),
        cmocka_unit_test(test_outcomes),  cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_redirects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
