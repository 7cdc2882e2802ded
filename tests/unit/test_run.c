// SPDX-License-Identifier: PostgreSQL
//
// run with real processes. Each is a shell that is told what to do by args.do.

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "trial.h"

#define COMPLETED(id)     "{\"id\":" #id ",\"outcome\":\"completed\"}"
#define FAILED(id, error) "{\"id\":" #id ",\"outcome\":\"failed\",\"error\":\"" error "\"}"
#define DEAD(id, error) \
    "{\"id\":" #id ",\"outcome\":\"failed\",\"error\":\"" error "\",\"retry\":false}"

static struct trial trial;

// A shell that executes its first argument, which is args.do.
static void open_shell(int concurrency, int64_t timeout_ms)
{
    trial_open(&trial, HANDLER_RUN, "sh -c 'cd %s && eval \"$1\"' sh {args.do}", concurrency,
               timeout_ms);
}

static void try_one(int id, const char *what)
{
    trial_start(&trial, id, what);
    trial_wait(&trial);
}

// ---- exit status ----

static void the_exit_status_decides(void **state)
{
    (void)state;
    open_shell(1, 0);
    try_one(1, "exit 0");
    try_one(2, "exit 1");
    try_one(3, "echo first >&2; echo last words >&2; exit 75");
    try_one(4, "exit 64");
    try_one(5, "echo bad amount >&2; exit 65");
    try_one(6, "exit 78");
    try_one(7, "exit 69");
    try_one(8, "kill -KILL $$");
    trial_expect(&trial, 1, COMPLETED(1));
    trial_expect(&trial, 2, FAILED(2, "exited with status 1"));
    trial_expect(&trial, 3, FAILED(3, "exited with status 75: last words"));
    trial_expect(&trial, 4, DEAD(4, "exited with status 64"));
    trial_expect(&trial, 5, DEAD(5, "exited with status 65: bad amount"));
    trial_expect(&trial, 6, DEAD(6, "exited with status 78"));
    trial_expect(&trial, 7, FAILED(7, "exited with status 69"));
    trial_expect(&trial, 8, FAILED(8, "exited with signal SIGKILL"));
    trial_close(&trial);
}

// ---- what it gets ----

static void the_job_is_on_standard_input(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_RUN, "sh -c 'cat >%s/job; read -r more || echo end >&2'", 1, 0);
    try_one(1, "x");
    trial_expect(&trial, 1, COMPLETED(1));
    assert_int_equal(trial_log_count(&trial, "handler.output: end (worker=trial job=1)"), 1);
    trial_close(&trial);
    trial_open(&trial, HANDLER_RUN, "grep -q '^{\"id\":1,.*\"args\":{\"do\": \"x\"}.*}$'", 1, 0);
    try_one(1, "x");
    trial_expect(&trial, 1, COMPLETED(1));
    trial_close(&trial);
}

static void a_large_job_that_nobody_reads(void **state)
{
    static char args[500000];

    (void)state;
    memset(args, ' ', sizeof(args) - 1);
    args[0] = '{';
    args[sizeof(args) - 2] = '}';
    trial_open(&trial, HANDLER_RUN, "true", 1, 0);
    trial_start_args(&trial, 1, args);
    trial_wait(&trial);
    trial_expect(&trial, 1, COMPLETED(1));
    trial_close(&trial);
    trial_open(&trial, HANDLER_RUN, "sh -c '[ $(wc -c) -gt 500000 ]'", 1, 0);
    trial_start_args(&trial, 1, args);
    trial_wait(&trial);
    trial_expect(&trial, 1, COMPLETED(1));
    trial_close(&trial);
}

static void the_environment_tells_about_the_job(void **state)
{
    (void)state;
    open_shell(1, 0);
    try_one(7, "echo $MILLRACE_JOB_ID $MILLRACE_QUEUE $MILLRACE_KIND $MILLRACE_ATTEMPT "
               "$MILLRACE_MAX_ATTEMPTS $MILLRACE_WORKER ${PATH:+path}");
    assert_int_equal(trial_log_count(&trial, "handler.output: 7 trial try 1 3 trial path"), 1);
    trial_close(&trial);
}

static void a_value_that_is_missing_ends_the_job(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_RUN, "touch %s/{args.file}", 1, 0);
    trial_start_args(&trial, 1, "{\"file\": \"a b\"}");
    trial_start_args(&trial, 2, "{\"other\": 1}");
    trial_wait(&trial);
    trial_wait_file(&trial, "a b");
    trial_expect(&trial, 1, COMPLETED(1));
    trial_expect(&trial, 2, DEAD(2, "the command needs args.file, which the job does not have"));
    trial_close(&trial);
}

// ---- answers ----

static void the_last_line_may_be_an_answer(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_RUN, "sh -c 'cd %s && . ./\"$1\"' sh {args.do}", 1, 0);
    static const struct {
        const char *name, *script, *entry;
    } scripts[] = {
        {"a", "echo hello; echo '{\"result\":5}'",
         "{\"id\":1,\"outcome\":\"completed\",\"result\":5}"},
        {"b", "printf '{\"outcome\":\"snoozed\",\"delay\":2}'",
         "{\"id\":2,\"outcome\":\"snoozed\",\"delay\":\"2000 ms\"}"},
        {"c", "echo '{\"error\":\"no\",\"retry\":false}'; exit 1", DEAD(3, "no")},
        {"d", "echo '{\"error\":\"no\"}'", FAILED(4, "no")},
        {"e", "echo '{\"result\":5}'; exit 1", FAILED(5, "exited with status 1")},
        {"f", "echo '{\"result\":5}'; echo more", COMPLETED(6)},
        {"g", "echo '{\"rows\":5}'", COMPLETED(7)},
        {"h", "echo '{\"id\":8,\"result\":5}'",
         "{\"id\":8,\"outcome\":\"completed\",\"result\":5}"},
        {"i", "echo '{\"id\":1,\"result\":5}'", COMPLETED(9)},
        {"j", "echo '{\"outcome\":\"snoozed\"}'",
         FAILED(10,
                "the last line of output is no answer: the outcome snoozed needs \\\"delay\\\"")},
        {"k", "echo '{\"result\":5}'; sleep 600 & echo $! >pid",
         "{\"id\":11,\"outcome\":\"completed\",\"result\":5}"},
    };

    (void)state;
    for (int i = 0; i < (int)(sizeof(scripts) / sizeof(scripts[0])); i++) {
        trial_write_file(&trial, scripts[i].name, scripts[i].script);
        try_one(i + 1, scripts[i].name);
        trial_expect(&trial, i + 1, scripts[i].entry);
    }
    // the last one has left somebody behind who holds its output
    assert_int_equal(kill(trial_pid(&trial, "pid"), SIGKILL), 0);
    // what is no answer is for the log
    assert_int_equal(trial_log_count(&trial, "handler.output: hello (worker=trial job=1)"), 1);
    assert_int_equal(trial_log_count(&trial, "{\"result\":5} (worker=trial job=1)"), 0);
    assert_int_equal(trial_log_count(&trial, "{\"result\":5} (worker=trial job=5)"), 1);
    assert_int_equal(trial_log_count(&trial, "{\"result\":5} (worker=trial job=6)"), 1);
    assert_int_equal(trial_log_count(&trial, "{\"rows\":5} (worker=trial job=7)"), 1);
    trial_close(&trial);
}

static void output_is_bounded(void **state)
{
    (void)state;
    open_shell(1, 0);
    try_one(1, "seq 1 90; seq 1001 1500 >&2; head -c 9000000 /dev/zero; echo; exit 3");
    trial_expect(&trial, 1, FAILED(1, "exited with status 3: 1500"));
    assert_int_equal(trial_log_count(&trial, "info handler.output"), 101);
    trial_expect_part(&trial, 1, "status 3");
    assert_int_equal(trial_log_count(&trial, "491 more lines were left out (worker=trial job=1)"),
                     1);
    trial_close(&trial);
}

// ---- reports of progress ----

static void lines_may_report_progress(void **state)
{
    static const struct {
        const char *name, *script, *entry, *report;
        int reports;
    } scripts[] = {
        {"a", "echo '{\"progress\":10}'; echo '{\"progress\":20,\"note\":\"two\"}'", COMPLETED(1),
         "20 two", 2},
        {"b", "echo '{\"progress\":10}'; echo '{\"result\":5}'; echo '{\"progress\":100}'",
         "{\"id\":2,\"outcome\":\"completed\",\"result\":5}", "100 -", 2},
        {"c", "echo '{\"id\":3,\"progress\":1e1}'; exit 1", FAILED(3, "exited with status 1"),
         "10 -", 1},
        // of another job, out of bounds, with a key of another sort, not JSON
        {"d", "echo '{\"id\":3,\"progress\":10}'", COMPLETED(4), "", 0},
        {"e", "echo '{\"progress\":100.5}'; echo '{\"progress\":null}'", COMPLETED(5), "", 0},
        {"f", "echo '{\"progress\":10,\"file\":\"x\"}'", COMPLETED(6), "", 0},
        {"g", "printf '{\"progress\":10,\"note\":\"\\377\"}\\n'", COMPLETED(7), "", 0},
        {"h", "echo '{\"progress\":10,\"note\":\"\\ud800\"}'", COMPLETED(8), "", 0},
    };

    (void)state;
    trial_open(&trial, HANDLER_RUN, "bash -c 'cd %s && . ./\"$1\"' sh {args.do}", 1, 0);
    for (int i = 0; i < (int)(sizeof(scripts) / sizeof(scripts[0])); i++) {
        trial_write_file(&trial, scripts[i].name, scripts[i].script);
        try_one(i + 1, scripts[i].name);
        trial_expect(&trial, i + 1, scripts[i].entry);
        assert_int_equal(trial.jobs[i + 1].reports, scripts[i].reports);
        assert_string_equal(trial.jobs[i + 1].report, scripts[i].report);
    }
    assert_int_equal(trial_log_count(&trial, "{\"progress\":10} (worker=trial job=1)"), 0);
    assert_int_equal(trial_log_count(&trial, "was left out: \"progress\" is not a number from 0 to "
                                             "100 (worker=trial job=5)"),
                     1);
    assert_int_equal(trial_log_count(&trial, "\"file\":\"x\"} (worker=trial job=6)"), 1);
    assert_int_equal(trial_log_count(&trial, "was left out: \"note\" is not a text (worker=trial "
                                             "job=8)"),
                     1);
    trial_close(&trial);
}

// ---- time ----

static void a_hung_process_is_killed(void **state)
{
    (void)state;
    open_shell(3, 400);
    trial_start(&trial, 1, "sleep 600");
    trial_start(&trial, 2, ": own-timeout; sleep 600");
    trial_start(&trial, 3, "echo fine");
    assert_int_equal(trial_room(&trial), 0);
    trial_wait(&trial);
    assert_int_equal(trial_room(&trial), 3);
    trial_expect(&trial, 1, FAILED(1, "timed out after 0.4 s"));
    trial_expect(&trial, 2, FAILED(2, "timed out after 0.3 s"));
    trial_expect(&trial, 3, COMPLETED(3));
    trial_close(&trial);
}

static void a_process_that_ignores_sigterm_is_killed(void **state)
{
    (void)state;
    open_shell(1, 300);
    try_one(1, "trap \\\"\\\" TERM; sleep 600 & echo $! >pid; while :; do sleep 1; done");
    trial_expect(&trial, 1, FAILED(1, "timed out after 0.3 s"));
    trial_wait_gone(&trial, trial_pid(&trial, "pid"));
    trial_close(&trial);
}

// ---- dropping ----

static void a_dropped_job_is_stopped(void **state)
{
    (void)state;
    open_shell(1, 0);
    trial_start(&trial, 1, "echo $$ >pid; sleep 600");
    pid_t pid = trial_pid(&trial, "pid");
    trial_drop(&trial, 1);
    trial_expect(&trial, 1, "{\"id\":1,\"outcome\":\"released\"}");
    assert_int_equal(trial_room(&trial), 0);
    trial_wait_gone(&trial, pid);
    try_one(2, "exit 0");
    trial_expect(&trial, 2, COMPLETED(2));
    assert_int_equal(trial.roomier, 1);
    trial_start(&trial, 3, "sleep 600");
    trial_drop(&trial, 3);
    trial_close(&trial);
}

// ---- cancelling ----

static void a_cancelled_process_is_stopped(void **state)
{
    (void)state;
    open_shell(2, 0);
    trial_start(&trial, 1, "echo $$ >pid; sleep 600");
    pid_t pid = trial_pid(&trial, "pid");
    trial_cancel(&trial, 1);
    assert_false(trial_is_settled(&trial, 1)); // not before it is gone
    trial_wait(&trial);
    trial_expect(&trial, 1, FAILED(1, "cancelled"));
    trial_wait_gone(&trial, pid);
    assert_int_equal(trial_room(&trial), 2);
    // one that leaves in order has not done its job
    trial_start(&trial, 2, "trap \\\"exit 0\\\" TERM; echo $$ >two; while :; do sleep 0.05; done");
    trial_pid(&trial, "two");
    trial_cancel(&trial, 2);
    trial_wait(&trial);
    trial_expect(&trial, 2, FAILED(2, "cancelled"));
    try_one(3, "exit 0");
    trial_expect(&trial, 3, COMPLETED(3));
    trial_close(&trial);
}

static void an_answer_of_a_cancelled_process_counts(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_RUN, "sh -c 'cd %s && . ./\"$1\"' sh {args.do}", 1, 0);
    trial_write_file(&trial, "last",
                     "trap '' TERM; echo $$ >pid; until [ -e go ]; do sleep 0.05; done\n"
                     "echo '{\"result\":5}'");
    trial_start(&trial, 1, "last");
    trial_pid(&trial, "pid");
    trial_cancel(&trial, 1);
    trial_make_file(&trial, "go");
    trial_wait(&trial);
    trial_expect(&trial, 1, "{\"id\":1,\"outcome\":\"completed\",\"result\":5}");
    trial_close(&trial);
}

static void a_cancelled_process_is_dropped(void **state)
{
    (void)state;
    open_shell(1, 0);
    trial_start(&trial, 1, "echo $$ >pid; sleep 600");
    trial_pid(&trial, "pid");
    trial_cancel(&trial, 1);
    trial_drop(&trial, 1);
    trial_expect(&trial, 1, "{\"id\":1,\"outcome\":\"released\"}");
    trial_close(&trial);
}

static void many_processes(void **state)
{
    (void)state;
    open_shell(8, 0);
    trial_feed(&trial, 1, 100, "exit 0");
    assert_int_equal(trial.settled, 100);
    trial_expect(&trial, 100, COMPLETED(100));
    trial_close(&trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_exit_status_decides),
        cmocka_unit_test(the_job_is_on_standard_input),
        cmocka_unit_test(a_large_job_that_nobody_reads),
        cmocka_unit_test(the_environment_tells_about_the_job),
        cmocka_unit_test(a_value_that_is_missing_ends_the_job),
        cmocka_unit_test(the_last_line_may_be_an_answer),
        cmocka_unit_test(output_is_bounded),
        cmocka_unit_test(lines_may_report_progress),
        cmocka_unit_test(a_hung_process_is_killed),
        cmocka_unit_test(a_process_that_ignores_sigterm_is_killed),
        cmocka_unit_test(a_dropped_job_is_stopped),
        cmocka_unit_test(a_cancelled_process_is_stopped),
        cmocka_unit_test(an_answer_of_a_cancelled_process_counts),
        cmocka_unit_test(a_cancelled_process_is_dropped),
        cmocka_unit_test(many_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
