// SPDX-License-Identifier: PostgreSQL
//
// Writes the plans of every statement inside claim, complete, promote and rescue, as they run
// behind ten million jobs with a held snapshot, to plans.txt in the build folder. The plans
// come from auto_explain in the session itself.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db.h"
#include "items.h"
#include "report.h"

enum {
    MESSAGE_NAME_SIZE = 64,
};

static struct {
    FILE *file;
    long statements;
    long whole_scans; // of a leaf of a log or of delayed
    long most_pages;  // in one inner statement
} plans;

static void note_pages(const char *text)
{
    const char *buffers = strstr(text, "Buffers: shared");
    long hit = 0, got = 0;
    if (!buffers)
        return;
    const char *end = strchr(buffers, '\n');
    const char *p = strstr(buffers, "hit=");
    if (p && (!end || p < end))
        hit = strtol(p + 4, NULL, 10);
    p = strstr(buffers, "read=");
    if (p && (!end || p < end))
        got = strtol(p + 5, NULL, 10);
    if (hit + got > plans.most_pages)
        plans.most_pages = hit + got;
}

static long count_text(const char *text, const char *what)
{
    long n = 0;
    for (const char *p = strstr(text, what); p; p = strstr(p + 1, what))
        n++;
    return n;
}

static void note_plan(void *arg, const PGresult *result)
{
    (void)arg;
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (!text || !strstr(text, "plan:"))
        return;
    plans.statements++;
    // A condition that skips the first column of the lane index reads all of it.
    plans.whole_scans +=
        count_text(text, "Seq Scan on job_") + count_text(text, "Seq Scan on claim_") +
        count_text(text, "Seq Scan on delayed_") + count_text(text, "Index Cond: (xid ") +
        count_text(text, "Index Cond: (pos ");
    note_pages(text);
    fprintf(plans.file, "%s\n\n", text);
}

// Runs one statement with its plans written down under a title.
static void explain(PGconn *conn, const char *title, const char *statement)
{
    char name[MESSAGE_NAME_SIZE];
    fprintf(plans.file, "==== %s\n==== %s\n\n", title, statement);
    plans.most_pages = 0;
    db_run(conn, "set client_min_messages = log");
    PQsetNoticeReceiver(conn, note_plan, NULL);
    db_run(conn, "%s", statement);
    db_run(conn, "set client_min_messages = warning");
    snprintf(name, sizeof name, "%s_most_pages_a_statement", title);
    report_figure(name, (double)plans.most_pages);
}

static void open_file(void)
{
    char path[512];
    const char *build = getenv("MR_BUILD");
    snprintf(path, sizeof path, "%s/bench/plans.txt", build && *build ? build : "build");
    plans.file = fopen(path, "w");
    if (!plans.file)
        die("cannot write %s", path);
    report_note("file", path);
}

static void prepare_session(PGconn *conn)
{
    db_run(conn, "load 'auto_explain'");
    db_run(
        conn,
        "set auto_explain.log_min_duration = 0; set auto_explain.log_analyze = on; set auto_explain.log_buffers = on; set auto_explain.log_nested_statements = on");
    // What the public functions pin in their definitions, for the internal ones called here.
    db_run(
        conn,
        "set plan_cache_mode = force_generic_plan; set enable_seqscan = off; set enable_bitmapscan = off; set jit = off");
}

void item_plans(bool small)
{
    big_make(small);
    open_file();
    PGconn *conn = db_open(BIG_DATABASE);
    PGconn *holder = db_open(BIG_DATABASE);
    db_run(holder, "begin isolation level repeatable read");
    db_run(holder, "select pg_current_snapshot()");
    progress("plans: delayed jobs");
    db_run(
        conn,
        "select count(*) from millrace.enqueue_many('bench', bench.empty_args(%d), 'later', 50, now() + interval '3 hours')",
        small ? 10000 : 1000000);
    // Dead versions below the held snapshot: claims finished, jobs promoted.
    db_run(
        conn,
        "select count(*) from millrace.enqueue_many('bench', bench.empty_args(%d), 'later', 50, now() + interval '1 second')",
        small ? 1000 : 20000);
    pause_ms(1100);
    db_run(conn, "call bench.fill('big', %d, 10000, false)", small ? 1000 : 100000);
    db_run(conn, "call bench.finish('big', %d, 100)", small ? 500 : 50000);
    db_run(conn, "select millrace.promote(clock_timestamp(), 100000)");
    db_run(
        conn,
        "select count(*) from millrace.enqueue_many('bench', bench.empty_args(100), 'later', 50, now() + interval '1 second')");
    pause_ms(1100);
    prepare_session(conn);
    explain(conn, "promote", "select millrace.promote(clock_timestamp(), 100)");
    explain(
        conn, "claim",
        "create temp table claimed as select lease, id from millrace.claim('big', 'bench', 100)");
    explain(conn, "complete", "select millrace.complete(lease) from claimed limit 1");
    db_run(conn, "drop table claimed");
    explain(conn, "claim_packs_with_20ms_lease",
            "select count(*) from millrace.claim_packs('big', 'bench', 100, '20 milliseconds')");
    pause_ms(50);
    explain(conn, "rescue", "select millrace.rescue(clock_timestamp(), 1000)");
    explain(conn, "empty_claim",
            "select count(*) from millrace.claim('nothing_there', 'bench', 100)");
    fclose(plans.file);
    report_figure("statements", (double)plans.statements);
    report_check("plans", CHECK_STRUCTURE, "whole_scans_of_leaves", (double)plans.whole_scans,
                 AT_MOST, 0);
    db_close(holder);
    db_close(conn);
}
