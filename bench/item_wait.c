// SPDX-License-Identifier: PostgreSQL
//
// Does a producer ever wait? The time of single enqueues, each its own durable transaction,
// while pg_dump holds its locks on every leaf and upkeep rotates and tries to truncate, over
// the time without either.

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "db.h"
#include "items.h"
#include "report.h"
#include "rival.h"
#include "upkeep.h"

enum {
    ROUNDS = 5,
    CALLS_MAX = 50000,
    UPKEEP_MS = 1000, // as the daemon does
};

#define WAIT_DATABASE  "bench_wait"
#define OTHER_DATABASE "bench_wait_other"

static struct {
    pthread_t thread;
    atomic_bool stop;
    const char *command;
    long dumps;
} dumper;

static void *dumper_run(void *arg)
{
    (void)arg;
    while (!atomic_load(&dumper.stop)) {
        if (system(dumper.command) != 0)
            die("pg_dump failed");
        dumper.dumps++;
    }
    return NULL;
}

// Returns when a dump holds its locks on the logs. `conn` is of the database that is dumped.
static void dumper_start(PGconn *conn, const char *command)
{
    double deadline = now_s() + 60;
    dumper.command = command;
    atomic_store(&dumper.stop, false);
    if (pthread_create(&dumper.thread, NULL, dumper_run, NULL) != 0)
        die("cannot start a thread");
    while (
        db_number(
            conn,
            "select count(*) from pg_locks l join pg_stat_activity a using (pid) where a.application_name = 'pg_dump' and l.relation = 'millrace.job_0'::regclass") ==
        0) {
        if (now_s() > deadline)
            die("pg_dump does not begin");
        pause_ms(10);
    }
}

static void dumper_stop(void)
{
    atomic_store(&dumper.stop, true);
    pthread_join(dumper.thread, NULL);
}

static void enqueue_calls(PGconn *conn, double *ms, long calls)
{
    for (long i = 0; i < calls; i++) {
        double start = now_s();
        PGresult *result = PQexecPrepared(conn, "enqueue", 0, NULL, NULL, NULL, 0);
        if (PQresultStatus(result) != PGRES_TUPLES_OK)
            die("enqueue failed: %s", PQresultErrorMessage(result));
        PQclear(result);
        ms[i] = (now_s() - start) * 1000;
    }
}

// The dump takes its locks on all tables at once and keeps them: rows of the application's make it
// last.
static PGconn *open_with_ballast(const char *database, long rows)
{
    db_create(database);
    PGconn *conn = db_open(database);
    db_run(
        conn,
        "create table bench.ballast as select g as id, repeat(md5(g::text), 6) as data from generate_series(1, %ld) g",
        rows);
    return conn;
}

static void report_side(const char *side, double *ms, size_t count)
{
    char name[64];
    const double share[] = {0.5, 0.99, 1};
    const char *label[] = {"p50", "p99", "max"};
    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s_%s_ms", side, label[i]);
        report_figure(name, percentile(ms, count, share[i]));
    }
}

void item_enqueue_wait(bool small)
{
    static double quiet[CALLS_MAX], beside[CALLS_MAX], busy[CALLS_MAX];
    long calls = small ? 100 : 8000, ballast = small ? 100000 : 1000000;
    struct upkeep_done done, total = {.rounds = 0};
    PGconn *other = open_with_ballast(OTHER_DATABASE, ballast);
    PGconn *conn = open_with_ballast(WAIT_DATABASE, ballast);
    rival_millrace.prepare(conn);
    db_run(conn, "select millrace.set_queue('wait', '{\"retention\": \"2 seconds\"}')");
    PQclear(PQprepare(conn, "enqueue", "select millrace.enqueue('bench', '{\"id\": 1}', 'wait')", 0,
                      NULL));
    enqueue_calls(conn, quiet, 100);
    for (int i = 0; i < ROUNDS; i++) {
        enqueue_calls(conn, quiet + i * calls, calls);
        // The same load on the machine, and none of its locks.
        dumper_start(other, "pg_dump " OTHER_DATABASE " >/dev/null");
        enqueue_calls(conn, beside + i * calls, calls);
        dumper_stop();
        upkeep_start(WAIT_DATABASE, UPKEEP_MS);
        dumper_start(conn, "pg_dump " WAIT_DATABASE " >/dev/null");
        enqueue_calls(conn, busy + i * calls, calls);
        dumper_stop();
        // The queue is emptied, so that in the next round upkeep tries to truncate its segments.
        db_run(conn, "call bench.finish('wait', 1000000, 1000)");
        done = upkeep_stop();
        total.rotations += done.rotations;
        total.retired += done.retired;
        progress("enqueue_wait: round %d of %d, %ld rotations, %ld leaves truncated", i + 1, ROUNDS,
                 done.rotations, done.retired);
    }
    size_t count = (size_t)(ROUNDS * calls);
    report_side("quiet", quiet, count);
    report_side("beside_another_dump", beside, count);
    report_side("busy", busy, count);
    report_figure("dumps", (double)dumper.dumps);
    report_figure("rotations", (double)total.rotations);
    report_figure("leaves_truncated", (double)total.retired);
    report_figure("failed_enqueues", 0);
    report_check("enqueue_wait", CHECK_TIME, "p99_ratio",
                 percentile(busy, count, 0.99) / percentile(quiet, count, 0.99), AT_MOST, 3);
    report_check("enqueue_wait.rotated", CHECK_STRUCTURE, "rotations", (double)total.rotations,
                 AT_LEAST, 1);
    db_close(conn);
    db_close(other);
    db_drop(WAIT_DATABASE);
    db_drop(OTHER_DATABASE);
}
