// SPDX-License-Identifier: PostgreSQL
//
// What a child of the exec handler writes: answers, reports of progress, and lines that are
// neither.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handler/answer.h"
#include "handler/exec_parts.h"
#include "handler/report_line.h"

// Jobs of a child whose answer may still come, at most.
#define EXEC_SPOILED_MAX 64
// The beginning of a bad line in the job's error.
#define EXEC_SHOWN_SIZE 121

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
        slot_log(slot, LEVEL_WARNING, "handler.garbage", slot->reason);
        return;
    }
    oldest->spoiled = true;
    if (++slot->spoiled > EXEC_SPOILED_MAX) {
        drop_oldest_spoiled(slot);
    }
    slot_review(slot);
    exec_settle_failed(exec, oldest, slot->reason);
}

static void take_answer(struct slot *slot, struct exec_job *job, struct outcome *outcome)
{
    struct exec *exec = slot->exec;

    if (slot->blamed == job) {
        return; // too late
    }
    slot_count_answer(slot);
    exec_list_remove(&slot->jobs, job);
    slot->spoiled -= job->spoiled;
    slot_review(slot);
    exec_settle(exec, job, outcome);
    free(job);
}

static void on_answer(struct slot *slot, int64_t id, struct outcome *outcome, const char *text,
                      size_t size)
{
    struct exec_job *job = id >= 0 ? slot_find(slot, id) : slot_oldest(slot);

    if (id < 0 && slot->spoiled) {
        slot_log(slot, LEVEL_WARNING, "handler.ambiguous",
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
    slot_log(slot, LEVEL_WARNING, "handler.garbage", reason);
    slot_stop(slot, reason);
}

void slot_on_line(void *arg, const char *text, size_t size, enum line_end end)
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
        exec_dispatch(exec);
    }
}
