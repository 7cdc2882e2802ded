// SPDX-License-Identifier: PostgreSQL
//
// What capture costs a writer: the time of one INSERT of many rows into a captured table over
// that into the same table without. Rounds take turns, and medians are compared. The commit is
// in both, and so is the table's primary key. Each insert has as many jobs as rows.

#include <stdio.h>

#include "db.h"
#include "items.h"
#include "report.h"

enum {
    ROUNDS = 7,
    SMALL_ROUNDS = 2,
};

// The first is what the others are measured against.
static const struct {
    const char *name;
    const char *options; // of capture(), behind its queue and kind; NULL: no capture
    double bar;
} writers[] = {
    {"plain", NULL, 0},
    {"rows", "", 8},
    {"condition", ", condition => $$new.event in ('opened', 'closed')$$", 8},
    {"carry", ", carry => '{note_id,sequence_action}'", 8},
    {"unique", ", unique_on => '{note_id,sequence_action}'", 40},
};

enum {
    WRITER_COUNT = sizeof writers / sizeof writers[0],
};

static void make_tables(PGconn *conn)
{
    for (size_t i = 0; i < WRITER_COUNT; i++) {
        db_run(
            conn,
            "create table comments_%s (note_id int, sequence_action int, event text, id_user int,"
            " created_at timestamptz default now(), primary key (note_id, sequence_action))",
            writers[i].name);
        if (writers[i].options)
            db_run(conn, "select millrace.capture('comments_%s', '%s', 'comment'%s)",
                   writers[i].name, writers[i].name, writers[i].options);
    }
}

static void measure(PGconn *conn, long rows, int round, double seconds[WRITER_COUNT][ROUNDS],
                    double cpu[WRITER_COUNT][ROUNDS])
{
    long pid = PQbackendPID(conn);

    for (size_t i = 0; i < WRITER_COUNT; i++) {
        size_t which = round & 1 ? WRITER_COUNT - 1 - i : i;
        double began = now_s();
        double had = process_cpu_s(pid);
        db_run(conn,
               "insert into comments_%s select n, %d, 'opened', n %% 1000"
               " from generate_series(1, %ld) n",
               writers[which].name, round, rows);
        seconds[which][round] = now_s() - began;
        cpu[which][round] = process_cpu_s(pid) - had;
    }
    db_run(conn, "select millrace.maintain()");
}

static void check_counts(PGconn *conn, double rows)
{
    double jobs = rows;

    for (size_t i = 1; i < WRITER_COUNT; i++) {
        double depth = db_number(conn, "select millrace.depth('%s')", writers[i].name);
        jobs = depth < rows ? depth : jobs;
    }
    report_figure("rows", rows);
    report_check("capture.counts", CHECK_STRUCTURE, "least_jobs_a_row", jobs / rows, AT_LEAST, 1);
}

void item_capture(bool small)
{
    static double seconds[WRITER_COUNT][ROUNDS], cpu[WRITER_COUNT][ROUNDS];
    long rows = small ? 2000 : 100000;
    int rounds = small ? SMALL_ROUNDS : ROUNDS;

    db_create("bench_capture");
    PGconn *conn = db_open("bench_capture");
    make_tables(conn);
    for (int round = 0; round < rounds; round++)
        measure(conn, rows, round, seconds, cpu);
    check_counts(conn, (double)(rows * rounds));
    double plain = median(seconds[0], (size_t)rounds);
    double plain_cpu = median(cpu[0], (size_t)rounds);
    for (size_t i = 1; i < WRITER_COUNT; i++) {
        char name[64];
        double with = median(seconds[i], (size_t)rounds);
        snprintf(name, sizeof name, "capture.%s", writers[i].name);
        report_figure("rows", (double)rows);
        report_figure("plain_ms", plain * 1e3);
        report_figure("captured_ms", with * 1e3);
        report_figure("plain_cpu_ms", plain_cpu * 1e3);
        report_figure("captured_cpu_ms", median(cpu[i], (size_t)rounds) * 1e3);
        report_check(name, CHECK_TIME, "ratio", with / plain, AT_MOST, writers[i].bar);
    }
    db_close(conn);
    db_drop("bench_capture");
}
