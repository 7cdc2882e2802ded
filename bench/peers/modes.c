// SPDX-License-Identifier: PostgreSQL
//
// What is measured, the same for every contender: threads with a session each, which meet
// before the clock starts.

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "../db.h"
#include "peer.h"
#include "pipeline.h"

enum {
    THREADS_MAX = 64,
    SLICES_MAX = 100,
    LATENCIES_MAX = 10000,
    WARM_UP_MS = 500,
    PICK_UP_LIMIT_S = 30,
};

static struct {
    const struct request *request;
    pthread_barrier_t start;
    atomic_long given;  // jobs that producers have taken upon them
    atomic_long queued; // jobs in the queue, ever
    atomic_long done;   // jobs completed
    atomic_bool stop;
    _Atomic double begun_s; // when all had met
    double slice_end_s[SLICES_MAX + 1];
    _Atomic double claimed_s; // when a claim arrived last; 0: none since it was reset
} run;

void peer_note_claim(long jobs)
{
    (void)jobs;
    atomic_store(&run.claimed_s, now_s());
}

// ---- threads ----

static void threads_start(pthread_t *threads, int count, void *(*body)(void *))
{
    for (int i = 0; i < count; i++) {
        if (pthread_create(&threads[i], NULL, body, NULL) != 0) {
            die("cannot start a thread");
        }
    }
}

static void threads_join(pthread_t *threads, int count)
{
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void run_begin(const struct request *request, int threads)
{
    run.request = request;
    atomic_store(&run.begun_s, 0);
    if (threads < 1 || threads > THREADS_MAX) {
        die("at most %d threads", THREADS_MAX);
    }
    // The main thread is one of those who meet.
    pthread_barrier_init(&run.start, NULL, (unsigned)threads + 1);
}

// One at a time: sessions begin with a file of SQL that makes what is missing.
static void *session_open(const struct peer *peer)
{
    static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&door);
    void *session = peer->open();
    pthread_mutex_unlock(&door);
    return session;
}

// The first to go on writes down when: the main thread may come to it long after the others.
static void meet(void)
{
    double none = 0;
    pthread_barrier_wait(&run.start);
    double now = now_s();
    atomic_compare_exchange_strong(&run.begun_s, &none, now);
}

// ---- answers ----

static void say_begin(const char *mode, const struct request *request, long jobs, double seconds)
{
    printf("{\"mode\": \"%s\", \"contender\": \"%s\", \"jobs\": %ld, \"batch\": %d, \"chunk\": %d, "
           "\"workers\": %d, \"producers\": %d, \"seconds\": %.6f, \"rate\": %.1f",
           mode, request->peer->name, jobs, request->batch, request->chunk, request->workers,
           request->producers, seconds, seconds > 0 ? (double)jobs / seconds : 0);
}

static void say_end(void)
{
    printf("}\n");
}

void mode_setup(const struct request *request)
{
    request->peer->setup();
    say_begin("setup", request, 0, 0);
    say_end();
}

// ---- enqueue ----

static void *enqueue_thread(void *arg)
{
    const struct request *request = run.request;
    const struct peer *peer = request->peer;
    void *session = session_open(peer);
    long since_tick = 0;
    (void)arg;
    meet();
    for (;;) {
        long first = atomic_fetch_add(&run.given, request->chunk);
        if (first >= request->jobs) {
            break;
        }
        long left = request->jobs - first;
        int count = left < request->chunk ? (int)left : request->chunk;
        peer->enqueue(session, count, false);
        since_tick += count;
        if (peer->tick && request->tick_jobs > 0 && since_tick >= request->tick_jobs) {
            peer->tick(session);
            since_tick = 0;
        }
    }
    peer->close(session);
    return NULL;
}

static void last_tick(const struct peer *peer)
{
    if (peer->tick) {
        void *session = session_open(peer);
        peer->tick(session);
        peer->close(session);
    }
}

void mode_enqueue(const struct request *request)
{
    pthread_t threads[THREADS_MAX] = {0};
    run_begin(request, request->producers);
    threads_start(threads, request->producers, enqueue_thread);
    meet();
    threads_join(threads, request->producers);
    double seconds = now_s() - atomic_load(&run.begun_s);
    last_tick(request->peer);
    say_begin("enqueue", request, request->jobs, seconds);
    say_end();
}

// ---- drain ----

// The thread that completes the last job of a slice writes down when.
static void note_done(long jobs)
{
    const struct request *request = run.request;
    long before = atomic_fetch_add(&run.done, jobs);
    double now = now_s();
    long size = request->jobs / request->slices;
    for (long slice = before / size; slice < (before + jobs) / size; slice++) {
        if (slice < request->slices) {
            run.slice_end_s[slice + 1] = now;
        }
    }
}

static void *drain_thread(void *arg)
{
    const struct request *request = run.request;
    void *session = session_open(request->peer);
    (void)arg;
    meet();
    for (;;) {
        long left = request->jobs - atomic_load(&run.done);
        if (left <= 0) {
            break;
        }
        long count = request->peer->work(session, request->batch, left > request->batch);
        if (count == 0) {
            break; // the others have what is left
        }
        note_done(count);
    }
    request->peer->close(session);
    return NULL;
}

void mode_drain(const struct request *request)
{
    pthread_t threads[THREADS_MAX] = {0};
    if (request->slices < 1 || request->slices > SLICES_MAX || request->jobs < request->slices) {
        die("slices: 1 to %d, and not more than jobs", SLICES_MAX);
    }
    run_begin(request, request->workers);
    threads_start(threads, request->workers, drain_thread);
    meet();
    threads_join(threads, request->workers);
    run.slice_end_s[0] = atomic_load(&run.begun_s);
    double seconds = now_s() - run.slice_end_s[0];
    long done = atomic_load(&run.done);
    if (done < request->jobs) {
        die("%s ran out of jobs after %ld of %ld", request->peer->name, done, request->jobs);
    }
    say_begin("drain", request, done, seconds);
    printf(", \"slice_s\": [");
    for (int i = 0; i < request->slices; i++) {
        printf("%s%.6f", i ? ", " : "", run.slice_end_s[i + 1] - run.slice_end_s[i]);
    }
    printf("]");
    say_end();
}

// ---- steady state ----

static void *produce_thread(void *arg)
{
    const struct request *request = run.request;
    void *session = session_open(request->peer);
    (void)arg;
    meet();
    while (!atomic_load(&run.stop)) {
        if (atomic_load(&run.queued) - atomic_load(&run.done) >= request->backlog) {
            pause_ms(1);
            continue;
        }
        request->peer->enqueue(session, request->chunk, false);
        atomic_fetch_add(&run.queued, request->chunk);
    }
    request->peer->close(session);
    return NULL;
}

static void *work_thread(void *arg)
{
    const struct request *request = run.request;
    void *session = session_open(request->peer);
    (void)arg;
    meet();
    while (!atomic_load(&run.stop)) {
        long count = request->peer->work(session, request->batch, true);
        atomic_fetch_add(&run.done, count);
        if (count == 0) {
            pause_ms(1);
        }
    }
    request->peer->close(session);
    return NULL;
}

static void *tick_thread(void *arg)
{
    const struct request *request = run.request;
    void *session = session_open(request->peer);
    (void)arg;
    meet();
    while (!atomic_load(&run.stop)) {
        request->peer->tick(session);
        pause_ms(request->tick_ms);
    }
    request->peer->close(session);
    return NULL;
}

void mode_steady(const struct request *request)
{
    pthread_t threads[THREADS_MAX] = {0};
    int tickers = request->peer->tick ? 1 : 0;
    int count = request->producers + request->workers + tickers;
    run_begin(request, count);
    threads_start(threads, request->producers, produce_thread);
    threads_start(threads + request->producers, request->workers, work_thread);
    threads_start(threads + request->producers + request->workers, tickers, tick_thread);
    meet();
    pause_ms(WARM_UP_MS);
    double start = now_s();
    long before = atomic_load(&run.done);
    pause_ms(request->seconds * 1000L);
    long done = atomic_load(&run.done) - before;
    double seconds = now_s() - start;
    atomic_store(&run.stop, true);
    threads_join(threads, count);
    say_begin("steady", request, done, seconds);
    say_end();
}

// ---- latency ----

static void *pick_up_thread(void *arg)
{
    const struct request *request = run.request;
    void *session = session_open(request->peer);
    (void)arg;
    request->peer->wait_begin(session);
    meet();
    while (!atomic_load(&run.stop)) {
        if (request->peer->work(session, 1, false) == 0) {
            request->peer->wait(session, 100);
        }
    }
    request->peer->close(session);
    return NULL;
}

// Milliseconds from the moment the producer knows of its commit to the arrival of the claim.
static double pick_up_once(const struct peer *peer, void *session)
{
    atomic_store(&run.claimed_s, 0);
    peer->enqueue(session, 1, true);
    double committed = now_s();
    while (atomic_load(&run.claimed_s) == 0) {
        if (now_s() > committed + PICK_UP_LIMIT_S) {
            die("a job was not picked up in %d s", PICK_UP_LIMIT_S);
        }
        struct timespec moment = {.tv_nsec = 50000};
        nanosleep(&moment, NULL);
    }
    double ms = (atomic_load(&run.claimed_s) - committed) * 1000;
    return ms > 0 ? ms : 0;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void say_latency(const char *mode, const struct request *request, double *ms, long count)
{
    qsort(ms, (size_t)count, sizeof *ms, compare);
    say_begin(mode, request, count, 0);
    printf(", \"p50_ms\": %.4f, \"p99_ms\": %.4f", ms[count / 2], ms[(count * 99) / 100]);
    say_end();
}

static long latency_count(const struct request *request)
{
    if (request->jobs < 1 || request->jobs > LATENCIES_MAX) {
        die("latency: 1 to %d jobs", LATENCIES_MAX);
    }
    return request->jobs;
}

void mode_latency(const struct request *request)
{
    static double ms[LATENCIES_MAX];
    pthread_t threads[2] = {0};
    int count = request->peer->tick ? 2 : 1;
    long jobs = latency_count(request);
    run_begin(request, count);
    threads_start(threads, 1, pick_up_thread);
    threads_start(threads + 1, count - 1, tick_thread);
    void *session = session_open(request->peer);
    meet();
    for (long i = 0; i < jobs; i++) {
        // Idle again, and at no fixed distance from anybody's polls.
        pause_ms(20 + random() % 60);
        ms[i] = pick_up_once(request->peer, session);
    }
    atomic_store(&run.stop, true);
    threads_join(threads, count);
    request->peer->close(session);
    say_latency("latency", request, ms, jobs);
}

void mode_notify(const struct request *request)
{
    static double ms[LATENCIES_MAX];
    long jobs = latency_count(request);
    PGconn *listener = pipeline_open(), *sender = pipeline_open();
    db_run(listener, "listen bench");
    for (long i = 0; i < jobs; i++) {
        pause_ms(20 + random() % 60);
        db_run(sender, "notify bench");
        double committed = now_s();
        pipeline_wait(listener, PICK_UP_LIMIT_S * 1000);
        ms[i] = (now_s() - committed) * 1000;
    }
    db_close(listener);
    db_close(sender);
    say_latency("notify", request, ms, jobs);
}
