// SPDX-License-Identifier: PostgreSQL
//
// The heart of every worker: claims jobs of one queue, hands them to a handler, keeps their
// leases alive, writes their outcomes. It never blocks and knows neither threads nor an event
// loop: poll worker_fd() for reading and call worker_advance(). The library drives it with
// poll(), the daemon with libuv.
//
// 1. No more jobs are held than the handler has room for: a full handler stops claiming.
// 2. A lease is extended at a third of its time, as long as one of its jobs is open.
// 3. Outcomes are written in batches, in the round trip of the next claim; a lease whose other
//    jobs take long does not hold back those that have ended (WORKER_FLUSH_MS).
// 4. An outcome stays until the database has answered for it. After a lost connection it is
//    written again; a lease that was rescued meanwhile answers MR001, which is counted as lost.
// 5. A refused outcome (bad JSON, say) fails its own job only, with the refusal as its error.
// 6. A heartbeat tells which jobs were cancelled. The handler is told once of each; what becomes
//    of it is the handler's word, and the server makes a job cancelled that does not complete.
// 7. Reports of progress go out between other calls: see worker_report().
// 8. While nothing is to be done the worker registers as waiting and listens; it still looks
//    every WORKER_IDLE_MS, or every poll_ms where it cannot listen.
// 8. In a queue with a limit of jobs at once a job that waits in here keeps others from running:
//    no more are held than `slots`, and an outcome is written as soon as it is there.

#ifndef MILLRACE_CLIENT_WORKER_H
#define MILLRACE_CLIENT_WORKER_H

#include <millrace/millrace.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/depot.h"
#include "client/outcome.h"
#include "client/shard.h"

struct worker;
struct lease;

#define WORKER_FLUSH_MS  200
#define WORKER_IDLE_MS   1000
#define WORKER_REPORT_MS 1000
// The longest note of a report, in bytes; the SQL function has the same limit.
#define WORKER_NOTE_MAX 1000

// A job in the worker's hands. `job` is borrowed until worker_settle(); `user` is the handler's.
struct held_job {
    const mr_claimed_job *job;
    void *user;
    bool dropped;       // the outcome will not be written; see drop below
    bool cancelled;     // somebody cancelled it; see cancel below
    int64_t started_us; // clock_us(), of whoever started it
    bool settled;       // the worker's, like what follows
    bool fetching;      // its payload is on its way from a blob store; nobody knows of it yet
    struct lease *lease;
    struct report *report; // of progress; NULL: it has made none
};

enum worker_event {
    WORKER_CONNECTED,
    WORKER_DISCONNECTED, // err says why
    WORKER_UNREACHABLE,  // an attempt to connect failed; err says why
    WORKER_LEASE_LOST,   // a write under a lease was refused; err has the server's words
    WORKER_REFUSED,      // the server refused an outcome; err says why
    WORKER_UNREPORTED,   // the server refused a report of progress; err says why
    WORKER_UNREADABLE,   // a part of a job cannot be decoded: it has failed for good; err says why
    WORKER_STORE_DOWN,   // the blob store of payloads cannot be read; err says why. Until it can
    WORKER_FAILED,       // it cannot go on and has stopped; err says why
};

// All are called from inside worker_advance() (start also from worker_settle()), and may call
// worker_settle().
struct worker_ops {
    // How many more jobs can be started now; 0 stops claiming. Asked before every claim.
    int (*room)(void *arg);
    // Jobs of one claim, at most as many as `room` said. Each gets its worker_settle() later,
    // or before this returns.
    void (*start)(void *arg, struct held_job *const *jobs, int count);
    // The lease is lost or the grace period is over: the job's outcome will not be written any
    // more. Stop it if that is possible; worker_settle() must still be called once. May be NULL.
    void (*drop)(void *arg, struct held_job *job);
    // Somebody cancelled the job: stop it if that is possible, do not begin it if it waits.
    // worker_settle() must still be called once, now or later, with outcome_cancel() for a job
    // that was stopped and with its own outcome for one that ended by itself. `drop` may come
    // meanwhile. May be NULL.
    void (*cancel)(void *arg, struct held_job *job);
    // Nothing of the lease is left, all of its outcomes were written or given up. It is freed right
    // afterwards. May be NULL.
    void (*over)(void *arg, const struct lease *lease);
    // Of several shards: the database has said which one it is, after every connect; nothing is
    // claimed there before. Not 0: it is not to be used, and the worker has failed with *err. NULL:
    // it is not asked.
    int (*admit)(void *arg, const struct shard_info *info, struct mr_error *err);
    // For logs and counters; may be NULL. `job` is NULL where the event is about no single job.
    void (*event)(void *arg, enum worker_event event, const struct held_job *job,
                  const struct mr_error *err);
};

struct worker_options {
    const char *dsn;
    bool pooler;
    const char *redis; // jobs come by way of this Redis; NULL: from PostgreSQL
    const char *queue;
    const char *name;
    int batch;
    int slots;        // jobs that the handler really runs at once; 0: as many as it takes
    int64_t lease_ms; // 0: as the queue says
    int64_t poll_ms;
    int64_t batch_wait_ms; // wait this long for a claim to be worth a whole batch; 0
    int64_t grace_ms;
    int64_t health_ms;
    bool without_state;
    bool until_empty;
    bool shard_leases;          // with `admit`: jobs have leases that name their shard
    struct depot_options blobs; // where payload parts are that are objects
};

// Nothing happens before the first worker_advance(). Copies the options. Fails with MR_EUSAGE,
// MR_ENOMEM, MR_EIO.
int worker_new(const struct worker_options *options, const struct worker_ops *ops, void *arg,
               struct worker **ret, struct mr_error *err);
// Every held job must have been settled. Outcomes that are not written yet are lost with it, and
// their jobs come back when their leases expire: call worker_stop() before and wait for
// worker_done().
void worker_free(struct worker *worker);

int worker_fd(const struct worker *worker);
void worker_advance(struct worker *worker);
// Makes worker_fd() readable; from any thread or a signal handler. The handler calls it (or
// worker_advance()) when it has room again without a job having ended.
void worker_wake(struct worker *worker);

// How far a job is that has not been settled: 0 to 100 percent, and a note or NULL, which is copied
// and cut at WORKER_NOTE_MAX. From any thread. At most one report of a job is sent in
// WORKER_REPORT_MS, the newest; what is left when the job is settled goes out before its outcome.
// Fails with MR_EINVALID (another number, a note that is not UTF-8), MR_ENOMEM; the job is not
// touched by that, nor by a report that does not arrive.
int worker_report(struct worker *worker, struct held_job *held, double percent, const char *note);
// The same behind somebody's back: `arg` knows the worker.
typedef int report_fn(void *arg, struct held_job *held, double percent, const char *note);

// The job has ended. Moves the content of `outcome` out; the held job is gone afterwards.
void worker_settle(struct worker *worker, struct held_job *held, struct outcome *outcome);

// Stops claiming; running jobs have the grace period. Calling it again changes nothing.
void worker_stop(struct worker *worker);
// Whether everything is over: stopped (or empty, or failed), every job settled, every outcome
// written or given up.
bool worker_done(const struct worker *worker);
// 0, or the code with which it failed.
int worker_result(const struct worker *worker, struct mr_error *err);

bool worker_healthy(const struct worker *worker);
// Jobs that are on their way, perhaps: of claims that were sent less than WORKER_ANSWER_MS ago. For
// workers that share room: one whose server hangs does not keep it for ever.
int worker_on_the_way(const struct worker *worker);
#define WORKER_ANSWER_MS 1000
void worker_counts(const struct worker *worker, mr_worker_counts *ret);

#endif
