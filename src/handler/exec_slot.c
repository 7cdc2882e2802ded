// SPDX-License-Identifier: PostgreSQL
//
// A slot of the exec handler: what its child has in hand, how fast it is, and what it may get.

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "handler/exec_parts.h"

// How much work is sent ahead to a child, and how many jobs at most: with 64 a claim brings so few
// that a fast child is idle for half of the time.
#define EXEC_AHEAD_US  50000
#define EXEC_AHEAD_MAX 256
// Bytes that a child has not taken, beyond which it gets no other job.
#define EXEC_UNSENT_MAX (1024 * 1024)
// Shorter than this, time and answers are added up before they count as a pace.
#define EXEC_PACE_US 1000

void slot_log(const struct slot *slot, enum log_level level, const char *event, const char *text)
{
    const struct log_field fields[] = {LOG_TEXT_FIELD("worker", slot->exec->worker)};

    log_put(level, event, fields, 1, "%s", text);
}

// ---- the oldest job of a slot ----

struct exec_job *slot_oldest(const struct slot *slot)
{
    struct exec_job *job = slot->jobs.first;

    while (job && job->spoiled) {
        job = job->next;
    }
    return job;
}

int64_t slot_timeout_ms(const struct slot *slot)
{
    const struct exec_job *oldest = slot_oldest(slot);
    int64_t own_ms = oldest && oldest->held ? oldest->held->job->timeout_ms : 0;

    return own_ms > 0 ? own_ms : slot->exec->timeout_ms;
}

void slot_stop(struct slot *slot, const char *reason)
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

void slot_stop_cancelled(struct slot *slot)
{
    slot->backoff_ms = 0;
    slot_stop(slot, NULL);
}

void slot_review(struct slot *slot)
{
    struct exec_job *oldest = slot_oldest(slot);
    int64_t timeout_ms = slot_timeout_ms(slot);

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

void slot_forget(struct slot *slot, struct exec_job *job)
{
    exec_list_remove(&slot->jobs, job);
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
void slot_count_answer(struct slot *slot)
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

int slot_load(const struct slot *slot)
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

int slot_room(const struct slot *slot)
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
