// SPDX-License-Identifier: PostgreSQL
//
// What carries a worker's jobs and outcomes: PostgreSQL itself (transport_pg.c), or a stream of
// Redis that a relay fills (transport_redis.c). The worker decides what is asked for and when; a
// transport knows how it is said, and tells the answer. All of it happens on the worker's thread,
// answers and events inside of `advance` only.

#ifndef MILLRACE_CLIENT_TRANSPORT_H
#define MILLRACE_CLIENT_TRANSPORT_H

#include <millrace/millrace.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/lease.h"
#include "client/worker.h"

struct transport;

// Outcomes that go out in one request: those in `sent` of each of the leases.
enum { WRITE_LEASES_MAX = 200 };
struct write {
    struct worker *worker;
    bool unclear; // of outcomes that may have been written before
    bool whole;   // all jobs of each lease, completed with nothing to say
    int count;
    struct lease *leases[];
};

struct transport_ops {
    void (*free)(struct transport *transport); // requests without an answer are forgotten
    // One descriptor for life; readable means: call advance.
    int (*fd)(const struct transport *transport);
    void (*advance)(struct transport *transport);
    void (*wake)(struct transport *transport);                     // from any thread
    void (*set_timer)(struct transport *transport, int64_t at_ms); // advance is due then; 0: never
    bool (*connected)(const struct transport *transport);
    bool (*can_claim)(const struct transport *transport); // connected, and nothing is in the way
    int (*pending)(const struct transport *transport);    // requests without an answer
    int64_t (*answered_at)(const struct transport *transport); // clock_ms(); 0: never
    void (*reset)(struct transport *transport);                // behind its address may be another

    // Each says whether an answer will come.
    bool (*claim)(struct transport *transport, int max_jobs);        // worker_claimed()
    bool (*beat)(struct transport *transport, struct lease *lease);  // worker_beaten()
    bool (*write)(struct transport *transport, struct write *write); // worker_written()
    // No answer, but worker_unreported() on a refusal.
    void (*report)(struct transport *transport, const struct held_job *held, double percent,
                   const char *note);
    // Nothing is to be done: when to look again, at the latest.
    int64_t (*wait)(struct transport *transport, int64_t now_ms);
    void (*ping)(struct transport *transport); // an answer is wanted, whichever
};

struct transport {
    const struct transport_ops *ops;
    struct worker *worker;
};

// Fail with MR_ENOMEM, MR_EIO, MR_EUSAGE (the dsn), MR_ECONFIG (the address). `options` are copied.
int transport_pg_new(struct worker *worker, const struct worker_options *options,
                     struct transport **ret, struct mr_error *err);
int transport_redis_new(struct worker *worker, const struct worker_options *options,
                        struct transport **ret, struct mr_error *err);

// ---- what a transport tells its worker ----

void worker_is_connected(struct worker *worker);
void worker_is_lost(struct worker *worker, const struct mr_error *err);
void worker_is_refused(struct worker *worker, const struct mr_error *err);
// There may be jobs: to be looked for after batch_wait_ms, or at once.
void worker_notified(struct worker *worker);
void worker_look(struct worker *worker);

// The answer to a claim. On failure `err` says why; otherwise the batches, if `count` is not 0,
// come next through worker_take().
struct claim_answer {
    int count;
    bool limited;    // the queue has a limit of jobs at once
    bool held_back;  // a limit left nothing
    int64_t wait_ms; // until there is something again; 0: not known
};
void worker_claimed(struct worker *worker, const struct claim_answer *answer,
                    const struct mr_error *err);
// Takes over the batch, and `delivery`, which lease_free() frees.
void worker_take(struct worker *worker, mr_batch *batch, int64_t lease_ms,
                 struct delivery *delivery);

void worker_beaten(struct worker *worker, struct lease *lease, const struct mr_error *err);
// One job of a lease was cancelled; or is somebody else's now, and the others are not.
void worker_job_cancelled(struct worker *worker, struct held_job *held);
void worker_job_lost(struct worker *worker, struct held_job *held, const struct mr_error *err);

// Frees `write`.
void worker_written(struct write *write, const struct mr_error *err);
void worker_unreported(struct worker *worker, const struct mr_error *err);

#endif
