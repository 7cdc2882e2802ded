// SPDX-License-Identifier: PostgreSQL
//
// A command that runs as long as something is held for it: see guarded.h.

#include "cli/guarded.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STATUS_CANNOT_RUN = 126, STATUS_NOT_FOUND = 127, STATUS_SIGNAL = 128 };

static const int passed_on[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2};

static int failed(const char *what, struct mr_error *err)
{
    return mr_error_set(err, MR_EIO, "%s: %s", what, strerror(errno));
}

int guarded_init(struct guarded *guarded, struct mr_error *err)
{
    sigset_t held;

    *guarded = (struct guarded){.keeper = -1, .signals = -1};
    sigemptyset(&held);
    sigaddset(&held, SIGCHLD);
    for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++) {
        sigaddset(&held, passed_on[i]);
    }
    sigprocmask(SIG_BLOCK, &held, &guarded->before);
    guarded->signals = signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK);
    return guarded->signals < 0 ? failed("cannot watch for signals", err) : 0;
}

void guarded_done(struct guarded *guarded)
{
    if (guarded->keeper >= 0) {
        ssize_t written = write(guarded->keeper, "", 1); // all is well
        (void)written;
        close(guarded->keeper);
        waitpid(guarded->keeper_pid, NULL, 0);
    }
    if (guarded->signals >= 0) {
        close(guarded->signals);
    }
    sigprocmask(SIG_SETMASK, &guarded->before, NULL);
}

void guarded_kill(const struct guarded *guarded, int signal_number)
{
    if (guarded->pid > 0 && !guarded->ended) {
        kill(guarded->group ? -guarded->pid : guarded->pid, signal_number);
    }
}

// ---- starting ----

static bool on_terminal(void)
{
    return isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

// In the child. The pipe tells why it could not become the command.
static void become(const struct guarded *guarded, char **argv, pid_t parent, int told)
{
    if (guarded->group) {
        setpgid(0, 0);
    }
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &guarded->before, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent) {
        execvp(argv[0], argv);
    }
    int why = errno;
    ssize_t written = write(told, &why, sizeof(why));
    (void)written;
    _exit(why == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN);
}

// In the process beside us. It has nothing open but the pipe: above all not our connections, which
// would outlive us.
static void keep(const struct guarded *guarded, int end)
{
    char byte;
    ssize_t got;

    setsid();
    dup2(end, STDIN_FILENO);
    close_range(STDIN_FILENO + 1, ~0U, 0);
    do {
        got = read(STDIN_FILENO, &byte, 1);
    } while (got < 0 && errno == EINTR);
    if (got == 0) {
        guarded_kill(guarded, SIGKILL);
    }
    _exit(0);
}

static int start_keeper(struct guarded *guarded, struct mr_error *err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0) {
        return failed("cannot make a pipe", err);
    }
    guarded->keeper_pid = fork();
    if (guarded->keeper_pid == 0) {
        close(ends[1]);
        keep(guarded, ends[0]);
    }
    close(ends[0]);
    if (guarded->keeper_pid < 0) {
        close(ends[1]);
        return failed("cannot start a process", err);
    }
    guarded->keeper = ends[1];
    return 0;
}

// Waits until it has become the command, or tells why not.
static int await(struct guarded *guarded, int told, const char *name, struct mr_error *err)
{
    int why = 0;
    ssize_t got;

    do {
        got = read(told, &why, sizeof(why));
    } while (got < 0 && errno == EINTR);
    if (got == 0) {
        return 0;
    }
    waitpid(guarded->pid, NULL, 0);
    guarded->ended = true;
    guarded->status = why == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
    errno = why;
    return failed(name, err);
}

int guarded_start(struct guarded *guarded, char **argv, struct mr_error *err)
{
    pid_t parent = getpid();
    int told[2];

    guarded->status = STATUS_CANNOT_RUN;
    guarded->group = !on_terminal();
    if (pipe2(told, O_CLOEXEC) < 0) {
        return failed("cannot make a pipe", err);
    }
    fflush(NULL);
    guarded->pid = fork();
    if (guarded->pid == 0) {
        become(guarded, argv, parent, told[1]);
    }
    close(told[1]);
    if (guarded->pid < 0) {
        guarded->pid = 0;
        close(told[0]);
        return failed("cannot start a process", err);
    }
    if (guarded->group) {
        setpgid(guarded->pid, guarded->pid); // whoever is first
    }
    int code = await(guarded, told[0], argv[0], err);
    close(told[0]);
    if (code == 0 && (code = start_keeper(guarded, err))) {
        guarded_kill(guarded, SIGKILL);
        waitpid(guarded->pid, NULL, 0);
        guarded->ended = true;
    }
    return code;
}

// ---- looking ----

static void reap(struct guarded *guarded)
{
    int status;

    if (guarded->pid > 0 && !guarded->ended && waitpid(guarded->pid, &status, WNOHANG) > 0) {
        guarded->ended = true;
        guarded->status =
            WIFSIGNALED(status) ? STATUS_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
    }
}

int guarded_look(struct guarded *guarded)
{
    struct signalfd_siginfo info;

    while (read(guarded->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        int number = (int)info.ssi_signo;
        // the terminal has sent it to the whole group
        bool has_it = !guarded->group && info.ssi_code == SI_KERNEL;

        if (number != SIGCHLD && guarded->pid == 0) {
            return number;
        }
        if (number != SIGCHLD && !has_it) {
            guarded_kill(guarded, number);
        }
    }
    reap(guarded);
    return 0;
}
