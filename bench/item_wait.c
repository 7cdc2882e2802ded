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
    CALLS_MAX = 20000,
};

#define WAIT_DATABASE "bench_wait"

static struct {
    pthread_t thread;
    atomic_bool stop;
    long dumps;
} dumper;

static void *dumper_run(void *arg)
{
    (void)arg;
    while (!atomic_load(&dumper.stop)) {
        if (system("pg_dump " WAIT_DATABASE " >/dev/null") != 0)
            die("pg_dump failed");
        dumper.dumps++;
    }
    return NULL;
}

// Returns when a dump holds its locks on the logs.
static void dumper_start(PGconn *conn)
{
    double deadline = now_s() + 60;
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
    static double quiet[CALLS_MAX], busy[CALLS_MAX];
    long calls = small ? 100 : 2000;
    struct upkeep_done done, total = {.rounds = 0};
    db_create(WAIT_DATABASE);
    PGconn *conn = db_open(WAIT_DATABASE);
    rival_millrace.prepare(conn);
    // The dump takes its locks on all tables at once and keeps them: rows of the
    // application's make it last.
    db_run(
        conn,
        "create table bench.ballast as select g as id, repeat(md5(g::text), 6) as data from generate_series(1, %d) g",
        small ? 100000 : 1000000);
    db_run(conn, "select millrace.set_queue('wait', '{\"retention\": \"2 seconds\"}')");
    PQclear(PQprepare(conn, "enqueue", "select millrace.enqueue('bench', '{\"id\": 1}', 'wait')", 0,
                      NULL));
    enqueue_calls(conn, quiet, 100);
    for (int i = 0; i < ROUNDS; i++) {
        enqueue_calls(conn, quiet + i * calls, calls);
        upkeep_start(WAIT_DATABASE, 100);
        dumper_start(conn);
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
    db_drop(WAIT_DATABASE);
}
