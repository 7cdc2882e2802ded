// SPDX-License-Identifier: PostgreSQL
//
// Other programs: see subprocess.h.

#include "daemon/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "daemon/proc.h"

// How long orphans may take to end when they are asked to.
#define ORPHANS_END_MS 2000

// ---- the child, before it becomes the program ----

void subprocess_forget_libpq(void)
{
    char name[256];

    for (char **entry = environ; *entry;) {
        size_t len = strcspn(*entry, "=");
        if (!str_starts(*entry, "PG") || len >= sizeof(name)) {
            entry++;
            continue;
        }
        memcpy(name, *entry, len);
        name[len] = '\0';
        unsetenv(name); // moves the others down
    }
}

static bool become(const struct subprocess_user *user)
{
    if (user->home) {
        setenv("HOME", user->home, 1);
    }
    return geteuid() != 0 ||
           (setgroups(1, &user->gid) == 0 && setgid(user->gid) == 0 && setuid(user->uid) == 0);
}

static bool connect_streams(const struct subprocess_plan *plan)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    int input = plan->input >= 0 ? plan->input : nothing;
    int output = plan->output >= 0 ? plan->output : nothing;

    return dup2(input, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
           dup2(output, STDERR_FILENO) >= 0;
}

// Returns only when it failed. The change of user clears the death signal, so it comes later;
// a parent that died before it is seen by the change of the parent.
static void become_program(const struct subprocess_plan *plan, pid_t parent)
{
    static const int defaults[] = {SIGPIPE, SIGTTOU, SIGHUP, SIGINT, SIGTERM};

    for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++) {
        signal(defaults[i], SIG_DFL);
    }
    sigwatch_end(plan->watch);
    setsid();
    umask(077);
    // they would reach the connections that the program makes
    subprocess_forget_libpq();
    setenv("LC_ALL", "C", 1);
    if (!connect_streams(plan) || (plan->user && !become(plan->user)) || chdir("/") ||
        prctl(PR_SET_PDEATHSIG, plan->death_signal)) {
        return;
    }
    if (getppid() != parent) {
        _exit(1);
    }
    execv(plan->argv[0], (char *const *)plan->argv);
}

static void run_child(const struct subprocess_plan *plan, pid_t parent, int report)
{
    become_program(plan, parent);
    int reason = errno;
    ssize_t written = write(report, &reason, sizeof(reason));
    _exit(written > 0 ? 127 : 126);
}

// ---- the parent ----

// The pipe closes when the program runs, and brings the reason when it cannot.
static int await_report(const char *program, int report, pid_t pid, struct mr_error *err)
{
    int reason = 0;
    ssize_t got = 0;

    do {
        got = read(report, &reason, sizeof(reason));
    } while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof(reason)) {
        return 0;
    }
    waitpid(pid, NULL, 0);
    return mr_error_set(err, MR_EIO, "cannot run %s: %s", program, strerror(reason));
}

int subprocess_start(const struct subprocess_plan *plan, pid_t *ret, struct mr_error *err)
{
    int report[2];
    pid_t parent = getpid();

    if (pipe2(report, O_CLOEXEC)) {
        return mr_error_set(err, MR_EIO, "cannot make a pipe: %s", strerror(errno));
    }
    pid_t pid = fork();
    if (pid == 0) {
        run_child(plan, parent, report[1]);
    }
    close(report[1]);
    int code =
        pid < 0 ? mr_error_set(err, MR_EIO, "cannot start %s: %s", plan->argv[0], strerror(errno))
                : await_report(plan->argv[0], report[0], pid, err);
    close(report[0]);
    if (code == 0) {
        *ret = pid;
    }
    return code;
}

// Whether it is over, or ended within this time. Signals to stop are counted and else left alone.
static bool ended_within(struct sigwatch *watch, pid_t pid, int64_t timeout_ms, int *ret_status)
{
    int64_t until_ms = clock_ms() + timeout_ms;
    int stops = watch->stops;

    while (waitpid(pid, ret_status, WNOHANG) == 0) {
        int64_t left_ms = until_ms - clock_ms();
        if (left_ms <= 0 || watch->stops > stops) {
            return false;
        }
        sigwatch_wait(watch, left_ms < 1000 ? left_ms : 1000);
    }
    return true;
}

int subprocess_wait(struct sigwatch *watch, pid_t pid, int64_t timeout_ms, int *ret_status,
                    struct mr_error *err)
{
    int stops = watch->stops;

    if (ended_within(watch, pid, timeout_ms, ret_status)) {
        return 0;
    }
    kill(pid, SIGTERM);
    if (!ended_within(watch, pid, SUBPROCESS_END_MS, ret_status)) {
        kill(pid, SIGKILL);
        waitpid(pid, ret_status, 0);
    }
    if (watch->stops > stops) {
        return mr_error_set(err, MR_ETIMEOUT, "stopped by a signal");
    }
    return mr_error_set(err, MR_ETIMEOUT, "no end after %lld s", (long long)timeout_ms / 1000);
}

// Reads what is there, up to the buffer's maximum; whoever else holds the stream open is not
// waited for.
static void collect(int fd, struct buf *out)
{
    char piece[4096];
    ssize_t got = 0;

    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (out->status == 0 && (got = read(fd, piece, sizeof(piece))) != 0) {
        if (got > 0) {
            buf_add(out, piece, (size_t)got);
        } else if (errno != EINTR) {
            break;
        }
    }
}

int subprocess_ask(const char *const *argv, struct sigwatch *watch, int64_t timeout_ms,
                   struct buf *out, struct mr_error *err)
{
    int stream[2];
    int status = 0;
    pid_t pid = 0;

    if (pipe2(stream, O_CLOEXEC)) {
        return mr_error_set(err, MR_EIO, "cannot make a pipe: %s", strerror(errno));
    }
    struct subprocess_plan plan = {
        .argv = argv, .watch = watch, .input = -1, .output = stream[1], .death_signal = SIGKILL};
    int code = subprocess_start(&plan, &pid, err);
    close(stream[1]);
    if (code == 0) {
        // what it writes fits into the pipe, or it waits for us and is ended
        code = subprocess_wait(watch, pid, timeout_ms, &status, err);
        collect(stream[0], out);
    }
    close(stream[0]);
    if (code == 0 && status != 0) {
        return mr_error_set(err, MR_EIO, "%s failed", argv[0]);
    }
    return code;
}

// ---- orphans ----

static size_t find_orphans(pid_t *orphans, pid_t except)
{
    size_t count = proc_children(getpid(), orphans, SUBPROCESS_ORPHANS_MAX);
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (orphans[i] != except) {
            orphans[kept++] = orphans[i];
        }
    }
    return kept;
}

// A handler's process leads a group of its own; what else it may be gets the signal alone.
static void signal_orphans(const pid_t *orphans, size_t count, int number)
{
    for (size_t i = 0; i < count; i++) {
        if (kill(-orphans[i], number)) {
            kill(orphans[i], number);
        }
    }
}

void subprocess_end_orphans(struct sigwatch *watch, pid_t except)
{
    static pid_t orphans[SUBPROCESS_ORPHANS_MAX];
    int64_t until_ms = clock_ms() + ORPHANS_END_MS;
    size_t count = find_orphans(orphans, except);

    signal_orphans(orphans, count, SIGTERM);
    while (count > 0 && clock_ms() < until_ms) {
        sigwatch_wait(watch, 100);
        for (size_t i = 0; i < count; i++) {
            waitpid(orphans[i], NULL, WNOHANG);
        }
        count = find_orphans(orphans, except);
    }
    signal_orphans(orphans, count, SIGKILL);
    for (size_t i = 0; i < count; i++) {
        waitpid(orphans[i], NULL, 0);
    }
}
