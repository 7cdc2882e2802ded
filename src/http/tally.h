// SPDX-License-Identifier: PostgreSQL
//
// What this process has done, for its metrics: jobs by queue, kind and outcome, and how long they
// waited and ran. Bounded: a queue has at most TALLY_KINDS_MAX kinds, the others count as "other".

#ifndef MILLRACE_HTTP_TALLY_H
#define MILLRACE_HTTP_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TALLY_QUEUES_MAX 1000
#define TALLY_KINDS_MAX  100
#define TALLY_OTHER      "other"

enum tally_outcome {
    TALLY_ENQUEUED,
    TALLY_COMPLETED,
    TALLY_FAILED, // once for each attempt; it is retried or dead besides
    TALLY_RETRIED,
    TALLY_DEAD,
    TALLY_RESCUED, // the lease was lost while it ran
    TALLY_CANCELLED,
    TALLY_OUTCOMES,
};

enum { TALLY_BUCKETS = 13 };

struct tally_times {
    int64_t buckets[TALLY_BUCKETS]; // not cumulative; the last has no bound
    double sum;
    int64_t count;
};

struct tally_kind {
    char *kind;
    int64_t counts[TALLY_OUTCOMES];
};

struct tally_queue {
    char *queue;
    struct tally_times wait, run;
    struct tally_kind *kinds;
    size_t kind_count;
};

struct tally {
    struct tally_queue *queues;
    size_t queue_count;
};

extern const char *const tally_outcome_names[TALLY_OUTCOMES];
// Upper bounds in seconds of all buckets but the last.
extern const double tally_bounds[TALLY_BUCKETS - 1];

void tally_done(struct tally *tally);

// Without memory the figure is lost, and nothing else. `kind` NULL: "other".
void tally_count(struct tally *tally, const char *queue, const char *kind,
                 enum tally_outcome outcome, int64_t by);
// Seconds; below zero counts as zero.
void tally_wait(struct tally *tally, const char *queue, double seconds);
void tally_run(struct tally *tally, const char *queue, double seconds);

#endif
