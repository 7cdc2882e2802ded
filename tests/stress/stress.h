/* SPDX-License-Identifier: PostgreSQL */
/*
 * The stress driver: many sessions enqueue, claim, finish and maintain at once; a ledger in memory
 * knows what each job must have lived through, and every difference from it ends the program with a
 * message and status 1.
 *
 * Files: ledger.c the accounts of the jobs; session.c a connection that survives its server;
 * writer.c, claimer.c, keeper.c the roles; quiet.c the checks that need everybody to stand still;
 * stress.c options and the course of a run.
 */
#ifndef STRESS_H
#define STRESS_H

#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    QUEUES = 5,        /* the last one is for the check of order */
    IDS_MAX = 1 << 26, /* ids are positions; the ledger is sparse memory */
    BATCH_MAX = 2000,
    WRITER_IDS_MAX = 40000,
};

struct options {
    const char *dsn;
    long jobs;
    int writers;
    int long_writers;
    int claimers;
    int patient; /* workers that keep a lease until it is parked */
    int keepers;
    int lease_ms;
    int retention_s;
    int deadline_s;
    int quiet_checks;
    int bulk;
    int backlog; /* jobs that may wait before the writers do */
    bool faults; /* sessions and the server may die at any time */
    const char *dump;
    const char *until; /* a file: the writers go on until it exists */
};

struct course {
    struct options opt;
    atomic_bool writing; /* writers go on */
    atomic_bool stop;    /* everybody else too */
    atomic_bool hold;    /* stand still at the next safe point */
    atomic_int standing; /* sessions that stand still */
    atomic_int sessions; /* sessions there are */
    atomic_bool dumping; /* a pg_dump runs */
    atomic_long void_writes, claims, rescues, deadlocks, other_retries, reconnects, maintains;
    atomic_long rolled_back_claims, ordered_seen, parked;
};
extern struct course course;

/* Prints "stress: ..." to stderr and ends the program with status 1. */
void fatal(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* Of a clock that only goes forward. */
double now_s(void);

/* ---- ledger.c ---- */

extern atomic_long ledger_committed_n, ledger_completed_n, ledger_dead_n, ledger_rolled_back_n,
    ledger_unknown_n;
void ledger_init(void);
void ledger_commit(const int64_t *ids, int n);
void ledger_roll_back(const int64_t *ids, int n);
void ledger_unknown(const int64_t *ids, int n);
void ledger_deliver(int64_t id, int attempt, const char *lease);
bool ledger_is_void(int64_t id, int attempt);
void ledger_give_up(int64_t id, int attempt);
void ledger_take_back(int64_t id, int attempt);
void ledger_completed(int64_t id, int attempt);
void ledger_dead(int64_t id, int attempt);
void ledger_failed(int64_t id);
void ledger_returned(int64_t id);
void ledger_unclear(int64_t id);
long ledger_open(int64_t *ids, int max);
void ledger_check(void);

/* ---- session.c ---- */

enum answer { ANSWER_OK, ANSWER_VOID, ANSWER_AGAIN, ANSWER_GONE };

struct session {
    PGconn *db;
    unsigned seed;
    int index;
};
void session_open(struct session *session, int index);
void session_close(struct session *session);
int session_random(struct session *session, int below);
void session_pause(int ms);
void session_safe_point(struct session *session);
/* *result is set on ANSWER_OK only, where it is not null; the caller clears it. */
enum answer session_ask(struct session *session, PGresult **result, const char *sql, int n,
                        const char *const *values);
enum answer session_do(struct session *session, const char *sql);
void session_roll_back(struct session *session);

/* ---- the roles: thread functions; the argument is the session's index ---- */

void *writer_run(void *arg);
void *long_writer_run(void *arg);
void *ordered_writer_run(void *arg);
void *claimer_run(void *arg);
void *patient_run(void *arg);
void *ordered_claimer_run(void *arg);
void *keeper_run(void *arg);
void *dumper_run(void *arg);

extern const char *const queue_names[QUEUES];
void setup_queues(void);

/* ---- quiet.c ---- */

void quiet_check(const char *when);
void quiet_report(void);

#endif
