// SPDX-License-Identifier: PostgreSQL
//
// Drives the worker of src/client/worker.h by hand, one worker_advance() after the other, into
// moments that chance alone would seldom bring about. `driver CASE` runs one case against the
// database of MILLRACE_DSN, with a queue of the case's name, and ends with 0, or says which check
// failed and ends with 1.

#include <arpa/inet.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/worker_parts.h"

#define DEADLINE_MS 120000 // of one that hangs, also where the machine is busy
#define HELD_MAX    64

#define CHECK(condition) ((condition) ? (void)0 : failed(__LINE__, #condition))

struct trial {
    struct worker *worker;
    PGconn *session; // of the driver's own
    const char *queue;
    struct held_job *held[HELD_MAX];
    struct held_job *told; // the last one that was cancelled
    int held_count, room, dropped, cancelled;
    int events[WORKER_FAILED + 1];
    bool settles; // at once
};

static void failed(int line, const char *what)
{
    fprintf(stderr, "line %d: %s\n", line, what);
    exit(1);
}

// ---- the database ----

static const char *ask(const struct trial *trial, const char *statement)
{
    static char value[256];
    PGresult *result = PQexec(trial->session, statement);

    if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK) {
        failed(__LINE__, PQerrorMessage(trial->session));
    }
    snprintf(value, sizeof(value), "%s",
             PQntuples(result) && PQnfields(result) ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    return value;
}

static void enqueue(const struct trial *trial, int count)
{
    char statement[256];

    snprintf(statement, sizeof(statement),
             "select count(millrace.enqueue('k', queue => '%s')) from generate_series(1, %d)",
             trial->queue, count);
    ask(trial, statement);
}

// ---- the handler ----

static int on_room(void *arg)
{
    const struct trial *trial = arg;

    return trial->room - trial->held_count;
}

static void settle_with(struct trial *trial, int at, const char *result)
{
    struct held_job *held = trial->held[at];
    AUTO_OUTCOME outcome;

    outcome_init(&outcome);
    outcome_complete(&outcome, result);
    trial->held[at] = trial->held[--trial->held_count];
    worker_settle(trial->worker, held, &outcome);
}

static void settle(struct trial *trial, int at)
{
    settle_with(trial, at, NULL);
}

static void on_start(void *arg, struct held_job *const *jobs, int count)
{
    struct trial *trial = arg;

    for (int i = 0; i < count; i++) {
        CHECK(trial->held_count < HELD_MAX);
        trial->held[trial->held_count++] = jobs[i];
        if (trial->settles) {
            settle(trial, trial->held_count - 1);
        }
    }
}

static void on_drop(void *arg, struct held_job *job)
{
    struct trial *trial = arg;

    (void)job;
    trial->dropped++;
}

static void on_cancel(void *arg, struct held_job *job)
{
    struct trial *trial = arg;

    CHECK(job->cancelled && !job->dropped);
    trial->told = job;
    trial->cancelled++;
}

static void on_event(void *arg, enum worker_event event, const struct held_job *job,
                     const struct mr_error *err)
{
    struct trial *trial = arg;

    (void)job;
    if (err) {
        fprintf(stderr, "event %d: %s\n", (int)event, err->message);
    }
    trial->events[event]++;
}

// ---- driving ----

static void open_trial(struct trial *trial, struct worker_options options)
{
    static const struct worker_ops ops = {.room = on_room,
                                          .start = on_start,
                                          .drop = on_drop,
                                          .cancel = on_cancel,
                                          .event = on_event};
    struct mr_error err;

    options.queue = trial->queue;
    options.name = "driver";
    options.batch = options.batch ? options.batch : 10;
    options.poll_ms = 100;
    options.health_ms = 15000;
    trial->room = trial->room ? trial->room : options.batch;
    trial->session = PQconnectdb(getenv("MILLRACE_DSN"));
    CHECK(PQstatus(trial->session) == CONNECTION_OK);
    CHECK(worker_new(&options, &ops, trial, &trial->worker, &err) == 0);
}

static void close_trial(struct trial *trial)
{
    while (trial->held_count) {
        settle(trial, 0);
    }
    worker_free(trial->worker);
    PQfinish(trial->session);
}

// One turn of a loop that knows the worker's descriptor only.
static void turn(struct trial *trial)
{
    struct pollfd fd = {.fd = worker_fd(trial->worker), .events = POLLIN};

    CHECK(poll(&fd, 1, DEADLINE_MS) > 0);
    worker_advance(trial->worker);
}

#define TURN_UNTIL(trial, condition)                                      \
    do {                                                                  \
        int64_t end_ms = clock_ms() + DEADLINE_MS;                        \
        while (!(condition)) {                                            \
            clock_ms() < end_ms ? (void)0 : failed(__LINE__, #condition); \
            turn(trial);                                                  \
        }                                                                 \
    } while (0)

static mr_worker_counts counts_of(const struct trial *trial)
{
    mr_worker_counts counts = MR_WORKER_COUNTS_INIT;

    worker_counts(trial->worker, &counts);
    return counts;
}

// ---- cases ----

// The first host of the dsn refuses: libpq goes on to the next with a socket of the same number.
static void second_host(struct trial *trial)
{
    int64_t began_ms = clock_ms();

    open_trial(trial, (struct worker_options){.dsn = getenv("MR_TEST_HOSTS_DSN")});
    enqueue(trial, 1);
    TURN_UNTIL(trial, trial->held_count == 1);
    CHECK(clock_ms() - began_ms < 10000); // after which an attempt to connect is given up
}

// The first host takes connections and says nothing, as one does that hangs.
static void silent_host(struct trial *trial)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char dsn[512];

    CHECK(bind(listener, (struct sockaddr *)&address, size) == 0 && listen(listener, 16) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &size) == 0);
    snprintf(dsn, sizeof(dsn), "%s host=127.0.0.1,%s port=%d,%s", getenv("MILLRACE_DSN"),
             getenv("PGHOST"), ntohs(address.sin_port), getenv("PGPORT"));
    open_trial(trial, (struct worker_options){.dsn = dsn});
    enqueue(trial, 1);
    TURN_UNTIL(trial, trial->held_count == 1);
    CHECK(trial->events[WORKER_UNREACHABLE] == 1);
    close(listener);
}

// A job that does not end after the grace period: the worker is done, and quiet.
static void quiet_at_the_end(struct trial *trial)
{
    int turns = 0;

    open_trial(trial, (struct worker_options){.grace_ms = 1});
    enqueue(trial, 1);
    TURN_UNTIL(trial, trial->held_count == 1);
    worker_stop(trial->worker);
    TURN_UNTIL(trial, clock_ms() >= trial->worker->stop_at_ms + 5000);
    struct pollfd fd = {.fd = worker_fd(trial->worker), .events = POLLIN};
    while (turns < 100 && poll(&fd, 1, 200) > 0) {
        worker_advance(trial->worker);
        turns++;
    }
    CHECK(worker_done(trial->worker) && trial->dropped == 1);
    CHECK(turns < 100);
}

// Claims go well, outcomes do not: the worker does not pile them up, and keeps their lease until
// they can be written.
static void piles_nothing_up(struct trial *trial)
{
    trial->settles = true;
    open_trial(trial, (struct worker_options){.dsn = getenv("MR_TEST_ROLE_DSN"), .lease_ms = 1000});
    enqueue(trial, 500);
    ask(trial, "revoke execute on function millrace.complete, millrace.complete_many,"
               " millrace.finish from millrace_worker");
    int64_t began_ms = clock_ms();
    TURN_UNTIL(trial, trial->events[WORKER_REFUSED] >= 5 && clock_ms() - began_ms >= 2500);
    CHECK(counts_of(trial).claimed <= 40);
    ask(trial, "select count(*) from millrace.maintain()");
    ask(trial, "grant execute on function millrace.complete, millrace.complete_many,"
               " millrace.finish to millrace_worker");
    TURN_UNTIL(trial, counts_of(trial).completed == 500);
    CHECK(counts_of(trial).lost == 0);
}

// A server that only reads is asked less and less often, although each connection succeeds.
static void patient_with_a_standby(struct trial *trial)
{
    int64_t began_ms = clock_ms();

    open_trial(trial, (struct worker_options){.dsn = getenv("MR_TEST_READONLY_DSN")});
    TURN_UNTIL(trial, trial->events[WORKER_REFUSED] >= 5);
    CHECK(clock_ms() - began_ms >= 1000);
}

// Leases of which some jobs have an outcome.
static int begun_leases(const struct trial *trial)
{
    return atoi(ask(trial, "select count(*) from millrace.claim where outcome is not null"));
}

// The answer to a write is lost, the same write meets a lock, and then is refused because it was
// written long ago: the lease lives, and so does its other job.
static void written_without_an_answer(struct trial *trial)
{
    open_trial(trial, (struct worker_options){.dsn = getenv("MR_TEST_HASTY_DSN"), .batch = 2});
    enqueue(trial, 2);
    TURN_UNTIL(trial, trial->held_count == 2);
    int before = begun_leases(trial);
    trial->room = 0;
    ask(trial, "begin");
    ask(trial, "select from millrace.claim for update");
    settle(trial, 0);
    TURN_UNTIL(trial, trial->worker->leases->writing);
    trial->worker->transport->ops->reset(trial->worker->transport);
    worker_advance(trial->worker);
    CHECK(trial->worker->leases->unclear.count == 1);
    ask(trial, "rollback");
    for (int i = 0; begun_leases(trial) == before; i++) {
        CHECK(i < DEADLINE_MS / 10);
        poll(NULL, 0, 10);
    }
    ask(trial, "begin");
    ask(trial, "select from millrace.claim for update");
    TURN_UNTIL(trial, trial->events[WORKER_REFUSED] >= 1);
    ask(trial, "rollback");
    TURN_UNTIL(trial, trial->events[WORKER_LEASE_LOST] == 1);
    CHECK(trial->dropped == 0 && !trial->worker->leases->lost);
    settle(trial, 0);
    TURN_UNTIL(trial, counts_of(trial).completed == 1);
}

// A heartbeat and a write under way learn of the lost lease both: it is one loss.
static void lost_once(struct trial *trial)
{
    open_trial(trial, (struct worker_options){.batch = 2});
    enqueue(trial, 2);
    TURN_UNTIL(trial, trial->held_count == 2);
    trial->room = 0;
    ask(trial, "update millrace.claim set token = gen_random_uuid() where status = 'r'");
    settle(trial, 0);
    trial->worker->leases->beat_at_ms = trial->worker->leases->ready_since_ms + WORKER_FLUSH_MS;
    TURN_UNTIL(trial, trial->dropped == 1);
    settle(trial, 0);
    TURN_UNTIL(trial, !trial->worker->leases);
    CHECK(counts_of(trial).lost == 1);
}

// One of the jobs was finished by somebody else, who holds the lease, too: the others are not lost
// with it.
static void finished_elsewhere(struct trial *trial)
{
    char statement[256];

    open_trial(trial, (struct worker_options){.batch = 3});
    enqueue(trial, 3);
    TURN_UNTIL(trial, trial->held_count == 3);
    trial->room = 0;
    snprintf(statement, sizeof(statement), "select millrace.complete('%s', array[%lld])",
             trial->held[0]->job->lease, (long long)trial->held[0]->job->id);
    ask(trial, statement);
    settle(trial, 0);
    settle(trial, 0);
    TURN_UNTIL(trial, counts_of(trial).completed + trial->dropped == 1);
    CHECK(trial->dropped == 0);
    settle(trial, 0);
    TURN_UNTIL(trial, !trial->worker->leases);
    CHECK(counts_of(trial).completed == 2 && counts_of(trial).lost == 1);
}

// A lease that is void is lost once, whatever it was that learned of it first.
static void lost_by_writing(struct trial *trial)
{
    open_trial(trial, (struct worker_options){.batch = 3});
    enqueue(trial, 3);
    TURN_UNTIL(trial, trial->held_count == 3);
    trial->room = 0;
    ask(trial, "update millrace.claim set token = gen_random_uuid() where status = 'r'");
    settle(trial, 0);
    settle(trial, 0);
    TURN_UNTIL(trial, trial->dropped == 1);
    settle(trial, 0);
    TURN_UNTIL(trial, !trial->worker->leases);
    CHECK(counts_of(trial).lost == 1 && trial->events[WORKER_LEASE_LOST] == 1);
}

// Together they are more than the server takes in one call.
static void large_outcomes(struct trial *trial)
{
    enum { SIZE = 20 * 1000 * 1000, COUNT = 14 };
    char *text = malloc(SIZE + 1);

    open_trial(trial, (struct worker_options){.batch = COUNT});
    enqueue(trial, COUNT);
    TURN_UNTIL(trial, trial->held_count == COUNT);
    trial->room = 0;
    CHECK(text);
    memset(text, 'x', SIZE);
    text[0] = text[SIZE - 1] = '"';
    text[SIZE] = '\0';
    while (trial->held_count) {
        settle_with(trial, 0, text);
    }
    free(text);
    TURN_UNTIL(trial, !trial->worker->leases);
    CHECK(counts_of(trial).completed == COUNT);
}

static void cancel(const struct trial *trial, int64_t id, const char *expected)
{
    char statement[128];

    snprintf(statement, sizeof(statement), "select millrace.cancel(%lld, 'enough')", (long long)id);
    CHECK(strcmp(ask(trial, statement), expected) == 0);
}

static const char *status_of(const struct trial *trial, int64_t id)
{
    char statement[128];

    snprintf(statement, sizeof(statement), "select millrace.job(%lld) ->> 'status'", (long long)id);
    return ask(trial, statement);
}

// The first claim does not know of the limit and gets all of it. From then on no more jobs are held
// than are run, and each that ends is written and makes room at once, whatever else is held.
static void limited(struct trial *trial)
{
    open_trial(trial, (struct worker_options){.slots = 2});
    ask(trial, "select millrace.set_queue('limited', '{\"concurrency\": 4}')");
    enqueue(trial, 20);
    TURN_UNTIL(trial, trial->held_count == 4);
    CHECK(trial->worker->limited);
    while (trial->held_count > 1) {
        settle(trial, 0);
    }
    TURN_UNTIL(trial, trial->held_count == 2 && counts_of(trial).completed == 3);
    CHECK(strcmp(ask(trial, "select count(*) from millrace.claim('limited', max_jobs => 9)"),
                 "2") == 0);
    settle(trial, 0);
    TURN_UNTIL(trial, trial->held_count == 2 && counts_of(trial).completed == 4);
    CHECK(strcmp(ask(trial, "select running from millrace.stats('limited')"), "4") == 0);
    trial->worker->options.slots = 4; // others have what is left
    TURN_UNTIL(trial, trial->worker->held_back);
    CHECK(trial->held_count == 2 &&
          trial->worker->transport->ops->can_claim(trial->worker->transport));
    ask(trial, "select millrace.set_queue('limited', '{\"concurrency\": null}')");
    TURN_UNTIL(trial, trial->held_count == 10 && !trial->worker->limited);
}

// A rate that has left nothing says when to come again, also to one that ends with the queue.
static void rated(struct trial *trial)
{
    open_trial(trial, (struct worker_options){.until_empty = true});
    ask(trial, "select millrace.set_queue('rated', '{\"rate\": \"4/s\"}')");
    enqueue(trial, 10);
    trial->settles = true;
    TURN_UNTIL(trial, trial->worker->held_back);
    CHECK(!trial->worker->limited && !trial->worker->stopping);
    TURN_UNTIL(trial, worker_done(trial->worker));
    CHECK(counts_of(trial).completed == 10);
}

// The handler hears of it once, though every heartbeat says it; what it says afterwards counts: the
// first job failed, the second completed all the same. A job that has ended is not told.
static void cancelled_once(struct trial *trial)
{
    int64_t ids[3];

    open_trial(trial, (struct worker_options){.batch = 3, .lease_ms = 300});
    enqueue(trial, 3);
    TURN_UNTIL(trial, trial->held_count == 3);
    trial->room = 0;
    for (int i = 0; i < 3; i++) {
        ids[i] = trial->held[i]->job->id;
    }
    cancel(trial, ids[1], "running");
    TURN_UNTIL(trial, trial->cancelled == 1);
    CHECK(trial->told == trial->held[1]);
    cancel(trial, ids[0], "running");
    TURN_UNTIL(trial, trial->cancelled == 2);
    CHECK(trial->told == trial->held[0]);
    // three more of them
    int64_t until_ms = clock_ms() + 400;
    TURN_UNTIL(trial, clock_ms() >= until_ms && !trial->worker->leases->beating);
    CHECK(trial->cancelled == 2 && trial->dropped == 0);
    AUTO_OUTCOME outcome;
    outcome_init(&outcome);
    outcome_cancel(&outcome);
    worker_settle(trial->worker, trial->held[0], &outcome);
    worker_settle(trial->worker, trial->held[1], &outcome); // completed: it was taken over
    trial->held[0] = trial->held[2];
    trial->held_count = 1;
    TURN_UNTIL(trial, counts_of(trial).failed == 1 && counts_of(trial).completed == 1);
    CHECK(strcmp(status_of(trial, ids[0]), "cancelled") == 0);
    CHECK(strcmp(status_of(trial, ids[1]), "completed") == 0);
    cancel(trial, ids[0], "cancelled");
    cancel(trial, ids[1], "completed");
    settle(trial, 0);
    TURN_UNTIL(trial, !trial->worker->leases);
    CHECK(counts_of(trial).completed == 2 && counts_of(trial).lost == 0);
    CHECK(strcmp(status_of(trial, ids[2]), "completed") == 0);
}

// The percents that a job has reported, in order.
static const char *reports_of(const struct trial *trial, int64_t id)
{
    char statement[200];

    snprintf(statement, sizeof(statement),
             "select string_agg(r.percent_done::text, ' ' order by r.reported_at)"
             " from millrace.report r where r.job_id = %lld",
             (long long)id);
    return ask(trial, statement);
}

static void report(struct trial *trial, double percent)
{
    CHECK(worker_report(trial->worker, trial->held[0], percent, NULL) == 0);
}

// One at once, the newest of the next second after it, and the last before the outcome.
static void reports_in_turn(struct trial *trial)
{
    open_trial(trial, (struct worker_options){.batch = 1});
    enqueue(trial, 1);
    TURN_UNTIL(trial, trial->held_count == 1);
    trial->room = 0;
    int64_t id = trial->held[0]->job->id, began_ms = clock_ms();
    report(trial, 10);
    TURN_UNTIL(trial, strcmp(reports_of(trial, id), "10") == 0);
    report(trial, 20);
    report(trial, 30);
    TURN_UNTIL(trial, strcmp(reports_of(trial, id), "10 30") == 0);
    CHECK(clock_ms() - began_ms >= WORKER_REPORT_MS);
    report(trial, 98);
    report(trial, 99);
    settle(trial, 0);
    TURN_UNTIL(trial, !trial->worker->leases);
    CHECK(counts_of(trial).completed == 1 && trial->events[WORKER_UNREPORTED] == 0);
    CHECK(strcmp(reports_of(trial, id), "10 30 99") == 0);
    CHECK(strcmp(status_of(trial, id), "completed") == 0);
}

// Nothing is written under a lease that is void, and nobody is told of it but by the heartbeat.
static void reports_without_a_lease(struct trial *trial)
{
    open_trial(trial, (struct worker_options){.batch = 1, .lease_ms = 600});
    enqueue(trial, 1);
    TURN_UNTIL(trial, trial->held_count == 1);
    trial->room = 0;
    int64_t id = trial->held[0]->job->id;
    ask(trial, "update millrace.claim set token = gen_random_uuid() where status = 'r'");
    report(trial, 10);
    TURN_UNTIL(trial, trial->dropped == 1);
    report(trial, 20);
    settle(trial, 0);
    TURN_UNTIL(trial, !trial->worker->leases);
    CHECK(counts_of(trial).lost == 1 && trial->events[WORKER_UNREPORTED] == 0);
    CHECK(strcmp(reports_of(trial, id), "") == 0);
}

// The server does not take them: told once, and not asked again. The job is none the worse.
static void reports_refused(struct trial *trial)
{
    open_trial(trial, (struct worker_options){.dsn = getenv("MR_TEST_ROLE_DSN"), .batch = 1});
    ask(trial, "revoke execute on function millrace.progress from millrace_worker");
    enqueue(trial, 1);
    TURN_UNTIL(trial, trial->held_count == 1);
    trial->room = 0;
    report(trial, 10);
    TURN_UNTIL(trial, trial->events[WORKER_UNREPORTED] == 1);
    report(trial, 20);
    settle(trial, 0);
    TURN_UNTIL(trial, !trial->worker->leases);
    CHECK(counts_of(trial).completed == 1 && trial->events[WORKER_UNREPORTED] == 1);
    ask(trial, "grant execute on function millrace.progress to millrace_worker");
}

static const struct {
    const char *name;
    void (*run)(struct trial *trial);
} cases[] = {
    {"second_host", second_host},
    {"silent_host", silent_host},
    {"quiet_at_the_end", quiet_at_the_end},
    {"piles_nothing_up", piles_nothing_up},
    {"patient_with_a_standby", patient_with_a_standby},
    {"written_without_an_answer", written_without_an_answer},
    {"lost_once", lost_once},
    {"lost_by_writing", lost_by_writing},
    {"finished_elsewhere", finished_elsewhere},
    {"large_outcomes", large_outcomes},
    {"cancelled_once", cancelled_once},
    {"limited", limited},
    {"rated", rated},
    {"reports_in_turn", reports_in_turn},
    {"reports_without_a_lease", reports_without_a_lease},
    {"reports_refused", reports_refused},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (strcmp(cases[i].name, argv[1]) == 0) {
            struct trial trial = {.queue = cases[i].name};
            cases[i].run(&trial);
            close_trial(&trial);
            return 0;
        }
    }
    fprintf(stderr, "usage: driver CASE\n");
    return 2;
}
