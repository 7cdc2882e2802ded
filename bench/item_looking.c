// SPDX-License-Identifier: PostgreSQL
//
// How long the pages of the dashboard take with five million jobs: each call that a page makes, and
// each filter of its lists with the pages behind the first one. Filters that match nothing are the
// worst case. The times are the server's, without the way over HTTP.

#include <stdio.h>

#include "db.h"
#include "items.h"
#include "report.h"
#include "upkeep.h"

enum {
    CALLS = 10,
    PAGES = 20,
    NAME_SIZE = 64,
};

#define LOOKING_DATABASE "bench_looking"

static const struct look {
    const char *name, *call;
} looks[] = {
    {"overview", "millrace.overview()"},
    {"metrics", "millrace.metrics()"},
    {"history_all", "millrace.history(null, 360)"},
    {"history_queue", "millrace.history('q1', 360)"},
    {"queue_deep", "millrace.queue_story('q3')"},
    {"queue_running", "millrace.queue_story('q10')"},
    {"queue_dead", "millrace.queue_story('q9')"},
    {"queue_delayed", "millrace.queue_story('q7')"},
    {"dead_groups", "millrace.dead_groups()"},
    {"dead_groups_queue", "millrace.dead_groups('q9')"},
    {"schedules", "millrace.list_schedules()"},
    {"workers", "millrace.list_workers()"},
    {"system", "millrace.system()"},
    {"doctor", "millrace.doctor()"},
    {"job_available", "millrace.job((select max(id) from millrace.jobs where ref = 'r7'))"},
    {"job_by_ref", "millrace.job_by_ref('q3', 'r77')"},
    {"jobs_by_id", "millrace.list_jobs('{\"id\": 77}')"},
};

static const struct list {
    const char *name, *function, *filter;
} lists[] = {
    {"jobs", "list_jobs", "{}"},
    {"jobs_200", "list_jobs", "{\"limit\": 200}"},
    {"jobs_available", "list_jobs", "{\"status\": \"available\"}"},
    {"jobs_running", "list_jobs", "{\"status\": \"running\"}"},
    {"jobs_scheduled", "list_jobs", "{\"status\": \"scheduled\"}"},
    {"jobs_paused", "list_jobs", "{\"status\": \"paused\"}"},
    {"jobs_waiting", "list_jobs", "{\"status\": \"waiting\"}"},
    {"jobs_completed", "list_jobs", "{\"status\": \"completed\"}"},
    {"jobs_cancelled", "list_jobs", "{\"status\": \"cancelled\"}"},
    {"jobs_expired", "list_jobs", "{\"status\": \"expired\"}"},
    {"jobs_dead", "list_jobs", "{\"status\": \"dead\"}"},
    {"queue_jobs", "list_jobs", "{\"queue\": \"q1\"}"},
    {"queue_completed", "list_jobs", "{\"queue\": \"q1\", \"status\": \"completed\"}"},
    {"queue_completed_200", "list_jobs",
     "{\"queue\": \"q5\", \"status\": \"completed\", \"limit\": 200}"},
    {"queue_few", "list_jobs", "{\"queue\": \"q150\"}"},
    {"queue_archive", "list_jobs", "{\"queue\": \"q11\"}"},
    {"queue_scheduled", "list_jobs", "{\"queue\": \"q8\", \"status\": \"scheduled\"}"},
    {"no_kind", "list_jobs", "{\"kind\": \"none\"}"},
    {"no_kind_completed", "list_jobs", "{\"kind\": \"none\", \"status\": \"completed\"}"},
    {"no_kind_available", "list_jobs", "{\"kind\": \"none\", \"status\": \"available\"}"},
    {"no_kind_running", "list_jobs", "{\"kind\": \"none\", \"status\": \"running\"}"},
    {"no_kind_scheduled", "list_jobs", "{\"kind\": \"none\", \"status\": \"scheduled\"}"},
    {"no_kind_queue", "list_jobs", "{\"kind\": \"none\", \"queue\": \"q6\"}"},
    {"no_tenant", "list_jobs", "{\"tenant\": \"none\"}"},
    {"some_tenant", "list_jobs", "{\"tenant\": \"t3\"}"},
    {"no_ref", "list_jobs", "{\"ref\": \"none\"}"},
    {"some_ref", "list_jobs", "{\"ref\": \"r77\"}"},
    {"no_error", "list_jobs", "{\"error\": \"none\"}"},
    {"some_error", "list_jobs", "{\"error\": \"host 3\"}"},
    {"dead", "list_dead", "{}"},
    {"dead_queue", "list_dead", "{\"queue\": \"q9\"}"},
    {"dead_no_error", "list_dead", "{\"error\": \"none\"}"},
    {"dead_no_kind", "list_dead", "{\"kind\": \"none\", \"queue\": \"q9\"}"},
    {"batches", "list_batches", "{}"},
    {"batches_failed", "list_batches", "{\"status\": \"failed\"}"},
    {"batches_no_label", "list_batches", "{\"label\": \"none\"}"},
};

static double worst_ms;
static const char *worst_name;

// A page that nine of ten are faster than, and what they cost on a processor.
static void note(PGconn *conn, const char *name, double cpu_s)
{
    char figure[NAME_SIZE];
    double ms = db_number(conn,
                          "select percentile_disc(0.9) within group (order by us) / 1000 from"
                          " bench.sample where what = '%s'",
                          name);

    snprintf(figure, sizeof figure, "%s_ms", name);
    report_figure(figure, ms);
    double cpu_ms =
        cpu_s * 1000 /
        (1 + db_number(conn, "select count(*) from bench.sample where what = '%s'", name));
    snprintf(figure, sizeof figure, "%s_cpu_ms", name);
    report_figure(figure, cpu_ms);
    progress("looking: %-20s %7.1f ms, %7.1f ms of a processor", name, ms, cpu_ms);
    if (ms > worst_ms) {
        worst_ms = ms;
        worst_name = name;
    }
}

void item_looking(bool small)
{
    long jobs = small ? 50000 : 5000000;

    db_create(LOOKING_DATABASE);
    PGconn *conn = db_open(LOOKING_DATABASE);
    db_run_file(conn, "bench/looking.sql");
    progress("looking: %ld jobs", jobs);
    db_run(conn, "call bench.many_sorts(%ld)", jobs);
    db_run(conn, "analyze");
    report_figure("jobs", (double)jobs);
    long pid = PQbackendPID(conn);
    upkeep_start(LOOKING_DATABASE, 1000); // as beside a daemon
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++) {
        double begun_s = process_cpu_s(pid);
        db_run(conn, "call bench.look('%s', $call$%s$call$, %d)", looks[i].name, looks[i].call,
               CALLS);
        note(conn, looks[i].name, process_cpu_s(pid) - begun_s);
    }
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        double begun_s = process_cpu_s(pid);
        db_run(conn, "call bench.turn_pages('%s', '%s', '%s', %d)", lists[i].name,
               lists[i].function, lists[i].filter, PAGES);
        note(conn, lists[i].name, process_cpu_s(pid) - begun_s);
    }
    upkeep_stop();
    report_note("worst", worst_name);
    report_check("looking", CHECK_TIME, "worst_page_ms", worst_ms, AT_MOST, 300);
    db_close(conn);
    db_drop(LOOKING_DATABASE);
}
