// SPDX-License-Identifier: PostgreSQL
//
// What a C handler says about its job: see mr_outcome.h.

#include "client/mr_outcome.h"

#include <stdio.h>

#include "base/json_scan.h"

void mr__outcome_init(mr_outcome *outcome)
{
    outcome_init(&outcome->outcome);
    outcome->told = false;
    outcome->has_state = false;
    outcome->cancelled = NULL;
    outcome->report = NULL;
    buf_init(&outcome->state, OUTCOME_ENTRY_MAX);
}

void mr__outcome_done(mr_outcome *outcome)
{
    outcome_done(&outcome->outcome);
    buf_done(&outcome->state);
}

static int told(mr_outcome *outcome)
{
    outcome->told = true;
    return buf_status(&outcome->outcome.members, NULL);
}

// Outcomes are written together: a text that is not one JSON value could change those of other
// jobs. The job fails instead, so that somebody sees it.
static bool is_value(mr_outcome *outcome, const char *json, const char *what)
{
    struct mr_error err;

    if (!json || json_check(json_slice_of(json), &err) == 0) {
        return true;
    }
    mr_error_prefix(&err, "the handler's %s", what);
    outcome_fail(&outcome->outcome, err.message, 0, false);
    outcome->told = true;
    return false;
}

int mr_outcome_complete(mr_outcome *outcome, const char *result)
{
    if (!is_value(outcome, result, "result")) {
        return MR_EINVALID;
    }
    outcome_complete(&outcome->outcome, result);
    return told(outcome);
}

int mr_outcome_fail(mr_outcome *outcome, const char *error, int64_t retry_in_ms, int no_retry)
{
    outcome_fail(&outcome->outcome, error, retry_in_ms, no_retry != 0);
    return told(outcome);
}

int mr_outcome_snooze(mr_outcome *outcome, int64_t delay_ms)
{
    outcome_snooze(&outcome->outcome, delay_ms);
    return told(outcome);
}

int mr_outcome_requeue(mr_outcome *outcome, const char *changes)
{
    if (!is_value(outcome, changes, "changes")) {
        return MR_EINVALID;
    }
    outcome_requeue(&outcome->outcome, changes);
    return told(outcome);
}

int mr_outcome_state(mr_outcome *outcome, const void *state, size_t state_size)
{
    buf_done(&outcome->state);
    outcome->has_state = state != NULL;
    if (state && state_size) {
        buf_add(&outcome->state, state, state_size);
    }
    return buf_status(&outcome->state, NULL);
}

int mr_outcome_cancelled(const mr_outcome *outcome)
{
    return outcome && outcome->cancelled && atomic_load(outcome->cancelled);
}

int mr_outcome_progress(mr_outcome *outcome, double percent, const char *note)
{
    if (!outcome) {
        return MR_EUSAGE;
    }
    return outcome->report ? outcome->report(outcome->report_arg, outcome->held, percent, note) : 0;
}

static bool takes_state(const struct outcome *outcome)
{
    switch (outcome->kind) {
    case OUTCOME_FAILED:
    case OUTCOME_SNOOZED:
    case OUTCOME_REQUEUED: return true;
    case OUTCOME_COMPLETED:
    case OUTCOME_RELEASED:
    case OUTCOME_LOST:
    case OUTCOME_ELSEWHERE: return false;
    }
    return false;
}

void mr__outcome_end(mr_outcome *outcome, int status, struct outcome *ret)
{
    char text[64];

    if (!outcome->told && status) {
        snprintf(text, sizeof(text), "the handler returned %d", status);
        outcome_fail(&outcome->outcome, text, 0, false);
    }
    if (outcome->has_state && takes_state(&outcome->outcome)) {
        outcome_state(&outcome->outcome, buf_peek(&outcome->state), outcome->state.len);
    }
    if (outcome->outcome.members.status || outcome->state.status) {
        outcome_fail(&outcome->outcome, "there was no memory for the handler's outcome", 0, false);
    }
    outcome_take(ret, &outcome->outcome);
}
