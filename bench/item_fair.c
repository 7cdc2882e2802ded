// SPDX-License-Identifier: PostgreSQL
//
// Fair queues. How long the single job of a tenant waits beside a tenant that is a million jobs
// deep: jobs served before it, over two batches for each tenant with jobs. And what turns cost:
// the drain rate with one tenant and with many, over that of a plain queue in the same round.

#include <stdio.h>

#include "db.h"
#include "items.h"
#include "report.h"
#include "rival.h"

enum {
    ROUNDS = 5,
    SMALL_ROUNDS = 1,
};

// The first is what the others are measured against.
static const struct {
    const char *name;
    const char *settings;
    const char *options; // {k} is one of a thousand
    double bar;
} queues[] = {
    {"plain", "{}", "{\"tenant\": \"one\"}", 0},
    {"one_tenant", "{\"fair\": true}", "{\"tenant\": \"one\"}", 0.5},
    {"many_tenants", "{\"fair\": true}", "{\"tenant\": \"tenant-{k}\"}", 0.15},
};

enum {
    QUEUE_COUNT = sizeof queues / sizeof queues[0],
};

// Serves jobs until `jobs` of some tenants were among them, where `active` tenants have jobs.
static void report_wait(PGconn *conn, const char *name, const char *tenant, long jobs, long active)
{
    double bound = 2.0 * BATCH * (double)active;

    db_run(conn, "call bench.fair_drain('wait', %d, '%s', %ld)", BATCH, tenant, jobs);
    double waited = db_number(conn, "select jobs from bench.fair_wait where tenant = '%s'", tenant);
    report_figure("active_tenants", (double)active);
    report_figure("served_before", waited);
    report_figure("bound", bound);
    report_figure("empty_claims",
                  db_number(conn, "select empty from bench.fair_wait where tenant = '%s'", tenant));
    report_check(name, CHECK_STRUCTURE, "of the bound", waited / bound, AT_MOST, 1);
}

static void measure_wait(PGconn *conn, bool small)
{
    long deep = small ? 5000 : 1000000;
    long others = small ? 40 : 999;

    db_run(conn, "select millrace.set_queue('wait', '{\"fair\": true}')");
    db_run(conn, "call bench.fill_with('wait', %ld, '{\"tenant\": \"deep\"}')", deep);
    db_run(conn, "call bench.fill_with('wait', %ld, '{\"tenant\": \"tenant-{n}\"}')", others);
    report_wait(conn, "fair.wait", "tenant-%", others, others + 1);
    // All have more than a batch, and then somebody comes.
    db_run(conn, "call bench.fill_with('wait', %ld, '{\"tenant\": \"tenant-{k}\"}')",
           small ? 10000L : 300000L);
    db_run(conn, "select millrace.maintain()");
    db_run(conn, "call bench.fill_with('wait', 1, '{\"tenant\": \"late\"}')");
    report_wait(conn, "fair.newcomer", "late", 1, 1002);
}

static void measure_drain(PGconn *conn, long jobs, int round, double rate[QUEUE_COUNT][ROUNDS])
{
    for (size_t i = 0; i < QUEUE_COUNT; i++) {
        size_t which = round & 1 ? QUEUE_COUNT - 1 - i : i;
        const char *queue = queues[which].name;
        db_run(conn, "call bench.fill_with('%s', %ld, '%s')", queue, jobs, queues[which].options);
        db_run(conn, "select millrace.maintain()");
        struct drained drained = drain(conn, &rival_millrace, queue, jobs);
        rate[which][round] = (double)drained.jobs / drained.seconds;
    }
}

void item_fair(bool small)
{
    static double rate[QUEUE_COUNT][ROUNDS];
    long jobs = small ? 5000 : 100000;
    int rounds = small ? SMALL_ROUNDS : ROUNDS;

    db_create("bench_fair");
    PGconn *conn = db_open("bench_fair");
    rival_millrace.prepare(conn);
    measure_wait(conn, small);
    for (size_t i = 0; i < QUEUE_COUNT; i++)
        db_run(conn, "select millrace.set_queue('%s', '%s')", queues[i].name, queues[i].settings);
    for (int round = 0; round < rounds; round++)
        measure_drain(conn, jobs, round, rate);
    double plain = median(rate[0], (size_t)rounds);
    for (size_t i = 1; i < QUEUE_COUNT; i++) {
        char name[64];
        double with = median(rate[i], (size_t)rounds);
        snprintf(name, sizeof name, "fair.%s", queues[i].name);
        report_figure("plain_jobs_s", plain);
        report_figure("jobs_s", with);
        report_check(name, CHECK_TIME, "ratio", with / plain, AT_LEAST, queues[i].bar);
    }
    db_close(conn);
    db_drop("bench_fair");
}
