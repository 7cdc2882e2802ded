// SPDX-License-Identifier: PostgreSQL
//
// Moves the jobs of a queue from one database to another, a batch at a time. A step takes a batch
// in the one, gives it to the other, and says so to the first: three transactions, in this order.
// Whatever happens between them, the next step, of this mover or another, goes on with the same
// batch, and the other database takes each once (docs/moving.md).
//
// A mover belongs to one thread at a time. Its calls wait for the databases.

#ifndef MILLRACE_CLIENT_MOVER_H
#define MILLRACE_CLIENT_MOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct mover;

struct mover_spec {
    const char *from;     // dsn; NULL as for conn_open()
    const char *to;       // dsn, not NULL
    const char *queue;    // not NULL
    const char *to_queue; // NULL: of the same name
    int batch;            // jobs in a step at most: 1 to MOVER_BATCH_MAX
    bool dead;            // dead letters, too, after all else
    const char *blobs;    // the store of jobs that have a part there; NULL: $MILLRACE_BLOBS
    const char *to_blobs; // where queues with `offload` there have them; NULL: parts go into rows
    // A shadow: the jobs stay, copies of them go.
    bool copy;
    double share;       // of the tenants, in percent; 0: all
    const char *tenant; // this one alone; NULL: all
};

enum { MOVER_BATCH_DEFAULT = 1000, MOVER_BATCH_MAX = 10000 };

// What is in the queue, and what has left it, as of one moment.
struct mover_counts {
    int64_t available;
    int64_t scheduled; // for later, paused, or waiting for other jobs
    int64_t retrying;
    int64_t running;
    int64_t dead;
    int64_t moving;   // taken, and not known to have arrived
    int64_t moved;    // in all, by this mover or others
    int64_t merged;   // of these: another job there had their unique key
    int64_t to_depth; // of the queue there
};

struct mover_step {
    int64_t jobs;       // 0: nothing is left that can be moved
    int64_t merged;     // of these: another job there had their unique key
    bool again;         // the batch had arrived before, with a mover that did not live to say so
    int64_t carried;    // parts that were objects of the blob store
    int64_t unreadable; // of these: missing or damaged, they went as they were
    int64_t stored;     // no jobs: so many stay because no blob store is known
};

// The spec's texts are borrowed for the mover's life. Does not connect. The caller frees *ret with
// mover_free(). MR_EUSAGE, MR_ENOMEM; MR_ECONFIG for the address of a blob store, or no keys.
int mover_new(const struct mover_spec *spec, struct mover **ret, struct mr_error *err);
void mover_free(struct mover *mover);

// Moves one batch. A connection that is not there is made first. On failure a broken connection is
// dropped, and the next call makes it anew: for MR_ECONNECT, MR_ELOCK, MR_ECONFLICT and MR_EFULL
// the same call may work later. Errors say in which of the two databases they happened.
int mover_step(struct mover *mover, struct mover_step *ret, struct mr_error *err);

int mover_count(struct mover *mover, struct mover_counts *ret, struct mr_error *err);

// What a shadow has found so far.
struct mover_findings {
    int64_t mirrored; // copies that have left, as the one database counts
    int64_t arrived;  // that have come, as the other one does
    int64_t equal, different, out_of_order, extra, waiting, missing;
    int64_t cut;     // how often the log was gone before it was read
    int64_t checked; // in this call
};

// Of a shadow: gives out copies there, compares and completes them, up to a batch.
int mover_check(struct mover *mover, struct mover_findings *ret, struct mr_error *err);

// Puts what is on its way back into the queue; *ret is how many. For a database that is lost.
int mover_give_back(struct mover *mover, int64_t *ret, struct mr_error *err);

// Whether the same call may work later without anybody's doing.
bool mover_may_retry(int code);

#define AUTO_MOVER __attribute__((cleanup(mover_cleanup))) struct mover
void mover_cleanup(struct mover **mover);

#endif
