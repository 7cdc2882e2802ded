// SPDX-License-Identifier: PostgreSQL
//
// Outcomes: as entries of finish(), and as C handlers tell them.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/mr_outcome.h"

static void assert_prints(const struct outcome *outcome, const char *expected)
{
    AUTO_BUF buf;

    buf_init(&buf, 10000);
    outcome_print(outcome, 7, &buf);
    assert_string_equal(buf_peek(&buf), expected);
}

static void entries(void **state)
{
    AUTO_OUTCOME outcome;

    (void)state;
    outcome_init(&outcome);
    assert_prints(&outcome, "{\"id\":7,\"outcome\":\"completed\"}");
    outcome_complete(&outcome, "[1]");
    assert_prints(&outcome, "{\"id\":7,\"outcome\":\"completed\",\"result\":[1]}");
    outcome_fail(&outcome, "a \"b\"\n", 0, false);
    assert_prints(&outcome, "{\"id\":7,\"outcome\":\"failed\",\"error\":\"a \\\"b\\\"\\u000a\"}");
    outcome_fail(&outcome, NULL, 1500, true);
    outcome_state(&outcome, "foo", 3);
    assert_prints(&outcome, "{\"id\":7,\"outcome\":\"failed\",\"error\":\"\","
                            "\"retry_in\":\"1500 ms\",\"retry\":false,\"state\":\"Zm9v\"}");
    outcome_snooze(&outcome, 60000);
    assert_prints(&outcome, "{\"id\":7,\"outcome\":\"snoozed\",\"delay\":\"60000 ms\"}");
    outcome_requeue(&outcome, "{\"priority\":1}");
    assert_prints(&outcome, "{\"id\":7,\"outcome\":\"requeued\",\"changes\":{\"priority\":1}}");
    outcome_release(&outcome);
    assert_prints(&outcome, "{\"id\":7,\"outcome\":\"released\"}");
    outcome_cancel(&outcome);
    assert_prints(&outcome, "{\"id\":7,\"outcome\":\"failed\",\"error\":\"cancelled\"}");
}

static void taking_leaves_completed(void **state)
{
    AUTO_OUTCOME from;
    AUTO_OUTCOME to;

    (void)state;
    outcome_init(&from);
    outcome_init(&to);
    outcome_complete(&to, "1");
    outcome_fail(&from, "e", 0, false);
    outcome_take(&to, &from);
    assert_prints(&to, "{\"id\":7,\"outcome\":\"failed\",\"error\":\"e\"}");
    assert_prints(&from, "{\"id\":7,\"outcome\":\"completed\"}");
}

// ---- what a handler says ----

static void handler_says(mr_outcome *told, int status, const char *expected)
{
    AUTO_OUTCOME outcome;

    outcome_init(&outcome);
    mr__outcome_end(told, status, &outcome);
    assert_prints(&outcome, expected);
    mr__outcome_done(told);
    mr__outcome_init(told);
}

static void status_counts_when_nothing_was_said(void **state)
{
    mr_outcome told;

    (void)state;
    mr__outcome_init(&told);
    handler_says(&told, 0, "{\"id\":7,\"outcome\":\"completed\"}");
    handler_says(&told, -4,
                 "{\"id\":7,\"outcome\":\"failed\",\"error\":\"the handler returned -4\"}");
    assert_int_equal(mr_outcome_complete(&told, NULL), 0);
    handler_says(&told, 1, "{\"id\":7,\"outcome\":\"completed\"}");
    assert_int_equal(mr_outcome_fail(&told, "e", 0, 0), 0);
    handler_says(&told, 0, "{\"id\":7,\"outcome\":\"failed\",\"error\":\"e\"}");
    mr__outcome_done(&told);
}

static void a_handler_can_ask_whether_it_is_cancelled(void **state)
{
    atomic_bool cancelled = false;
    mr_outcome told;

    (void)state;
    mr__outcome_init(&told);
    assert_int_equal(mr_outcome_cancelled(&told), 0); // nobody to ask
    assert_int_equal(mr_outcome_cancelled(NULL), 0);
    told.cancelled = &cancelled;
    assert_int_equal(mr_outcome_cancelled(&told), 0);
    atomic_store(&cancelled, true);
    assert_int_equal(mr_outcome_cancelled(&told), 1);
    handler_says(&told, 0, "{\"id\":7,\"outcome\":\"completed\"}"); // its word counts
    mr__outcome_done(&told);
}

static void state_goes_with_any_but_completion(void **state)
{
    mr_outcome told;

    (void)state;
    mr__outcome_init(&told);
    assert_int_equal(mr_outcome_state(&told, "foo", 3), 0);
    assert_int_equal(mr_outcome_snooze(&told, 5), 0);
    handler_says(&told, 0,
                 "{\"id\":7,\"outcome\":\"snoozed\",\"delay\":\"5 ms\",\"state\":\"Zm9v\"}");
    assert_int_equal(mr_outcome_state(&told, "bar", 3), 0);
    assert_int_equal(mr_outcome_state(&told, "foo", 3), 0);
    handler_says(&told, 1,
                 "{\"id\":7,\"outcome\":\"failed\",\"error\":\"the handler returned 1\","
                 "\"state\":\"Zm9v\"}");
    assert_int_equal(mr_outcome_state(&told, "foo", 3), 0);
    handler_says(&told, 0, "{\"id\":7,\"outcome\":\"completed\"}");
    assert_int_equal(mr_outcome_requeue(&told, NULL), 0);
    assert_int_equal(mr_outcome_state(&told, "", 0), 0);
    handler_says(&told, 0, "{\"id\":7,\"outcome\":\"requeued\",\"state\":\"\"}");
    mr__outcome_done(&told);
}

static void nonsense_fails_the_job(void **state)
{
    static const char *const nonsense[] = {"", " ", "{", "1,2", "1},{\"id\":8", "\"", "nul"};
    mr_outcome told;

    (void)state;
    mr__outcome_init(&told);
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        AUTO_OUTCOME outcome;
        outcome_init(&outcome);
        int code = i % 2 ? mr_outcome_requeue(&told, nonsense[i])
                         : mr_outcome_complete(&told, nonsense[i]);
        assert_int_equal(code, MR_EINVALID);
        mr__outcome_end(&told, 0, &outcome);
        assert_int_equal(outcome.kind, OUTCOME_FAILED);
        assert_non_null(strstr(buf_peek(&outcome.members), "the handler's "));
    }
    mr__outcome_done(&told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries),
        cmocka_unit_test(taking_leaves_completed),
        cmocka_unit_test(status_counts_when_nothing_was_said),
        cmocka_unit_test(a_handler_can_ask_whether_it_is_cancelled),
        cmocka_unit_test(state_goes_with_any_but_completion),
        cmocka_unit_test(nonsense_fails_the_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
