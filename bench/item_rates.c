// SPDX-License-Identifier: PostgreSQL
//
// Rates over rates: an aged schema over a fresh one, a deep backlog over a shallow one, the
// end of a drain under a held snapshot over its beginning. Rounds of the two sides take
// turns, and medians are compared: the machine's moods hit both sides alike.

#include <stdio.h>

#include "db.h"
#include "items.h"
#include "report.h"
#include "rival.h"

enum {
    ROUNDS = 15,
    SMALL_ROUNDS = 3,
    SLICES = 10, // of a round: the two sides take turns every tenth of a second or so
    CHUNK = 10000,
};

static PGconn *open_millrace(const char *database)
{
    PGconn *conn = db_open(database);
    rival_millrace.prepare(conn);
    return conn;
}

static void fill(PGconn *conn, const char *queue, long jobs, int priority)
{
    db_run(conn, "call bench.fill('%s', %ld, %d, true, %d)", queue, jobs, CHUNK, priority);
}

struct pair {
    double claim[2][ROUNDS * SLICES]; // jobs a second of claim time
    double drain[2][ROUNDS * SLICES]; // jobs a second
    double cpu[2][ROUNDS * SLICES];   // microseconds of the server a job
};

static void round_apart(PGconn *conn, const char *queue, long jobs, const struct between *between,
                        double *claim, double *both, double *cpu)
{
    struct drained drained = drain_apart(conn, &rival_millrace, queue, jobs, between);
    *claim = (double)drained.jobs / drained.claim_seconds;
    *both = (double)drained.jobs / drained.seconds;
    *cpu = drained.cpu_us;
}

// Priorities of the aged schema's queue that get the jobs, in equal shares.
struct spread {
    const char *queue;
    int first, last, step;
    bool busy; // a job comes in before each claim
};

// A producer beside the claims, one job at a time into the lowest priority: what a session
// remembers of empty priorities is then never worth anything.
static struct between producer(const char *database, const char *queue, int priority,
                               char *statement, size_t size)
{
    snprintf(statement, size, "select millrace.enqueue('bench', '{}', '%s', %d)", queue, priority);
    return (struct between){db_open(database), statement};
}

static void fill_spread(PGconn *conn, const struct spread *spread, long jobs)
{
    int lanes = (spread->last - spread->first) / spread->step + 1;
    for (int priority = spread->first; priority <= spread->last; priority += spread->step)
        fill(conn, spread->queue, jobs / lanes, priority);
}

static void history_compare(PGconn *fresh, PGconn *aged, struct spread spread, long jobs,
                            int rounds, const char *name, double bar)
{
    static struct pair pair;
    const char *queue = spread.queue;
    char statement[2][200];
    struct between between[2] = {
        producer("bench_fresh", "fresh", 50, statement[0], sizeof statement[0]),
        producer("bench_aged", queue, spread.last, statement[1], sizeof statement[1]),
    };
    for (int i = 0; i < rounds; i++) {
        fill(fresh, "fresh", jobs, 50);
        fill_spread(aged, &spread, jobs);
        // Whoever is second finds the disk busy with the first one's writes.
        for (int side = 0; side < 2 * SLICES; side++) {
            int at = i * SLICES + side / 2;
            int which = (side & 1) ^ (at & 1);
            round_apart(which ? aged : fresh, which ? queue : "fresh", jobs / SLICES,
                        spread.busy ? &between[which] : NULL, &pair.claim[which][at],
                        &pair.drain[which][at], &pair.cpu[which][at]);
        }
    }
    db_close(between[0].conn);
    db_close(between[1].conn);
    size_t count = (size_t)rounds * SLICES;
    double claim[2] = {median(pair.claim[0], count), median(pair.claim[1], count)};
    double both[2] = {median(pair.drain[0], count), median(pair.drain[1], count)};
    report_figure("fresh_claims_jobs_s", claim[0]);
    report_figure("aged_claims_jobs_s", claim[1]);
    report_figure("fresh_drain_jobs_s", both[0]);
    report_figure("aged_drain_jobs_s", both[1]);
    report_figure("fresh_cpu_us_a_job", median(pair.cpu[0], count));
    report_figure("aged_cpu_us_a_job", median(pair.cpu[1], count));
    report_figure("drain_ratio", both[1] / both[0]);
    report_check(name, CHECK_TIME, "ratio", claim[1] / claim[0], AT_LEAST, bar);
}

void item_history(bool small)
{
    static const struct {
        const char *name;
        struct spread spread;
        double bar;
    } cases[] = {
        {"history.twenty_lanes", {"q0", 4, 80, 4, false}, 0.9},
        {"history.last_of_twenty", {"q0", 80, 80, 4, false}, 0.9},
        // The worst that priorities can do: each claim has to see anew that nineteen others are
        // empty, which costs the same for a batch of any size.
        {"history.last_of_twenty_busy", {"q0", 80, 80, 4, true}, 0.6},
        {"history.one_lane", {"single", 50, 50, 1, false}, 0.9},
    };
    long jobs = small ? 2000 : 40000;
    int rounds = small ? SMALL_ROUNDS : ROUNDS;
    db_create("bench_fresh");
    db_create("bench_aged");
    PGconn *fresh = open_millrace("bench_fresh");
    PGconn *aged = open_millrace("bench_aged");
    progress("history: thirty days pass");
    db_run(aged, "call bench.age(%d, %d)", small ? 2 : 32, small ? 100 : 5000);
    progress("history: the ring fills");
    db_run(aged, "call bench.fill_ring()");
    report_figure("lanes", db_number(aged, "select count(distinct lane) from millrace.lane"));
    report_check("history.ring", CHECK_STRUCTURE, "leaves_in_use",
                 db_number(aged, "select 1 + count(*) from millrace.segment where not truncated"),
                 AT_LEAST, 16);
    report_figure("rows", db_number(aged, "select count(*) from millrace.archive"));
    report_check("history.archive", CHECK_STRUCTURE, "days",
                 db_number(aged, "select count(distinct finished_at::date) from millrace.archive"),
                 AT_LEAST, small ? 1 : 30);
    db_run(aged, "select millrace.set_queue('single', '{}')");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        history_compare(fresh, aged, cases[i].spread, jobs, rounds, cases[i].name, cases[i].bar);
    db_close(fresh);
    db_close(aged);
    db_drop("bench_fresh");
    db_drop("bench_aged");
}

void item_depth(bool small)
{
    int rounds = small ? SMALL_ROUNDS : ROUNDS;
    long shallow_jobs = small ? 2000 : 10000;
    long deep_jobs = small ? 50000 : 2000000;
    static double rate[2][ROUNDS], cpu[2][ROUNDS];
    db_create("bench_shallow");
    db_create("bench_deep");
    PGconn *shallow = open_millrace("bench_shallow");
    PGconn *deep = open_millrace("bench_deep");
    fill(deep, "default", deep_jobs, 50);
    progress("depth: %ld jobs wait", deep_jobs);
    for (int i = 0; i < rounds; i++) {
        fill(shallow, "default", shallow_jobs, 50);
        fill(deep, "default", shallow_jobs, 50);
        for (int side = 0; side < 2; side++) {
            int which = side ^ (i & 1);
            struct drained drained =
                drain(which ? deep : shallow, &rival_millrace, "default", shallow_jobs);
            rate[which][i] = (double)drained.jobs / drained.seconds;
            cpu[which][i] = drained.cpu_us;
        }
    }
    double shallow_rate = median(rate[0], (size_t)rounds);
    double deep_rate = median(rate[1], (size_t)rounds);
    report_figure("shallow_jobs_s", shallow_rate);
    report_figure("deep_jobs_s", deep_rate);
    report_figure("shallow_cpu_us_a_job", median(cpu[0], (size_t)rounds));
    report_figure("deep_cpu_us_a_job", median(cpu[1], (size_t)rounds));
    report_figure("deep", db_number(deep, "select millrace.depth('default')"));
    report_check("depth", CHECK_TIME, "ratio", deep_rate / shallow_rate, AT_LEAST, 0.9);
    db_close(shallow);
    db_close(deep);
    db_drop("bench_shallow");
    db_drop("bench_deep");
}

// A database with `jobs` jobs, of which `done` were drained since a session took the snapshot
// that it still holds.
struct held {
    PGconn *conn, *holder;
};

static struct held held_open(const struct rival *rival, const char *database, long jobs, long done)
{
    db_create(database);
    struct held held = {db_open(database), db_open(database)};
    rival->prepare(held.conn);
    if (rival == &rival_millrace)
        fill(held.conn, "default", jobs, 50);
    else
        db_run(held.conn, "call bench.textbook_fill('default', %ld, %d)", jobs, CHUNK);
    db_run(held.holder, "begin isolation level repeatable read");
    db_run(held.holder, "select pg_current_snapshot()");
    if (done)
        drain(held.conn, rival, "default", done);
    return held;
}

static void held_close(struct held held, const char *database)
{
    db_close(held.holder);
    db_close(held.conn);
    db_drop(database);
}

// The last fifth of a drain over the first, both under a held snapshot. Slices of the two take
// turns: a drain waits for the disk all the time, and one fifth after the other would measure
// what else the disk had to do.
static double held_drain(const struct rival *rival, long jobs)
{
    enum { TURNS = 15 };
    double rate[2][TURNS], cpu[2][TURNS];
    struct held sides[2] = {
        held_open(rival, "bench_held_first", jobs, 0),
        held_open(rival, "bench_held_last", jobs, jobs / 5 * 4),
    };
    db_run(sides[0].conn, "checkpoint");
    for (int i = 0; i < TURNS; i++) {
        for (int side = 0; side < 2; side++) {
            int which = side ^ (i & 1);
            struct drained drained = drain(sides[which].conn, rival, "default", jobs / 5 / TURNS);
            rate[which][i] = (double)drained.jobs / drained.seconds;
            cpu[which][i] = drained.cpu_us;
        }
    }
    held_close(sides[0], "bench_held_first");
    held_close(sides[1], "bench_held_last");
    double first = median(rate[0], TURNS), last = median(rate[1], TURNS);
    report_figure("first_fifth_jobs_s", first);
    report_figure("last_fifth_jobs_s", last);
    report_figure("first_fifth_cpu_us_a_job", median(cpu[0], TURNS));
    report_figure("last_fifth_cpu_us_a_job", median(cpu[1], TURNS));
    return last / first;
}

void item_snapshot(bool small)
{
    long jobs = small ? 30000 : 300000;
    double ratio = held_drain(&rival_millrace, jobs);
    report_check("snapshot.millrace", CHECK_TIME, "last_over_first", ratio, AT_LEAST, 0.9);
    ratio = held_drain(&rival_textbook, jobs);
    report_check("snapshot.textbook", CHECK_TIME, "last_over_first", ratio, BELOW, 0.7);
}
