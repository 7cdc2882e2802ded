// SPDX-License-Identifier: PostgreSQL
//
// The worker: what libmillrace and the handlers add to the SQL core. Rates over the textbook
// queue in turns, and the time from a commit to the handler beside a bare NOTIFY.

#include <millrace/millrace.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#include "db.h"
#include "items.h"
#include "report.h"
#include "rival.h"

enum {
    WORKER_BATCH = 500,
    CHUNK = 10000,
    RIVAL_JOBS_MAX = 100000,
    ROUNDS = 5,
    PICKUPS_MAX = 400,
};

static const char dsn[] = "dbname=bench_worker";

static void fill_both(PGconn *conn, long jobs, long rival_jobs)
{
    db_run(conn, "call bench.fill('default', %ld, %d, true)", jobs, CHUNK);
    db_run(conn, "call bench.textbook_fill('default', %ld, %d)", rival_jobs, CHUNK);
    db_run(conn, "checkpoint");
}

// ---- a handler in C ----

static int do_nothing(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    (void)job;
    (void)outcome;
    (void)arg;
    return 0;
}

static double drain_with_callback(long jobs)
{
    mr_worker_options options = MR_WORKER_OPTIONS_INIT;
    mr_worker_counts counts = MR_WORKER_COUNTS_INIT;
    mr_worker *worker;
    mr_error err;

    options.dsn = dsn;
    options.handler = do_nothing;
    options.batch = WORKER_BATCH;
    options.until_empty = 1;
    double start = now_s();
    if (mr_worker_new(&options, &worker, &err) || mr_worker_run(worker, &err))
        die("%s", err.message);
    double seconds = now_s() - start;
    mr_worker_stats(worker, &counts);
    if (counts.completed != jobs)
        die("the worker completed %ld of %ld jobs", (long)counts.completed, jobs);
    mr_worker_free(worker);
    return (double)jobs / seconds;
}

// ---- a handler that is another program ----

// Runs `millrace ARGS...` to its end, its output thrown away.
static void run_program(const char *const *args)
{
    char program[512];
    snprintf(program, sizeof program, "%s/millrace", getenv("MR_BUILD"));
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        if (!freopen("/dev/null", "w", stdout))
            _exit(126);
        execv(program, (char *const *)(uintptr_t)args);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        die("%s %s failed", program, args[1]);
}

static double drain_with_exec(long jobs)
{
    char echo[512], batch[16];
    snprintf(echo, sizeof echo, "%s/bench/echo", getenv("MR_BUILD"));
    snprintf(batch, sizeof batch, "%d", WORKER_BATCH);
    const char *args[] = {"millrace", "work",    "default", "--dsn",         dsn, "--exec",
                          echo,       "--batch", batch,     "--concurrency", "2", "--until-empty",
                          NULL};
    double start = now_s();
    run_program(args);
    return (double)jobs / (now_s() - start);
}

// One drains right after the other, and the ratio is taken within each such round: a machine that
// is slower for a while is slower for both. The textbook has fewer jobs where they are many: it
// becomes slower with their number, and is to be compared at its best.
static void compare(const char *name, double (*drain_millrace)(long), long jobs, int rounds,
                    double bar)
{
    double rate[2][ROUNDS], ratio[ROUNDS];
    long rival_jobs = jobs < RIVAL_JOBS_MAX ? jobs : RIVAL_JOBS_MAX;
    db_create("bench_worker");
    PGconn *conn = db_open("bench_worker");
    rival_textbook.prepare(conn);
    for (int i = 0; i < rounds; i++) {
        fill_both(conn, jobs, rival_jobs);
        for (int side = 0; side < 2; side++) {
            if (side ^ (i & 1)) {
                rate[0][i] = drain_millrace(jobs);
            } else {
                struct drained drained =
                    drain_batch(conn, &rival_textbook, "default", rival_jobs, WORKER_BATCH);
                rate[1][i] = (double)drained.jobs / drained.seconds;
            }
        }
        ratio[i] = rate[0][i] / rate[1][i];
    }
    db_close(conn);
    db_drop("bench_worker");
    report_figure("millrace_jobs", (double)jobs);
    report_figure("textbook_jobs", (double)rival_jobs);
    report_figure("millrace_jobs_s", median(rate[0], (size_t)rounds));
    report_figure("textbook_jobs_s", median(rate[1], (size_t)rounds));
    report_figure("batch", WORKER_BATCH);
    report_check(name, CHECK_TIME, "over_textbook", median(ratio, (size_t)rounds), AT_LEAST, bar);
}

void item_worker(bool small)
{
    int rounds = small ? 1 : ROUNDS;
    // So many that the start of the worker, about 50 ms, is a thirtieth of the time.
    compare("worker.callback", drain_with_callback, small ? 5000 : 300000, rounds, 4);
    compare("worker.exec", drain_with_exec, small ? 5000 : 100000, rounds, 1);
}

// ---- from the commit to the handler ----

struct pickup {
    atomic_llong arrived_us;
    mr_worker *worker;
};

static long long now_us(void)
{
    return (long long)(now_s() * 1e6);
}

static int note_arrival(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    struct pickup *pickup = arg;
    (void)job;
    (void)outcome;
    atomic_store(&pickup->arrived_us, now_us());
    return 0;
}

static void *run_worker(void *arg)
{
    struct pickup *pickup = arg;
    mr_error err;
    if (mr_worker_run(pickup->worker, &err))
        die("%s", err.message);
    return NULL;
}

// Milliseconds from the moment the producer knows of its commit to the handler's first line.
static double pickup_once(struct pickup *pickup, PGconn *conn)
{
    atomic_store(&pickup->arrived_us, 0);
    db_run(conn, "select millrace.enqueue('bench')");
    long long committed = now_us();
    double deadline = now_s() + 30;
    while (!atomic_load(&pickup->arrived_us)) {
        if (now_s() > deadline)
            die("a job was not picked up in 30 s");
        usleep(50);
    }
    double ms = (double)(atomic_load(&pickup->arrived_us) - committed) / 1000;
    return ms > 0 ? ms : 0;
}

static void pickups(PGconn *conn, int pooler, int count, double *ms)
{
    struct pickup pickup = {0};
    mr_worker_options options = MR_WORKER_OPTIONS_INIT;
    pthread_t thread;
    mr_error err;

    options.dsn = dsn;
    options.pooler = pooler;
    options.handler = note_arrival;
    options.arg = &pickup;
    options.concurrency = 1;
    if (mr_worker_new(&options, &pickup.worker, &err))
        die("%s", err.message);
    if (pthread_create(&thread, NULL, run_worker, &pickup))
        die("cannot start a thread");
    for (int i = 0; i < count; i++) {
        // Idle again, and at no fixed distance from the worker's polls.
        pause_ms(20 + random() % 130);
        ms[i] = pickup_once(&pickup, conn);
    }
    mr_worker_stop(pickup.worker);
    pthread_join(thread, NULL);
    mr_worker_free(pickup.worker);
}

// The same for a bare NOTIFY: what the server and the kernel cost by themselves.
static void notifications(PGconn *conn, int count, double *ms)
{
    PGconn *listener = db_open("bench_worker");
    db_run(listener, "listen bench");
    for (int i = 0; i < count; i++) {
        PGnotify *notify;
        db_run(conn, "notify bench");
        double committed = now_s();
        while (!(notify = PQnotifies(listener))) {
            fd_set set;
            FD_ZERO(&set);
            FD_SET(PQsocket(listener), &set);
            struct timeval limit = {.tv_sec = 30};
            if (select(PQsocket(listener) + 1, &set, NULL, NULL, &limit) <= 0 ||
                !PQconsumeInput(listener))
                die("a notification was not delivered");
        }
        PQfreemem(notify);
        ms[i] = (now_s() - committed) * 1000;
        pause_ms(5);
    }
    db_close(listener);
}

void item_pickup(bool small)
{
    static double ms[PICKUPS_MAX], bare[PICKUPS_MAX];
    int count = small ? 20 : PICKUPS_MAX;
    db_create("bench_worker");
    PGconn *conn = db_open("bench_worker");
    notifications(conn, count, bare);
    pickups(conn, 0, count, ms);
    report_figure("notify_p50_ms", percentile(bare, (size_t)count, 0.5));
    report_figure("notify_p99_ms", percentile(bare, (size_t)count, 0.99));
    report_check("pickup.p50", CHECK_TIME, "ms", percentile(ms, (size_t)count, 0.5), AT_MOST, 3);
    report_check("pickup.p99", CHECK_TIME, "ms", percentile(ms, (size_t)count, 0.99), AT_MOST, 20);
    pickups(conn, 1, count, ms);
    report_figure("poll_ms", 100);
    report_figure("p50_ms", percentile(ms, (size_t)count, 0.5));
    report_check("pickup.polling_p99", CHECK_TIME, "ms", percentile(ms, (size_t)count, 0.99),
                 AT_MOST, 120);
    db_close(conn);
    db_drop("bench_worker");
}

// ---- an idle daemon ----

static pid_t start_serve(const char *config)
{
    char program[512];
    snprintf(program, sizeof program, "%s/millrace", getenv("MR_BUILD"));
    pid_t pid = fork();
    if (pid == 0) {
        execl(program, "millrace", "serve", "-c", config, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static void write_config(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file)
        die("cannot write %s", path);
    fprintf(file, "dsn = \"%s\"\n", dsn);
    for (int i = 0; i < 3; i++)
        fprintf(file, "worker w%d { queue = \"q%d\" run = \"/bin/true\" }\n", i, i);
    if (fclose(file))
        die("cannot write %s", path);
}

void item_idle(bool small)
{
    char config[] = "/tmp/millrace-bench-serve.XXXXXX";
    double seconds = small ? 2 : 20;
    int fd = mkstemp(config);
    if (fd < 0)
        die("cannot make a file");
    close(fd);
    write_config(config);
    db_create("bench_worker");
    PGconn *conn = db_open("bench_worker");
    pid_t pid = start_serve(config);
    // Past its start: connections, plans, the first rounds of upkeep.
    pause_ms(3000);
    const char *transactions = "select xact_commit + xact_rollback from pg_stat_database"
                               " where datname = 'bench_worker'";
    double cpu = process_cpu_s(pid), before = db_number(conn, "%s", transactions);
    pause_ms((long)(seconds * 1000));
    cpu = process_cpu_s(pid) - cpu;
    // A backend tells what it did a second later.
    double done = db_number(conn, "%s", transactions) - before;
    kill(pid, SIGTERM);
    int status;
    waitpid(pid, &status, 0);
    unlink(config);
    report_figure("workers", 3);
    report_check("idle.cpu", CHECK_TIME, "percent_of_a_core", cpu / seconds * 100, AT_MOST, 1);
    // A claim is two statements in one transaction, everything else is one.
    report_check("idle.statements", CHECK_TIME, "a_second_at_most", done / seconds * 2, AT_MOST,
                 40);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        die("serve ended with status %d", status);
    db_close(conn);
    db_drop("bench_worker");
}
