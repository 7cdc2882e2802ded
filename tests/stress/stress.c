/* SPDX-License-Identifier: PostgreSQL */
/* Options, and the course of a run: everybody at once, quiet checks in between, drain, final
 * account. */
#include "stress.h"

#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 200 };

struct course course = {
    .opt =
        {
            .jobs = 10000,
            .writers = 4,
            .long_writers = 2,
            .claimers = 4,
            .keepers = 3,
            .lease_ms = 700,
            .retention_s = 7,
            .deadline_s = 600,
            .quiet_checks = 2,
            .bulk = 100,
            .backlog = 20000,
        },
};
const char *const queue_names[QUEUES] = {"single", "parted", "ranks", "parted_ranks", "ordered"};

static pthread_t threads[THREADS_MAX];
static int threads_n;

/* A run that has found a fault ends at once: what the tables hold now is the evidence. */
void fatal(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    flockfile(stderr);
    fputs("stress: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    _exit(1);
}

double now_s(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void setup_queues(void)
{
    struct session session;

    session_open(&session, 999);
    for (int i = 0; i < QUEUES; i++) {
        char settings[256];
        const char *values[] = {queue_names[i], settings};

        /* Limits so high that jobs die only where a worker says so: the ledger counts on it. */
        snprintf(
            settings, sizeof(settings),
            "{\"parts\": %d, \"retention\": \"%d seconds\", \"max_attempts\": 1000, \"poison_limit\": 1000, \"lease\": \"60 seconds\"}",
            strncmp(queue_names[i], "parted", 6) == 0 ? 4 : 1, course.opt.retention_s);
        if (session_ask(&session, NULL, "select millrace.set_queue($1, $2::jsonb)", 2, values) !=
            ANSWER_OK)
            fatal("could not set up the queues");
    }
    if (session_do(&session,
                   "select millrace.set_retry('stress', 1000, '100 ms', 1.2, '1 second')") !=
        ANSWER_OK)
        fatal("could not set up the retries");
    session_close(&session);
}

static void start(void *(*run)(void *), int n)
{
    for (int i = 0; i < n; i++) {
        if (threads_n == THREADS_MAX)
            fatal("too many sessions");
        atomic_fetch_add(&course.sessions, 1);
        if (pthread_create(&threads[threads_n], NULL, run, (void *)(intptr_t)(threads_n + 1)) != 0)
            fatal("cannot start a thread");
        threads_n++;
    }
}

static void stand_still(bool still)
{
    double deadline = now_s() + 60;

    atomic_store(&course.hold, still);
    while (still && (atomic_load(&course.standing) < atomic_load(&course.sessions) ||
                     atomic_load(&course.dumping))) {
        session_pause(2);
        if (now_s() > deadline)
            fatal("the sessions do not come to rest: %d of %d", atomic_load(&course.standing),
                  atomic_load(&course.sessions));
    }
}

static void check_in_between(int number)
{
    char when[48];

    snprintf(when, sizeof(when), "quiet moment %d", number);
    stand_still(true);
    quiet_check(when);
    stand_still(false);
}

static void write_jobs(double deadline)
{
    int checks = 0;
    bool dumped = !course.opt.dump;
    pthread_t dumper;

    while (atomic_load(&ledger_committed_n) < course.opt.jobs ||
           (course.opt.until && access(course.opt.until, F_OK) != 0)) {
        long target = course.opt.jobs / (course.opt.quiet_checks + 1) * (checks + 1);

        session_pause(10);
        if (now_s() > deadline)
            fatal("only %ld of %ld jobs were written in %d s", atomic_load(&ledger_committed_n),
                  course.opt.jobs, course.opt.deadline_s);
        if (!dumped && atomic_load(&ledger_committed_n) > course.opt.jobs / 2) {
            dumped = true;
            if (pthread_create(&dumper, NULL, dumper_run, NULL) != 0 || pthread_detach(dumper) != 0)
                fatal("cannot start a thread");
        }
        if (checks < course.opt.quiet_checks && atomic_load(&ledger_committed_n) > target)
            check_in_between(++checks);
    }
}

/* What the database knows about a job; a lost one may be unknown to it, so any answer will do. */
static void tell_story(int64_t id)
{
    struct session session;
    char text[32];
    const char *values[] = {text};
    PGresult *result;

    session_open(&session, 998);
    snprintf(text, sizeof(text), "%lld", (long long)id);
    result =
        PQexecParams(session.db, "select millrace.job($1::bigint)", 1, NULL, values, NULL, NULL, 0);
    fprintf(stderr, "stress: story of job %s: %s\n", text,
            PQntuples(result) == 1 ? PQgetvalue(result, 0, 0) : PQresultErrorMessage(result));
    PQclear(result);
    session_close(&session);
}

/* Until every committed job has ended, or nothing has ended for a minute. */
static void drain(double deadline)
{
    long open = 1, before = -1;
    double progress = now_s();
    int64_t ids[5];

    while ((open = ledger_open(ids, 5)) > 0) {
        session_pause(100);
        if (open != before)
            progress = now_s();
        before = open;
        if (now_s() - progress > 75 || now_s() > deadline) {
            for (int i = 0; i < (open < 5 ? open : 5); i++)
                tell_story(ids[i]);
            fatal("%ld committed jobs are never finished, the first is %lld", open,
                  (long long)ids[0]);
        }
    }
}

/* In a run with faults some jobs' ends are unknown to us: wait until the queues say that nothing is
 * left. */
static void drain_unknown(void)
{
    struct session session;
    double deadline = now_s() + 120;
    long left = 1;

    session_open(&session, 997);
    while (left > 0) {
        PGresult *result;

        if (session_ask(
                &session, &result,
                "select coalesce(sum(available + running + scheduled + retrying), 0) from millrace.stats()",
                0, NULL) != ANSWER_OK)
            continue;
        left = atol(PQgetvalue(result, 0, 0));
        PQclear(result);
        session_pause(100);
        if (now_s() > deadline)
            fatal("%ld jobs are left and do not move", left);
    }
    session_close(&session);
}

static void run(void)
{
    double deadline = now_s() + course.opt.deadline_s;

    ledger_init();
    setup_queues();
    atomic_store(&course.writing, true);
    start(writer_run, course.opt.writers);
    start(long_writer_run, course.opt.long_writers);
    if (!course.opt.faults)
        start(ordered_writer_run, 3);
    if (!course.opt.faults)
        start(ordered_claimer_run, 1);
    start(claimer_run, course.opt.claimers);
    start(patient_run, course.opt.patient);
    start(keeper_run, course.opt.keepers);
    write_jobs(deadline);
    atomic_store(&course.writing, false);
    for (int i = 0; i < course.opt.writers + course.opt.long_writers; i++)
        pthread_join(threads[i], NULL);
    drain(deadline);
    if (course.opt.faults)
        drain_unknown();
    atomic_store(&course.stop, true);
    for (int i = course.opt.writers + course.opt.long_writers; i < threads_n; i++)
        pthread_join(threads[i], NULL);
    ledger_check();
    quiet_check("at the end");
    quiet_report();
}

/* The options; struct course holds the defaults. */
enum option_type { OPTION_TEXT, OPTION_FLAG, OPTION_INT, OPTION_LONG };
static const struct {
    const char *name;
    enum option_type type;
    void *target;
    long least; /* of a number */
} rows[] = {
    {"dsn", OPTION_TEXT, &course.opt.dsn, 0},
    {"jobs", OPTION_LONG, &course.opt.jobs, 1},
    {"writers", OPTION_INT, &course.opt.writers, 1},
    {"long-writers", OPTION_INT, &course.opt.long_writers, 0},
    {"claimers", OPTION_INT, &course.opt.claimers, 1},
    {"patient", OPTION_INT, &course.opt.patient, 0},
    {"keepers", OPTION_INT, &course.opt.keepers, 1},
    {"lease-ms", OPTION_INT, &course.opt.lease_ms, 1},
    {"retention-s", OPTION_INT, &course.opt.retention_s, 1},
    {"seconds", OPTION_INT, &course.opt.deadline_s, 1},
    {"quiet-checks", OPTION_INT, &course.opt.quiet_checks, 0},
    {"bulk", OPTION_INT, &course.opt.bulk, 1},
    {"backlog", OPTION_INT, &course.opt.backlog, 1},
    {"faults", OPTION_FLAG, &course.opt.faults, 0},
    {"until", OPTION_TEXT, &course.opt.until, 0},
    {"dump", OPTION_TEXT, &course.opt.dump, 0},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

__attribute__((noreturn)) static void usage(void)
{
    fputs("usage: stress", stderr);
    for (int i = 0; i < ROWS; i++)
        fprintf(stderr, rows[i].type == OPTION_FLAG ? " [--%s]" : " [--%s VALUE]", rows[i].name);
    fputs("\n--dsn is required\n", stderr);
    exit(2);
}

static long number(const char *text, long least)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (*end || end == text || value < least || value > INT_MAX)
        usage();
    return value;
}

static void set_option(int row, const char *text)
{
    switch (rows[row].type) {
    case OPTION_TEXT: *(const char **)rows[row].target = text; return;
    case OPTION_FLAG: *(bool *)rows[row].target = true; return;
    case OPTION_INT: *(int *)rows[row].target = (int)number(text, rows[row].least); return;
    case OPTION_LONG: *(long *)rows[row].target = number(text, rows[row].least); return;
    }
}

static void read_options(int argc, char **argv)
{
    struct option table[ROWS + 1] = {0};
    int row;

    for (int i = 0; i < ROWS; i++)
        table[i] = (struct option){
            rows[i].name, rows[i].type == OPTION_FLAG ? no_argument : required_argument, NULL, i};
    while ((row = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (row < 0 || row >= ROWS)
            usage();
        set_option(row, optarg);
    }
    if (!course.opt.dsn || optind != argc)
        usage();
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    /* Sessions that vanish do not come to rest. */
    if (course.opt.faults)
        course.opt.quiet_checks = 0;
    run();
    return 0;
}
