// SPDX-License-Identifier: PostgreSQL
//
// run: a process per job. The words of its command line carry values of the job, the whole job is
// on its standard input, its exit status decides.
//
// A last line of standard output that is an answer (answer.h) counts when the status is 0; one
// that says failed counts with any status. Lines that report progress (report_line.h) are passed
// on, wherever they stand. All other output is for the log.
//
// Of a process that was told to stop because its job was cancelled, an answer still counts. Its
// status does not: programs that catch SIGTERM and leave in order say 0, too.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "handler/answer.h"
#include "handler/child.h"
#include "handler/command_line.h"
#include "handler/handler.h"
#include "handler/job_text.h"
#include "handler/report_line.h"

#define RUN_ERROR_SIZE (MR_ERROR_MESSAGE_SIZE + 64)

struct run {
    struct handler handler;
    struct handler_env env;
    const char *worker;
    int64_t timeout_ms;
    int concurrency;
    int live; // processes
    struct command_line *command;
    uv_timer_t closer;         // brings the end on the loop; does nothing else
    void (*closed)(void *arg); // not NULL: closing
    void *closed_arg;
};

struct run_job {
    struct run *run;
    struct held_job *held; // NULL: dropped
    struct child *child;
    struct buf last; // the last line of standard output, when it may be an answer
    int64_t timeout_ms;
    bool cancelled;             // and stopped for that
    char error[RUN_ERROR_SIZE]; // why else it was stopped
};

// ---- the end ----

static void on_closer_closed(uv_handle_t *handle)
{
    struct run *run = handle->data;

    command_line_free(run->command);
    run->closed(run->closed_arg);
    free(run);
}

static void close_if_empty(struct run *run)
{
    if (run->closed && run->live == 0) {
        uv_close((uv_handle_t *)&run->closer, on_closer_closed);
    }
}

// Whether an exit status says that the same again will not do better.
static bool is_final(int64_t status)
{
    static const int statuses[] = {EX_USAGE, EX_DATAERR, EX_CONFIG};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        if (status == statuses[i]) {
            return true;
        }
    }
    return false;
}

static void conclude_failed(const struct run_job *job, const struct child_end *end,
                            struct outcome *outcome)
{
    const char *words = child_words(job->child);
    char text[64];
    char error[RUN_ERROR_SIZE];

    child_end_print(end, text, sizeof(text));
    snprintf(error, sizeof(error), "%s%s%s", text, words[0] ? ": " : "", words);
    outcome_fail(outcome, error, 0, !end->signal && is_final(end->status));
}

// What the last line says; false when it is not for us.
static bool conclude_by_answer(struct run_job *job, bool good, struct outcome *outcome)
{
    struct mr_error err;
    char error[RUN_ERROR_SIZE + 64];
    int64_t id = -1;

    if (!job->last.len) {
        return false;
    }
    if (answer_parse(job->last.data, job->last.len, &id, outcome, &err) == 0) {
        return (id < 0 || id == job->held->job->id) && (good || outcome->kind == OUTCOME_FAILED);
    }
    if (good && answer_is_meant(job->last.data, job->last.len)) {
        snprintf(error, sizeof(error), "the last line of output is no answer: %s", err.message);
        outcome_fail(outcome, error, 0, false);
        return true;
    }
    return false;
}

static void conclude(struct run_job *job, const struct child_end *end, struct outcome *outcome)
{
    bool good = !end->signal && end->status == 0;

    if (job->error[0]) {
        outcome_fail(outcome, job->error, 0, false);
        return;
    }
    if (conclude_by_answer(job, good, outcome)) {
        return;
    }
    if (job->last.len) {
        child_log(job->child, job->last.data, job->last.len);
    }
    if (job->cancelled) {
        outcome_cancel(outcome);
    } else if (good) {
        outcome_complete(outcome, NULL);
    } else {
        conclude_failed(job, end, outcome);
    }
}

static void on_exited(void *arg, const struct child_end *end)
{
    struct run_job *job = arg;
    struct run *run = job->run;
    struct held_job *held = job->held;
    AUTO_OUTCOME outcome;

    outcome_init(&outcome);
    if (held) {
        conclude(job, end, &outcome);
        held->user = NULL;
    }
    buf_done(&job->last);
    free(job);
    run->live--;
    if (held) {
        run->env.settle(run->env.arg, held, &outcome);
    } else {
        run->env.roomier(run->env.arg);
    }
    close_if_empty(run);
}

// ---- meanwhile ----

// A report of progress is passed on; false: the line is of another sort.
static bool on_report(struct run_job *job, const char *text, size_t size)
{
    const struct handler_env *env = &job->run->env;
    struct report_line line;
    struct mr_error err;
    char reason[RUN_ERROR_SIZE];

    switch (report_line_parse(text, size, &line, &err)) {
    case REPORT_NONE: return false;
    case REPORT_GOOD:
        if (job->held && (line.id < 0 || line.id == job->held->job->id)) {
            env->report(env->arg, job->held, line.percent, line.note);
        }
        report_line_done(&line);
        return true;
    case REPORT_BAD:
        snprintf(reason, sizeof(reason), "a report of progress was left out: %s", err.message);
        child_log(job->child, reason, strlen(reason));
        return true;
    }
    return false;
}

// Only an object can be an answer, and only as the last line; reports are no lines in that sense.
static void on_line(void *arg, const char *text, size_t size, enum line_end end)
{
    struct run_job *job = arg;

    if (size && text[0] == '{' && end != LINE_CUT && on_report(job, text, size)) {
        return;
    }
    if (job->last.len) {
        child_log(job->child, job->last.data, job->last.len);
        buf_done(&job->last);
    }
    if (size && text[0] == '{' && end != LINE_CUT) {
        buf_add(&job->last, text, size);
    }
    if (!job->last.len) {
        child_log(job->child, text, size);
    }
}

static void on_late(void *arg)
{
    struct run_job *job = arg;

    snprintf(job->error, sizeof(job->error), "timed out after %g s",
             (double)job->timeout_ms / 1000);
    child_stop(job->child);
}

static const struct child_events run_events = {
    .line = on_line,
    .late = on_late,
    .exited = on_exited,
};

// ---- the beginning ----

static int run_spawn(struct run *run, struct run_job *job, struct mr_error *err)
{
    const mr_claimed_job *about = job->held->job;
    char **argv = NULL;
    int rc = command_line_argv(run->command, about, &argv, err);

    if (rc) {
        return rc;
    }
    char **env = job_text_env(about, run->worker);
    const struct child_options options = {
        .loop = run->env.loop,
        .argv = argv,
        .env = env,
        .worker = run->worker,
        .events = &run_events,
        .arg = job,
    };
    rc = env ? child_spawn(&options, &job->child, err)
             : mr_error_set(err, MR_ENOMEM, "out of memory");
    free(env);
    free(argv);
    return rc;
}

static int run_feed(struct run_job *job, struct mr_error *err)
{
    AUTO_BUF line;

    buf_init(&line, JOB_TEXT_MAX);
    job_text_json(job->held->job, &line);
    buf_puts(&line, "\n");
    int rc = buf_status(&line, err);
    if (rc == 0) {
        rc = child_send(job->child, line.data, line.len, err);
    }
    child_end_input(job->child);
    return rc;
}

static void settle_failed(struct run *run, struct held_job *held, const char *error, bool no_retry)
{
    AUTO_OUTCOME outcome;

    outcome_init(&outcome);
    outcome_fail(&outcome, error, 0, no_retry);
    run->env.settle(run->env.arg, held, &outcome);
}

static struct run_job *run_job_new(struct run *run, struct held_job *held)
{
    struct run_job *job = calloc(1, sizeof(*job));
    int64_t own_ms = held->job->timeout_ms;

    if (!job) {
        return NULL;
    }
    job->run = run;
    job->held = held;
    job->timeout_ms = own_ms > 0 ? own_ms : run->timeout_ms;
    buf_init(&job->last, HANDLER_ANSWER_MAX);
    return job;
}

static void run_begin(struct run *run, struct held_job *held)
{
    struct mr_error err;
    struct run_job *job = run_job_new(run, held);
    int rc = job ? run_spawn(run, job, &err) : mr_error_set(&err, MR_ENOMEM, "out of memory");

    if (rc) {
        free(job);
        // a value that is missing will be missing the next time, too
        settle_failed(run, held, err.message, rc == MR_EINVALID);
        return;
    }
    run->live++;
    held->user = job;
    child_set_job(job->child, held->job->id);
    child_deadline(job->child, job->timeout_ms > 0 ? clock_ms() + job->timeout_ms : 0);
    if (run_feed(job, &err)) {
        snprintf(job->error, sizeof(job->error), "cannot pass the job on: %s", err.message);
        child_stop(job->child);
    }
}

static void run_start(struct handler *handler, struct held_job *const *jobs, int count)
{
    for (int i = 0; i < count; i++) {
        run_begin((struct run *)handler, jobs[i]);
    }
}

static int run_room(struct handler *handler)
{
    const struct run *run = (const struct run *)handler;

    return run->closed ? 0 : run->concurrency - run->live;
}

static void run_drop(struct handler *handler, struct held_job *held)
{
    struct run *run = (struct run *)handler;
    struct run_job *job = held->user;

    if (!job) {
        return;
    }
    child_stop(job->child);
    job->held = NULL;
    held->user = NULL;
    AUTO_OUTCOME outcome;
    outcome_init(&outcome);
    outcome_release(&outcome);
    run->env.settle(run->env.arg, held, &outcome);
}

static void run_cancel(struct handler *handler, struct held_job *held)
{
    struct run_job *job = held->user;

    (void)handler;
    // one that has ended by itself is to be judged by its status
    if (job && !job->error[0] && !child_has_ended(job->child)) {
        job->cancelled = true;
        child_stop(job->child);
    }
}

static void run_close(struct handler *handler, void (*closed)(void *arg), void *arg)
{
    struct run *run = (struct run *)handler;

    run->closed = closed;
    run->closed_arg = arg;
    close_if_empty(run);
}

static struct run *run_new(const struct handler_options *options, const struct handler_env *env)
{
    struct run *run = calloc(1, sizeof(*run));

    if (!run) {
        return NULL;
    }
    run->handler.ops = &handler_run;
    run->env = *env;
    run->worker = options->name;
    run->timeout_ms = options->timeout_ms;
    run->concurrency = options->concurrency > 0 ? options->concurrency : 1;
    uv_timer_init(env->loop, &run->closer);
    run->closer.data = run;
    return run;
}

static int run_open(const struct handler_options *options, const struct handler_env *env,
                    struct handler **ret, struct mr_error *err)
{
    struct command_line *command = NULL;
    int rc = command_line_new(options->target, true, &command, err);

    if (rc == 0) {
        rc = command_line_find(command, err);
    }
    struct run *run = rc ? NULL : run_new(options, env);
    if (!run) {
        command_line_free(command);
        return rc ? rc : mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    run->command = command;
    *ret = &run->handler;
    return 0;
}

const struct handler_ops handler_run = {
    .name = "run",
    .open = run_open,
    .room = run_room,
    .start = run_start,
    .drop = run_drop,
    .cancel = run_cancel,
    .close = run_close,
};
