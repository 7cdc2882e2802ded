// SPDX-License-Identifier: PostgreSQL
//
// What became of a job: see outcome.h.

#include "client/outcome.h"

#include <string.h>

#include "base/base64.h"
#include "base/json.h"

static const char *const words[] = {
    [OUTCOME_COMPLETED] = "completed", [OUTCOME_FAILED] = "failed",
    [OUTCOME_SNOOZED] = "snoozed",     [OUTCOME_REQUEUED] = "requeued",
    [OUTCOME_RELEASED] = "released",   [OUTCOME_LOST] = "lost",
    [OUTCOME_ELSEWHERE] = "elsewhere",
};

void outcome_init(struct outcome *outcome)
{
    outcome->kind = OUTCOME_COMPLETED;
    outcome->failed = outcome->final = false;
    buf_init(&outcome->members, OUTCOME_ENTRY_MAX);
}

void outcome_done(struct outcome *outcome)
{
    buf_done(&outcome->members);
}

static void restart(struct outcome *outcome, enum outcome_kind kind)
{
    outcome_done(outcome);
    outcome_init(outcome);
    outcome->kind = kind;
}

static void member(struct outcome *outcome, const char *name)
{
    buf_printf(&outcome->members, "%s\"%s\":", outcome->members.len ? "," : "", name);
}

void outcome_complete(struct outcome *outcome, const char *result_json)
{
    restart(outcome, OUTCOME_COMPLETED);
    if (result_json) {
        member(outcome, "result");
        buf_puts(&outcome->members, result_json);
    }
}

void outcome_fail(struct outcome *outcome, const char *error, int64_t retry_in_ms, bool no_retry)
{
    restart(outcome, OUTCOME_FAILED);
    member(outcome, "error");
    json_add_string(&outcome->members, error ? error : "");
    if (retry_in_ms > 0) {
        member(outcome, "retry_in");
        buf_printf(&outcome->members, "\"%lld ms\"", (long long)retry_in_ms);
    }
    outcome->final = no_retry;
    if (no_retry) {
        member(outcome, "retry");
        buf_puts(&outcome->members, "false");
    }
}

void outcome_snooze(struct outcome *outcome, int64_t delay_ms)
{
    restart(outcome, OUTCOME_SNOOZED);
    member(outcome, "delay");
    buf_printf(&outcome->members, "\"%lld ms\"", (long long)(delay_ms > 0 ? delay_ms : 1));
}

void outcome_requeue(struct outcome *outcome, const char *changes_json)
{
    restart(outcome, OUTCOME_REQUEUED);
    if (changes_json) {
        member(outcome, "changes");
        buf_puts(&outcome->members, changes_json);
    }
}

void outcome_release(struct outcome *outcome)
{
    restart(outcome, OUTCOME_RELEASED);
}

void outcome_cancel(struct outcome *outcome)
{
    outcome_fail(outcome, "cancelled", 0, false);
}

void outcome_elsewhere(struct outcome *outcome, bool failed)
{
    restart(outcome, OUTCOME_ELSEWHERE);
    outcome->failed = failed;
}

void outcome_state(struct outcome *outcome, const void *state, size_t size)
{
    member(outcome, "state");
    buf_puts(&outcome->members, "\"");
    base64_add(&outcome->members, state, size);
    buf_puts(&outcome->members, "\"");
}

void outcome_damaged(struct outcome *outcome)
{
    member(outcome, "damaged");
    buf_puts(&outcome->members, "true");
}

void outcome_replace(struct outcome *outcome, const char *members, size_t size)
{
    buf_done(&outcome->members);
    buf_add(&outcome->members, members, size);
}

void outcome_take(struct outcome *outcome, struct outcome *from)
{
    outcome_done(outcome);
    *outcome = *from;
    outcome_init(from);
}

void outcome_print(const struct outcome *outcome, int64_t id, struct buf *out)
{
    buf_printf(out, "{\"id\":%lld,\"outcome\":\"%s\"", (long long)id, words[outcome->kind]);
    if (outcome->members.len) {
        buf_puts(out, ",");
        buf_add(out, outcome->members.data, outcome->members.len);
    }
    buf_puts(out, "}");
}
