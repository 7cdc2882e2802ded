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
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "handler/answer.h"
#include "handler/child.h"
#include "handler/command_line.h"
#include "handler/handler.h"
#include "handler/job_text.h"
#include "handler/report_line.h"

// How much work is sent ahead to a child, and how many jobs at most: with 64 a claim brings so few
// that a fast child is idle for half of the time.
#define EXEC_AHEAD_US  50000
#define EXEC_AHEAD_MAX 256
// Bytes that a child has not taken, beyond which it gets no other job.
#define EXEC_UNSENT_MAX (1024 * 1024)
// Pause before a child is started again: the first, and the longest.
#define EXEC_BACKOFF_MS     100
#define EXEC_BACKOFF_MAX_MS 10000
// Jobs of a child whose answer may still come, at most.
#define EXEC_SPOILED_MAX 64
// Shorter than this, time and answers are added up before they count as a pace.
#define EXEC_PACE_US 1000
// The beginning of a bad line in the job's error.
#define EXEC_SHOWN_SIZE  121
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

// ---- lists ----

static void list_push(struct exec_list *list, struct exec_job *job)
{
    job->next = NULL;
    job->prev = list->last;
    *(list->last ? &list->last->next : &list->first) = job;
    list->last = job;
    list->count++;
}

static void list_push_first(struct exec_list *list, struct exec_job *job)
{
    job->prev = NULL;
    job->next = list->first;
    *(list->first ? &list->first->prev : &list->last) = job;
    list->first = job;
    list->count++;
}

static void list_remove(struct exec_list *list, struct exec_job *job)
{
    *(job->prev ? &job->prev->next : &list->first) = job->next;
    *(job->next ? &job->next->prev : &list->last) = job->prev;
    list->count--;
}

// ---- settling ----

// May call start() and, with it, dispatch().
static void settle(struct exec *exec, struct exec_job *job, struct outcome *outcome)
{
    struct held_job *held = job->held;

    job->held = NULL;
    if (held) {
        held->user = NULL;
        exec->env.settle(exec->env.arg, held, outcome);
    }
}

static void settle_failed(struct exec *exec, struct exec_job *job, const char *error)
{
    AUTO_OUTCOME outcome;

    outcome_init(&outcome);
    outcome_fail(&outcome, error, 0, false);
    settle(exec, job, &outcome);
}

static void settle_released(struct exec *exec, struct exec_job *job)
{
    AUTO_OUTCOME outcome;

    outcome_init(&outcome);
    outcome_release(&outcome);
    settle(exec, job, &outcome);
}

static void settle_cancelled(struct exec *exec, struct exec_job *job)
{
    AUTO_OUTCOME outcome;

    outcome_init(&outcome);
    outcome_cancel(&outcome);
    settle(exec, job, &outcome);
}

static void log_slot(const struct slot *slot, enum log_level level, const char *event,
                     const char *text)
{
    const struct log_field fields[] = {LOG_TEXT_FIELD("worker", slot->exec->worker)};

    log_put(level, event, fields, 1, "%s", text);
}

// ---- the oldest job of a slot ----

static struct exec_job *slot_oldest(const struct slot *slot)
{
    struct exec_job *job = slot->jobs.first;

    while (job && job->spoiled) {
        job = job->next;
    }
    return job;
}

static int64_t timeout_of(const struct exec *exec, const struct exec_job *job)
{
    int64_t own_ms = job && job->held ? job->held->job->timeout_ms : 0;

    return own_ms > 0 ? own_ms : exec->timeout_ms;
}

// Why the child has to go; the oldest job fails with it, unless `reason` is NULL.
static void slot_stop(struct slot *slot, const char *reason)
{
    struct exec_job *oldest = slot_oldest(slot);

    if (slot->status != SLOT_UP) {
        return;
    }
    slot->status = SLOT_STOPPING;
    slot->blamed = reason && oldest && oldest->held ? oldest : NULL;
    snprintf(slot->reason, sizeof(slot->reason), "%s", reason ? reason : "");
    child_stop(slot->child);
}

// The child runs a job that was cancelled. It has done nothing wrong: the next one starts soon.
static void slot_stop_cancelled(struct slot *slot)
{
    slot->backoff_ms = 0;
    slot_stop(slot, NULL);
}

// To be called whenever the list has changed.
static void slot_review(struct slot *slot)
{
    struct exec_job *oldest = slot_oldest(slot);
    int64_t timeout_ms = timeout_of(slot->exec, oldest);

    if (oldest == slot->oldest) {
        return;
    }
    slot->oldest = oldest;
    slot->oldest_since_us = clock_us();
    child_set_job(slot->child, oldest ? oldest->id : -1);
    child_deadline(slot->child,
                   oldest && timeout_ms > 0 ? slot->oldest_since_us / 1000 + timeout_ms : 0);
    if (oldest && oldest->cancelled) {
        slot_stop_cancelled(slot);
    }
}

static void slot_forget(struct slot *slot, struct exec_job *job)
{
    list_remove(&slot->jobs, job);
    slot->spoiled -= job->spoiled;
    if (slot->blamed == job) {
        slot->blamed = NULL;
    }
    if (slot->oldest == job) {
        slot->oldest = NULL;
    }
    free(job);
}

// ---- pace and room ----

// Time counts while the child has a job. Answers that come in one piece share the time before it.
static void slot_count_answer(struct slot *slot)
{
    int64_t now_us = clock_us();

    slot->answered = true;
    slot->backoff_ms = 0;
    slot->answers++;
    slot->busy_us += now_us - slot->mark_us;
    slot->mark_us = now_us;
    if (slot->busy_us < EXEC_PACE_US && slot->answers < EXEC_AHEAD_MAX) {
        return;
    }
    int64_t pace_us = slot->busy_us / slot->answers;
    slot->pace_us = slot->pace_us ? (3 * slot->pace_us + pace_us) / 4 : pace_us;
    slot->pace_us += slot->pace_us == 0; // 0 is "not known"
    slot->busy_us = 0;
    slot->answers = 0;
}

// How many jobs its child may have at once.
static int slot_limit(const struct slot *slot)
{
    if (!slot->pace_us) {
        return 1;
    }
    int64_t ahead = EXEC_AHEAD_US / slot->pace_us;
    return ahead < 1 ? 1 : ahead > EXEC_AHEAD_MAX ? EXEC_AHEAD_MAX : (int)ahead;
}

static int slot_load(const struct slot *slot)
{
    return slot->jobs.count - slot->spoiled;
}

// Whether nothing should be put behind what it has: it is busy for longer than was thought, or
// does not read.
static bool slot_is_stuck(const struct slot *slot)
{
    return slot_load(slot) > 0 && (clock_us() - slot->oldest_since_us > EXEC_AHEAD_US ||
                                   child_unsent(slot->child) > EXEC_UNSENT_MAX);
}

static int slot_room(const struct slot *slot)
{
    switch (slot->status) {
    case SLOT_EMPTY: return slot_limit(slot);
    case SLOT_UP: break;
    case SLOT_STOPPING:
    case SLOT_PAUSING: return 0;
    }
    int room = slot_limit(slot) - slot_load(slot);
    return room < 0 || child_has_ended(slot->child) || slot_is_stuck(slot) ? 0 : room;
}

static int exec_room(struct handler *handler)
{
    struct exec *exec = (struct exec *)handler;
    int room = -exec->waiting.count;

    for (int i = 0; i < exec->slot_count; i++) {
        room += slot_room(&exec->slots[i]);
    }
    return room > 0 && !exec->closing ? room : 0;
}

// ---- starting and ending children ----

static void dispatch(struct exec *exec);

static void on_pause_over(uv_timer_t *timer)
{
    struct slot *slot = timer->data;
    struct exec *exec = slot->exec;

    slot->status = SLOT_EMPTY;
    dispatch(exec);
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
    log_slot(slot, LEVEL_DEBUG, "handler.started", "the handler was started");
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
    log_slot(slot, LEVEL_WARNING, "handler.exited", text);
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
        list_remove(&slot->jobs, job);
        job->slot = NULL;
        if (!job->held) {
            free(job);
        } else if (job == blamed || job->cancelled) {
            list_push_first(ended, job);
        } else {
            list_push_first(&slot->exec->waiting, job);
        }
    }
}

// Settles the jobs that ended with the child of a slot.
static void slot_settle(struct slot *slot, struct exec_list *ended)
{
    for (struct exec_job *job = ended->first; job; job = ended->first) {
        list_remove(ended, job);
        if (job->cancelled) {
            settle_cancelled(slot->exec, job);
        } else {
            settle_failed(slot->exec, job, slot->reason);
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
    dispatch(exec);
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
    list_push(&slot->jobs, job);
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
        settle_failed(exec, job, err.message);
        free(job);
    }
}

// Hands out the jobs that wait, as far as there is room. A job that cannot be sent is settled,
// which may bring new ones: they join the list, and the loop that runs already takes them.
static void dispatch(struct exec *exec)
{
    struct slot *slot = NULL;

    if (exec->dispatching || exec->closing) {
        return;
    }
    exec->dispatching = true;
    while (exec->waiting.first && (slot = choose(exec)) != NULL) {
        struct exec_job *job = exec->waiting.first;
        list_remove(&exec->waiting, job);
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
        list_push(&exec->waiting, job);
    }
    dispatch(exec);
}

// ---- answers ----

static struct exec_job *slot_find(const struct slot *slot, int64_t id)
{
    struct exec_job *job = slot->jobs.first;

    while (job && job->id != id) {
        job = job->next;
    }
    return job;
}

static void drop_oldest_spoiled(struct slot *slot)
{
    struct exec_job *job = slot->jobs.first;

    while (!job->spoiled) {
        job = job->next;
    }
    slot_forget(slot, job);
}

// A line that is no answer: the oldest job fails. Nobody can tell whether the line was its answer,
// or whether that is still to come.
static void spoil(struct slot *slot, const char *why, const char *text, size_t size)
{
    struct exec *exec = slot->exec;
    struct exec_job *oldest = slot_oldest(slot);
    char shown[EXEC_SHOWN_SIZE];

    line_show(text, size, shown, sizeof(shown));
    snprintf(slot->reason, sizeof(slot->reason), "handler wrote a line that is no answer: %s: %s",
             why, shown);
    if (!oldest || !oldest->held) {
        log_slot(slot, LEVEL_WARNING, "handler.garbage", slot->reason);
        return;
    }
    oldest->spoiled = true;
    if (++slot->spoiled > EXEC_SPOILED_MAX) {
        drop_oldest_spoiled(slot);
    }
    slot_review(slot);
    settle_failed(exec, oldest, slot->reason);
}

static void take_answer(struct slot *slot, struct exec_job *job, struct outcome *outcome)
{
    struct exec *exec = slot->exec;

    if (slot->blamed == job) {
        return; // too late
    }
    slot_count_answer(slot);
    list_remove(&slot->jobs, job);
    slot->spoiled -= job->spoiled;
    slot_review(slot);
    settle(exec, job, outcome);
    free(job);
}

static void on_answer(struct slot *slot, int64_t id, struct outcome *outcome, const char *text,
                      size_t size)
{
    struct exec_job *job = id >= 0 ? slot_find(slot, id) : slot_oldest(slot);

    if (id < 0 && slot->spoiled) {
        log_slot(slot, LEVEL_WARNING, "handler.ambiguous",
                 "an answer without an id came after a line that was no answer: the handler is "
                 "started again");
        slot_stop(slot, NULL);
    } else if (job) {
        take_answer(slot, job, outcome);
    } else if (slot->status == SLOT_UP) {
        spoil(slot, id >= 0 ? "it has no such job" : "it has no job", text, size);
    }
}

// ---- reports of progress ----

static void take_report(struct slot *slot, const struct report_line *line)
{
    const struct handler_env *env = &slot->exec->env;
    // without an id it is about the job that the child is taken to run, if that is known
    const struct exec_job *job = line->id >= 0       ? slot_find(slot, line->id)
                                 : slot->spoiled > 0 ? NULL
                                                     : slot_oldest(slot);

    if (job && job->held) {
        env->report(env->arg, job->held, line->percent, line->note);
    }
}

// False: the line is of another sort.
static bool on_report(struct slot *slot, const char *text, size_t size)
{
    struct report_line line;
    struct mr_error err;
    char reason[EXEC_REASON_SIZE + 64];

    switch (report_line_parse(text, size, &line, &err)) {
    case REPORT_NONE: return false;
    case REPORT_GOOD:
        take_report(slot, &line);
        report_line_done(&line);
        return true;
    case REPORT_BAD:
        snprintf(reason, sizeof(reason), "a report of progress was left out: %s", err.message);
        child_log(slot->child, reason, strlen(reason));
        return true;
    }
    return false;
}

static void on_overlong(struct slot *slot, const char *text, size_t size)
{
    char shown[EXEC_SHOWN_SIZE];
    char reason[EXEC_REASON_SIZE];

    line_show(text, size, shown, sizeof(shown));
    snprintf(reason, sizeof(reason), "handler wrote a line of more than %d bytes: %s",
             HANDLER_ANSWER_MAX, shown);
    log_slot(slot, LEVEL_WARNING, "handler.garbage", reason);
    slot_stop(slot, reason);
}

static void on_line(void *arg, const char *text, size_t size, enum line_end end)
{
    struct slot *slot = arg;
    struct exec *exec = slot->exec;
    struct mr_error err;
    AUTO_OUTCOME outcome;
    int64_t id = -1;

    outcome_init(&outcome);
    if (end == LINE_CUT) {
        on_overlong(slot, text, size);
    } else if (answer_parse(text, size, &id, &outcome, &err) == 0) {
        on_answer(slot, id, &outcome, text, size);
    } else if (on_report(slot, text, size)) {
        return;
    } else if (end == LINE_WHOLE && slot->status == SLOT_UP) {
        spoil(slot, err.message, text, size);
    }
    if (exec->waiting.first) {
        dispatch(exec);
    }
}

// ---- trouble ----

static void on_late(void *arg)
{
    struct slot *slot = arg;
    char reason[64];

    snprintf(reason, sizeof(reason), "timed out after %g s",
             (double)timeout_of(slot->exec, slot_oldest(slot)) / 1000);
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

    dispatch(exec);
    exec->env.roomier(exec->env.arg);
}

static const struct child_events slot_events = {
    .line = on_line,
    .broken = on_broken,
    .drained = on_drained,
    .late = on_late,
    .exited = on_exited,
};

static void exec_drop(struct handler *handler, struct held_job *held)
{
    struct exec *exec = (struct exec *)handler;
    struct exec_job *job = held->user;
    struct slot *slot = job ? job->slot : NULL;

    if (!job) {
        return;
    }
    if (!slot) {
        list_remove(&exec->waiting, job);
        settle_released(exec, job);
        free(job);
        return;
    }
    if (slot->blamed == job) {
        slot->blamed = NULL;
    }
    if (slot_oldest(slot) == job) {
        slot_stop(slot, NULL);
    }
    settle_released(exec, job);
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
        list_remove(&exec->waiting, job);
        settle_cancelled(exec, job);
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
