// SPDX-License-Identifier: PostgreSQL
//
// What became of a job, as an entry of the SQL function finish(): an object with id, outcome
// and what belongs to it. A job that completed without a result needs no entry.

#ifndef MILLRACE_CLIENT_OUTCOME_H
#define MILLRACE_CLIENT_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum outcome_kind {
    OUTCOME_COMPLETED,
    OUTCOME_FAILED,
    OUTCOME_SNOOZED,
    OUTCOME_REQUEUED,
    OUTCOME_RELEASED,  // given back, the attempt not counted
    OUTCOME_LOST,      // its worker is gone; for a relay, which hears of it
    OUTCOME_ELSEWHERE, // already written, by the handler in a transaction of its own
};

// The largest entry: state and blob travel in it as base64.
#define OUTCOME_ENTRY_MAX (256 * 1024 * 1024)

struct outcome {
    enum outcome_kind kind;
    bool failed;        // OUTCOME_ELSEWHERE only: what was written is a failure
    bool final;         // a failure that is not to be tried again
    struct buf members; // JSON members beside id and outcome: `"error":"x","retry":false`
};

void outcome_init(struct outcome *outcome); // completed
void outcome_done(struct outcome *outcome);

// Each replaces what was there. Intervals of 0 or less are left out, except delay_ms.
void outcome_complete(struct outcome *outcome, const char *result_json);
void outcome_fail(struct outcome *outcome, const char *error, int64_t retry_in_ms, bool no_retry);
void outcome_snooze(struct outcome *outcome, int64_t delay_ms);
void outcome_requeue(struct outcome *outcome, const char *changes_json);
void outcome_release(struct outcome *outcome);
// Failed because it was cancelled; the server knows of that, and ends the job as cancelled.
void outcome_cancel(struct outcome *outcome);
void outcome_elsewhere(struct outcome *outcome, bool failed);

// Adds to what is there.
void outcome_state(struct outcome *outcome, const void *state, size_t size);
// A failure because an object of the job's payload is missing or damaged.
void outcome_damaged(struct outcome *outcome);

// Puts other members in the place of those that are there.
void outcome_replace(struct outcome *outcome, const char *members, size_t size);

// Takes over what the other holds, which is completed afterwards.
void outcome_take(struct outcome *outcome, struct outcome *from);

// Appends `{"id":ID,"outcome":"...",members}`.
void outcome_print(const struct outcome *outcome, int64_t id, struct buf *out);

#define AUTO_OUTCOME __attribute__((cleanup(outcome_done))) struct outcome

#endif
