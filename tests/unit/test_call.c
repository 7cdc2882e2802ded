// SPDX-License-Identifier: PostgreSQL
//
// Calls: the table, and parameters in the form that libpq sends.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/call.h"
#include "client/request.h"

struct params {
    const char *values[CALL_PARAMS_MAX];
    int lengths[CALL_PARAMS_MAX], formats[CALL_PARAMS_MAX];
};

static struct params params_of(const struct call *call)
{
    struct params params = {0};

    assert_int_equal(call_status(call, NULL), 0);
    call_values(call, params.values, params.lengths, params.formats);
    return params;
}

// The highest $n of a statement is the number of its parameters.
static void table_counts_parameters(void **state)
{
    (void)state;
    for (int i = 0; i < CALL_KINDS; i++) {
        char next[16];
        assert_non_null(call_infos[i].name);
        assert_true(call_infos[i].params <= CALL_PARAMS_MAX);
        if (call_infos[i].params > 0) {
            snprintf(next, sizeof(next), "$%d", call_infos[i].params);
            assert_non_null(strstr(call_infos[i].statement, next));
        }
        snprintf(next, sizeof(next), "$%d", call_infos[i].params + 1);
        assert_null(strstr(call_infos[i].statement, next));
    }
}

static void scalars(void **state)
{
    AUTO_CALL call;

    (void)state;
    call_init(&call, CALL_ENQUEUE);
    call_text(&call, "x'\"\\");
    call_text(&call, NULL);
    call_text(&call, "");
    call_number(&call, INT64_MIN);
    call_bool(&call, true);
    call_ms(&call, 1500);
    call_ms(&call, 0);
    call_bytes(&call, "\0\1", 2);
    call_bytes(&call, "", 0);
    call_bytes(&call, NULL, 0);
    struct params params = params_of(&call);
    assert_string_equal(params.values[0], "x'\"\\");
    assert_null(params.values[1]);
    assert_string_equal(params.values[2], "");
    assert_string_equal(params.values[3], "-9223372036854775808");
    assert_string_equal(params.values[4], "true");
    assert_string_equal(params.values[5], "1500 ms");
    assert_null(params.values[6]);
    assert_int_equal(params.formats[7], 1);
    assert_int_equal(params.lengths[7], 2);
    assert_memory_equal(params.values[7], "\0\1", 2);
    assert_non_null(params.values[8]);
    assert_int_equal(params.lengths[8], 0);
    assert_null(params.values[9]);
}

static void arrays(void **state)
{
    static const int64_t numbers[] = {1, -2, 3};
    static const char *const texts[] = {"a,b", "c\"d\\e", "", "null"};
    AUTO_CALL call;

    (void)state;
    call_init(&call, CALL_COMPLETE);
    call_numbers(&call, numbers, 3);
    call_numbers(&call, NULL, 0);
    call_texts(&call, texts, 4);
    call_texts(&call, NULL, 0);
    struct params params = params_of(&call);
    assert_string_equal(params.values[0], "{1,-2,3}");
    assert_null(params.values[1]);
    assert_string_equal(params.values[2], "{\"a,b\",\"c\\\"d\\\\e\",\"\",\"null\"}");
    assert_string_equal(params.values[3], "{}");
}

static void json_array_in_binary(void **state)
{
    static const char *const texts[] = {"1", "{}"};
    static const char expected[] = "\0\0\0\1\0\0\0\0\0\0\x0e\xda\0\0\0\2\0\0\0\1"
                                   "\0\0\0\2\1"
                                   "1"
                                   "\0\0\0\3\1{}";
    AUTO_CALL call;

    (void)state;
    call_init(&call, CALL_ENQUEUE_MANY);
    call_json_array(&call, texts, 2);
    call_json_array(&call, NULL, 0);
    struct params params = params_of(&call);
    assert_int_equal(params.formats[0], 1);
    assert_int_equal(params.lengths[0], sizeof(expected) - 1);
    assert_memory_equal(params.values[0], expected, sizeof(expected) - 1);
    assert_int_equal(params.lengths[1], 12);
    assert_memory_equal(params.values[1], "\0\0\0\0\0\0\0\0\0\0\x0e\xda", 12);
}

static void bytes_array_in_binary(void **state)
{
    static const struct call_part parts[] = {{"a\0b", 3}, {NULL, 0}, {"", 0}};
    static const struct call_part nothing[] = {{NULL, 0}, {NULL, 7}};
    static const char expected[] = "\0\0\0\1\0\0\0\1\0\0\0\x11\0\0\0\3\0\0\0\1"
                                   "\0\0\0\3a\0b\xff\xff\xff\xff\0\0\0\0";
    AUTO_CALL call;

    (void)state;
    call_init(&call, CALL_ENQUEUE_HEAVY);
    call_bytes_array(&call, parts, 3);
    call_bytes_array(&call, nothing, 2);
    call_bytes_array(&call, NULL, 0);
    struct params params = params_of(&call);
    assert_int_equal(params.formats[0], 1);
    assert_int_equal(params.lengths[0], sizeof(expected) - 1);
    assert_memory_equal(params.values[0], expected, sizeof(expected) - 1);
    assert_null(params.values[1]);
    assert_null(params.values[2]);
}

static void too_much(void **state)
{
    AUTO_CALL call;
    mr_error err;

    (void)state;
    call_init(&call, CALL_ENQUEUE);
    call.store.max = 10;
    call_text(&call, "0123456789");
    assert_int_equal(call_status(&call, &err), MR_ELIMIT);
    assert_true(err.hint[0] != '\0');
}

static void job_as_parameters(void **state)
{
    AUTO_CALL call;
    mr_job_spec job = MR_JOB_SPEC_INIT;

    (void)state;
    job.kind = "k";
    job.delay_ms = 5;
    job.blob = "b";
    job.blob_size = 1;
    request_enqueue(&call, &job);
    struct params params = params_of(&call);
    assert_int_equal(call.count, call_infos[CALL_ENQUEUE].params);
    assert_string_equal(params.values[0], "k");
    assert_null(params.values[1]);
    assert_string_equal(params.values[3], "50");
    assert_string_equal(params.values[5], "5 ms");
    assert_null(params.values[6]);
    assert_null(params.values[10]);
    assert_null(params.values[14]);
    assert_memory_equal(params.values[15], "b", 1);
    assert_null(params.values[16]);
    assert_null(params.values[17]);
}

static void unique_job_as_parameters(void **state)
{
    AUTO_CALL call;
    mr_job_spec job = MR_JOB_SPEC_INIT;

    (void)state;
    job.kind = "k";
    job.unique_key = "u";
    job.on_conflict = "replace";
    job.unique_for_ms = 1500;
    request_enqueue(&call, &job);
    struct params params = params_of(&call);
    assert_string_equal(params.values[6], "u");
    assert_string_equal(params.values[16], "replace");
    assert_string_equal(params.values[17], "1500 ms");
}

// Each gives its statement as many parameters as the table says.
static void requests_fill_their_calls(void **state)
{
    static const char *const leases[] = {"l"};
    const char *queue = NULL;
    int64_t id = 1;
    struct call calls[11];
    int count = 0;

    (void)state;
    assert_int_equal(request_claim(&calls[count++], NULL, &queue, NULL), 0);
    assert_int_equal(request_complete(&calls[count++], "l", &id, 1, NULL, NULL), 0);
    assert_int_equal(request_complete_many(&calls[count++], leases, 1, NULL), 0);
    assert_int_equal(request_fail(&calls[count++], "l", 1, "e", 0, 0, NULL, 0, NULL), 0);
    assert_int_equal(request_finish(&calls[count++], "l", "[]", NULL), 0);
    assert_int_equal(request_requeue(&calls[count++], "l", 1, NULL, NULL, 0, NULL, 0, NULL), 0);
    assert_int_equal(request_release(&calls[count++], "l", NULL, 0, NULL), 0);
    assert_int_equal(request_heartbeat(&calls[count++], "l", 0, NULL), 0);
    assert_int_equal(request_depth(&calls[count++], NULL, NULL), 0);
    assert_int_equal(request_job(&calls[count++], 1, NULL), 0);
    for (int i = 0; i < count; i++) {
        assert_int_equal(calls[i].count, call_infos[calls[i].kind].params);
        call_done(&calls[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_counts_parameters),
        cmocka_unit_test(scalars),
        cmocka_unit_test(arrays),
        cmocka_unit_test(json_array_in_binary),
        cmocka_unit_test(bytes_array_in_binary),
        cmocka_unit_test(too_much),
        cmocka_unit_test(job_as_parameters),
        cmocka_unit_test(unique_job_as_parameters),
        cmocka_unit_test(requests_fill_their_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
