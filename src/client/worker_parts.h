// SPDX-License-Identifier: PostgreSQL
//
// What the files of the worker share: worker.c claims and decides, worker_write.c writes outcomes
// and heartbeats, worker_report.c sends reports of progress; each through the worker's transport.
// Nobody else includes this.

#ifndef MILLRACE_CLIENT_WORKER_PARTS_H
#define MILLRACE_CLIENT_WORKER_PARTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/errand.h"
#include "client/lease.h"
#include "client/parcel.h"
#include "client/transport.h"
#include "client/worker.h"

// Pauses after a refused request, doubling.
#define WORKER_PAUSE_FIRST_MS 100
#define WORKER_PAUSE_MAX_MS   5000

// Claims under way at once, while jobs are plenty: the server works on the next one while the
// answer of the last one travels.
enum { WORKER_CLAIMS_MAX = 2 };

// Copies of what names the blob store.
enum { WORKER_BLOBS_ADDRESS, WORKER_BLOBS_ACCESS, WORKER_BLOBS_SECRET, WORKER_BLOBS_TEXTS };

struct worker {
    struct worker_options options;
    char *queue, *name;
    struct worker_ops ops;
    void *arg;
    struct transport *transport;
    struct lease *leases;
    mr_worker_counts counts; // changed with worker_count(): any thread may read them
    bool advancing, woken;

    // claiming
    int claiming;                 // requests under way
    int asked[WORKER_CLAIMS_MAX]; // for so many jobs, the oldest first
    int64_t asked_at_ms;          // when the last one was sent
    bool flowing;                 // the last one brought all that it asked for
    int64_t claim_at_ms;          // not before
    int64_t claim_pause_ms;
    bool limited;          // the queue has a limit of jobs at once
    bool held_back;        // a limit left nothing for the last claim
    int64_t held_back_ms;  // how long it waits then; 0: not yet
    bool full;             // the handler had no room when it was asked last
    int64_t room_since_ms; // it has some, but little; 0

    // reports of progress
    pthread_mutex_t reports_lock;
    struct report *reports; // a job each
    bool cannot_report;     // the server refused

    // coding payload parts of outcomes
    struct parcel parcel;
    struct policy policy;    // of the queue, as it was told last
    int64_t policy_asked_ms; // 0: never, on this connection

    // payload parts in a blob store
    char *blobs[WORKER_BLOBS_TEXTS];
    struct depot *depot; // NULL: none is named
    bool depot_known;    // it was looked for
    bool store_down;     // and that was told
    struct errands *errands;
    int fetching; // jobs that were claimed and wait for it

    // the end
    bool stopping;
    bool let_go; // the grace period is over, what ran was released
    int64_t stop_at_ms;
    struct mr_error err; // code 0: none
};

void worker_tell(struct worker *worker, enum worker_event event, const struct held_job *held,
                 const struct mr_error *err);
void worker_count(int64_t *counter, int64_t by);

// The next pause after a failure: *pause_ms grows.
int64_t worker_pause(int64_t *pause_ms);

// It cannot go on.
void worker_fail(struct worker *worker, const struct mr_error *err);

// Sends the outcomes and heartbeats that are due. True when outcomes went out.
bool worker_write(struct worker *worker, int64_t now_ms);
// When worker_write() has something to do again at the latest; 0: when something else happens.
int64_t worker_write_at(struct worker *worker);
// Sends the reports that are due; and when there are some again, 0: when something else happens.
void worker_send_reports(struct worker *worker, int64_t now_ms);
int64_t worker_reports_at(struct worker *worker);
// The job ends: sends what it reported last, if that is wanted, and forgets it.
void worker_end_report(struct worker *worker, struct held_job *held, int64_t now_ms, bool last);
// Asks for the queue's policy of payloads, if the last answer is old.
void worker_ask_policy(struct worker *worker, int64_t now_ms);
// An outcome as the handler told it becomes an entry, to be written.
void worker_add_entry(struct lease *lease, int64_t id, struct outcome *outcome);
// Codes its parts as the queue wants it, but for objects.
void worker_code_inline(struct worker *worker, struct outcome *outcome);

// ---- worker_blobs.c ----

// Jobs of a lease whose payload is in a blob store: they are started when it is there.
void worker_fetch(struct worker *worker, struct lease *lease);
void worker_settle_flaw(struct worker *worker, struct held_job *held, const struct mr_error *flaw,
                        bool object);
// True: parts of the outcome are written to the store, and it becomes an entry then.
bool worker_ship(struct worker *worker, struct held_job *held, struct outcome *outcome);
// What came or went meanwhile.
void worker_blobs_collect(struct worker *worker);
void worker_blobs_done(struct worker *worker);

// Frees leases of which nothing is left.
void worker_sweep(struct worker *worker);
// Writes jobs that still run off as released, the attempt not counted, and drops them.
void worker_release(struct worker *worker, struct lease *lease);

#endif
