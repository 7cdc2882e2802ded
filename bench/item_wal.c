// SPDX-License-Identifier: PostgreSQL
//
// WAL bytes a job. The server has just made a checkpoint, so pages touched for the first
// time are logged whole: that is in the figures, and how many there were is told.

#include <stdio.h>
#include <stdlib.h>

#include "db.h"
#include "items.h"
#include "report.h"
#include "rival.h"

enum {
    CHUNK = 1000,
};

struct wal_point {
    double bytes;
    double full_pages;
};

static double full_pages(PGconn *conn)
{
    if (PQserverVersion(conn) < 150000)
        return 0;
    db_run(conn, "select pg_stat_force_next_flush()");
    return db_number(conn, "select wal_fpi from pg_stat_wal");
}

static struct wal_point wal_point(PGconn *conn)
{
    struct wal_point point = {.full_pages = full_pages(conn)};
    point.bytes = db_number(conn, "select pg_current_wal_insert_lsn() - '0/0'");
    return point;
}

static double per_job(PGconn *conn, struct wal_point from, long jobs)
{
    struct wal_point to = wal_point(conn);
    report_figure("jobs", (double)jobs);
    report_figure("wal_bytes", to.bytes - from.bytes);
    report_figure("full_pages", to.full_pages - from.full_pages);
    return (to.bytes - from.bytes) / (double)jobs;
}

static struct wal_point start(PGconn *conn)
{
    db_run(conn, "checkpoint");
    return wal_point(conn);
}

static void finish_singly(PGconn *conn, long jobs)
{
    for (long done = 0; done < jobs;) {
        PGresult *claimed = PQexec(
            conn, "select lease, id from millrace.claim('default', 'bench', 100, '10 minutes')");
        if (PQresultStatus(claimed) != PGRES_TUPLES_OK || PQntuples(claimed) == 0)
            die("claim: %s", PQresultErrorMessage(claimed));
        for (int i = 0; i < PQntuples(claimed); i++)
            db_run(conn, "select millrace.complete('%s', array[%s]::bigint[])",
                   PQgetvalue(claimed, i, 0), PQgetvalue(claimed, i, 1));
        done += PQntuples(claimed);
        PQclear(claimed);
    }
}

// The same measures for the textbook queue, to compare with.
static double textbook_life(long jobs)
{
    PGconn *conn = db_open("bench_wal");
    rival_textbook.prepare(conn);
    struct wal_point from = start(conn);
    db_run(conn, "call bench.textbook_fill('default', %ld, %d)", jobs, CHUNK);
    drain(conn, &rival_textbook, "default", jobs);
    struct wal_point to = wal_point(conn);
    db_close(conn);
    return (to.bytes - from.bytes) / (double)jobs;
}

void item_wal(bool small)
{
    long jobs = small ? 10000 : 100000;
    long single_jobs = small ? 1000 : 10000;
    db_create("bench_wal");
    PGconn *conn = db_open("bench_wal");
    rival_millrace.prepare(conn);
    // A first batch creates the queue and fills the catalogue's caches.
    db_run(conn, "call bench.fill('default', %d, %d, true)", CHUNK, CHUNK);
    drain(conn, &rival_millrace, "default", CHUNK);

    db_run(conn, "call bench.fill('default', %ld, %d, true)", jobs, CHUNK);
    struct wal_point from = start(conn);
    drain(conn, &rival_millrace, "default", jobs);
    double value = per_job(conn, from, jobs);
    report_check("wal.claim_complete", CHECK_STRUCTURE, "bytes_a_job", value, AT_MOST, 40);

    from = start(conn);
    db_run(conn, "call bench.fill('default', %ld, %d, true)", jobs, CHUNK);
    drain(conn, &rival_millrace, "default", jobs);
    value = per_job(conn, from, jobs);
    report_figure(
        "payload_bytes",
        db_number(conn, "select avg(length(a::text)) from unnest(bench.payload(1000)) a"));
    report_figure("textbook_bytes_a_job", textbook_life(jobs));
    report_check("wal.life", CHECK_STRUCTURE, "bytes_a_job", value, AT_MOST, 520);

    db_run(conn, "call bench.fill('default', %ld, %d, true)", single_jobs, CHUNK);
    from = start(conn);
    finish_singly(conn, single_jobs);
    value = per_job(conn, from, single_jobs);
    report_check("wal.one_by_one", CHECK_STRUCTURE, "bytes_a_job", value, AT_MOST, 350);
    db_close(conn);
    db_drop("bench_wal");
}
