// SPDX-License-Identifier: PostgreSQL
//
// The worker: handlers and what they say, stopping, leases, health.

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver.h"

static mr_worker_options worker_options(const char *queue, mr_handler *handler, void *arg)
{
    mr_worker_options options = MR_WORKER_OPTIONS_INIT;

    options.pooler = getenv("MR_TEST_POOLER") != NULL;
    options.queue = queue;
    options.handler = handler;
    options.arg = arg;
    options.concurrency = 4;
    options.batch = 10;
    return options;
}

static mr_worker *make_worker(const mr_worker_options *options)
{
    mr_worker *worker = NULL;

    CHECK_OK(mr_worker_new(options, &worker, &err));
    return worker;
}

static mr_worker_counts counts_of(mr_worker *worker)
{
    mr_worker_counts counts = MR_WORKER_COUNTS_INIT;

    mr_worker_stats(worker, &counts);
    return counts;
}

// Runs a worker until its queue is empty.
static mr_worker_counts drain(const char *queue, mr_handler *handler, void *arg)
{
    mr_worker_options options = worker_options(queue, handler, arg);

    options.until_empty = 1;
    mr_worker *worker = make_worker(&options);
    CHECK_OK(mr_worker_run(worker, &err));
    mr_worker_counts counts = counts_of(worker);
    mr_worker_free(worker);
    return counts;
}

// A worker that runs on a thread of its own.
struct running {
    mr_worker *worker;
    pthread_t thread;
    mr_error err;
    int code;
};

static void *run_worker(void *arg)
{
    struct running *running = arg;

    running->code = mr_worker_run(running->worker, &running->err);
    return NULL;
}

static void start(struct running *running, const mr_worker_options *options)
{
    *running = (struct running){.worker = make_worker(options)};
    CHECK(pthread_create(&running->thread, NULL, run_worker, running) == 0);
}

static void await_end(struct running *running)
{
    CHECK(pthread_join(running->thread, NULL) == 0);
}

// ---- outcomes ----

static int count_it(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    (void)job;
    (void)outcome;
    atomic_fetch_add((atomic_int *)arg, 1);
    return 0;
}

static void worker_completes(void)
{
    mr_conn *conn = open_conn();
    atomic_int ran = 0;

    enqueue_plain(conn, "w completes", 500);
    mr_worker_counts counts = drain("w completes", count_it, &ran);
    CHECK_NUMBER(ran, 500);
    CHECK_NUMBER(counts.claimed, 500);
    CHECK_NUMBER(counts.completed, 500);
    CHECK_NUMBER(counts.failed + counts.requeued + counts.released + counts.lost, 0);
    CHECK_NUMBER(counts.running, 0);
    CHECK(counts.claims >= 50);
    CHECK_NUMBER(depth_of(conn, "w completes"), 0);
    mr_conn_free(conn);
}

static void worker_completes_many(void)
{
    mr_conn *conn = open_conn();
    atomic_int ran = 0;

    enqueue_plain(conn, "w completes many", 3000);
    mr_worker_counts counts = drain("w completes many", count_it, &ran);
    CHECK_NUMBER(ran, 3000);
    CHECK_NUMBER(counts.completed, 3000);
    mr_conn_free(conn);
}

static int fail_it(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    (void)arg;
    if (strcmp(job->args, "1") == 0) {
        return 3;
    }
    CHECK(mr_outcome_fail(outcome, "no \"luck\"\n", 0, 1) == 0);
    return 0; // what was said counts more
}

static void worker_fails(void)
{
    static const char *const args[] = {"1", "2"};
    mr_conn *conn = open_conn();
    mr_job_spec job = MR_JOB_SPEC_INIT;
    int64_t ids[2];
    char *story = NULL;

    job.kind = "k";
    job.queue = "w fails";
    CHECK_OK(mr_enqueue_many(conn, &job, args, 2, 0, ids, NULL, &err));
    mr_worker_counts counts = drain("w fails", fail_it, NULL);
    CHECK_NUMBER(counts.failed, 2);
    CHECK_OK(mr_job(conn, ids[0], &story, &err));
    CHECK(has(story, "the handler returned 3") && has(story, "\"scheduled\""));
    mr_free(story);
    CHECK_OK(mr_job(conn, ids[1], &story, &err));
    CHECK(has(story, "no \\\"luck\\\"\\n") && has(story, "\"dead\""));
    mr_free(story);
    mr_conn_free(conn);
}

// First snoozes, then asks to be run again with other args, then completes; what it knows
// travels in the state.
static int step_by_step(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    char state = job->state ? *(const char *)job->state : '0';

    CHECK_NUMBER(job->attempt, 1);
    atomic_fetch_add((atomic_int *)arg, 1);
    switch (state) {
    case '0':
        CHECK(mr_outcome_state(outcome, "1", 1) == 0); // before or after: the same
        CHECK(mr_outcome_snooze(outcome, 1) == 0);
        return 0;
    case '1':
        CHECK(mr_outcome_requeue(outcome, "{\"args\": {\"step\": 2}}") == 0);
        CHECK(mr_outcome_state(outcome, "2", 1) == 0);
        return 1; // what was said counts more
    case '2':
        CHECK_TEXT(job->args, "{\"step\": 2}");
        CHECK(mr_outcome_fail(outcome, "forget this", 0, 1) == 0);
        CHECK(mr_outcome_complete(outcome, "{\"steps\": 3}") == 0);
        return 0;
    default: return 1;
    }
}

static void worker_takes_steps(void)
{
    mr_conn *conn = open_conn();
    atomic_int ran = 0;
    mr_worker_counts counts = MR_WORKER_COUNTS_INIT;
    int64_t requeued = 0, deadline_ms = now_ms() + 30000;

    enqueue_plain(conn, "w steps", 1);
    while (ran < 3) { // a worker that is to end when empty does not wait for the snoozed
        counts = drain("w steps", step_by_step, &ran);
        requeued += counts.requeued;
        CHECK(now_ms() < deadline_ms);
    }
    CHECK_NUMBER(requeued, 2);
    CHECK_NUMBER(counts.completed, 1);
    mr_conn_free(conn);
}

static int smuggle(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    (void)arg;
    if (strcmp(job->args, "1") == 0) {
        CHECK(mr_outcome_complete(outcome, "1},{\"id\":1,\"outcome\":\"failed\"") == MR_EINVALID);
    } else if (strcmp(job->args, "2") == 0) {
        CHECK(mr_outcome_complete(outcome, "\"\\u0000\"") == 0); // JSON, but not for jsonb
    } else {
        CHECK(mr_outcome_complete(outcome, "[3]") == 0);
    }
    return 0;
}

// What one handler says wrongly hurts its own job only.
static void worker_says_nonsense(void)
{
    static const char *const args[] = {"1", "2", "3", "4"};
    mr_conn *conn = open_conn();
    mr_job_spec job = MR_JOB_SPEC_INIT;
    int64_t ids[4];
    char *story = NULL;

    job.kind = "k";
    job.queue = "w nonsense";
    CHECK_OK(mr_enqueue_many(conn, &job, args, 4, 0, ids, NULL, &err));
    mr_worker_counts counts = drain("w nonsense", smuggle, NULL);
    CHECK_NUMBER(counts.failed, 2);
    CHECK_NUMBER(counts.completed, 2);
    CHECK_OK(mr_job(conn, ids[0], &story, &err));
    CHECK(has(story, "the handler's result"));
    mr_free(story);
    CHECK_OK(mr_job(conn, ids[3], &story, &err));
    CHECK(has(story, "\"completed\"") && has(story, "[3]"));
    mr_free(story);
    mr_conn_free(conn);
}

// ---- stopping ----

// A gate that handlers wait at, once so many have passed.
struct gate {
    int pass;
    atomic_int arrived;
    atomic_bool open;
};

static int wait_at_gate(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    struct gate *gate = arg;

    (void)job;
    (void)outcome;
    if (atomic_fetch_add(&gate->arrived, 1) < gate->pass) {
        return 0;
    }
    while (!atomic_load(&gate->open)) {
        pause_ms(1);
    }
    return 0;
}

static void await_arrival(struct gate *gate, int count)
{
    int64_t deadline_ms = now_ms() + 30000;

    while (atomic_load(&gate->arrived) < count) {
        CHECK(now_ms() < deadline_ms);
        pause_ms(1);
    }
}

// Short jobs first, so that the worker takes some ahead; then two run, and the rest waits in
// memory: that goes back at once, and the two may end.
static void worker_stops(void)
{
    enum { PASS = 40, REST = 30 };
    mr_conn *conn = open_conn();
    struct gate gate = {.pass = PASS};
    mr_worker_options options = worker_options("w stops", wait_at_gate, &gate);
    struct running running;
    int64_t deadline_ms = now_ms() + 30000;

    enqueue_plain(conn, "w stops", PASS + REST);
    options.concurrency = 2;
    options.grace_ms = INT64_MAX; // as long as it takes
    options.poll_ms = INT64_MAX;
    start(&running, &options);
    await_arrival(&gate, PASS + 2);
    while (counts_of(running.worker).running <= 2) {
        CHECK(now_ms() < deadline_ms);
    }
    mr_worker_stop(running.worker);
    mr_worker_stop(running.worker);
    while (depth_of(conn, "w stops") != REST - 2) {
        CHECK(now_ms() < deadline_ms);
    }
    CHECK_NUMBER(counts_of(running.worker).running, 2);
    CHECK(!mr_worker_healthy(running.worker));
    atomic_store(&gate.open, true);
    await_end(&running);
    CHECK_NUMBER(running.code, 0);
    CHECK_NUMBER(counts_of(running.worker).completed, PASS + 2);
    CHECK(counts_of(running.worker).released > 0);
    CHECK_NUMBER(counts_of(running.worker).released,
                 counts_of(running.worker).claimed - (PASS + 2));
    CHECK_NUMBER(gate.arrived, PASS + 2);
    for (int left = REST - 2; left > 0;) {
        mr_batch *batch = claim_some(conn, "w stops", 100);
        CHECK_NUMBER(mr_batch_job(batch, 0)->attempt, 1);
        left -= (int)mr_batch_count(batch);
        mr_batch_free(batch);
    }
    mr_worker_free(running.worker);
    mr_conn_free(conn);
}

static void *open_later(void *arg)
{
    pause_ms(300); // in which one who does not wait has gone on
    atomic_store(&((struct gate *)arg)->open, true);
    return NULL;
}

// A handler that does not end: its job goes back at the end of the grace period, though another of
// the same lease is done, and mr_worker_free() waits for it.
static void worker_has_grace(void)
{
    mr_conn *conn = open_conn();
    struct gate gate = {.pass = 1};
    mr_worker_options options = worker_options("w grace", wait_at_gate, &gate);
    struct running running;
    pthread_t opener;

    enqueue_plain(conn, "w grace", 2);
    options.grace_ms = 100;
    start(&running, &options);
    await_arrival(&gate, 2);
    mr_worker_stop(running.worker);
    await_end(&running);
    CHECK_NUMBER(running.code, 0);
    CHECK(!atomic_load(&gate.open));
    CHECK_NUMBER(counts_of(running.worker).released, 1);
    CHECK_NUMBER(counts_of(running.worker).completed, 1);
    mr_batch *batch = claim_some(conn, "w grace", 1);
    CHECK_NUMBER(mr_batch_job(batch, 0)->attempt, 1);
    CHECK(pthread_create(&opener, NULL, open_later, &gate) == 0);
    mr_worker_free(running.worker);
    CHECK(atomic_load(&gate.open));
    CHECK(pthread_join(opener, NULL) == 0);
    CHECK_OK(mr_complete(conn, mr_batch_lease(batch), NULL, 0, NULL, NULL, &err));
    mr_batch_free(batch);
    mr_conn_free(conn);
}

static mr_worker *signalled;

static void on_signal(int number)
{
    (void)number;
    mr_worker_stop(signalled);
}

static int raise_once(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    (void)job;
    (void)outcome;
    (void)arg;
    CHECK(kill(getpid(), SIGTERM) == 0);
    return 0;
}

static void worker_stops_by_signal(void)
{
    mr_conn *conn = open_conn();
    mr_worker_options options = worker_options("w signal", raise_once, NULL);
    struct sigaction action = {.sa_handler = on_signal};

    enqueue_plain(conn, "w signal", 1);
    signalled = make_worker(&options);
    CHECK(sigaction(SIGTERM, &action, NULL) == 0);
    CHECK_OK(mr_worker_run(signalled, &err));
    CHECK_NUMBER(counts_of(signalled).completed, 1);
    CHECK_CODE(mr_worker_run(signalled, &err), MR_EUSAGE);
    mr_worker_free(signalled);
    mr_worker_free(NULL);
    mr_conn_free(conn);
}

static void worker_stopped_before(void)
{
    atomic_int ran = 0;
    mr_worker_options options = worker_options("w before", count_it, &ran);
    mr_worker *worker = make_worker(&options);

    mr_worker_stop(worker);
    mr_worker_stop(NULL);
    CHECK_OK(mr_worker_run(worker, &err));
    mr_worker_free(worker);
    // and one that never runs
    mr_worker_free(make_worker(&options));
}

// ---- cancelling ----

struct patient {
    int status; // what it returns when it is cancelled
    atomic_int begun;
};

static int until_cancelled(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    struct patient *patient = arg;
    int64_t deadline_ms = now_ms() + 30000;

    (void)job;
    atomic_fetch_add(&patient->begun, 1);
    while (!mr_outcome_cancelled(outcome)) {
        CHECK(now_ms() < deadline_ms);
        pause_ms(5);
    }
    return patient->status;
}

static void cancel_one(const char *queue, int status, const char *expected)
{
    mr_conn *conn = open_conn();
    PGconn *session = open_session();
    struct patient patient = {.status = status};
    mr_worker_options options = worker_options(queue, until_cancelled, &patient);
    struct running running;
    char statement[256];
    int64_t deadline_ms = now_ms() + 30000;

    enqueue_plain(conn, queue, 1);
    options.lease_ms = 600;
    start(&running, &options);
    while (atomic_load(&patient.begun) == 0) {
        CHECK(now_ms() < deadline_ms);
        pause_ms(1);
    }
    snprintf(statement, sizeof(statement),
             "select millrace.cancel(id) from millrace.jobs where queue = '%s'", queue);
    CHECK_TEXT(session_ask(session, statement), "running");
    snprintf(statement, sizeof(statement), "select status from millrace.jobs where queue = '%s'",
             queue);
    session_await(session, statement, expected);
    mr_worker_stop(running.worker);
    await_end(&running);
    CHECK_NUMBER(running.code, 0);
    CHECK_NUMBER(counts_of(running.worker).failed, status ? 1 : 0);
    CHECK_NUMBER(counts_of(running.worker).completed, status ? 0 : 1);
    mr_worker_free(running.worker);
    PQfinish(session);
    mr_conn_free(conn);
}

// A handler that asks ends early; what it returns still counts.
static void worker_is_cancelled(void)
{
    cancel_one("w cancelled", 7, "cancelled");
    cancel_one("w finished", 0, "completed");
}

// Short jobs first, so that the worker takes some ahead; then one waits at the gate. All that it
// holds are cancelled: those behind the gate never begin, the one at the gate does not ask.
static void worker_withdraws_cancelled(void)
{
    enum { PASS = 40, REST = 20 };
    mr_conn *conn = open_conn();
    PGconn *session = open_session();
    struct gate gate = {.pass = PASS};
    mr_worker_options options = worker_options("w withdraws", wait_at_gate, &gate);
    struct running running;
    char expected[32];
    int64_t deadline_ms = now_ms() + 30000;

    enqueue_plain(conn, "w withdraws", PASS + REST);
    options.concurrency = 1;
    options.lease_ms = 600;
    start(&running, &options);
    await_arrival(&gate, PASS + 1);
    while (counts_of(running.worker).running <= 1) {
        CHECK(now_ms() < deadline_ms);
    }
    session_await(session,
                  "select count(*) from millrace.jobs where queue = 'w withdraws'"
                  " and status = 'completed'",
                  "40");
    int cancelled = atoi(session_ask(session, "select count(millrace.cancel(id)) from millrace.jobs"
                                              " where queue = 'w withdraws'"
                                              " and status = 'running'"));
    CHECK(cancelled > 1);
    snprintf(expected, sizeof(expected), "%d", cancelled - 1);
    session_await(session,
                  "select count(*) from millrace.jobs where queue = 'w withdraws'"
                  " and status = 'cancelled'",
                  expected);
    CHECK_NUMBER(gate.arrived, PASS + 1);
    mr_worker_stop(running.worker);
    atomic_store(&gate.open, true);
    await_end(&running);
    CHECK_NUMBER(running.code, 0);
    CHECK_NUMBER(counts_of(running.worker).failed, cancelled - 1);
    session_await(session,
                  "select count(*) from millrace.jobs where queue = 'w withdraws'"
                  " and status = 'cancelled'",
                  expected);
    mr_worker_free(running.worker);
    PQfinish(session);
    mr_conn_free(conn);
}

// ---- leases, connections, health ----

static int outlive_the_lease(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    int64_t until_ms = now_ms() + *(int64_t *)arg * 3;

    (void)outcome;
    CHECK_NUMBER(job->attempt, 1);
    while (now_ms() < until_ms) {
        pause_ms(10);
    }
    return 0;
}

static void worker_beats(void)
{
    mr_conn *conn = open_conn();
    int64_t lease_ms = 3000; // a heartbeat may be late by two thirds of that
    mr_worker_options options = worker_options("w beats", outlive_the_lease, &lease_ms);
    struct running running;
    PGconn *session = open_session();

    enqueue_plain(conn, "w beats", 1);
    options.lease_ms = lease_ms;
    options.until_empty = 1;
    start(&running, &options);
    // somebody who would rescue it if the lease ran out
    while (counts_of(running.worker).completed == 0 && counts_of(running.worker).lost == 0) {
        session_run(session, "select millrace.maintain()");
        pause_ms(20);
    }
    await_end(&running);
    CHECK_NUMBER(running.code, 0);
    CHECK_NUMBER(counts_of(running.worker).completed, 1);
    CHECK_NUMBER(counts_of(running.worker).lost, 0);
    mr_worker_free(running.worker);
    PQfinish(session);
    mr_conn_free(conn);
}

static int slowly(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    (void)job;
    (void)outcome;
    pause_ms(2);
    atomic_fetch_add((atomic_int *)arg, 1);
    return 0;
}

// Sessions end again and again under way: the worker comes back by itself and nothing is lost.
static void worker_reconnects(void)
{
    mr_conn *conn = open_conn();
    atomic_int ran = 0;
    mr_worker_options options = worker_options("w reconnects", slowly, &ran);
    struct running running;
    PGconn *session = open_session();

    enqueue_plain(conn, "w reconnects", 400);
    options.until_empty = 1;
    options.lease_ms = 2000;
    start(&running, &options);
    // Behind a pooler a session that dies between two transactions is not missed: then some more.
    for (int kills = 1; kills <= 3 || (kills < 19 && !counts_of(running.worker).reconnects);
         kills++) {
        while (atomic_load(&ran) < kills * 20) {
            pause_ms(1);
        }
        session_run(session, "select count(pg_terminate_backend(pid)) from pg_stat_activity"
                             " where datname = current_database() and pid <> pg_backend_pid()"
                             " and backend_type = 'client backend'");
    }
    await_end(&running);
    CHECK_NUMBER(running.code, 0);
    CHECK(ran >= 400);
    CHECK(counts_of(running.worker).reconnects >= 1);
    mr_worker_free(running.worker);
    // what a lost claim held comes back when its lease has ended
    while (strcmp(session_ask(session, "select count(*) from millrace.jobs where queue ="
                                       " 'w reconnects' and status <> 'completed'"),
                  "0") != 0) {
        drain("w reconnects", slowly, &ran);
    }
    PQfinish(session);
    mr_conn_free(conn);
}

static void await_health(mr_worker *worker, int expected)
{
    int64_t deadline_ms = now_ms() + 30000;

    while (mr_worker_healthy(worker) != expected) {
        CHECK(now_ms() < deadline_ms);
        pause_ms(5);
    }
}

// Needs MR_TEST_STOP and MR_TEST_START.
static void worker_health(void)
{
    mr_conn *conn = open_conn();
    atomic_int ran = 0;
    mr_worker_options options = worker_options("w health", count_it, &ran);
    struct running running;
    int64_t deadline_ms = now_ms() + 30000;

    options.health_ms = 500;
    mr_worker *never = make_worker(&options);
    CHECK_NUMBER(mr_worker_healthy(never), 0);
    CHECK_NUMBER(mr_worker_healthy(NULL), 0);
    mr_worker_free(never);
    start(&running, &options);
    await_health(running.worker, 1);
    CHECK(system(getenv("MR_TEST_STOP")) == 0); // NOLINT(cert-env33-c)
    await_health(running.worker, 0);
    CHECK(system(getenv("MR_TEST_START")) == 0); // NOLINT(cert-env33-c)
    await_health(running.worker, 1);
    enqueue_plain(conn, "w health", 1);
    while (atomic_load(&ran) == 0) {
        CHECK(now_ms() < deadline_ms);
        pause_ms(5);
    }
    mr_worker_stop(running.worker);
    await_end(&running);
    CHECK_NUMBER(running.code, 0);
    CHECK_NUMBER(mr_worker_healthy(running.worker), 0);
    CHECK(counts_of(running.worker).reconnects >= 1);
    mr_worker_free(running.worker);
    mr_conn_free(conn);
}

// A job that comes while the worker waits is picked up.
static void worker_wakes(void)
{
    mr_conn *conn = open_conn();
    atomic_int ran = 0;
    mr_worker_options options = worker_options("w wakes", count_it, &ran);
    struct running running;
    int64_t deadline_ms = now_ms() + 60000;

    start(&running, &options);
    await_health(running.worker, 1);
    for (int i = 0; i < 20; i++) {
        enqueue_plain(conn, "w wakes", 1);
        while (atomic_load(&ran) < i + 1) {
            CHECK(now_ms() < deadline_ms);
            pause_ms(1);
        }
    }
    mr_worker_stop(running.worker);
    await_end(&running);
    CHECK_NUMBER(running.code, 0);
    CHECK_NUMBER(counts_of(running.worker).completed, 20);
    mr_worker_free(running.worker);
    mr_conn_free(conn);
}

// ---- wrong usage ----

static void wrong_worker(void)
{
    mr_worker_options options = MR_WORKER_OPTIONS_INIT;
    mr_worker_counts counts = {0};
    atomic_int ran = 0;
    mr_worker *worker = NULL;

    CHECK_CODE(mr_worker_new(NULL, &worker, &err), MR_EUSAGE);
    CHECK_CODE(mr_worker_new(&options, &worker, &err), MR_EUSAGE); // no handler
    options.handler = count_it;
    options.arg = &ran;
    options.concurrency = 100000;
    CHECK_CODE(mr_worker_new(&options, &worker, &err), MR_EUSAGE);
    options.concurrency = 1;
    options.batch = 10001;
    CHECK_CODE(mr_worker_new(&options, &worker, &err), MR_EUSAGE);
    options.batch = -1;
    CHECK_CODE(mr_worker_new(&options, &worker, &err), MR_EUSAGE);
    options.batch = 0;
    options.grace_ms = -1;
    CHECK_CODE(mr_worker_new(&options, &worker, &err), MR_EUSAGE);
    options.grace_ms = 0;
    options.dsn = "postgresql://user:secret@[host/";
    CHECK_CODE(mr_worker_new(&options, &worker, &err), MR_EUSAGE);
    options.size = 0;
    CHECK_CODE(mr_worker_new(&options, &worker, &err), MR_EUSAGE);
    CHECK(worker == NULL);
    CHECK_CODE(mr_worker_run(NULL, &err), MR_EUSAGE);
    mr_worker_stats(NULL, &counts);
}

// What makes going on useless ends it, with the reason.
static void worker_without_schema(void)
{
    atomic_int ran = 0;
    mr_worker_options options = worker_options("w none", count_it, &ran);

    options.dsn = getenv("MR_TEST_BARE_DSN");
    mr_worker *worker = make_worker(&options);
    CHECK_CODE(mr_worker_run(worker, &err), MR_ESCHEMA);
    mr_worker_free(worker);
}

const struct driver_case worker_cases[] = {
    {"worker_completes", worker_completes},
    {"worker_completes_many", worker_completes_many},
    {"worker_fails", worker_fails},
    {"worker_takes_steps", worker_takes_steps},
    {"worker_says_nonsense", worker_says_nonsense},
    {"worker_stops", worker_stops},
    {"worker_has_grace", worker_has_grace},
    {"worker_stops_by_signal", worker_stops_by_signal},
    {"worker_stopped_before", worker_stopped_before},
    {"worker_is_cancelled", worker_is_cancelled},
    {"worker_withdraws_cancelled", worker_withdraws_cancelled},
    {"worker_beats", worker_beats},
    {"worker_reconnects", worker_reconnects},
    {"worker_health", worker_health},
    {"worker_wakes", worker_wakes},
    {"wrong_worker", wrong_worker},
    {"worker_without_schema", worker_without_schema},
    {0},
};
