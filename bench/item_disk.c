// SPDX-License-Identifier: PostgreSQL
//
// Size on disk after many jobs in and out, with autovacuum off and no VACUUM. Upkeep runs in
// a loop beside the work, as a daemon would.

#include <stdio.h>

#include "db.h"
#include "items.h"
#include "report.h"
#include "upkeep.h"

enum {
    CLIENTS = 2,
    CHUNK = 10000,
    SETTLE_S = 120, // after the last job, for retention and the rounds that retire
};

// Overhead of a row that is held, over its own bytes: page and tuple headers, line pointers,
// two to three index entries and their pages' slack.
static const double held_factor = 2;

// A leaf that is not empty has at least a page of its own and two pages a index.
static const double held_floor_bytes = 256 * 1024;

static void run_through(const char *database, long jobs)
{
    char statement[128];
    struct job_thread *client[CLIENTS];
    snprintf(statement, sizeof statement, "call bench.cycle('short', %ld, %d)", jobs / CLIENTS,
             CHUNK);
    for (int i = 0; i < CLIENTS; i++)
        client[i] = job_start(database, statement);
    for (int i = 0; i < CLIENTS; i++)
        job_wait(client[i]);
    // One client may have taken what the other one brought and left before its last jobs.
    PGconn *conn = db_open(database);
    db_run(conn, "call bench.finish('short', %ld, 1000)", jobs);
    db_close(conn);
}

// The size once it has come down to `bound`, or at the end of the time for it.
static double settle(PGconn *conn, double bound)
{
    double deadline = now_s() + SETTLE_S;
    double size;
    do {
        pause_ms(200);
        size = db_number(conn, "select bench.size()");
    } while (size > bound && now_s() < deadline);
    return size;
}

static void report_rest(PGconn *conn, struct upkeep_done done)
{
    report_figure("rotations", (double)done.rotations);
    report_figure("retired", (double)done.retired);
    report_figure("slowest_upkeep_s", done.slowest_round_s);
    report_figure("duties_that_failed", (double)done.failures);
    report_figure("jobs_bytes", db_number(conn, "select bench.size_of('job')"));
    report_figure("claims_bytes", db_number(conn, "select bench.size_of('claim')"));
    report_figure("tally_bytes", db_number(conn, "select bench.size_of('tally')"));
    report_figure("pulse_bytes", db_number(conn, "select bench.size_of('pulse')"));
    report_figure("archive_bytes", db_number(conn, "select bench.size_of('archive')"));
    report_figure("segment_table_bytes",
                  db_number(conn, "select pg_total_relation_size('millrace.segment')"));
}

static void disk_alone(long jobs, int retention_s)
{
    const char *database = "bench_disk";
    db_create(database);
    PGconn *conn = db_open(database);
    db_run(conn, "select millrace.set_queue('short', '{\"retention\": \"%d seconds\"}')",
           retention_s);
    double empty = db_number(conn, "select bench.size()");
    upkeep_start(database, 200);
    run_through(database, jobs);
    double peak = db_number(conn, "select bench.size()");
    progress("disk: %ld jobs went through, %.1f MB on disk", jobs, peak / 1e6);
    // The bar is judged against the largest segment there was, but the wait is for more: for
    // the empty schema itself.
    double size = settle(conn, 1.1 * empty);
    struct upkeep_done done = upkeep_stop();
    report_figure("jobs", (double)jobs);
    report_figure("empty_bytes", empty);
    report_figure("bytes_at_the_last_job", peak);
    report_figure("bytes", size);
    report_figure("over_empty_alone", size / empty);
    report_figure("largest_segment_bytes", done.largest_segment);
    report_rest(conn, done);
    report_check("disk.returns", CHECK_STRUCTURE, "size_over_empty_and_segment",
                 size / (empty + done.largest_segment), AT_MOST, 1.1);
    db_close(conn);
    db_drop(database);
}

static void disk_with_holders(long jobs, long kept, int retention_s)
{
    const char *database = "bench_disk";
    db_create(database);
    PGconn *conn = db_open(database);
    db_run(conn, "select millrace.set_queue('short', '{\"retention\": \"%d seconds\"}')",
           retention_s);
    db_run(conn, "select millrace.set_queue('long', '{\"retention\": \"30 days\"}')");
    double empty = db_number(conn, "select bench.size()");
    db_run(conn, "call bench.fill('paused', 500, 500, true)");
    db_run(conn, "select millrace.pause('paused')");
    db_run(conn, "call bench.fill('slow', 100, 100, true)");
    db_run(conn, "select count(*) from millrace.claim('slow', 'bench', 100, '6 hours')");
    db_run(conn, "call bench.fill('long', %ld, 1000, true)", kept);
    db_run(conn, "call bench.finish('long', %ld, 100)", kept);
    upkeep_start(database, 200);
    run_through(database, jobs);
    progress("disk: %ld jobs went through beside the holders", jobs);
    // What the three hold, by the bytes of the rows themselves.
    double deadline = now_s() + SETTLE_S;
    while (db_number(conn, "select count(*) from millrace.archive") < (double)kept &&
           now_s() < deadline)
        pause_ms(200);
    double paused_rows = db_number(
        conn,
        "select sum(pg_column_size(j.*)) from (select distinct on (j.job_id) j.* from millrace.job j join millrace.queue q on q.queue_id = j.lane >> 12 where q.queue_name = 'paused' order by j.job_id, j.pos desc) j");
    double parked_rows =
        db_number(conn, "select sum(pg_column_size(j.*)) from millrace.job_parked j") +
        db_number(conn, "select sum(pg_column_size(k.*)) from millrace.claim_parked k");
    double archive_rows =
        db_number(conn, "select sum(pg_column_size(a.*)) from millrace.archive a");
    double held = held_factor * (paused_rows + parked_rows + archive_rows) + 3 * held_floor_bytes;
    double size = settle(conn, empty + held);
    struct upkeep_done done = upkeep_stop();
    report_figure("jobs", (double)jobs);
    report_figure("empty_bytes", empty);
    report_figure("bytes", size);
    report_figure("largest_segment_bytes", done.largest_segment);
    report_figure("paused_jobs", db_number(conn, "select millrace.depth('paused')"));
    report_figure("paused_row_bytes", paused_rows);
    report_figure("parked_jobs", db_number(conn, "select count(*) from millrace.job_parked"));
    report_figure("parked_row_bytes", parked_rows);
    report_figure(
        "parked_bytes",
        db_number(
            conn,
            "select pg_total_relation_size('millrace.job_parked') + pg_total_relation_size('millrace.claim_parked')"));
    report_figure("archived_jobs", db_number(conn, "select count(*) from millrace.archive"));
    report_figure("archive_row_bytes", archive_rows);
    report_rest(conn, done);
    report_note(
        "bound",
        "empty + one segment + 2 x (rows of the paused jobs + parked claim with its jobs + archived rows) + 3 x 256 KiB of first pages");
    report_figure("held_bytes", held);
    report_figure("growth_bytes", size - empty);
    report_figure("growth_over_held_alone", (size - empty) / held);
    report_check("disk.holders", CHECK_STRUCTURE, "growth_over_what_is_held",
                 (size - empty) / (held + done.largest_segment), AT_MOST, 1);
    report_check("disk.archived", CHECK_STRUCTURE, "archived_share",
                 db_number(conn, "select count(*) from millrace.archive") / (double)kept, AT_LEAST,
                 1);
    db_close(conn);
    db_drop(database);
}

void item_disk(bool small)
{
    long jobs = small ? 20000 : 5000000;
    int retention_s = small ? 1 : 5;
    db_set("autovacuum", "off");
    disk_alone(jobs, retention_s);
    disk_with_holders(jobs, small ? 2000 : 50000, retention_s);
    db_set("autovacuum", NULL);
}
