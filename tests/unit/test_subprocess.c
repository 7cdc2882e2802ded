// SPDX-License-Identifier: PostgreSQL
//
// Programs, signals and what the system says about processes.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/proc.h"
#include "daemon/subprocess.h"

static struct sigwatch watch;

static pid_t start_shell(const char *script)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    struct subprocess_plan plan = {
        .argv = argv, .watch = &watch, .input = -1, .output = -1, .death_signal = SIGKILL};
    pid_t pid = 0;

    assert_int_equal(subprocess_start(&plan, &pid, NULL), 0);
    return pid;
}

static void test_ask(void **state)
{
    const char *argv[] = {"/bin/sh", "-c", "echo \"$LC_ALL ${PGHOST:-none}\"; cat", NULL};
    const char *failing[] = {"/bin/false", NULL};
    struct mr_error err;
    AUTO_BUF out;

    (void)state;
    setenv("PGHOST", "elsewhere", 1);
    buf_init(&out, 1000);
    assert_int_equal(subprocess_ask(argv, &watch, 10000, &out, &err), 0);
    assert_string_equal(buf_peek(&out), "C none\n");
    assert_int_equal(subprocess_ask(failing, &watch, 10000, &out, &err), MR_EIO);
    assert_non_null(strstr(err.message, "/bin/false"));
}

static void test_missing_program(void **state)
{
    const char *argv[] = {"/nowhere/program", NULL};
    struct subprocess_plan plan = {
        .argv = argv, .watch = &watch, .input = -1, .output = -1, .death_signal = SIGKILL};
    struct mr_error err;
    pid_t pid = 0;

    (void)state;
    assert_int_equal(subprocess_start(&plan, &pid, &err), MR_EIO);
    assert_non_null(strstr(err.message, "/nowhere/program"));
    assert_non_null(strstr(err.message, "No such file"));
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void test_wait_has_a_deadline(void **state)
{
    struct mr_error err;
    int status = 0;
    pid_t pid = start_shell("exec sleep 600");

    (void)state;
    assert_int_equal(subprocess_wait(&watch, pid, 50, &status, &err), MR_ETIMEOUT);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(kill(pid, 0), -1);
}

static void test_wait_heeds_a_stop(void **state)
{
    struct mr_error err;
    int status = 0;
    int stops = watch.stops;
    pid_t pid = start_shell("exec sleep 600");

    (void)state;
    kill(getpid(), SIGTERM);
    assert_int_equal(subprocess_wait(&watch, pid, 600000, &status, &err), MR_ETIMEOUT);
    assert_int_equal(watch.stops, stops + 1);
    assert_non_null(strstr(err.message, "signal"));
}

static void test_proc(void **state)
{
    int64_t mine = 0;
    int64_t its = 0;
    pid_t found[8];
    pid_t pid = start_shell("exec sleep 600 # a word");

    (void)state;
    assert_true(proc_started(getpid(), &mine));
    assert_true(proc_started(pid, &its));
    assert_true(its >= mine);
    assert_int_equal(proc_children(getpid(), found, 8), 1);
    assert_int_equal(found[0], pid);
    // the program may not have replaced the shell yet: both have a word of their own
    assert_true(proc_has_argument(pid, "600") || proc_has_argument(pid, "-c"));
    assert_false(proc_has_argument(pid, "60"));
    kill(pid, SIGKILL);
    // a zombie is gone
    while (proc_started(pid, &its)) {
        sigwatch_wait(&watch, 10);
    }
    assert_false(proc_has_argument(pid, "600"));
    waitpid(pid, NULL, 0);
    assert_false(proc_started(0, &its));
}

static bool has_child_but(pid_t pid)
{
    pid_t found[8];
    size_t count = proc_children(getpid(), found, 8);

    return count > 1 || (count == 1 && found[0] != pid);
}

// A child leaves a process of its own session behind; another child is not to be touched.
static void test_orphans(void **state)
{
    int64_t started = 0;

    (void)state;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t kept = start_shell("exec sleep 600");
    pid_t gone = start_shell("setsid sleep 600 & exit 0");
    waitpid(gone, NULL, 0);
    assert_true(has_child_but(kept));
    subprocess_end_orphans(&watch, kept);
    assert_false(has_child_but(kept));
    assert_true(proc_started(kept, &started));
    kill(kept, SIGKILL);
    waitpid(kept, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ask),
        cmocka_unit_test(test_missing_program),
        cmocka_unit_test(test_wait_has_a_deadline),
        cmocka_unit_test(test_wait_heeds_a_stop),
        cmocka_unit_test(test_proc),
        cmocka_unit_test(test_orphans),
    };

    sigwatch_begin(&watch);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
