// SPDX-License-Identifier: PostgreSQL
//
// What the files of the exec handler share: exec.c starts children and hands out jobs, exec_job.c
// has the lists of jobs and settles them, exec_slot.c knows what a child has in hand and may get,
// exec_answer.c reads what it writes. Nobody else includes this. The rules are in exec.c.

#ifndef MILLRACE_HANDLER_EXEC_PARTS_H
#define MILLRACE_HANDLER_EXEC_PARTS_H

#include "base/log.h"
#include "handler/child.h"
#include "handler/command_line.h"
#include "handler/handler.h"

#define EXEC_REASON_SIZE 1024

struct exec_job {
    struct held_job *held; // NULL: settled already
    int64_t id;
    size_t size;       // of its line
    bool spoiled;      // settled because of a bad line that may have been its answer
    bool cancelled;    // ends with its child, unless it is answered
    struct slot *slot; // NULL: waiting
    struct exec_job *next, *prev;
};

struct exec_list {
    struct exec_job *first, *last;
    int count;
};

enum slot_status {
    SLOT_EMPTY,
    SLOT_UP,
    SLOT_STOPPING, // its child was told to end
    SLOT_PAUSING,  // until a child may be started again
};

struct slot {
    struct exec *exec;
    enum slot_status status;
    struct child *child; // in SLOT_UP and SLOT_STOPPING
    struct exec_list jobs;
    int spoiled;             // of these
    struct exec_job *oldest; // the first that is not spoiled, as last told to the child
    int64_t oldest_since_us;
    struct exec_job *blamed; // SLOT_STOPPING: fails with `reason` when the child is gone
    char reason[EXEC_REASON_SIZE];
    int64_t mark_us; // of the last answer, or since when it has a job
    int64_t busy_us; // time and answers that are not in `pace_us` yet
    int answers;
    int64_t pace_us; // time for a job, smoothed; 0: not known
    bool answered;   // this child has, at least once
    int64_t backoff_ms;
    uv_timer_t timer; // SLOT_PAUSING
};

struct exec {
    struct handler handler;
    struct handler_env env;
    const char *worker;
    int64_t timeout_ms;
    struct command_line *command;
    struct exec_list waiting;
    bool dispatching;
    bool closing;
    int open_timers;
    void (*closed)(void *arg);
    void *closed_arg;
    int slot_count;
    struct slot slots[];
};

// ---- jobs ----

void exec_list_push(struct exec_list *list, struct exec_job *job);
void exec_list_push_first(struct exec_list *list, struct exec_job *job);
void exec_list_remove(struct exec_list *list, struct exec_job *job);

// Tell the worker how a job ended, once; the job itself stays the caller's. They may call start()
// and, with it, exec_dispatch().
void exec_settle(struct exec *exec, struct exec_job *job, struct outcome *outcome);
void exec_settle_failed(struct exec *exec, struct exec_job *job, const char *error);
void exec_settle_released(struct exec *exec, struct exec_job *job);
void exec_settle_cancelled(struct exec *exec, struct exec_job *job);

// ---- a slot ----

// The oldest job that is not spoiled; NULL: none.
struct exec_job *slot_oldest(const struct slot *slot);
// How long its oldest job may run; 0: as long as it likes.
int64_t slot_timeout_ms(const struct slot *slot);
// Why the child has to go; the oldest job fails with it, unless `reason` is NULL.
void slot_stop(struct slot *slot, const char *reason);
// The child runs a job that was cancelled. It has done nothing wrong: the next one starts soon.
void slot_stop_cancelled(struct slot *slot);
// To be called whenever the list has changed.
void slot_review(struct slot *slot);
// Takes a job out of the list and frees it.
void slot_forget(struct slot *slot, struct exec_job *job);
// The child has answered: that tells its pace.
void slot_count_answer(struct slot *slot);
// How many jobs it has, and how many more it may get.
int slot_load(const struct slot *slot);
int slot_room(const struct slot *slot);
void slot_log(const struct slot *slot, enum log_level level, const char *event, const char *text);

// A line of the child's output: for struct child_events, `arg` is the slot.
void slot_on_line(void *arg, const char *text, size_t size, enum line_end end);

// ---- all of them ----

// Hands out the jobs that wait, as far as there is room. A job that cannot be sent is settled,
// which may bring new ones: they join the list, and the loop that runs already takes them.
void exec_dispatch(struct exec *exec);

#endif
