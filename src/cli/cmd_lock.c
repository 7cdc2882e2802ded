// SPDX-License-Identifier: PostgreSQL
//
// `millrace lock NAME -- CMD`: runs a command under a lock.

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/guarded.h"
#include "cli/lock_hold.h"

// Beside those of the command, as timeout(1) and the shell have them.
enum { EXIT_LOCK_BUSY = 124, EXIT_LOCK_LOST = 125, EXIT_SIGNAL = 128 };

enum { TTL_MIN_MS = 1000, TTL_REDIS_MS = 30000, NAME_SIZE = 256, POLL_MAX_MS = 60000 };

struct lock {
    struct command_shared shared;
    const char *name;
    const char *owner;
    char **argv;
    int64_t wait_ms; // below 0: for ever
    bool once;       // do not wait
    int64_t ttl_ms;  // below 0: not given
    struct guarded guarded;
    struct lock_hold *hold;
    bool told;        // to end, because the lock is lost
    int64_t until_ms; // for the lock, while it is waited for
};

static const struct command_form form = {
    "lock",
    "NAME -- CMD [ARG...]",
    2,
    INT_MAX,
    "Runs a command while it holds the lock of a name, and waits for the lock before that. When\n"
    "the lock is lost the command is stopped; when this process dies, the command is killed and\n"
    "the lock is free. Exit status: that of the command, 128 and its signal when one ended it;\n"
    "124 the lock was not to be had in time, 125 it was lost, 126 and 127 the command cannot be\n"
    "run. With --ttl the lock is a lease, for connections through a pooler, and the command finds\n"
    "its fencing number in MILLRACE_FENCE. On Redis it is always a lease, of 30 s without --ttl.",
    "millrace-lock(1)",
};

// ---- waiting ----

static int wait_for_something(const struct lock *lock, int64_t until_ms)
{
    struct pollfd fds[] = {
        {.fd = lock->guarded.signals, .events = POLLIN},
        {.fd = lock->hold ? lock_hold_fd(lock->hold) : -1, .events = POLLIN},
    };
    int64_t left_ms = until_ms - clock_ms();

    if (left_ms > POLL_MAX_MS) {
        left_ms = POLL_MAX_MS;
    }
    return poll(fds, sizeof(fds) / sizeof(fds[0]), left_ms > 0 ? (int)left_ms : 0);
}

static int64_t earlier(int64_t a_ms, int64_t b_ms)
{
    return a_ms < b_ms ? a_ms : b_ms;
}

static int busy(const struct lock *lock)
{
    if (lock->once) {
        fprintf(stderr, "millrace: lock \"%.200s\" is held by another\n", lock->name);
    } else {
        fprintf(stderr, "millrace: lock \"%.200s\" was not to be had within %lld ms\n", lock->name,
                (long long)lock->wait_ms);
    }
    fprintf(stderr, "hint: Wait longer with --wait, or for ever without it.\n");
    return EXIT_LOCK_BUSY;
}

// Returns an exit status, or 0 with the lock held.
static int wait_for_lock(struct lock *lock)
{
    enum lock_hold_status status = LOCK_WAITING;
    struct mr_error err;

    for (;;) {
        int code = lock_hold_beat(lock->hold, &status, &err);
        if (code && err.error_class == MR_CLASS_REJECTED) {
            mr_error_detail(&err, "%s", ""); // the place in the code of our functions
        }
        if (code) {
            return code == MR_ELOCK ? busy(lock) : command_fail(&err);
        }
        if (status == LOCK_HELD) {
            return 0;
        }
        int number = guarded_look(&lock->guarded);
        if (number) {
            return EXIT_SIGNAL + number;
        }
        if (clock_ms() >= lock->until_ms) {
            return busy(lock);
        }
        wait_for_something(lock, earlier(lock->until_ms, lock_hold_next_ms(lock->hold)));
    }
}

// ---- running ----

static void tell_lost(struct lock *lock)
{
    lock->told = true;
    fprintf(stderr, "millrace: lock \"%.200s\" is lost: stopping the command\n", lock->name);
    guarded_kill(&lock->guarded, SIGTERM);
    guarded_kill(&lock->guarded, SIGCONT); // one that is stopped does not hear
}

// Until the command has ended.
static int run_command(struct lock *lock)
{
    enum lock_hold_status status = LOCK_HELD;
    struct mr_error err;

    while (guarded_look(&lock->guarded), !lock->guarded.ended) {
        lock_hold_beat(lock->hold, &status, &err);
        int64_t next_ms = lock_hold_next_ms(lock->hold);
        if (status == LOCK_LOST) {
            if (!lock->told) {
                tell_lost(lock);
            }
            next_ms = lock_hold_end_ms(lock->hold);
            if (clock_ms() >= next_ms) {
                guarded_kill(&lock->guarded, SIGKILL);
                next_ms = INT64_MAX;
            }
        }
        wait_for_something(lock, next_ms);
    }
    return lock->told ? EXIT_LOCK_LOST : lock->guarded.status;
}

static int run_held(struct lock *lock)
{
    struct mr_error err;
    char fence[32];

    if (lock->ttl_ms > 0) {
        snprintf(fence, sizeof(fence), "%lld", (long long)lock_hold_fence(lock->hold));
        setenv("MILLRACE_FENCE", fence, 1);
    }
    if (guarded_start(&lock->guarded, lock->argv, &err)) {
        command_fail(&err);
        return lock->guarded.status;
    }
    return run_command(lock);
}

static int run(struct lock *lock)
{
    struct lock_hold_options options = {
        .dsn = lock->shared.dsn,
        .name = lock->name,
        .owner = lock->owner,
        .ttl_ms = lock->ttl_ms > 0 ? lock->ttl_ms : 0,
        .once = lock->once,
    };
    struct mr_error err;

    if (guarded_init(&lock->guarded, &err)) {
        return command_fail(&err);
    }
    lock->until_ms = lock->wait_ms < 0 ? INT64_MAX : clock_ms() + lock->wait_ms;
    int status =
        lock_hold_new(&options, &lock->hold, &err) ? command_fail(&err) : wait_for_lock(lock);
    if (status == 0) {
        status = run_held(lock);
    }
    lock_hold_free(lock->hold);
    guarded_done(&lock->guarded);
    return status;
}

// ---- the command line ----

static int check(const struct lock *lock, struct mr_error *err)
{
    if (lock->ttl_ms >= 0 && lock->ttl_ms < TTL_MIN_MS) {
        mr_error_set(err, MR_EUSAGE, "--ttl must be at least 1s");
        mr_error_hint(err, "A lease is renewed at a third of its time: --ttl 30s is a good one.");
        return MR_EUSAGE;
    }
    if (lock->owner && lock->ttl_ms < 0) {
        mr_error_set(err, MR_EUSAGE, "--owner needs --ttl");
        mr_error_hint(err, "A lock of a session belongs to the session; a lease has an owner.");
        return MR_EUSAGE;
    }
    return 0;
}

// A name that no other process has.
static const char *default_owner(char *out, size_t size)
{
    char host[NAME_SIZE] = "";

    gethostname(host, sizeof(host) - 1);
    snprintf(out, size, "%s:%ld:%lld", host, (long)getpid(), (long long)clock_ms());
    return out;
}

int cmd_lock(int argc, char **argv)
{
    struct lock lock = {.wait_ms = -1, .ttl_ms = -1};
    char owner[NAME_SIZE + 64];
    const struct option_row rows[] = {
        {"wait", OPTION_SPAN, &lock.wait_ms, "TIME", "how long to wait for the lock (for ever)"},
        {"try", OPTION_FLAG, &lock.once, NULL, "do not wait for it"},
        {"ttl", OPTION_SPAN, &lock.ttl_ms, "TIME", "a lease of this length, renewed (none)"},
        {"owner", OPTION_STRING, &lock.owner, "NAME", "of the lease (host, pid and a number)"},
        {"dsn", OPTION_DSN, &lock.shared.dsn, "DSN", "the database; see millrace(1)"},
        {"help", OPTION_FLAG, &lock.shared.help, NULL, "show this"},
        {0},
    };
    struct mr_error err;
    int first = command_read(&form, rows, &lock.shared, argc, argv, &err);

    if (first >= 0 && lock.shared.help) {
        return command_help(&form, rows);
    }
    if (first >= 0 && lock.ttl_ms < 0 && conn_redis_dsn(lock.shared.dsn)) {
        lock.ttl_ms = TTL_REDIS_MS;
    }
    if (first < 0 || check(&lock, &err)) {
        return command_fail(&err);
    }
    lock.name = argv[first];
    lock.argv = argv + first + 1;
    lock.owner = lock.owner ? lock.owner : default_owner(owner, sizeof(owner));
    return run(&lock);
}
