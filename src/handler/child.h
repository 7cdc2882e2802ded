// SPDX-License-Identifier: PostgreSQL
//
// A process on the loop, with its three pipes: what is written to it, lines that come from it,
// its time, its end.
//
// 1. It leads a session, and so a process group, of its own: signals reach what it has started
//    and has not set apart, and a terminal's interrupt reaches the daemon only.
// 2. `exited` is the last event. It comes when the process has ended and been reaped, whoever
//    else still holds its pipes, after everything that it wrote before, and when all handles of
//    the loop are closed. The child is freed behind it.
// 3. Its standard error reaches the log line by line with the worker and the job, at most
//    CHILD_LOG_LINES a job; a last line says how many were left out.
// 4. Pipes, not sockets: a script may write to /dev/stderr.

#ifndef MILLRACE_HANDLER_CHILD_H
#define MILLRACE_HANDLER_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "handler/handler.h"
#include "handler/lines.h"

#define CHILD_LOG_LINES 100
#define CHILD_KILL_MS   5000 // from SIGTERM to SIGKILL
#define CHILD_FAREWELL_MS \
    1000 // from the end of its input to SIGTERM, and from a lost pipe to `broken`
#define CHILD_WORDS_SIZE 512 // the last line of standard error, for a job's error

struct child;

// The end of a process.
struct child_end {
    int64_t status;
    int signal; // 0: it exited by itself
};

// All are called on the loop, none from inside a call of child_*. May be NULL, except exited.
struct child_events {
    line_fn *line; // of standard output, at most HANDLER_ANSWER_MAX bytes
    // It closed a pipe and lives on; `what` is for people: "its input" or "its output".
    void (*broken)(void *arg, const char *what);
    void (*drained)(void *arg); // all that was sent has been taken
    void (*late)(void *arg);    // the deadline is over
    void (*exited)(void *arg, const struct child_end *end);
};

struct child_options {
    uv_loop_t *loop;
    char **argv; // borrowed for the call, as is env
    char **env;
    const char *worker; // borrowed for the life of the child
    const struct child_events *events;
    void *arg;
};

// Starts a process. Fails with MR_EIO (the message names the command), MR_ENOMEM; then there will
// be no event.
int child_spawn(const struct child_options *options, struct child **ret, struct mr_error *err);

// Collects bytes for its standard input, which child_flush() sends. Fails with MR_ENOMEM, MR_ELIMIT
// without having added any.
int child_send(struct child *child, const char *data, size_t size, struct mr_error *err);
void child_flush(struct child *child);
// What it has not taken yet.
size_t child_unsent(const struct child *child);
// Of what was sent, the bytes that a process which has ended never read, as far as is known.
size_t child_unread(const struct child *child);
// Its input ends behind what was sent.
void child_end_input(struct child *child);

// Whether the process has ended, though `exited` is still to come.
bool child_has_ended(const struct child *child);

// When `late` is called, in clock_ms(); 0: never.
void child_deadline(struct child *child, int64_t at_ms);

// SIGTERM, and SIGKILL after CHILD_KILL_MS. Again: nothing.
void child_stop(struct child *child);
// Ends its input, and stops it if it is still there CHILD_FAREWELL_MS later.
void child_retire(struct child *child);

// The job whose lines are read from now on; below 0: none.
void child_set_job(struct child *child, int64_t job_id);
// A line for the log as if it had come from standard error.
void child_log(struct child *child, const char *text, size_t size);
// The last line of standard error since the job began or a moment before, "" when there was none.
// Borrowed until the next event.
const char *child_words(const struct child *child);

// "exited with status 3", "exited with signal SIGSEGV".
void child_end_print(const struct child_end *end, char *out, size_t size);

#endif
