// SPDX-License-Identifier: PostgreSQL
//
// A handler on a loop of its own, with real children, jobs that a test makes up, and a record of
// what became of them. In the place of the worker and the database.

#ifndef MILLRACE_TESTS_TRIAL_H
#define MILLRACE_TESTS_TRIAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "handler/handler.h"

enum {
    TRIAL_JOBS = 1000,
    TRIAL_PATH_SIZE = 512,
    TRIAL_DEADLINE_MS = 30000, // nothing that a test waits for takes longer
};

struct trial_job {
    struct trial *trial;
    mr_claimed_job about;
    struct held_job held;
    char *args;
    char *entry;      // of finish(), once settled
    int order;        // among the settled
    int reports;      // of progress
    char report[256]; // the last one, "40 a note"; the note is "-" where there was none
};

struct trial {
    uv_loop_t loop;
    struct handler *handler;
    struct trial_job jobs[TRIAL_JOBS + 1]; // by id
    int started;
    int settled;
    int roomier; // how often it was called
    bool closed;
    int log_fd;
    char *log;
    char folder[TRIAL_PATH_SIZE / 2]; // an empty one
};

// Opens a handler of the kind with the target, in which %s stands for the folder.
void trial_open(struct trial *trial, enum handler_kind kind, const char *target, int concurrency,
                int64_t timeout_ms);
// Closes it and runs the loop until nothing is left.
void trial_end(struct trial *trial);
// The same, unless it was done; checks that nothing is left, and frees everything.
void trial_close(struct trial *trial);

// Starts the job `id`, whose args are {"do": what}, `what` being a word.
void trial_start(struct trial *trial, int id, const char *what);
// The same with args of its own.
void trial_start_args(struct trial *trial, int id, const char *args);
// Starts jobs from..to at once, regardless of room.
void trial_start_all(struct trial *trial, int from, int to, const char *what);
// Starts jobs from..to as there is room, and waits for all of them.
void trial_feed(struct trial *trial, int from, int to, const char *what);
int trial_room(struct trial *trial);
void trial_drop(struct trial *trial, int id);
void trial_cancel(struct trial *trial, int id);
bool trial_is_settled(const struct trial *trial, int id);

// Run the loop until all jobs are settled, this job is, the file in the folder is there, the log
// has the text.
void trial_wait(struct trial *trial);
void trial_wait_job(struct trial *trial, int id);
void trial_wait_file(struct trial *trial, const char *name);
void trial_wait_log(struct trial *trial, const char *text);

void trial_make_file(struct trial *trial, const char *name);
void trial_write_file(struct trial *trial, const char *name, const char *text);
// The process id that a child wrote to the file.
pid_t trial_pid(struct trial *trial, const char *name);
void trial_wait_gone(struct trial *trial, pid_t pid);

// The log so far; borrowed until asked again.
const char *trial_log(struct trial *trial);
int trial_log_count(struct trial *trial, const char *text);

void trial_expect(struct trial *trial, int id, const char *entry);
// The entry has the text in it.
void trial_expect_part(struct trial *trial, int id, const char *text);

#endif
