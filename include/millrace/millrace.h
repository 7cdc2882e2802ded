// SPDX-License-Identifier: PostgreSQL
//
// libmillrace: jobs on PostgreSQL, from C.
//
// Rules for every call, unless its comment says otherwise:
//
// - It returns 0, or a negative MR_E* code. The last parameter, an mr_error of the caller's,
//   says more; it is written only on failure and may be NULL.
// - A ret_ parameter is written only on success.
// - Strings given to a call are borrowed until it returns. Strings are UTF-8 and end with a
//   zero byte; JSON is passed as text and checked by PostgreSQL.
// - The library never prints, never exits and installs no signal handler.
// - A handle (mr_conn, mr_batch, mr_reply) is used by one thread at a time. mr_worker_stop(),
//   mr_worker_healthy() and mr_worker_stats() may be called from any thread, the first of
//   them from a signal handler too.
// - An options struct begins with its size, which MR_*_INIT fills in: a program built with
//   an older header works with a newer library.

#ifndef MILLRACE_MILLRACE_H
#define MILLRACE_MILLRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MR_VERSION "0.1.0"

// The version of the library that the program runs with.
const char *mr_version(void);

// ---- errors ----------------------------------------------------------------------------

enum mr_code {
    MR_OK = 0,
    MR_ENOMEM = -1,     // out of memory
    MR_ELIMIT = -2,     // something grew beyond the maximum it was given
    MR_EUSAGE = -3,     // an argument is wrong
    MR_ECONNECT = -4,   // the database cannot be reached, or the connection broke
    MR_EDATABASE = -5,  // the server refused a statement for a reason not listed here
    MR_ELOCK = -6,      // a lock was not granted within its timeout
    MR_ECONFLICT = -7,  // deadlock or serialization failure: the same again may work
    MR_EPRIVILEGE = -8, // the database user may not do this
    MR_EROLES = -9,     // roles are missing and the user may not create them
    MR_EREADONLY = -10, // a standby, or read-only transactions
    MR_ESERVER = -11,   // the server is too old
    MR_EFOREIGN = -12,  // a schema called millrace exists and is not Millrace's
    MR_ENEWER = -13,    // the database is newer than this program
    MR_EALTERED = -14,  // an applied migration is not the one this program carries
    MR_EIO = -15,       // a file or stream could not be read or written
    MR_EINTERNAL = -16, // a defect in this library
    MR_ELEASE = -17,    // MR001: the lease is lost; nothing was changed, drop the work
    MR_EFULL = -18,     // MR002: the queue is full
    MR_EUNKNOWN = -19,  // MR003: no such job, queue or schedule
    MR_ERESTORED = -20, // MR004: the schema was restored from another cluster
    MR_EINVALID = -21,  // 22023 and the like: the server refused an argument
    MR_ETIMEOUT = -22,  // no answer within the time allowed
    MR_ESCHEMA = -23,   // the schema millrace is missing or too old in this database
    MR_ECONFIG = -24,   // the configuration is wrong
    MR_EFULLDISK = -25, // the server has no space left
    MR_EDAMAGED = -26,  // what was stored is not what was written
};

enum mr_class {
    MR_CLASS_NONE,
    MR_CLASS_TRANSIENT, // try again later
    MR_CLASS_CONFLICT,  // somebody else was first
    MR_CLASS_REJECTED,  // this input will never be accepted
    MR_CLASS_CONFIG,    // a person has to change the set-up
    MR_CLASS_INTERNAL,  // a defect, or the machine is out of resources
};

enum {
    MR_ERROR_MESSAGE_SIZE = 1024,
    MR_ERROR_DETAIL_SIZE = 2048,
    MR_ERROR_HINT_SIZE = 1024,
    MR_ERROR_SQLSTATE_SIZE = 6,
};

// Texts are cut at their size, between characters; an unused one is empty. The message is one
// line, `what: why`, in lower case without a period; detail and hint are sentences.
typedef struct mr_error {
    int code;
    enum mr_class error_class;
    char message[MR_ERROR_MESSAGE_SIZE];
    char detail[MR_ERROR_DETAIL_SIZE];
    char hint[MR_ERROR_HINT_SIZE];
    char sqlstate[MR_ERROR_SQLSTATE_SIZE];
} mr_error;

// The class of a code; MR_CLASS_INTERNAL for a number that is not a code.
enum mr_class mr_code_class(int code);

// ---- connections -----------------------------------------------------------------------

typedef struct mr_conn mr_conn;
struct pg_conn; // libpq's PGconn

typedef struct mr_conn_options {
    size_t size;
    // NULL: $MILLRACE_DSN, $DATABASE_URL, libpq's environment. redis://... or unix://...: Redis.
    const char *dsn;
    const char *application_name; // NULL: millrace
    int pooler;                   // not 0: no named statements and no LISTEN (PgBouncer); 0
    int64_t timeout_ms;           // what a call may take, reconnecting included; 0: 30 s
    int64_t full_wait_ms;         // how long mr_enqueue*() wait for room in a full queue; 0
    const char *blobs;            // the blob store of payload parts; NULL: $MILLRACE_BLOBS, if set
} mr_conn_options;

#define MR_CONN_OPTIONS_INIT                      \
    {                                             \
        sizeof(mr_conn_options), 0, 0, 0, 0, 0, 0 \
    }

// Connects. With an address of Redis the toolbox works on Redis, and what needs PostgreSQL fails
// with MR_EUSAGE: docs/redis.md has a table. The caller frees *ret with mr_conn_free(). A
// connection that breaks later is made again by the next call, with growing pauses, within that
// call's time. A call whose answer was lost is not repeated: it fails with MR_ECONNECT, and may
// have happened. So may one that fails with MR_ETIMEOUT; where the detail says that nothing was
// sent, it has not happened.
int mr_conn_open(const mr_conn_options *options, mr_conn **ret, mr_error *err);

// Calls on a connection of the caller's, inside of whatever transaction is open on it: a job
// enqueued there exists when the caller commits. Never reconnects, begins, commits or closes;
// `pg` must outlive *ret, be idle between calls and not be in pipeline mode.
int mr_conn_wrap(struct pg_conn *pg, mr_conn **ret, mr_error *err);

// Closes the connection. NULL is fine.
void mr_conn_free(mr_conn *conn);

// ---- producing -------------------------------------------------------------------------

// A job to be. Only kind is required.
typedef struct mr_job_spec {
    size_t size;
    const char *kind;
    const char *args;       // JSON; NULL: {}
    const char *queue;      // NULL: default
    int priority;           // 0 to 99, the lower number runs first; 50
    int max_attempts;       // 0: as the kind's retry policy or the queue says
    const char *run_at;     // a timestamp; NULL: at once
    int64_t delay_ms;       // instead of run_at; 0: none
    int64_t timeout_ms;     // how long a handler may take; 0: as the worker says
    int64_t expires_in_ms;  // ends as expired when nobody took it by then; 0: never
    const char *unique_key; // the queue has one job with it until that has ended; NULL: none
    // Of an ordered queue: one job with it runs at a time, in order; NULL: none.
    const char *ordering_key;
    const char *tenant;
    const char *ref;  // the caller's own id
    const char *meta; // JSON
    const void *state;
    size_t state_size;
    const void *blob;
    size_t blob_size;
    const char *on_conflict; // where the key is held: ignore, replace (args, time); NULL: ignore
    int64_t unique_for_ms;   // how long the key is held after completion, too; 0: not at all
} mr_job_spec;

#define MR_JOB_SPEC_INIT                                                                 \
    {                                                                                    \
        sizeof(mr_job_spec), 0, 0, 0, 50, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

// Enqueues one job. ret_id may be NULL. Where the queue has a job with its unique_key no second one
// is made, and *ret_id is that job's. Such a call waits for a transaction that is about to take the
// same key or to give it back. MR_EFULL: the queue has reached its depth_limit, and
// nothing was written. With full_wait_ms the call is made again until then, with pauses that grow
// from 50 ms to 1 s; timeout_ms holds for each time. The following two do the same at each chunk
// anew. A wrapped connection does not wait: its transaction has failed. Where the queue has the
// setting `compress`, large parts are compressed; whether it has is asked for at most every 10 s.
int mr_enqueue(mr_conn *conn, const mr_job_spec *job, int64_t *ret_id, mr_error *err);

// Enqueues one job for each of `count` args (JSON texts), which share everything else of
// `job`: the fastest way in. `chunk` jobs go in one transaction (0: 10,000), on a wrapped
// connection in one statement. ret_ids, where not NULL, has room for `count`.
// *ret_done, where not NULL, is the number of jobs that are in, on failure too: a whole number
// of chunks. One whose unique_key is held is in with the id of the job that holds it.
int mr_enqueue_many(mr_conn *conn, const mr_job_spec *job, const char *const *args, size_t count,
                    size_t chunk, int64_t *ret_ids, size_t *ret_done, mr_error *err);

// The same with everything different for each job.
int mr_enqueue_jobs(mr_conn *conn, const mr_job_spec *jobs, size_t count, size_t chunk,
                    int64_t *ret_ids, size_t *ret_done, mr_error *err);

// ---- working ---------------------------------------------------------------------------

// A job in a worker's hands. Strings and bytes belong to its batch.
typedef struct mr_claimed_job {
    int64_t id;
    int attempt; // from 1
    int max_attempts;
    int priority;
    const char *lease;
    const char *queue;
    const char *kind;
    const char *args;  // JSON
    const char *meta;  // JSON, or NULL
    const void *state; // or NULL
    size_t state_size;
    const void *blob; // or NULL
    size_t blob_size;
    const char *tenant; // this and the following: or NULL
    const char *ref;
    const char *source;
    int64_t created_at_us;  // microseconds since 1970-01-01 UTC
    int64_t lease_until_us; // the same
    int64_t timeout_ms;     // 0: none
} mr_claimed_job;

typedef struct mr_batch mr_batch;

typedef struct mr_claim_options {
    size_t size;
    const char *queue;  // NULL: default
    const char *worker; // a name for people; NULL: one with the backend's pid
    int max_jobs;       // 1 to 10,000; 0: 1
    int64_t lease_ms;   // 0: as the queue says
    int without_state;  // not 0: leave `state` where it is
} mr_claim_options;

#define MR_CLAIM_OPTIONS_INIT                   \
    {                                           \
        sizeof(mr_claim_options), 0, 0, 0, 0, 0 \
    }

// Takes jobs under one lease. *ret is freed with mr_batch_free(); it is empty when there is
// nothing to do. On a connection of its own the claim is a transaction of its own that does not
// wait for the disk (a claim lost in a crash is only a redelivery). Compressed parts have been
// decompressed; a job of which one is damaged has failed for good, and is not in the batch.
int mr_claim(mr_conn *conn, const mr_claim_options *options, mr_batch **ret, mr_error *err);

size_t mr_batch_count(const mr_batch *batch);
// The job at `index`, NULL beyond the end; borrowed from the batch.
const mr_claimed_job *mr_batch_job(const mr_batch *batch, size_t index);
// The lease of all of them, NULL when the batch is empty.
const char *mr_batch_lease(const mr_batch *batch);
void mr_batch_free(mr_batch *batch);

// Completes jobs of a lease: those in ids, or with count 0 all that are open. `result` is JSON
// or NULL. *ret_done, where not NULL: how many.
int mr_complete(mr_conn *conn, const char *lease, const int64_t *ids, size_t count,
                const char *result, int *ret_done, mr_error *err);

// Completes all open jobs of many leases, all or none.
int mr_complete_many(mr_conn *conn, const char *const *leases, size_t count, int *ret_done,
                     mr_error *err);

// Reports a failure. retry_in_ms 0: the backoff of the kind. no_retry not 0: to the dead
// letters. state replaces the job's, NULL leaves it. A job that was cancelled ends as cancelled
// instead. *ret_dead, where not NULL: whether the job is a dead letter now.
int mr_fail(mr_conn *conn, const char *lease, int64_t id, const char *error, int64_t retry_in_ms,
            int no_retry, const void *state, size_t state_size, int *ret_dead, mr_error *err);

// Many outcomes in one call, all or none: JSON as for the SQL function finish.
int mr_finish(mr_conn *conn, const char *lease, const char *outcomes, int *ret_done, mr_error *err);

// Puts a job back; the attempt is not counted. `changes` is JSON (queue, priority, run_at,
// delay, args, meta) or NULL; state and blob replace those parts, NULL leaves them.
int mr_requeue(mr_conn *conn, const char *lease, int64_t id, const char *changes, const void *state,
               size_t state_size, const void *blob, size_t blob_size, mr_error *err);

// Gives jobs back untouched, those in ids or with count 0 all that are open.
int mr_release(mr_conn *conn, const char *lease, const int64_t *ids, size_t count, int *ret_done,
               mr_error *err);

// Extends a lease, by as much as it was taken for when extend_ms is 0. *ret_until_us, where not
// NULL: its end, in microseconds since 1970-01-01 UTC.
int mr_heartbeat(mr_conn *conn, const char *lease, int64_t extend_ms, int64_t *ret_until_us,
                 mr_error *err);

// The same, and which open jobs of the lease were cancelled meanwhile: *ret_ids, *ret_count of
// them, ascending, freed by the caller with mr_free(); NULL and 0 when there is none. Stop them
// and report them with mr_fail(), or mr_release() them: they end as cancelled then. One that is
// completed all the same is completed. The next heartbeat names those again that are still open.
int mr_heartbeat_cancelled(mr_conn *conn, const char *lease, int64_t extend_ms,
                           int64_t *ret_until_us, int64_t **ret_ids, size_t *ret_count,
                           mr_error *err);

// Reports how far a job of the lease is: 0 to 100 percent, and a note of at most 1,000 bytes or
// NULL. mr_job() shows the newest report of an attempt. Every call is a row in the database: report
// once a second, not for each step. On a connection of its own it does not wait for the disk, as a
// claim. MR_ELEASE, MR_EUNKNOWN: as for mr_complete().
int mr_progress(mr_conn *conn, const char *lease, int64_t id, double percent, const char *note,
                mr_error *err);

// ---- looking ---------------------------------------------------------------------------

// The number of available jobs of a queue; 0 for an unknown one.
int mr_depth(mr_conn *conn, const char *queue, int64_t *ret, mr_error *err);

// The story of one job as JSON; the caller frees *ret with mr_free(). MR_EUNKNOWN: no such job.
int mr_job(mr_conn *conn, int64_t id, char **ret, mr_error *err);

// Waits until a job has ended, at most timeout_ms (0: looks once), asking again after pauses that
// grow from 10 to 500 ms. *ret_status, where not NULL: completed, dead, cancelled or expired, a
// text that stays. *ret_result: what its handler left, JSON; *ret_failure: the last error of a dead
// job, the reason of a cancelled one. Both may be NULL where they are not wanted, are NULL where
// there is nothing to say, and are freed by the caller with mr_free(). MR_ETIMEOUT: it has not
// ended, and the message says how it stands. MR_EUNKNOWN: no such job, or forgotten since. A
// connection that breaks is made again within the time; an answer that is on its way at the end of
// it is waited for, as long as the connection's timeout_ms allows. On a wrapped connection: not in
// a transaction of repeatable read, which sees nothing of what happens meanwhile.
int mr_wait(mr_conn *conn, int64_t id, int64_t timeout_ms, const char **ret_status,
            char **ret_result, char **ret_failure, mr_error *err);

// ---- dead letters ----------------------------------------------------------------------

// Dead letters of a queue (NULL: default), those that died last first: JSON, an object whose member
// `jobs` is an array of objects with id, queue, kind, cause (failed, poison, damaged), error,
// attempt, max_attempts, args, created_at, died_at and more. Of a kind, or with NULL of any; at
// most `limit`, 1 to 200, 0: 50. The caller frees *ret with mr_free(). MR_EUNKNOWN: no such queue.
int mr_list_dead(mr_conn *conn, const char *queue, const char *kind, int limit, char **ret,
                 mr_error *err);

// Enqueues a dead letter again: the same id, attempt 1. MR_EUNKNOWN: there is no such dead letter.
int mr_replay(mr_conn *conn, int64_t id, mr_error *err);

// The same for all of a queue (NULL: default), the oldest first, or for those of a kind, or for
// max_jobs (0: all). *ret_done, where not NULL: how many. MR_EUNKNOWN: no such queue.
int mr_replay_all(mr_conn *conn, const char *queue, const char *kind, int max_jobs,
                  int64_t *ret_done, mr_error *err);

// Removes all dead letters of a queue (NULL: default), or those that died longer than older_than_ms
// ago (0: all). *ret_done, where not NULL: how many. MR_EUNKNOWN: no such queue.
int mr_purge_dead(mr_conn *conn, const char *queue, int64_t older_than_ms, int64_t *ret_done,
                  mr_error *err);

// ---- toolbox ---------------------------------------------------------------------------
//
// Cache, rate limiter and locks, as the SQL functions of the same names. On a wrapped connection
// they are part of the caller's transaction.

// Sets a key to a JSON value for ttl_ms, which must be above 0. Keys have 1 to 16,384 bytes, values
// at most 16 MiB.
int mr_cache_set(mr_conn *conn, const char *key, const char *value, int64_t ttl_ms, mr_error *err);

// *ret: the value, JSON, freed by the caller with mr_free(); NULL where there is none or it has
// expired.
int mr_cache_get(mr_conn *conn, const char *key, char **ret, mr_error *err);

// The same for many keys, at most 10,000: ret has room for `count`, and each of them is freed by
// the caller. A key that was given twice has its value at the first place. On failure nothing is to
// be freed.
int mr_cache_get_many(mr_conn *conn, const char *const *keys, size_t count, char **ret,
                      mr_error *err);

// *ret_deleted, where not NULL: whether the key had a value.
int mr_cache_delete(mr_conn *conn, const char *key, int *ret_deleted, mr_error *err);

// Deletes all keys like a pattern: % is any text, _ one character, a backslash takes their meaning
// away. *ret_deleted, where not NULL: how many had a value.
int mr_cache_delete_like(mr_conn *conn, const char *pattern, int64_t *ret_deleted, mr_error *err);

// How many keys there are, how many have a value, how many have expired and not been swept, and
// their bytes on disk. Any of them may be NULL. Estimated where the cache is large.
int mr_cache_stats(mr_conn *conn, int64_t *ret_total, int64_t *ret_valid, int64_t *ret_expired,
                   int64_t *ret_bytes, mr_error *err);

// Spends `cost` events of a key if in the last per_ms no more than max_events were spent with them.
// cost 0 only looks. *ret_allowed: whether it did. *ret_remaining: how many are left.
// *ret_resets_at_us, in microseconds since 1970-01-01 UTC: when the oldest event leaves the window
// or, where it was refused, when the same call would be allowed; 0: never. Any of them may be NULL.
// A call whose answer was lost (MR_ECONNECT, MR_ETIMEOUT) may have spent.
int mr_rate_limit(mr_conn *conn, const char *key, int max_events, int64_t per_ms, int cost,
                  int *ret_allowed, int *ret_remaining, int64_t *ret_resets_at_us, mr_error *err);

// Takes the lock of a name for this connection, asking again after pauses that grow from 10 to 500
// ms, at most wait_ms; 0: tries once. MR_ELOCK: another has it. It is held until mr_unlock() or the
// end of the connection: one that breaks has lost it, though a later call connects again, and
// mr_unlock() says so. A connection that has it may take it again and gives it back as often. Not
// with the option `pooler` (MR_EUSAGE).
int mr_lock(mr_conn *conn, const char *name, int64_t wait_ms, mr_error *err);

// The same without waiting. *ret_locked, where not NULL: whether it has it now.
int mr_try_lock(mr_conn *conn, const char *name, int *ret_locked, mr_error *err);

// Gives it back. *ret_held, where not NULL: whether this connection had it until now.
int mr_unlock(mr_conn *conn, const char *name, int *ret_held, mr_error *err);

// From now on the server ends this session, and frees its locks, when it has heard nothing of this
// connection for silence_ms: for a holder whose network may die. Make some call in time, such as
// this one again. From 1 s to 1 day (MR_EINVALID). A connection that breaks has to be told again.
// Not with the option `pooler` (MR_EUSAGE).
int mr_lock_guard(mr_conn *conn, int64_t silence_ms, mr_error *err);

// Takes the lock of a name for an owner, for ttl_ms; works behind a pooler, and belongs to no
// connection. *ret_fence: its fencing number, larger than that of any holder before; 0: another
// owner has it. Called by the owner who has it, it is renewed: ttl_ms counts from now on, the
// number stays.
int mr_lock_lease(mr_conn *conn, const char *name, const char *owner, int64_t ttl_ms,
                  int64_t *ret_fence, mr_error *err);

// Gives it back. *ret_held, where not NULL: whether the owner had it until now.
int mr_unlock_lease(mr_conn *conn, const char *name, const char *owner, int *ret_held,
                    mr_error *err);

// ---- circuit breaker -------------------------------------------------------------------
//
// For calls to something that may be down: after so many failures in a row nothing is tried for a
// while, then one probe decides. In the memory of this process; a breaker may be used by many
// threads at once.
//
//   closed --failures in a row--> open --open_ms--> half open --probe good--> closed
//                                  ^                    |
//                                  +----probe failed----+

typedef struct mr_breaker mr_breaker;

enum mr_breaker_status {
    MR_BREAKER_CLOSED,
    MR_BREAKER_OPEN,
    MR_BREAKER_HALF_OPEN,
};

typedef struct mr_breaker_options {
    size_t size;
    int failures;        // in a row that open it; 0: 5
    int64_t open_ms;     // until the first probe; 0: 30 s
    int64_t open_max_ms; // each probe that fails doubles the wait, up to this; 0: it stays the same
    double jitter;       // a random share of the wait on top of it, 0 to 1; 0
} mr_breaker_options;

#define MR_BREAKER_OPTIONS_INIT                \
    {                                          \
        sizeof(mr_breaker_options), 0, 0, 0, 0 \
    }

// A closed breaker. `options` may be NULL. Freed with mr_breaker_free().
int mr_breaker_new(const mr_breaker_options *options, mr_breaker **ret, mr_error *err);

// Not 0: go on, and say with one of the following three what came of it. While it is half open one
// caller is let through until its outcome is known.
int mr_breaker_allows(mr_breaker *breaker);
void mr_breaker_good(mr_breaker *breaker);
void mr_breaker_failed(mr_breaker *breaker);
// It says nothing about the other side, such as a call that was given up before it was made.
void mr_breaker_neutral(mr_breaker *breaker);

enum mr_breaker_status mr_breaker_status(mr_breaker *breaker);
// How long until a probe is let through; 0 unless it is open.
int64_t mr_breaker_retry_in_ms(mr_breaker *breaker);
// NULL is fine. Not while another thread uses it.
void mr_breaker_free(mr_breaker *breaker);

// ---- memory ----------------------------------------------------------------------------

// Frees what a call allocated for the caller. NULL is fine.
void mr_free(void *memory);

// ---- without waiting -------------------------------------------------------------------
//
// Requests are sent now and answered later, in order, many in flight; each is a transaction of
// its own. Poll mr_fd() for reading and call mr_advance() whenever it is readable: nothing else
// is needed, neither for writing, nor for timeouts, nor for reconnecting. A request that was
// under way when the connection broke is answered with MR_ECONNECT. Not for a wrapped
// connection, and not while a blocking call of the same connection runs.

enum mr_call {
    MR_CALL_ENQUEUE,
    MR_CALL_CLAIM,
    MR_CALL_COMPLETE,
    MR_CALL_FAIL,
    MR_CALL_FINISH,
    MR_CALL_REQUEUE,
    MR_CALL_RELEASE,
    MR_CALL_HEARTBEAT,
    MR_CALL_PROGRESS,
};

typedef struct mr_reply mr_reply;

// A descriptor that stays the same as long as the connection is open; -1 for a wrapped one.
int mr_fd(const mr_conn *conn);
// Does all that can be done without waiting.
int mr_advance(mr_conn *conn, mr_error *err);
// The next answer, or NULL when none is there; the caller frees it with mr_reply_free().
mr_reply *mr_reply_next(mr_conn *conn);

enum mr_call mr_reply_call(const mr_reply *reply);
// 0, or the code with which the request failed.
int mr_reply_code(const mr_reply *reply, mr_error *err);
// enqueue, requeue: the id; complete, finish, release: how many; fail: 1 for a dead letter;
// heartbeat: the end of the lease in microseconds.
int64_t mr_reply_number(const mr_reply *reply);
// heartbeat: how many open jobs of the lease were cancelled, and in *ret_ids, where not NULL, their
// ids, ascending, borrowed from the reply; 0 and NULL otherwise.
size_t mr_reply_cancelled(const mr_reply *reply, const int64_t **ret_ids);
// claim: the batch, which the caller frees; NULL otherwise, and the second time.
mr_batch *mr_reply_take_batch(mr_reply *reply);
void mr_reply_free(mr_reply *reply);

// Parameters as in the blocking call of the same name. MR_ELIMIT: too many are in flight. What the
// queue wants compressed is asked for without waiting: parts are sent as they are until then. A
// batch whose jobs are all damaged is empty, though there may be others.
int mr_send_enqueue(mr_conn *conn, const mr_job_spec *job, mr_error *err);
int mr_send_claim(mr_conn *conn, const mr_claim_options *options, mr_error *err);
int mr_send_complete(mr_conn *conn, const char *lease, const int64_t *ids, size_t count,
                     const char *result, mr_error *err);
int mr_send_fail(mr_conn *conn, const char *lease, int64_t id, const char *error,
                 int64_t retry_in_ms, int no_retry, const void *state, size_t state_size,
                 mr_error *err);
int mr_send_finish(mr_conn *conn, const char *lease, const char *outcomes, mr_error *err);
int mr_send_requeue(mr_conn *conn, const char *lease, int64_t id, const char *changes,
                    const void *state, size_t state_size, const void *blob, size_t blob_size,
                    mr_error *err);
int mr_send_release(mr_conn *conn, const char *lease, const int64_t *ids, size_t count,
                    mr_error *err);
int mr_send_heartbeat(mr_conn *conn, const char *lease, int64_t extend_ms, mr_error *err);
int mr_send_progress(mr_conn *conn, const char *lease, int64_t id, double percent, const char *note,
                     mr_error *err);

// ---- the worker ------------------------------------------------------------------------

// How a handler says what became of its job. Belongs to the worker; valid inside the handler.
typedef struct mr_outcome mr_outcome;

// The last one called counts; texts and bytes are copied. Each returns 0, MR_ENOMEM, or
// MR_EINVALID for a result or changes that are not JSON; the job fails then, and its error says so.
int mr_outcome_complete(mr_outcome *outcome, const char *result);
int mr_outcome_fail(mr_outcome *outcome, const char *error, int64_t retry_in_ms, int no_retry);
int mr_outcome_snooze(mr_outcome *outcome, int64_t delay_ms);
int mr_outcome_requeue(mr_outcome *outcome, const char *changes);
// Beside fail, snooze or requeue, before or after it: what the next attempt finds as its state.
int mr_outcome_state(mr_outcome *outcome, const void *state, size_t state_size);

// Not 0: the job was cancelled. A handler that takes long asks now and then, from any thread as
// long as it runs, and ends early: whatever it says but completed, the job ends as cancelled. The
// worker learns of it with a heartbeat, at a third of the lease; a job that no thread has begun by
// then is not begun.
int mr_outcome_cancelled(const mr_outcome *outcome);

// How far the job is: 0 to 100 percent, and a note or NULL, which is copied and cut at 1,000 bytes.
// Call it as often as you like, from any thread as long as the handler runs: it waits for nothing,
// and the worker sends at most one report of a job a second, the newest, and the last one before
// the outcome. Returns 0, MR_ENOMEM, or MR_EINVALID for another number or a note that is not UTF-8;
// whatever it returns, and whether the report arrives or not, the job goes on.
int mr_outcome_progress(mr_outcome *outcome, double percent, const char *note);

// Runs one job, on a thread of the worker's. Returns 0: the job is completed unless an
// mr_outcome_* call said otherwise; not 0: it failed, unless one said otherwise.
typedef int mr_handler(const mr_claimed_job *job, mr_outcome *outcome, void *arg);

typedef struct mr_worker mr_worker;

typedef struct mr_worker_options {
    size_t size;
    const char *dsn;     // as in mr_conn_options
    int pooler;          // as in mr_conn_options
    const char *queue;   // NULL: default
    const char *name;    // NULL: host, pid and a number
    mr_handler *handler; // required
    void *arg;           // for the handler
    int concurrency;     // threads; 0: the number of cores
    int batch;           // jobs in one claim at most; 0: 100
    int64_t lease_ms;    // 0: as the queue says
    int64_t poll_ms;     // how often to look without a wake-up; 0: $QUEUE_POLL_INTERVAL_MS or 100
    int64_t grace_ms;    // for running jobs when it stops; 0: 30 s
    int64_t health_ms;   // healthy: an answer of the database is younger than this; 0: 15 s
    int without_state;   // not 0: do not fetch `state`
    int until_empty;     // not 0: mr_worker_run() returns when nothing is left to do
    const char *redis;   // take jobs from this Redis, where a relay puts them; NULL: from dsn
    const char *blobs;   // as in mr_conn_options
} mr_worker_options;

#define MR_WORKER_OPTIONS_INIT                                                    \
    {                                                                             \
        sizeof(mr_worker_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

typedef struct mr_worker_counts {
    size_t size;
    int64_t claims;  // that brought jobs
    int64_t claimed; // jobs
    int64_t completed;
    int64_t failed;   // retried, dead or cancelled
    int64_t requeued; // snoozed included
    int64_t released;
    int64_t lost; // leases that were void when their outcome was written (MR001)
    int64_t reconnects;
    int64_t running; // now
} mr_worker_counts;

#define MR_WORKER_COUNTS_INIT                               \
    {                                                       \
        sizeof(mr_worker_counts), 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

// A worker that is not running yet; nothing is connected. Freed with mr_worker_free().
int mr_worker_new(const mr_worker_options *options, mr_worker **ret, mr_error *err);

// Works until mr_worker_stop() (or, with until_empty, until nothing is left), then lets running
// handlers finish within the grace period, gives back what was not started and returns 0.
// While it runs: claims in batches, keeps leases alive with heartbeats, writes outcomes in
// batches together with the next claim, reconnects by itself. Fails with what makes going on
// useless: MR_EUSAGE, MR_EPRIVILEGE, MR_ESCHEMA, MR_ERESTORED and the like. At the end of the
// grace period handlers that still run are left running: their jobs were released, their
// threads end when they return, and mr_worker_free() waits for them.
int mr_worker_run(mr_worker *worker, mr_error *err);

// Asks a running worker to stop. Safe from any thread and from a signal handler.
void mr_worker_stop(mr_worker *worker);

// 1 while it is consuming: running, connected, and the last answer of the database is younger
// than health_ms.
int mr_worker_healthy(mr_worker *worker);

// What it has done so far; `ret` was initialized with MR_WORKER_COUNTS_INIT.
void mr_worker_stats(mr_worker *worker, mr_worker_counts *ret);

// NULL is fine. Not while it runs.
void mr_worker_free(mr_worker *worker);

#ifdef __cplusplus
}
#endif

#endif
