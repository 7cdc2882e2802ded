// SPDX-License-Identifier: PostgreSQL
//
// exec: persistent children that read a job a line and write an answer a line.
//
// 1. Each of `concurrency` slots has at most one child, started when a job needs it.
// 2. A job is in one of two lists: `waiting`, or that of the slot whose child has its line. There
//    it stays until the child answers or ends, also when it was settled before: a child that
//    counts on order must find as many jobs as it has read.
// 3. Jobs are sent ahead to a fast child, as many as it does in EXEC_AHEAD_US; to a slow one, one
//    at a time, so that another child takes the next.
// 4. The first job of a slot, the oldest, is the one that its child is taken to run: its time
//    runs, lines of standard error are its, and it fails when the child does, unless the child
//    did something before and has not read a byte of it. The others of that child are sent to
//    another when it is gone, which loses them no attempt.
// 5. A job whose answer may or may not still come (spoiled, after a line that was no answer) makes
//    answers without an id ambiguous: then the child is started again rather than believed.
// 6. A job that was cancelled is not sent any more. When it is the oldest of a slot its child is
//    stopped; one that was sent ahead is left alone until then, for the sake of those before it.
//    An answer to it counts, whenever it comes.
// 7. A report of progress is no answer and changes nothing of all this. One that is wrong, or about
//    a job that the child does not have, is left out.

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "handler/exec_parts.h"
#include "handler/job_text.h"

// Pause before a child is started again: the first, and the longest.
#define EXEC_BACKOFF_MS     100
#define EXEC_BACKOFF_MAX_MS 10000

// ---- starting and ending children ----

static void on_pause_over(uv_timer_t *timer)
{
    struct slot *slot = timer->data;
    struct exec *exec = slot->exec;

    slot->status = SLOT_EMPTY;
    exec_dispatch(exec);
    exec->env.roomier(exec->env.arg);
}

// Longer each time, until a child answers.
static void slot_pause(struct slot *slot)
{
    int64_t doubled_ms = slot->backoff_ms * 2;

    slot->status = SLOT_PAUSING;
    slot->backoff_ms = slot->backoff_ms == 0              ? EXEC_BACKOFF_MS
                       : doubled_ms > EXEC_BACKOFF_MAX_MS ? EXEC_BACKOFF_MAX_MS
                                                          : doubled_ms;
    uv_timer_start(&slot->timer, on_pause_over, (uint64_t)slot->backoff_ms, 0);
}

static const struct child_events slot_events;

static int slot_start(struct slot *slot, struct mr_error *err)
{
    struct exec *exec = slot->exec;
    char **env = job_text_env(NULL, exec->worker);
    const struct child_options options = {
        .loop = exec->env.loop,
        .argv = command_line_words(exec->command),
        .env = env,
        .worker = exec->worker,
        .events = &slot_events,
        .arg = slot,
    };
    int rc = env ? child_spawn(&options, &slot->child, err)
                 : mr_error_set(err, MR_ENOMEM, "out of memory");

    free(env);
    if (rc) {
        slot_pause(slot);
        return rc;
    }
    slot->status = SLOT_UP;
    slot->answered = false;
    slot_log(slot, LEVEL_DEBUG, "handler.started", "the handler was started");
    return 0;
}

static void on_timer_closed(uv_handle_t *timer)
{
    struct slot *slot = timer->data;
    struct exec *exec = slot->exec;

    if (--exec->open_timers > 0) {
        return;
    }
    command_line_free(exec->command);
    exec->closed(exec->closed_arg);
    free(exec);
}

// The last child is gone.
static void close_if_empty(struct exec *exec)
{
    for (int i = 0; i < exec->slot_count; i++) {
        if (exec->slots[i].status == SLOT_UP || exec->slots[i].status == SLOT_STOPPING) {
            return;
        }
    }
    for (int i = 0; i < exec->slot_count; i++) {
        uv_close((uv_handle_t *)&exec->slots[i].timer, on_timer_closed);
    }
}

static void log_exit(const struct slot *slot, const char *end)
{
    char text[160];

    snprintf(text, sizeof(text), "handler %s, started again after %lld ms if it is needed", end,
             (long long)slot->backoff_ms);
    slot_log(slot, LEVEL_WARNING, "handler.exited", text);
}

// Whether the child ended before it read the first of its jobs. One that never answers anything is
// not believed: its jobs would go round for ever.
static bool slot_was_idle(const struct slot *slot)
{
    size_t sent = 0;

    for (const struct exec_job *job = slot_oldest(slot); job; job = job->next) {
        sent += job->size;
    }
    return slot->answered && child_unread(slot->child) >= sent;
}

// The job that the child had in its hands fails with what is known about the end of the child.
static void blame(struct slot *slot, const char *end, const char *words)
{
    struct exec_job *oldest = slot_oldest(slot);

    if (slot->status == SLOT_STOPPING || !oldest || !oldest->held || slot_was_idle(slot)) {
        return;
    }
    snprintf(slot->reason, sizeof(slot->reason), "handler %s while it ran the job%s%s", end,
             words[0] ? ": " : "", words);
    slot->blamed = oldest;
}

// Takes the jobs of a child that is gone: the one to blame and those that were cancelled go to
// `ended`, those that nobody waits for are freed, the others wait again, in order and before those
// that came later.
static void slot_clear(struct slot *slot, struct exec_list *ended)
{
    const struct exec_job *blamed = slot->blamed;

    slot->blamed = slot->oldest = NULL;
    slot->spoiled = 0;
    for (struct exec_job *job = slot->jobs.last; job; job = slot->jobs.last) {
        exec_list_remove(&slot->jobs, job);
        job->slot = NULL;
        if (!job->held) {
            free(job);
        } else if (job == blamed || job->cancelled) {
            exec_list_push_first(ended, job);
        } else {
            exec_list_push_first(&slot->exec->waiting, job);
        }
    }
}

// Settles the jobs that ended with the child of a slot.
static void slot_settle(struct slot *slot, struct exec_list *ended)
{
    for (struct exec_job *job = ended->first; job; job = ended->first) {
        exec_list_remove(ended, job);
        if (job->cancelled) {
            exec_settle_cancelled(slot->exec, job);
        } else {
            exec_settle_failed(slot->exec, job, slot->reason);
        }
        free(job);
    }
}

static void on_exited(void *arg, const struct child_end *end)
{
    struct slot *slot = arg;
    struct exec *exec = slot->exec;
    struct exec_list ended = {0};
    char text[64];

    child_end_print(end, text, sizeof(text));
    blame(slot, text, child_words(slot->child));
    bool expected = slot->status == SLOT_STOPPING || exec->closing;
    slot_clear(slot, &ended);
    slot->child = NULL;
    slot->status = SLOT_EMPTY;
    if (!exec->closing) {
        slot_pause(slot);
    }
    if (!expected) {
        log_exit(slot, text);
    }
    slot_settle(slot, &ended);
    if (exec->closing) {
        close_if_empty(exec);
        return;
    }
    exec_dispatch(exec);
}

// ---- sending ----

static int slot_send(struct slot *slot, struct exec_job *job, struct mr_error *err)
{
    AUTO_BUF line;

    buf_init(&line, JOB_TEXT_MAX);
    job_text_json(job->held->job, &line);
    buf_puts(&line, "\n");
    int rc = buf_status(&line, err);
    if (rc == 0) {
        rc = child_send(slot->child, line.data, line.len, err);
    }
    if (rc) {
        return rc;
    }
    if (slot_load(slot) == 0) {
        slot->mark_us = clock_us();
    }
    job->slot = slot;
    job->size = line.len;
    exec_list_push(&slot->jobs, job);
    slot_review(slot);
    return 0;
}

// An idle child before one that has to be started, that before the least busy.
static struct slot *choose(struct exec *exec)
{
    struct slot *best = NULL;
    int best_cost = 0;

    for (int i = 0; i < exec->slot_count; i++) {
        struct slot *slot = &exec->slots[i];
        if (slot_room(slot) == 0) {
            continue;
        }
        int cost = slot->status == SLOT_EMPTY ? 1 : slot_load(slot) * 2;
        if (!best || cost < best_cost) {
            best = slot;
            best_cost = cost;
        }
    }
    return best;
}

static void place(struct exec *exec, struct exec_job *job, struct slot *slot)
{
    struct mr_error err;
    int rc = slot->status == SLOT_EMPTY ? slot_start(slot, &err) : 0;

    if (rc == 0) {
        rc = slot_send(slot, job, &err);
    }
    if (rc) {
        exec_settle_failed(exec, job, err.message);
        free(job);
    }
}

void exec_dispatch(struct exec *exec)
{
    struct slot *slot = NULL;

    if (exec->dispatching || exec->closing) {
        return;
    }
    exec->dispatching = true;
    while (exec->waiting.first && (slot = choose(exec)) != NULL) {
        struct exec_job *job = exec->waiting.first;
        exec_list_remove(&exec->waiting, job);
        place(exec, job, slot);
    }
    exec->dispatching = false;
    for (int i = 0; i < exec->slot_count; i++) {
        if (exec->slots[i].child) {
            child_flush(exec->slots[i].child);
        }
    }
}

static void exec_start(struct handler *handler, struct held_job *const *jobs, int count)
{
    struct exec *exec = (struct exec *)handler;

    for (int i = 0; i < count; i++) {
        struct exec_job *job = calloc(1, sizeof(*job));
        if (!job) {
            AUTO_OUTCOME outcome;
            outcome_init(&outcome);
            outcome_release(&outcome);
            exec->env.settle(exec->env.arg, jobs[i], &outcome);
            continue;
        }
        job->held = jobs[i];
        job->id = jobs[i]->job->id;
        jobs[i]->user = job;
        exec_list_push(&exec->waiting, job);
    }
    exec_dispatch(exec);
}

// ---- trouble ----

static void on_late(void *arg)
{
    struct slot *slot = arg;
    char reason[64];

    snprintf(reason, sizeof(reason), "timed out after %g s", (double)slot_timeout_ms(slot) / 1000);
    slot_stop(slot, reason);
}

static void on_broken(void *arg, const char *what)
{
    struct slot *slot = arg;
    char reason[64];

    snprintf(reason, sizeof(reason), "handler closed %s while it ran the job", what);
    slot_stop(slot, reason);
}

static void on_drained(void *arg)
{
    struct slot *slot = arg;
    struct exec *exec = slot->exec;

    exec_dispatch(exec);
    exec->env.roomier(exec->env.arg);
}

static const struct child_events slot_events = {
    .line = slot_on_line,
    .broken = on_broken,
    .drained = on_drained,
    .late = on_late,
    .exited = on_exited,
};

static int exec_room(struct handler *handler)
{
    struct exec *exec = (struct exec *)handler;
    int room = -exec->waiting.count;

    for (int i = 0; i < exec->slot_count; i++) {
        room += slot_room(&exec->slots[i]);
    }
    return room > 0 && !exec->closing ? room : 0;
}

static void exec_drop(struct handler *handler, struct held_job *held)
{
    struct exec *exec = (struct exec *)handler;
    struct exec_job *job = held->user;
    struct slot *slot = job ? job->slot : NULL;

    if (!job) {
        return;
    }
    if (!slot) {
        exec_list_remove(&exec->waiting, job);
        exec_settle_released(exec, job);
        free(job);
        return;
    }
    if (slot->blamed == job) {
        slot->blamed = NULL;
    }
    if (slot_oldest(slot) == job) {
        slot_stop(slot, NULL);
    }
    exec_settle_released(exec, job);
}

static void exec_cancel(struct handler *handler, struct held_job *held)
{
    struct exec *exec = (struct exec *)handler;
    struct exec_job *job = held->user;

    if (!job) {
        return;
    }
    job->cancelled = true;
    if (!job->slot) {
        exec_list_remove(&exec->waiting, job);
        exec_settle_cancelled(exec, job);
        free(job);
    } else if (slot_oldest(job->slot) == job) {
        slot_stop_cancelled(job->slot);
    }
}

// ---- life ----

static void exec_close(struct handler *handler, void (*closed)(void *arg), void *arg)
{
    struct exec *exec = (struct exec *)handler;

    exec->closing = true;
    exec->closed = closed;
    exec->closed_arg = arg;
    for (int i = 0; i < exec->slot_count; i++) {
        uv_timer_stop(&exec->slots[i].timer);
        if (exec->slots[i].status == SLOT_UP) {
            child_retire(exec->slots[i].child);
        }
    }
    close_if_empty(exec);
}

static struct exec *exec_new(const struct handler_options *options, const struct handler_env *env)
{
    int count = options->concurrency > 0 ? options->concurrency : 1;
    struct exec *exec = calloc(1, sizeof(*exec) + (size_t)count * sizeof(struct slot));

    if (!exec) {
        return NULL;
    }
    exec->handler.ops = &handler_exec;
    exec->env = *env;
    exec->worker = options->name;
    exec->timeout_ms = options->timeout_ms;
    exec->slot_count = exec->open_timers = count;
    for (int i = 0; i < count; i++) {
        exec->slots[i].exec = exec;
        uv_timer_init(env->loop, &exec->slots[i].timer);
        exec->slots[i].timer.data = &exec->slots[i];
    }
    return exec;
}

static int exec_open(const struct handler_options *options, const struct handler_env *env,
                     struct handler **ret, struct mr_error *err)
{
    struct command_line *command = NULL;
    int rc = command_line_new(options->target, false, &command, err);

    if (rc == 0) {
        rc = command_line_find(command, err);
    }
    struct exec *exec = rc ? NULL : exec_new(options, env);
    if (!exec) {
        command_line_free(command);
        return rc ? rc : mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    exec->command = command;
    *ret = &exec->handler;
    return 0;
}

const struct handler_ops handler_exec = {
    .name = "exec",
    .open = exec_open,
    .room = exec_room,
    .start = exec_start,
    .drop = exec_drop,
    .cancel = exec_cancel,
    .close = exec_close,
};
