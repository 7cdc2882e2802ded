// SPDX-License-Identifier: PostgreSQL
//
// A long run at a steady rate: soak [--seconds N] [--rate JOBS] [--sample SECONDS] > samples.
// Called by bench/run, which brings the server; bench/soak.py draws the samples and judges them.
//
// One producer, two workers, upkeep once a second as the daemon does it. A job has 2.7 KB of state
// and 1.6 KB of blob that cannot be compressed, and about 300 B of everything else; every tenth
// fails once and is tried again. Finished jobs are kept for two minutes. A sample holds some
// rotations of the log, which come every ten seconds: p99 is theirs.
//
// Beside it a session commits a row of a table of its own, fifty times a second, and has nothing to
// do with jobs: what a commit costs on this disk at that time is in p99, too, and not the queue's.

#include <libpq-fe.h>
#include <millrace/millrace.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "bench/histogram.h"
#include "db.h"
#include "upkeep.h"

enum {
    STATE_SIZE = 2700,
    BLOB_SIZE = 1600,
    CHUNK_MAX = 500, // jobs of one transaction of the producer
    CHUNK_MS = 20,   // and how often it sends
    NOISE_SIZE = 1 << 20,
    FAILS_ONE_IN = 10,
    IDS_A_ROW = 32, // jobs of this size have a row each: ids 1, 33, 65
    ARGS_SIZE = 256,
    UPKEEP_MS = 1000,
    PROBE_MS = 20,
    LAST_JOBS_S = 60,
    WORKERS = 2,
};

static const char database[] = "bench_soak";
static const char dsn[] = "dbname=bench_soak";

static struct {
    long seconds, rate, sample_s;
    atomic_bool stop;
    atomic_llong enqueued;
    struct histogram *_Atomic latency; // of the sample that is being taken
    struct histogram *_Atomic commit;
    mr_worker *workers[WORKERS];
    unsigned char noise[NOISE_SIZE];
} soak = {.seconds = 1800, .rate = 9375, .sample_s = 30};

static int64_t wall_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

// ---- the producer ----

struct chunk {
    mr_job_spec jobs[CHUNK_MAX];
    char args[CHUNK_MAX][ARGS_SIZE];
};

// Always another piece of the noise, so that no two jobs are alike.
static const void *noise_at(int64_t number, size_t size)
{
    return soak.noise + (uint64_t)number * 7919 % (NOISE_SIZE - size);
}

static void write_job(struct chunk *chunk, int i, int64_t number)
{
    snprintf(chunk->args[i], ARGS_SIZE,
             "{\"team\": %ld, \"event\": \"%016lx\", \"function\": \"%s\", \"distinct\": \"%ld\"}",
             (long)(number % 977), (unsigned long)number * 2654435761,
             "0192f3a8-7c1e-7d55-9b1f-5c0a4be31d02", (long)(number * 31 % 1000003));
    chunk->jobs[i] = (mr_job_spec)MR_JOB_SPEC_INIT;
    chunk->jobs[i].kind = "soak";
    chunk->jobs[i].queue = "soak";
    chunk->jobs[i].args = chunk->args[i];
    chunk->jobs[i].state = noise_at(number, STATE_SIZE);
    chunk->jobs[i].state_size = STATE_SIZE;
    chunk->jobs[i].blob = noise_at(number + 1, BLOB_SIZE);
    chunk->jobs[i].blob_size = BLOB_SIZE;
}

static void *produce(void *arg)
{
    struct chunk *chunk = malloc(sizeof *chunk);
    mr_conn_options options = MR_CONN_OPTIONS_INIT;
    mr_conn *conn;
    mr_error err;
    int64_t sent = 0;
    double start = now_s();

    (void)arg;
    options.dsn = dsn;
    if (!chunk || mr_conn_open(&options, &conn, &err))
        die("the producer: %s", chunk ? err.message : "out of memory");
    while (!atomic_load(&soak.stop)) {
        int64_t due = (int64_t)((now_s() - start) * (double)soak.rate) - sent;
        int count = due > CHUNK_MAX ? CHUNK_MAX : (int)due;
        for (int i = 0; i < count; i++)
            write_job(chunk, i, sent + i);
        if (count > 0 &&
            mr_enqueue_jobs(conn, chunk->jobs, (size_t)count, CHUNK_MAX, NULL, NULL, &err))
            die("the producer: %s", err.message);
        sent += count > 0 ? count : 0;
        atomic_store(&soak.enqueued, sent);
        if (due <= CHUNK_MAX)
            pause_ms(CHUNK_MS);
    }
    mr_conn_free(conn);
    free(chunk);
    return NULL;
}

// ---- the worker ----

// What a job waited counts at its first attempt: later ones wait for their retry.
static int work(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    (void)arg;
    if (job->state_size != STATE_SIZE || job->blob_size != BLOB_SIZE)
        die("job %ld came without its state or blob", (long)job->id);
    if (job->attempt > 1)
        return 0;
    histogram_add(atomic_load(&soak.latency), wall_us() - job->created_at_us);
    if (job->id / IDS_A_ROW % FAILS_ONE_IN == 0)
        return mr_outcome_fail(outcome, "one in ten", 0, 0);
    return 0;
}

static void *run_worker(void *arg)
{
    mr_error err;

    if (mr_worker_run(arg, &err))
        die("a worker: %s", err.message);
    return NULL;
}

// Of all workers.
static mr_worker_counts counts_now(void)
{
    mr_worker_counts all = MR_WORKER_COUNTS_INIT;
    for (int i = 0; i < WORKERS; i++) {
        mr_worker_counts one = MR_WORKER_COUNTS_INIT;
        mr_worker_stats(soak.workers[i], &one);
        all.completed += one.completed;
        all.failed += one.failed;
    }
    return all;
}

// ---- the probe ----

static void *probe(void *arg)
{
    PGconn *conn = db_open(database);

    (void)arg;
    while (!atomic_load(&soak.stop)) {
        int64_t start = wall_us();
        db_run(conn, "insert into bench_probe values (1)");
        histogram_add(atomic_load(&soak.commit), wall_us() - start);
        pause_ms(PROBE_MS);
    }
    db_close(conn);
    return NULL;
}

// ---- samples ----

// Of the whole server: every process that its statistics name.
static double server_cpu(PGconn *conn)
{
    PGresult *result = PQexec(conn, "select pid from pg_stat_activity");
    double seconds = 0;
    for (int i = 0; i < PQntuples(result); i++)
        seconds += process_cpu_s(strtol(PQgetvalue(result, i, 0), NULL, 10));
    PQclear(result);
    return seconds;
}

static double own_cpu(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double resident_bytes(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*s %ld", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

struct totals {
    double at_s, wal, server_cpu, own_cpu, enqueued, completed, failed;
};

static struct totals totals_now(PGconn *conn)
{
    mr_worker_counts counts = counts_now();
    return (struct totals){
        .at_s = now_s(),
        .wal = db_number(conn, "select pg_current_wal_insert_lsn() - '0/0'::pg_lsn"),
        .server_cpu = server_cpu(conn),
        .own_cpu = own_cpu(),
        .enqueued = (double)atomic_load(&soak.enqueued),
        .completed = (double)counts.completed,
        .failed = (double)counts.failed,
    };
}

static void print_sample(PGconn *conn, double start, const struct totals *from,
                         const struct totals *to, const struct histogram *latency,
                         const struct histogram *commit)
{
    double seconds = to->at_s - from->at_s;
    printf(
        "{\"at_s\": %.1f, \"enqueued_s\": %.0f, \"completed_s\": %.0f, \"failed_s\": %.0f, "
        "\"depth\": %.0f, \"p50_ms\": %.2f, \"p99_ms\": %.2f, \"max_ms\": %.1f, "
        "\"commit_p99_ms\": %.2f, \"disk_bytes\": %.0f, \"wal_bytes_s\": %.0f, \"server_cores\": %.3f, "
        "\"client_cores\": %.3f, \"client_bytes\": %.0f}\n",
        to->at_s - start, (to->enqueued - from->enqueued) / seconds,
        (to->completed - from->completed) / seconds, (to->failed - from->failed) / seconds,
        db_number(conn, "select millrace.depth('soak')"),
        (double)histogram_percentile(latency, 0.5) / 1000,
        (double)histogram_percentile(latency, 0.99) / 1000,
        (double)atomic_load(&latency->most_us) / 1000,
        (double)histogram_percentile(commit, 0.99) / 1000,
        db_number(conn, "select pg_database_size(current_database())"),
        (to->wal - from->wal) / seconds, (to->server_cpu - from->server_cpu) / seconds,
        (to->own_cpu - from->own_cpu) / seconds, resident_bytes());
    fflush(stdout);
}

// Another histogram takes its place; returns the full one.
static struct histogram *exchange(struct histogram *_Atomic *place, struct histogram pair[2])
{
    struct histogram *full = atomic_load(place);
    struct histogram *next = full == &pair[0] ? &pair[1] : &pair[0];
    histogram_init(next);
    atomic_store(place, next);
    return full;
}

static void take_samples(PGconn *conn)
{
    static struct histogram latency[2], commit[2];
    double start = now_s();
    struct totals from = totals_now(conn);

    for (long i = 1; i <= soak.seconds / soak.sample_s; i++) {
        while (now_s() < start + (double)(i * soak.sample_s))
            pause_ms(10);
        struct totals to = totals_now(conn);
        print_sample(conn, start, &from, &to, exchange(&soak.latency, latency),
                     exchange(&soak.commit, commit));
        if (i * soak.sample_s % 60 < soak.sample_s)
            progress("soak: %ld of %ld s", i * soak.sample_s, soak.seconds);
        from = to;
    }
}

// ---- the whole ----

// Every job that was put in has to come out: completed once each.
static void await_the_rest(PGconn *conn)
{
    mr_worker_counts counts = MR_WORKER_COUNTS_INIT;
    double deadline = now_s() + LAST_JOBS_S;

    do {
        pause_ms(100);
        counts = counts_now();
        if (now_s() > deadline)
            die("%ld of %ld jobs were completed, %.0f are left", (long)counts.completed,
                (long)atomic_load(&soak.enqueued),
                db_number(conn, "select millrace.depth('soak')"));
    } while (counts.completed != atomic_load(&soak.enqueued));
    if (counts.failed < counts.completed / FAILS_ONE_IN / 2)
        die("%ld of %ld jobs failed once, that is not one in %d", (long)counts.failed,
            (long)counts.completed, FAILS_ONE_IN);
    progress("soak: %ld jobs, each completed; %ld failed once before", (long)counts.completed,
             (long)counts.failed);
}

static void set_up(PGconn *conn)
{
    uint64_t seed = 88172645463325252U; // xorshift, of Marsaglia
    for (size_t i = 0; i < NOISE_SIZE; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        soak.noise[i] = (unsigned char)seed;
    }
    // A part for each worker: a part is claimed from by one at a time.
    db_run(conn,
           "select millrace.set_queue('soak', '{\"retention\": \"2 minutes\", \"parts\": 2}')");
    db_run(conn, "create table bench_probe (n int)");
    db_run(conn, "select millrace.set_retry('soak', 5, '2 seconds', 2.0, '1 minute', 0.2)");
}

static void run(PGconn *conn)
{
    static struct histogram first, first_commit;
    mr_worker_options options = MR_WORKER_OPTIONS_INIT;
    pthread_t producer, prober, threads[WORKERS];
    mr_error err;

    options.dsn = dsn;
    options.queue = "soak";
    options.handler = work;
    options.batch = 200;
    options.concurrency = 1;
    histogram_init(&first);
    histogram_init(&first_commit);
    atomic_store(&soak.latency, &first);
    atomic_store(&soak.commit, &first_commit);
    upkeep_start(database, UPKEEP_MS);
    for (int i = 0; i < WORKERS; i++) {
        if (mr_worker_new(&options, &soak.workers[i], &err))
            die("%s", err.message);
        if (pthread_create(&threads[i], NULL, run_worker, soak.workers[i]))
            die("cannot start a thread");
    }
    if (pthread_create(&producer, NULL, produce, NULL) ||
        pthread_create(&prober, NULL, probe, NULL))
        die("cannot start a thread");
    take_samples(conn);
    atomic_store(&soak.stop, true);
    pthread_join(producer, NULL);
    pthread_join(prober, NULL);
    await_the_rest(conn);
    for (int i = 0; i < WORKERS; i++) {
        mr_worker_stop(soak.workers[i]);
        pthread_join(threads[i], NULL);
        mr_worker_free(soak.workers[i]);
    }
    struct upkeep_done done = upkeep_stop();
    progress(
        "soak: upkeep: %ld rotations, %ld segments retired, %ld warnings, slowest round %.1f s",
        done.rotations, done.retired, done.failures, done.slowest_round_s);
    if (done.failures)
        die("upkeep warned");
}

static long number_of(const char *text)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (*end != '\0' || number < 1 || number > 1000000)
        die("%s is not a number from 1 to 1,000,000", text);
    return number;
}

static void parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        long number = i + 1 < argc ? number_of(argv[i + 1]) : 0;
        if (number && strcmp(argv[i], "--seconds") == 0)
            soak.seconds = number;
        else if (number && strcmp(argv[i], "--rate") == 0)
            soak.rate = number;
        else if (number && strcmp(argv[i], "--sample") == 0)
            soak.sample_s = number;
        else
            die("usage: soak [--seconds N] [--rate JOBS] [--sample SECONDS]");
    }
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    db_create(database);
    PGconn *conn = db_open(database);
    set_up(conn);
    run(conn);
    db_close(conn);
    db_drop(database);
    return 0;
}
