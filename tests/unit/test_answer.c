// SPDX-License-Identifier: PostgreSQL
//
// What an answer becomes, and which ones are refused with which words.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "handler/answer.h"

static const struct good {
    const char *answer;
    int64_t id;
    const char *entry; // of finish(), with the id 9
} goods[] = {
    {"{}", -1, "{\"id\":9,\"outcome\":\"completed\"}"},
    {" {\"id\": 7 } \r", 7, "{\"id\":9,\"outcome\":\"completed\"}"},
    {"{\"id\":9223372036854775807}", INT64_MAX, "{\"id\":9,\"outcome\":\"completed\"}"},
    {"{\"result\":{\"a\":[1, 2.50]}}", -1,
     "{\"id\":9,\"outcome\":\"completed\",\"result\":{\"a\":[1, 2.50]}}"},
    // numbers beyond any C type are not ours to judge
    {"{\"result\":123456789012345678901234567890.10}", -1,
     "{\"id\":9,\"outcome\":\"completed\",\"result\":123456789012345678901234567890.10}"},
    {"{\"outcome\":\"completed\",\"error\":null,\"result\":null}", -1,
     "{\"id\":9,\"outcome\":\"completed\"}"},
    {"{\"error\":\"no \\\"route\\\"\"}", -1,
     "{\"id\":9,\"outcome\":\"failed\",\"error\":\"no \\\"route\\\"\"}"},
    {"{\"outcome\":\"failed\"}", -1,
     "{\"id\":9,\"outcome\":\"failed\",\"error\":\"the handler gave no reason\"}"},
    {"{\"outcome\":\"failed\",\"retry\":false,\"error\":{\"code\":5}}", -1,
     "{\"id\":9,\"outcome\":\"failed\",\"error\":{\"code\":5},\"retry\":false}"},
    {"{\"error\":\"x\",\"retry_in\":\"10 s\",\"state\":\"AAEC\"}", -1,
     "{\"id\":9,\"outcome\":\"failed\",\"error\":\"x\",\"retry_in\":\"10 s\",\"state\":\"AAEC\"}"},
    {"{\"error\":\"x\",\"retry_in\":1.5}", -1,
     "{\"id\":9,\"outcome\":\"failed\",\"error\":\"x\",\"retry_in\":\"1500 ms\"}"},
    {"{\"outcome\":\"snoozed\",\"delay\":0}", -1,
     "{\"id\":9,\"outcome\":\"snoozed\",\"delay\":\"1 ms\"}"},
    {"{\"outcome\":\"snoozed\",\"delay\":2e2,\"state\":\"\"}", -1,
     "{\"id\":9,\"outcome\":\"snoozed\",\"delay\":\"200000 ms\",\"state\":\"\"}"},
    {"{\"outcome\":\"requeued\",\"changes\":{\"queue\":\"other\"},\"clear\":[\"blob\"]}", -1,
     "{\"id\":9,\"outcome\":\"requeued\",\"changes\":{\"queue\":\"other\"},\"clear\":[\"blob\"]}"},
    {"{\"outcome\":\"released\",\"id\":3}", 3, "{\"id\":9,\"outcome\":\"released\"}"},
    // the last of a key counts, as in jsonb
    {"{\"id\":1,\"id\":2,\"error\":\"x\",\"error\":null}", 2,
     "{\"id\":9,\"outcome\":\"completed\"}"},
};

static void answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(goods) / sizeof(goods[0]); i++) {
        AUTO_OUTCOME outcome;
        AUTO_BUF entry;
        struct mr_error err = {0};
        int64_t id = 0;

        outcome_init(&outcome);
        outcome_fail(&outcome, "what was there before", 0, false);
        buf_init(&entry, 10000);
        if (answer_parse(goods[i].answer, strlen(goods[i].answer), &id, &outcome, &err)) {
            fail_msg("%s: %s", goods[i].answer, err.message);
        }
        outcome_print(&outcome, 9, &entry);
        assert_string_equal(buf_peek(&entry), goods[i].entry);
        assert_int_equal(id, goods[i].id);
    }
}

static const struct bad {
    const char *answer;
    const char *message;
} bads[] = {
    {"", "invalid JSON at byte 1: expected an object"},
    {"ok", "invalid JSON at byte 1: expected an object"},
    {"[]", "invalid JSON at byte 1: expected an object"},
    {"{\"id\":7", "invalid JSON at byte 8: the text ends too early"},
    {"{} {}", "invalid JSON at byte 4: something follows the value"},
    {"{\"result\":\"\xff\"}", "invalid JSON at byte 12: not UTF-8"},
    {"{\"reslt\":1}", "unknown key \"reslt\""},
    {"{\"id\":-1}", "\"id\" is not the number of a job"},
    {"{\"id\":\"7\"}", "\"id\" is not the number of a job"},
    {"{\"id\":1.5}", "\"id\" is not the number of a job"},
    {"{\"id\":9223372036854775808}", "\"id\" is not the number of a job"},
    {"{\"outcome\":\"done\"}", "unknown outcome \"done\""},
    {"{\"outcome\":\"elsewhere\"}", "unknown outcome \"elsewhere\""},
    {"{\"outcome\":1}", "\"outcome\" is not a string"},
    {"{\"error\":\"x\",\"retry\":\"no\"}", "\"retry\" is not true or false"},
    {"{\"error\":\"x\",\"retry_in\":-1}", "\"retry_in\" is not an interval or a number of seconds"},
    {"{\"error\":\"x\",\"retry_in\":1e300}",
     "\"retry_in\" is not an interval or a number of seconds"},
    {"{\"error\":\"x\",\"retry_in\":{}}", "\"retry_in\" is not an interval or a number of seconds"},
    {"{\"outcome\":\"snoozed\"}", "the outcome snoozed needs \"delay\""},
    {"{\"delay\":5}", "\"delay\" does not belong to the outcome completed"},
    {"{\"outcome\":\"completed\",\"error\":\"x\"}",
     "\"error\" does not belong to the outcome completed"},
    {"{\"outcome\":\"failed\",\"result\":1}", "\"result\" does not belong to the outcome failed"},
    {"{\"outcome\":\"released\",\"state\":\"\"}",
     "\"state\" does not belong to the outcome released"},
    {"{\"outcome\":\"requeued\",\"changes\":[]}", "\"changes\" is not an object"},
    {"{\"outcome\":\"requeued\",\"clear\":\"blob\"}", "\"clear\" is not an array"},
};

static void refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bads) / sizeof(bads[0]); i++) {
        AUTO_OUTCOME outcome;
        struct mr_error err = {0};
        int64_t id = 42;

        outcome_init(&outcome);
        assert_int_equal(answer_parse(bads[i].answer, strlen(bads[i].answer), &id, &outcome, &err),
                         MR_EINVALID);
        assert_string_equal(err.message, bads[i].message);
        assert_int_equal(id, 42);
    }
}

// Output of a script is taken for an answer that went wrong only where it speaks of an outcome.
static void meant_as_an_answer(void **state)
{
    (void)state;
    assert_true(answer_is_meant("{\"outcome\":5}", 13));
    assert_false(answer_is_meant("{\"rows\":{\"outcome\":5}}", 22));
    assert_false(answer_is_meant("{\"rows\":5}", 10));
    assert_false(answer_is_meant("{\"outcome\":5", 12));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers),
        cmocka_unit_test(refusals),
        cmocka_unit_test(meant_as_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
