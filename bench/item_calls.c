// SPDX-License-Identifier: PostgreSQL
//
// The time of single calls inside the server: an empty claim behind a long history, and
// depth() of a deep queue.

#include <stdio.h>

#include "db.h"
#include "items.h"
#include "report.h"
#include "upkeep.h"

enum {
    CALLS = 1000,
    FILLERS = 2,
    BIG_CHUNK = 10000,
};

static bool big_made;
static PGconn *early_session; // made its plans while the tables were empty
static PGconn *writer;        // open since a tenth of the jobs

// Jobs in and out again, all of them on the ring: two sessions fill, one drains.
static void in_and_out(long jobs)
{
    char statement[256];
    struct job_thread *filler[FILLERS];
    PGconn *conn = db_open(BIG_DATABASE);
    snprintf(statement, sizeof statement, "call bench.fill('big', %ld, %d, false)", jobs / FILLERS,
             BIG_CHUNK);
    for (int i = 0; i < FILLERS; i++)
        filler[i] = job_start(BIG_DATABASE, statement);
    for (int i = 0; i < FILLERS; i++)
        job_wait(filler[i]);
    progress("big: %ld more jobs wait", jobs);
    db_run(conn, "call bench.finish('big', %ld, %d)", jobs, BIG_CHUNK);
    progress("big: %ld more jobs are finished", jobs);
    db_close(conn);
}

void big_make(bool small)
{
    long jobs = small ? 100000 : 10000000;
    if (big_made)
        return;
    db_create(BIG_DATABASE);
    early_session = db_open(BIG_DATABASE);
    db_run(early_session, "select millrace.enqueue('bench', '{}', 'big')");
    db_run(early_session, "call bench.finish('big', 1, 1)");
    db_run(early_session, "analyze");
    db_run(early_session, "call bench.empty_claims('on an empty log', 'big', 20)");
    for (int i = 0; i < 9; i++)
        in_and_out(jobs / 10);
    writer = db_open(BIG_DATABASE);
    db_run(writer, "begin");
    db_run(writer, "select millrace.enqueue('bench', '{}', 'big')");
    in_and_out(jobs / 10);
    big_made = true;
}

void big_drop(void)
{
    if (!big_made)
        return;
    db_close(early_session);
    db_close(writer);
    db_drop(BIG_DATABASE);
    big_made = false;
}

void item_empty(bool small)
{
    big_make(small);
    PGconn *conn = db_open(BIG_DATABASE);
    db_run(early_session, "call bench.empty_claims('early', 'big', %d)", CALLS);
    db_run(conn, "call bench.empty_claims('late', 'big', %d)", CALLS);
    double early = db_number(conn, "select bench.median('early')") / 1000;
    double late = db_number(conn, "select bench.median('late')") / 1000;
    report_figure("plan_of_empty_table_ms", early);
    report_figure("new_session_ms", late);
    report_figure(
        "p99_ms",
        db_number(
            conn,
            "select percentile_cont(0.99) within group (order by us) / 1000 from bench.sample where what in ('early', 'late')"));
    report_figure(
        "finished_jobs",
        db_number(
            conn,
            "select sum(total) from (select max(total) as total from millrace.claim group by lane) t"));
    report_figure("segments",
                  db_number(conn, "select 1 + count(*) from millrace.segment where not truncated"));
    report_figure("writer_open_since_jobs", small ? 10000 : 1000000);
    report_check("empty", CHECK_TIME, "ms", early > late ? early : late, AT_MOST, 0.3);
    db_close(conn);
}

static void depth_prepare(const char *database, long jobs)
{
    db_create(database);
    PGconn *conn = db_open(database);
    db_run(conn, "call bench.fill('default', %ld, %d, false)", jobs,
           jobs < BIG_CHUNK ? (int)jobs : BIG_CHUNK);
    double start = now_s();
    double depth = db_number(conn, "select millrace.depth('default')");
    progress("depthcall: %.0f available, the call that counted them took %.1f ms", depth,
             (now_s() - start) * 1000);
    if (depth != (double)jobs)
        die("depth() says %.0f instead of %ld", depth, jobs);
    db_close(conn);
}

void item_depthcall(bool small)
{
    enum { STALE_CALLS = 25, ROUNDS = 9 };
    const char *database[2] = {"bench_few", "bench_many"};
    long jobs[2] = {5000, small ? 50000 : 5000000};
    PGconn *conn[2];
    double steady[2], stale[2];
    for (int i = 0; i < 2; i++) {
        depth_prepare(database[i], jobs[i]);
        conn[i] = db_open(database[i]);
        db_run(conn[i], "select millrace.depth('default')");
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 2; i++)
            db_run(conn[i], "call bench.depth_calls('steady', 'default', %d)", CALLS / ROUNDS);
    }
    // More than a second after the last count, with a hundred new jobs: a call that counts on.
    for (int round = 0; round < (small ? 1 : STALE_CALLS); round++) {
        for (int i = 0; i < 2; i++)
            db_run(conn[i], "call bench.fill('default', 100, 100, false)");
        pause_ms(1100);
        for (int i = 0; i < 2; i++)
            db_run(conn[i ^ (round & 1)], "call bench.depth_calls('stale', 'default', 1)");
    }
    for (int i = 0; i < 2; i++) {
        steady[i] = db_number(conn[i], "select bench.median('steady')");
        stale[i] = db_number(conn[i], "select bench.median('stale')");
        db_close(conn[i]);
        db_drop(database[i]);
    }
    report_figure("us_at_5k", steady[0]);
    report_figure("us_deep", steady[1]);
    report_check("depthcall.steady", CHECK_TIME, "ratio", steady[1] / steady[0], AT_MOST, 2);
    report_figure("us_at_5k", stale[0]);
    report_figure("us_deep", stale[1]);
    report_check("depthcall.counting", CHECK_TIME, "ratio", stale[1] / stale[0], AT_MOST, 2);
}
