// SPDX-License-Identifier: PostgreSQL
//
// Calls that a backend may refuse, and the weather around them: see conform.h.

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conform.h"

static void say_hint(void)
{
    say("hint: %s", conform_err.hint);
}

// A job in a transaction of the caller's, which is rolled back: it must not be there.
static void enqueue_in_transaction(char **args, int count)
{
    PGconn *pg = PQconnectdb(getenv("MILLRACE_DSN"));
    mr_job_spec job = MR_JOB_SPEC_INIT;
    mr_conn *wrapped = NULL;
    int64_t depth = -1;

    (void)args;
    (void)count;
    job.kind = "k";
    if (say_failure(mr_conn_wrap(pg, &wrapped, &conform_err))) {
        say_hint();
    } else {
        PQclear(PQexec(pg, "begin"));
        say_failure(mr_enqueue(wrapped, &job, NULL, &conform_err));
        PQclear(PQexec(pg, "rollback"));
        say_failure(mr_depth(wrapped, "default", &depth, &conform_err));
        say("rolled back, %lld jobs", (long long)depth);
    }
    mr_conn_free(wrapped);
    PQfinish(pg);
}

static void try_lock(char **args, int count)
{
    int locked = -1;

    (void)count;
    if (say_failure(mr_try_lock(conform_conn(), args[0], &locked, &conform_err))) {
        say_hint();
    } else {
        say(locked == 1 ? "locked" : "another has it");
    }
}

static void lock_now(char **args, int count)
{
    (void)count;
    if (say_failure(mr_lock(conform_conn(), args[0], 0, &conform_err))) {
        say_hint();
    } else {
        say("locked");
    }
}

static void unlock_now(char **args, int count)
{
    int held = -1;

    (void)count;
    if (say_failure(mr_unlock(conform_conn(), args[0], &held, &conform_err))) {
        say_hint();
    } else {
        say(held == 1 ? "given back" : "not held");
    }
}

static void lock_guard(char **args, int count)
{
    (void)count;
    if (say_failure(mr_lock_guard(conform_conn(), ms_of(args[0]), &conform_err))) {
        say_hint();
    } else {
        say("guarded");
    }
}

static void wait_for_job(char **args, int count)
{
    const char *status = NULL;

    (void)count;
    if (!say_failure(
            mr_wait(conform_conn(), number_of(args[0]), 0, &status, NULL, NULL, &conform_err))) {
        say("%s", status);
    }
}

static void send_heartbeat(char **args, int count)
{
    mr_reply *reply = NULL;

    (void)count;
    if (say_failure(mr_send_heartbeat(conform_conn(), args[0], 0, &conform_err))) {
        say("descriptor: %s", mr_fd(conform_conn()) < 0 ? "none" : "one");
        say_failure(mr_advance(conform_conn(), &conform_err));
        return;
    }
    while (!(reply = mr_reply_next(conform_conn()))) {
        if (say_failure(mr_advance(conform_conn(), &conform_err))) {
            return;
        }
        pause_ms(1);
    }
    say_failure(mr_reply_code(reply, &conform_err));
    mr_reply_free(reply);
}

// Runs a command of the shell: something happens to the server. Prints nothing of it.
static void shell(char **args, int count)
{
    (void)count;
    fflush(stdout);
    if (system(args[0])) {
        script_is_wrong("%s failed", args[0]);
    }
}

// Takes a lock and gives it back, and prints its fencing number as it is: for many at once.
static void lock_in_turn(char **args, int count)
{
    int64_t fence = 0;

    (void)count;
    if (!say_failure(mr_lock_lease(conform_conn(), args[0], args[1], ms_of(args[2]), &fence,
                                   &conform_err)) &&
        fence > 0) {
        say("%lld", (long long)fence);
        say_failure(mr_unlock_lease(conform_conn(), args[0], args[1], NULL, &conform_err));
    }
}

const struct word trouble_words[] = {
    {"enqueue_in_transaction", 0, 0, enqueue_in_transaction},
    {"try_lock", 1, 1, try_lock},
    {"lock", 1, 1, lock_now},
    {"unlock", 1, 1, unlock_now},
    {"lock_guard", 1, 1, lock_guard},
    {"wait", 1, 1, wait_for_job},
    {"send_heartbeat", 1, 1, send_heartbeat},
    {"shell", 1, 1, shell},
    {"lock_in_turn", 3, 3, lock_in_turn},
    {NULL, 0, 0, NULL},
};
