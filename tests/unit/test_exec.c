// SPDX-License-Identifier: PostgreSQL
//
// exec with real children, good and bad ones.
//
// Most of them are this shell script: it does what args.do says and answers with its own process
// id as the result.

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "trial.h"

#define SCRIPT(commands)                                                                       \
    "sh -c '"                                                                                  \
    "field() { rest=${line#*$1}; value=${rest%%[,\\}\\\"]*}; }\n"                              \
    "answer() { echo \"{\\\"id\\\":$id,\\\"result\\\":$$}\"; }\n"                              \
    "while read -r line; do\n"                                                                 \
    "  field \"\\\"id\\\":\"; id=$value\n"                                                     \
    "  field \"\\\"do\\\": \\\"\"\n"                                                           \
    "  case $value in\n"                                                                       \
    "  hold) until [ -e %s/go ]; do sleep 0.02; done; answer ;;\n" commands "  *) answer ;;\n" \
    "  esac\n"                                                                                 \
    "done'"

static struct trial trial;

static int pid_of(int id)
{
    const char *result = strstr(trial.jobs[id].entry, "\"result\":");

    assert_non_null(result);
    return atoi(result + strlen("\"result\":"));
}

// Jobs that are done in no time, until others are sent ahead; the process that did them.
static int warm_up(void)
{
    int id = 501;

    for (; id < 1000 && trial_room(&trial) < 8; id += 20) {
        trial_feed(&trial, id, id + 19, "nothing");
    }
    if (trial_room(&trial) < 8) {
        print_message("jobs take too long here to be sent ahead: run it on a machine less busy\n");
        skip();
    }
    return pid_of(id - 1);
}

// ---- good children ----

static void answers_come_back_by_id(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, SCRIPT(""), 2, 0);
    assert_int_equal(trial_room(&trial), 2);
    trial_feed(&trial, 1, 300, "nothing");
    for (int id = 1; id <= 300; id++) {
        trial_expect_part(&trial, id, "\"outcome\":\"completed\",\"result\":");
    }
    assert_true(pid_of(1) != pid_of(2));
    trial_close(&trial);
}

static void an_answer_without_id_is_for_the_oldest(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, "sed -u 's/{\"id\":\\([0-9]*\\).*/{\"result\":\\1}/'", 1, 0);
    trial_feed(&trial, 1, 100, "nothing");
    trial_expect(&trial, 1, "{\"id\":1,\"outcome\":\"completed\",\"result\":1}");
    trial_expect(&trial, 100, "{\"id\":100,\"outcome\":\"completed\",\"result\":100}");
    trial_close(&trial);
}

static void answers_may_come_in_any_order(void **state)
{
    (void)state;
    // "last" is answered after the job that follows it
    trial_open(&trial, HANDLER_EXEC,
               SCRIPT("last) late=$id ;;\n"
                      "first) answer; id=$late; answer ;;\n"),
               1, 0);
    warm_up();
    trial_start(&trial, 1, "last");
    trial_start(&trial, 2, "first");
    trial_wait(&trial);
    assert_true(trial.jobs[2].order < trial.jobs[1].order);
    trial_close(&trial);
}

static void all_outcomes(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC,
               SCRIPT("fail) echo \"{\\\"id\\\":$id,\\\"error\\\":\\\"no\\\"}\" ;;\n"
                      "snooze) echo \"{\\\"outcome\\\":\\\"snoozed\\\",\\\"delay\\\":2}\" ;;\n"),
               1, 0);
    trial_start(&trial, 1, "fail");
    trial_wait(&trial);
    trial_start(&trial, 2, "snooze");
    trial_wait(&trial);
    trial_expect(&trial, 1, "{\"id\":1,\"outcome\":\"failed\",\"error\":\"no\"}");
    trial_expect(&trial, 2, "{\"id\":2,\"outcome\":\"snoozed\",\"delay\":\"2000 ms\"}");
    trial_close(&trial);
}

// ---- how much is sent ahead ----

static void a_slow_child_gets_one_at_a_time(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, SCRIPT("slow) sleep 0.3; answer ;;\n"), 1, 0);
    trial_feed(&trial, 1, 3, "slow");
    assert_int_equal(trial_room(&trial), 1);
    trial_start(&trial, 4, "slow");
    assert_int_equal(trial_room(&trial), 0);
    trial_wait(&trial);
    trial_close(&trial);
}

static void a_free_child_takes_the_next_job(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, SCRIPT(""), 2, 0);
    trial_start(&trial, 1, "hold");
    for (int id = 2; id <= 50; id++) {
        trial_start(&trial, id, "nothing");
        trial_wait_job(&trial, id);
    }
    assert_null(trial.jobs[1].entry);
    trial_make_file(&trial, "go");
    trial_wait(&trial);
    assert_true(pid_of(1) != pid_of(50));
    trial_close(&trial);
}

static void a_child_that_does_not_read_holds_little(void **state)
{
    enum { SIZE = 200 * 1024 };
    char *args = malloc(SIZE);
    int sent = 0;

    (void)state;
    trial_open(&trial, HANDLER_EXEC, SCRIPT(""), 1, 0);
    warm_up();
    trial_start(&trial, 1, "hold");
    snprintf(args, SIZE, "{\"do\": \"nothing\"%*s}", SIZE - 20, "");
    while (trial_room(&trial) > 0) {
        trial_start_args(&trial, 2 + sent++, args);
        assert_true(sent < 10);
    }
    free(args);
    trial_make_file(&trial, "go");
    trial_wait(&trial);
    trial_close(&trial);
}

// ---- time ----

#define TIMED_OUT(id, time) \
    "{\"id\":" #id ",\"outcome\":\"failed\",\"error\":\"timed out after " time " s\"}"

static void a_hung_child_is_killed_and_only_its_job_fails(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, SCRIPT("hang) sleep 600 ;;\n"), 1, 500);
    int before = warm_up();
    trial_start(&trial, 1, "hang");
    trial_start_all(&trial, 2, 5, "nothing");
    trial_wait(&trial);
    trial_expect(&trial, 1, TIMED_OUT(1, "0.5"));
    for (int id = 2; id <= 5; id++) {
        assert_true(pid_of(id) != before);
    }
    trial_close(&trial);
}

static void a_job_has_its_own_timeout(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, SCRIPT("own-timeout) sleep 600 ;;\n"), 1, 600000);
    trial_start(&trial, 1, "own-timeout");
    trial_wait(&trial);
    trial_expect(&trial, 1, TIMED_OUT(1, "0.3"));
    trial_close(&trial);
}

// The time of a job that was sent ahead begins when those before it are answered.
static void waiting_behind_others_is_not_its_time(void **state)
{
    (void)state;
    // together longer than the timeout, each by itself not even on a busy machine
    trial_open(&trial, HANDLER_EXEC, SCRIPT("slow) sleep 0.5; answer ;;\n"), 1, 3000);
    warm_up();
    trial_start_all(&trial, 1, 8, "slow");
    trial_wait(&trial);
    for (int id = 1; id <= 8; id++) {
        trial_expect_part(&trial, id, "completed");
    }
    trial_close(&trial);
}

static void a_child_that_ignores_sigterm_is_killed(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC,
               SCRIPT("deaf) trap \"\" TERM; sleep 600 & echo $! >%s/pid;"
                      " while :; do sleep 1; done ;;\n"),
               1, 200);
    trial_start(&trial, 1, "deaf");
    pid_t pid = trial_pid(&trial, "pid");
    trial_start(&trial, 2, "nothing");
    trial_wait(&trial);
    trial_expect(&trial, 1, TIMED_OUT(1, "0.2"));
    trial_expect_part(&trial, 2, "completed");
    // and what it had started is gone, too
    trial_wait_gone(&trial, pid);
    trial_close(&trial);
}

// ---- ends ----

static void a_child_that_exits_fails_the_job_it_ran(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, SCRIPT("die) echo \"no disk\" >/dev/stderr; exit 3 ;;\n"), 1,
               0);
    warm_up();
    trial_start_all(&trial, 1, 3, "nothing");
    trial_start(&trial, 4, "die");
    trial_start_all(&trial, 5, 7, "nothing");
    trial_wait(&trial);
    trial_expect(&trial, 4,
                 "{\"id\":4,\"outcome\":\"failed\",\"error\":"
                 "\"handler exited with status 3 while it ran the job: no disk\"}");
    for (int id = 1; id <= 7; id++) {
        assert_true(id == 4 || pid_of(id) > 0);
    }
    assert_true(pid_of(5) != pid_of(3));
    assert_int_equal(trial_log_count(&trial, "no disk (worker=trial job="), 1);
    trial_close(&trial);
}

static void a_child_that_crashes(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, SCRIPT("die) kill -SEGV $$ ;;\n"), 1, 0);
    trial_start(&trial, 1, "die");
    trial_wait(&trial);
    trial_expect(&trial, 1,
                 "{\"id\":1,\"outcome\":\"failed\",\"error\":"
                 "\"handler exited with signal SIGSEGV while it ran the job\"}");
    trial_close(&trial);
}

// The answer is taken though the process is gone when it is read.
static void an_answer_as_the_last_word(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, SCRIPT("die) answer; exit 1 ;;\n"), 1, 0);
    trial_start(&trial, 1, "die");
    trial_wait(&trial);
    trial_expect_part(&trial, 1, "completed");
    trial_start(&trial, 2, "nothing");
    trial_wait(&trial);
    trial_expect_part(&trial, 2, "completed");
    trial_close(&trial);
}

static void a_child_that_always_exits_is_started_less_and_less(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, "false", 1, 0);
    for (int id = 1; id <= 4; id++) {
        trial_feed(&trial, id, id, "nothing");
        trial_expect_part(&trial, id, "handler exited with status 1 while it ran the job");
    }
    assert_int_equal(trial_log_count(&trial, "started again after 100 ms"), 1);
    assert_int_equal(trial_log_count(&trial, "started again after 200 ms"), 1);
    assert_int_equal(trial_log_count(&trial, "started again after 400 ms"), 1);
    assert_int_equal(trial_log_count(&trial, "started again after 800 ms"), 1);
    assert_true(trial.roomier >= 3);
    trial_close(&trial);
}

// A process that it left behind holds its pipes.
static void a_child_that_forks_and_leaves(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, SCRIPT("leave) sleep 600 & echo $! >%s/pid; exit 0 ;;\n"), 1,
               0);
    trial_start(&trial, 1, "leave");
    trial_wait(&trial);
    trial_expect_part(&trial, 1, "handler exited with status 0 while it ran the job");
    pid_t pid = trial_pid(&trial, "pid");
    assert_int_equal(kill(pid, SIGKILL), 0);
    trial_feed(&trial, 2, 2, "nothing");
    trial_expect_part(&trial, 2, "completed");
    trial_close(&trial);
}

static void a_child_that_closes_its_output(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, SCRIPT("close) exec >&-; sleep 600 ;;\n"), 1, 0);
    trial_start(&trial, 1, "close");
    trial_wait(&trial);
    trial_expect_part(&trial, 1, "\"handler closed its output while it ran the job\"");
    trial_feed(&trial, 2, 2, "nothing");
    trial_expect_part(&trial, 2, "completed");
    trial_close(&trial);
}

static void a_child_that_closes_its_input(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, SCRIPT("close) exec <&-; answer; sleep 600 ;;\n"), 1, 0);
    trial_feed(&trial, 1, 1, "close");
    trial_expect_part(&trial, 1, "completed");
    trial_start(&trial, 2, "nothing");
    trial_wait(&trial);
    trial_expect_part(&trial, 2, "\"handler closed its input while it ran the job\"");
    trial_close(&trial);
}

// ---- lines that are no answers ----

static void garbage_fails_the_oldest_and_the_child_goes_on(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, SCRIPT("chat) echo working; answer ;;\n"), 1, 0);
    int before = warm_up();
    trial_start(&trial, 1, "chat");
    trial_start_all(&trial, 2, 4, "nothing");
    trial_wait(&trial);
    trial_expect(&trial, 1,
                 "{\"id\":1,\"outcome\":\"failed\",\"error\":\"handler wrote a line that is no "
                 "answer: invalid JSON at byte 1: expected an object: working\"}");
    for (int id = 2; id <= 4; id++) {
        assert_int_equal(pid_of(id), before);
    }
    trial_close(&trial);
}

static void only_the_beginning_of_garbage_is_told(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, SCRIPT("chat) printf \"\\001\\377%0300d\\n\" 0; answer ;;\n"),
               1, 0);
    trial_start(&trial, 1, "chat");
    trial_wait(&trial);
    trial_expect_part(&trial, 1, "expected an object:  ?000");
    assert_true(strlen(trial.jobs[1].entry) < 320);
    trial_close(&trial);
}

static void an_answer_for_a_job_it_does_not_have(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, SCRIPT("other) id=777; answer ;;\n"), 1, 0);
    trial_start(&trial, 1, "other");
    trial_wait(&trial);
    trial_expect_part(&trial, 1, "no answer: it has no such job: {\\\"id\\\":777,");
    trial_close(&trial);
}

static void an_answer_when_it_has_no_job(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, SCRIPT("twice) answer; answer ;;\n"), 1, 0);
    trial_feed(&trial, 1, 1, "twice");
    trial_wait_log(&trial, "handler.garbage");
    trial_feed(&trial, 2, 2, "nothing");
    assert_int_equal(pid_of(2), pid_of(1));
    trial_close(&trial);
}

// Whose answer is it, the first one's or the second's? It must not become the second's.
static void an_answer_without_id_after_garbage_is_not_believed(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC,
               SCRIPT("chat) echo working; echo \"{\\\"result\\\":1}\" ;;\n"
                      "quiet) echo \"{\\\"result\\\":2}\" ;;\n"),
               1, 0);
    warm_up();
    trial_start(&trial, 1, "chat");
    trial_start(&trial, 2, "quiet");
    trial_wait(&trial);
    trial_expect_part(&trial, 1, "expected an object: working");
    trial_expect(&trial, 2, "{\"id\":2,\"outcome\":\"completed\",\"result\":2}");
    assert_true(trial_log_count(&trial, "handler.ambiguous") > 0);
    trial_close(&trial);
}

static void too_long_a_line(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC,
               SCRIPT("shout) head -c 9000000 /dev/zero | tr \"\\0\" x; echo; answer ;;\n"), 1, 0);
    int before = warm_up();
    trial_start(&trial, 1, "shout");
    trial_start(&trial, 2, "nothing");
    trial_wait(&trial);
    trial_expect_part(&trial, 1,
                      "\"error\":\"handler wrote a line of more than 8388608 bytes: xxxxxx");
    assert_true(pid_of(2) != before);
    trial_close(&trial);
}

// ---- standard error ----

static void standard_error_is_logged_with_the_job(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC,
               SCRIPT("say) echo \"one $id\" >&2; echo \"two $id\" >&2; answer ;;\n"), 1, 0);
    // one by one: of jobs that are sent ahead, neighbours may get each other's lines
    for (int id = 1; id <= 50; id++) {
        trial_feed(&trial, id, id, "say");
    }
    assert_int_equal(trial_log_count(&trial, "handler.output: one 7 (worker=trial job=7)"), 1);
    assert_int_equal(trial_log_count(&trial, "handler.output: two 50 (worker=trial job=50)"), 1);
    assert_int_equal(trial_log_count(&trial, "info handler.output"), 100);
    trial_close(&trial);
}

static void standard_error_is_bounded(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC,
               SCRIPT("flood) seq 1 5000 >&2; answer ;;\n"
                      "long) head -c 100000 /dev/zero | tr \"\\0\" x >&2; echo >&2; answer ;;\n"),
               1, 0);
    trial_feed(&trial, 1, 1, "flood");
    trial_feed(&trial, 2, 2, "long");
    assert_int_equal(trial_log_count(&trial, "handler.output: 100 (worker=trial job=1)"), 1);
    assert_int_equal(trial_log_count(&trial, "handler.output: 101 "), 0);
    assert_int_equal(trial_log_count(&trial, "4900 more lines were left out (worker=trial job=1)"),
                     1);
    assert_int_equal(trial_log_count(&trial, "xxx ... (the line is longer) (worker=trial job=2)"),
                     1);
    assert_true(strlen(trial_log(&trial)) < 20000);
    trial_close(&trial);
}

// ---- dropping ----

static void dropping_what_it_runs_kills_the_child(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, SCRIPT("hang) echo $$ >%s/pid; sleep 600 ;;\n"), 1, 0);
    warm_up();
    trial_start(&trial, 1, "hang");
    trial_start_all(&trial, 2, 3, "nothing");
    pid_t pid = trial_pid(&trial, "pid");
    trial_drop(&trial, 1);
    trial_expect(&trial, 1, "{\"id\":1,\"outcome\":\"released\"}");
    trial_wait(&trial);
    trial_wait_gone(&trial, pid);
    trial_expect_part(&trial, 2, "completed");
    trial_expect_part(&trial, 3, "completed");
    trial_close(&trial);
}

static void dropping_what_it_has_not_begun_ignores_the_answer(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, SCRIPT(""), 1, 0);
    int before = warm_up();
    trial_start(&trial, 1, "hold");
    trial_start_all(&trial, 2, 3, "nothing");
    trial_drop(&trial, 2);
    trial_make_file(&trial, "go");
    trial_wait(&trial);
    trial_expect(&trial, 2, "{\"id\":2,\"outcome\":\"released\"}");
    assert_int_equal(pid_of(3), before);
    trial_close(&trial);
}

static void dropping_what_still_waits(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, SCRIPT(""), 1, 0);
    trial_start(&trial, 1, "hold");
    trial_start(&trial, 2, "nothing"); // beyond the room
    trial_drop(&trial, 2);
    trial_make_file(&trial, "go");
    trial_wait(&trial);
    trial_close(&trial);
}

static void everything_is_dropped_and_closed_at_once(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, SCRIPT("hang) sleep 600 ;;\n"), 3, 0);
    trial_start_all(&trial, 1, 3, "hang");
    for (int id = 1; id <= 3; id++) {
        trial_drop(&trial, id);
    }
    trial_close(&trial);
}

// ---- reports of progress ----

static void reports_are_no_answers(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC,
               SCRIPT("far) echo \"{\\\"id\\\":$id,\\\"progress\\\":10}\"\n"
                      "  echo \"{\\\"progress\\\":40.5,\\\"note\\\":\\\"page 2\\\"}\"\n"
                      "  answer ;;\n"
                      "only) echo \"{\\\"id\\\":$id,\\\"progress\\\":99}\"; exit 0 ;;\n"),
               1, 0);
    trial_start(&trial, 1, "far");
    trial_wait(&trial);
    trial_expect_part(&trial, 1, "\"outcome\":\"completed\",\"result\":");
    assert_int_equal(trial.jobs[1].reports, 2);
    assert_string_equal(trial.jobs[1].report, "40.5 page 2");
    trial_start(&trial, 2, "only");
    trial_wait(&trial);
    assert_string_equal(trial.jobs[2].report, "99 -");
    trial_expect_part(&trial, 2, "handler exited with status 0 while it ran the job");
    trial_close(&trial);
}

// Nonsense costs the report, not the job.
static void bad_reports_are_left_out(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC,
               SCRIPT("far) echo \"{\\\"id\\\":$id,\\\"progress\\\":101}\"\n"
                      "  echo \"{\\\"id\\\":$id,\\\"progress\\\":\\\"half\\\"}\"\n"
                      "  echo \"{\\\"id\\\":$id,\\\"progress\\\":5,\\\"note\\\":[]}\"\n"
                      "  echo \"{\\\"id\\\":12345,\\\"progress\\\":5}\"\n"
                      "  answer ;;\n"),
               1, 0);
    trial_start(&trial, 1, "far");
    trial_wait(&trial);
    trial_expect_part(&trial, 1, "\"outcome\":\"completed\",\"result\":");
    assert_int_equal(trial.jobs[1].reports, 0);
    assert_int_equal(trial_log_count(&trial, "a report of progress was left out"), 3);
    trial_close(&trial);
}

// A line that is an answer and a report is neither.
static void a_report_with_an_outcome_is_garbage(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC,
               SCRIPT("both) echo \"{\\\"id\\\":$id,\\\"progress\\\":10,"
                      "\\\"outcome\\\":\\\"completed\\\"}\" ;;\n"),
               1, 0);
    trial_start(&trial, 1, "both");
    trial_wait(&trial);
    trial_expect_part(&trial, 1, "unknown key \\\"progress\\\"");
    assert_int_equal(trial.jobs[1].reports, 0);
    trial_close(&trial);
}

// ---- cancelling ----

#define CANCELLED(id) "{\"id\":" #id ",\"outcome\":\"failed\",\"error\":\"cancelled\"}"

static void cancelling_what_it_runs_ends_the_child(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, SCRIPT("hang) echo $$ >%s/pid; sleep 600 ;;\n"), 1, 0);
    int before = warm_up();
    trial_start(&trial, 1, "hang");
    trial_start_all(&trial, 2, 3, "nothing");
    pid_t pid = trial_pid(&trial, "pid");
    trial_cancel(&trial, 1);
    assert_false(trial_is_settled(&trial, 1)); // not before the child is gone
    trial_wait(&trial);
    trial_expect(&trial, 1, CANCELLED(1));
    trial_wait_gone(&trial, pid);
    assert_true(pid_of(2) != before && pid_of(3) != before);
    assert_int_equal(trial_log_count(&trial, "handler.exited"), 0);
    trial_close(&trial);
}

// The job before it is not disturbed, those behind it lose nothing.
static void cancelling_what_was_sent_ahead_waits_for_its_turn(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, SCRIPT("hang) sleep 600 ;;\n"), 1, 0);
    int before = warm_up();
    trial_start(&trial, 1, "hold");
    trial_start(&trial, 2, "hang");
    trial_start(&trial, 3, "nothing");
    trial_cancel(&trial, 2);
    trial_make_file(&trial, "go");
    trial_wait(&trial);
    assert_int_equal(pid_of(1), before);
    trial_expect(&trial, 2, CANCELLED(2));
    assert_true(pid_of(3) != before);
    trial_close(&trial);
}

static void cancelling_what_still_waits(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, SCRIPT("mark) : >%s/begun; answer ;;\n"), 1, 0);
    trial_start(&trial, 1, "hold");
    trial_start(&trial, 2, "mark"); // beyond the room
    trial_start(&trial, 3, "nothing");
    trial_cancel(&trial, 2);
    trial_expect(&trial, 2, CANCELLED(2));
    trial_make_file(&trial, "go");
    trial_wait(&trial);
    assert_int_equal(pid_of(3), pid_of(1));
    char path[TRIAL_PATH_SIZE];
    snprintf(path, sizeof(path), "%s/begun", trial.folder);
    assert_int_equal(access(path, F_OK), -1);
    trial_close(&trial);
}

// What the child says after it was told to stop still counts.
static void an_answer_to_a_cancelled_job_counts(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC,
               SCRIPT("last) trap \"\" TERM; : >%s/begun\n"
                      "  until [ -e %s/go ]; do sleep 0.02; done; answer; exit ;;\n"),
               1, 0);
    trial_start(&trial, 1, "last");
    trial_wait_file(&trial, "begun");
    trial_cancel(&trial, 1);
    trial_make_file(&trial, "go");
    trial_wait(&trial);
    trial_expect_part(&trial, 1, "completed");
    trial_feed(&trial, 2, 2, "nothing");
    trial_expect_part(&trial, 2, "completed");
    trial_close(&trial);
}

// Somebody cancels a job, and then its lease is lost.
static void cancelled_and_dropped(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, SCRIPT("hang) sleep 600 ;;\n"), 2, 0);
    trial_start_all(&trial, 1, 2, "hang");
    trial_cancel(&trial, 1);
    trial_drop(&trial, 1);
    trial_expect(&trial, 1, "{\"id\":1,\"outcome\":\"released\"}");
    trial_drop(&trial, 2);
    trial_close(&trial);
}

// A child that is stopped for one job has others that were cancelled, too.
static void cancelled_while_the_child_ends(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC, SCRIPT("hang) sleep 600 ;;\n"), 1, 500);
    warm_up();
    trial_start(&trial, 1, "hang");
    trial_start_all(&trial, 2, 3, "nothing");
    trial_cancel(&trial, 2);
    trial_wait(&trial);
    trial_expect(&trial, 1, TIMED_OUT(1, "0.5"));
    trial_expect(&trial, 2, CANCELLED(2));
    trial_expect_part(&trial, 3, "completed");
    trial_close(&trial);
}

// ---- life ----

static int try_open(const char *target, struct mr_error *err)
{
    const struct handler_options options = {
        .kind = HANDLER_EXEC, .name = "trial", .target = target, .concurrency = 1};
    const struct handler_env env = {0};
    struct handler *handler = NULL;

    return handler_exec.open(&options, &env, &handler, err);
}

static void what_cannot_run_is_told_at_once(void **state)
{
    struct mr_error err = {0};

    (void)state;
    assert_int_equal(try_open("no-such-command", &err), MR_ECONFIG);
    assert_string_equal(err.message, "cannot run no-such-command: no such command");
    assert_int_equal(try_open("/etc/passwd", &err), MR_ECONFIG);
    assert_int_equal(try_open("cat | sh", &err), MR_ECONFIG);
}

// A script whose interpreter is missing looks fine when the handler is opened.
static void a_command_that_cannot_be_started(void **state)
{
    char path[] = "/tmp/trial-script.XXXXXX";
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "#!/no/such/interpreter\n", 23), 23);
    assert_int_equal(fchmod(fd, 0755), 0);
    close(fd);
    trial_open(&trial, HANDLER_EXEC, path, 1, 0);
    trial_start(&trial, 1, "nothing");
    trial_wait(&trial);
    unlink(path);
    trial_expect_part(&trial, 1, "\"error\":\"cannot start /tmp/trial-script.");
    trial_close(&trial);
}

static void children_end_with_their_input(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC,
               "sh -c 'while read -r line; do echo \"{}\"; done; echo bye >&2'", 2, 0);
    trial_start_all(&trial, 1, 2, "nothing");
    trial_wait(&trial);
    trial_end(&trial);
    assert_int_equal(trial_log_count(&trial, "handler.output: bye (worker=trial)"), 2);
    assert_int_equal(trial_log_count(&trial, "handler.exited"), 0);
    trial_close(&trial);
}

// At the end a child that stays gets SIGTERM and, if it must be, SIGKILL.
static void children_that_stay_are_ended(void **state)
{
    (void)state;
    trial_open(&trial, HANDLER_EXEC,
               "sh -c 'read -r line; echo \"{}\"; trap \"echo told >&2; exit\" TERM; "
               "while :; do sleep 0.1; done'",
               1, 0);
    trial_feed(&trial, 1, 1, "nothing");
    trial_end(&trial);
    assert_int_equal(trial_log_count(&trial, "handler.output: told (worker=trial)"), 1);
    trial_close(&trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_come_back_by_id),
        cmocka_unit_test(an_answer_without_id_is_for_the_oldest),
        cmocka_unit_test(answers_may_come_in_any_order),
        cmocka_unit_test(all_outcomes),
        cmocka_unit_test(a_slow_child_gets_one_at_a_time),
        cmocka_unit_test(a_free_child_takes_the_next_job),
        cmocka_unit_test(a_child_that_does_not_read_holds_little),
        cmocka_unit_test(a_hung_child_is_killed_and_only_its_job_fails),
        cmocka_unit_test(a_job_has_its_own_timeout),
        cmocka_unit_test(waiting_behind_others_is_not_its_time),
        cmocka_unit_test(a_child_that_ignores_sigterm_is_killed),
        cmocka_unit_test(a_child_that_exits_fails_the_job_it_ran),
        cmocka_unit_test(a_child_that_crashes),
        cmocka_unit_test(an_answer_as_the_last_word),
        cmocka_unit_test(a_child_that_always_exits_is_started_less_and_less),
        cmocka_unit_test(a_child_that_forks_and_leaves),
        cmocka_unit_test(a_child_that_closes_its_output),
        cmocka_unit_test(a_child_that_closes_its_input),
        cmocka_unit_test(garbage_fails_the_oldest_and_the_child_goes_on),
        cmocka_unit_test(only_the_beginning_of_garbage_is_told),
        cmocka_unit_test(an_answer_for_a_job_it_does_not_have),
        cmocka_unit_test(an_answer_when_it_has_no_job),
        cmocka_unit_test(an_answer_without_id_after_garbage_is_not_believed),
        cmocka_unit_test(too_long_a_line),
        cmocka_unit_test(standard_error_is_logged_with_the_job),
        cmocka_unit_test(standard_error_is_bounded),
        cmocka_unit_test(dropping_what_it_runs_kills_the_child),
        cmocka_unit_test(dropping_what_it_has_not_begun_ignores_the_answer),
        cmocka_unit_test(dropping_what_still_waits),
        cmocka_unit_test(everything_is_dropped_and_closed_at_once),
        cmocka_unit_test(reports_are_no_answers),
        cmocka_unit_test(bad_reports_are_left_out),
        cmocka_unit_test(a_report_with_an_outcome_is_garbage),
        cmocka_unit_test(cancelling_what_it_runs_ends_the_child),
        cmocka_unit_test(cancelling_what_was_sent_ahead_waits_for_its_turn),
        cmocka_unit_test(cancelling_what_still_waits),
        cmocka_unit_test(an_answer_to_a_cancelled_job_counts),
        cmocka_unit_test(cancelled_and_dropped),
        cmocka_unit_test(cancelled_while_the_child_ends),
        cmocka_unit_test(what_cannot_run_is_told_at_once),
        cmocka_unit_test(a_command_that_cannot_be_started),
        cmocka_unit_test(children_end_with_their_input),
        cmocka_unit_test(children_that_stay_are_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
