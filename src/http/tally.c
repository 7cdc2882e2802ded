// SPDX-License-Identifier: PostgreSQL
//
// What this process has done: see tally.h.

#include "http/tally.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

const char *const tally_outcome_names[TALLY_OUTCOMES] = {
    [TALLY_ENQUEUED] = "enqueued",   [TALLY_COMPLETED] = "completed", [TALLY_FAILED] = "failed",
    [TALLY_RETRIED] = "retried",     [TALLY_DEAD] = "dead",           [TALLY_RESCUED] = "rescued",
    [TALLY_CANCELLED] = "cancelled",
};

const double tally_bounds[TALLY_BUCKETS - 1] = {0.005, 0.01, 0.025, 0.1, 0.25, 1,
                                                2.5,   10,   30,    60,  300,  3600};

void tally_done(struct tally *tally)
{
    for (size_t i = 0; i < tally->queue_count; i++) {
        struct tally_queue *queue = &tally->queues[i];
        for (size_t j = 0; j < queue->kind_count; j++) {
            free(queue->kinds[j].kind);
        }
        free(queue->kinds);
        free(queue->queue);
    }
    free(tally->queues);
    *tally = (struct tally){0};
}

// Room for one more element; arrays grow by doubling. NULL without memory.
static void *grown(void *array, size_t count, size_t size)
{
    bool full = (count & (count - 1)) == 0; // a power of two, or none

    return full ? realloc(array, (count ? count * 2 : 1) * size) : array;
}

static struct tally_queue *find_queue(struct tally *tally, const char *name)
{
    for (size_t i = 0; i < tally->queue_count; i++) {
        if (str_equal(tally->queues[i].queue, name)) {
            return &tally->queues[i];
        }
    }
    if (tally->queue_count == TALLY_QUEUES_MAX) {
        return str_equal(name, TALLY_OTHER) ? NULL : find_queue(tally, TALLY_OTHER);
    }
    // the last place is kept for all the others
    if (tally->queue_count == TALLY_QUEUES_MAX - 1 && !str_equal(name, TALLY_OTHER)) {
        return find_queue(tally, TALLY_OTHER);
    }
    struct tally_queue *queues = grown(tally->queues, tally->queue_count, sizeof(*tally->queues));
    char *copy = strdup(name);
    tally->queues = queues ? queues : tally->queues;
    if (!queues || !copy) {
        free(copy);
        return NULL;
    }
    queues[tally->queue_count] = (struct tally_queue){.queue = copy};
    return &queues[tally->queue_count++];
}

static struct tally_kind *find_kind(struct tally_queue *queue, const char *name)
{
    for (size_t i = 0; i < queue->kind_count; i++) {
        if (str_equal(queue->kinds[i].kind, name)) {
            return &queue->kinds[i];
        }
    }
    if (queue->kind_count >= TALLY_KINDS_MAX && !str_equal(name, TALLY_OTHER)) {
        return find_kind(queue, TALLY_OTHER);
    }
    struct tally_kind *kinds = grown(queue->kinds, queue->kind_count, sizeof(*queue->kinds));
    char *copy = strdup(name);
    queue->kinds = kinds ? kinds : queue->kinds;
    if (!kinds || !copy) {
        free(copy);
        return NULL;
    }
    kinds[queue->kind_count] = (struct tally_kind){.kind = copy};
    return &kinds[queue->kind_count++];
}

void tally_count(struct tally *tally, const char *queue, const char *kind,
                 enum tally_outcome outcome, int64_t by)
{
    struct tally_queue *found = find_queue(tally, queue);
    struct tally_kind *row = found ? find_kind(found, kind ? kind : TALLY_OTHER) : NULL;

    if (row) {
        row->counts[outcome] += by;
    }
}

static void add_time(struct tally_times *times, double seconds)
{
    size_t bucket = 0;

    seconds = seconds > 0 ? seconds : 0;
    while (bucket < TALLY_BUCKETS - 1 && seconds > tally_bounds[bucket]) {
        bucket++;
    }
    times->buckets[bucket]++;
    times->sum += seconds;
    times->count++;
}

void tally_wait(struct tally *tally, const char *queue, double seconds)
{
    struct tally_queue *found = find_queue(tally, queue);

    if (found) {
        add_time(&found->wait, seconds);
    }
}

void tally_run(struct tally *tally, const char *queue, double seconds)
{
    struct tally_queue *found = find_queue(tally, queue);

    if (found) {
        add_time(&found->run, seconds);
    }
}
