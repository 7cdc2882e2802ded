// SPDX-License-Identifier: PostgreSQL
//
// The jobs of the exec handler: lists of them, and how they are settled.

#include "handler/exec_parts.h"

// ---- lists ----

void exec_list_push(struct exec_list *list, struct exec_job *job)
{
    job->next = NULL;
    job->prev = list->last;
    *(list->last ? &list->last->next : &list->first) = job;
    list->last = job;
    list->count++;
}

void exec_list_push_first(struct exec_list *list, struct exec_job *job)
{
    job->prev = NULL;
    job->next = list->first;
    *(list->first ? &list->first->prev : &list->last) = job;
    list->first = job;
    list->count++;
}

void exec_list_remove(struct exec_list *list, struct exec_job *job)
{
    *(job->prev ? &job->prev->next : &list->first) = job->next;
    *(job->next ? &job->next->prev : &list->last) = job->prev;
    list->count--;
}

// ---- settling ----

void exec_settle(struct exec *exec, struct exec_job *job, struct outcome *outcome)
{
    struct held_job *held = job->held;

    job->held = NULL;
    if (held) {
        held->user = NULL;
        exec->env.settle(exec->env.arg, held, outcome);
    }
}

void exec_settle_failed(struct exec *exec, struct exec_job *job, const char *error)
{
    AUTO_OUTCOME outcome;

    outcome_init(&outcome);
    outcome_fail(&outcome, error, 0, false);
    exec_settle(exec, job, &outcome);
}

void exec_settle_released(struct exec *exec, struct exec_job *job)
{
    AUTO_OUTCOME outcome;

    outcome_init(&outcome);
    outcome_release(&outcome);
    exec_settle(exec, job, &outcome);
}

void exec_settle_cancelled(struct exec *exec, struct exec_job *job)
{
    AUTO_OUTCOME outcome;

    outcome_init(&outcome);
    outcome_cancel(&outcome);
    exec_settle(exec, job, &outcome);
}
