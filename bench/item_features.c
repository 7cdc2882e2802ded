// SPDX-License-Identifier: PostgreSQL
//
// What a feature costs the queue that uses it: its drain rate over that of a queue that uses
// none, both of jobs with a row each. Rounds take turns, and medians are compared.

#include <stdio.h>

#include "db.h"
#include "items.h"
#include "report.h"
#include "rival.h"

enum {
    ROUNDS = 9,
    SMALL_ROUNDS = 1,
};

// The first is what the others are measured against.
static const struct {
    const char *name;
    const char *settings; // of the queue
    const char *options;  // of each job
    double bar;
} features[] = {
    {"plain", "{}", "{}", 0},
    {"unique", "{}", "{\"unique_key\": \"key-{n}\"}", 0.2},
    {"batch", "{}", "{\"batch\": 1}", 0.2},
    {"ordered", "{\"ordered\": true}", "{\"ordering_key\": \"key-{n}\"}", 0.1},
    {"concurrency", "{\"concurrency\": 1000000}", "{}", 0.5},
    {"rate", "{\"rate\": \"1000000000/s\"}", "{}", 0.5},
    {"concurrency_per_key", "{\"concurrency_per_key\": 1000000}", "{\"ordering_key\": \"key-{k}\"}",
     0.1},
    {"rate_per_tenant", "{\"rate_per_tenant\": \"1000000000/s\"}", "{\"tenant\": \"tenant-{k}\"}",
     0.1},
    {"depth_limit", "{\"depth_limit\": 1000000}", "{}", 0.8},
};

enum {
    FEATURE_COUNT = sizeof features / sizeof features[0],
};

static void measure(PGconn *conn, long jobs, int round, double rate[FEATURE_COUNT][ROUNDS])
{
    for (size_t i = 0; i < FEATURE_COUNT; i++) {
        size_t which = round & 1 ? FEATURE_COUNT - 1 - i : i;
        const char *queue = features[which].name;
        db_run(conn, "call bench.fill_with('%s', %ld, '%s')", queue, jobs, features[which].options);
        struct drained drained = drain(conn, &rival_millrace, queue, jobs);
        rate[which][round] = (double)drained.jobs / drained.seconds;
        db_run(conn, "select millrace.maintain()");
    }
}

void item_features(bool small)
{
    static double rate[FEATURE_COUNT][ROUNDS];
    long jobs = small ? 2000 : 20000;
    int rounds = small ? SMALL_ROUNDS : ROUNDS;

    db_create("bench_features");
    PGconn *conn = db_open("bench_features");
    rival_millrace.prepare(conn);
    db_run(conn, "select millrace.batch_begin()");
    for (size_t i = 0; i < FEATURE_COUNT; i++)
        db_run(conn, "select millrace.set_queue('%s', '%s')", features[i].name,
               features[i].settings);
    for (int round = 0; round < rounds; round++)
        measure(conn, jobs, round, rate);
    double plain = median(rate[0], (size_t)rounds);
    for (size_t i = 1; i < FEATURE_COUNT; i++) {
        char name[64];
        double with = median(rate[i], (size_t)rounds);
        snprintf(name, sizeof name, "features.%s", features[i].name);
        report_figure("plain_jobs_s", plain);
        report_figure("jobs_s", with);
        report_check(name, CHECK_TIME, "ratio", with / plain, AT_LEAST, features[i].bar);
    }
    db_close(conn);
    db_drop("bench_features");
}
