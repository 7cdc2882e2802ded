// SPDX-License-Identifier: PostgreSQL
//
// Payload parts that the library compresses: a job comes out as it went in, whatever its queue
// wants and whatever wrote it, and one that is damaged fails alone.

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

#define SIGNATURE "\x89MRP\r\n\x1a\n"

enum { LARGE = 5000 };

// JSON and bytes that become much smaller; and bytes that do not.
static char large_args[LARGE + 100], large[LARGE], noise[LARGE];

static void make_large(void)
{
    uint64_t seed = 1;

    memset(large_args, 0, sizeof(large_args));
    snprintf(large_args, sizeof(large_args), "{\"text\": \"");
    for (size_t i = 0; i < LARGE; i++) {
        large[i] = (char)(i % 7 ? 'a' + i % 7 : 0);
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        noise[i] = (char)(seed >> 56);
    }
    memset(large_args + strlen(large_args), 'x', LARGE);
    memcpy(large_args + strlen(large_args), "\"}", sizeof("\"}"));
}

static PGconn *begin(const char *queue, const char *above)
{
    PGconn *session = open_session();
    char statement[300];

    make_large();
    snprintf(statement, sizeof(statement), "select millrace.set_queue('%s', '{\"compress\": %s}')",
             queue, above);
    session_run(session, statement);
    return session;
}

// What is stored of the waiting jobs of a queue, by the rows of the log.
static const char *stored(PGconn *session, const char *queue, const char *expression)
{
    char statement[600];

    snprintf(statement, sizeof(statement),
             "select string_agg((%s)::text, ' ' order by j.job_id) from millrace.job j"
             " join millrace.queue q on q.queue_id = j.lane >> 12 where q.queue_name = '%s'",
             expression, queue);
    return session_ask(session, statement);
}

static mr_job_spec job_for(const char *queue)
{
    mr_job_spec job = MR_JOB_SPEC_INIT;

    job.kind = "k";
    job.queue = queue;
    job.args = large_args;
    job.state = large;
    job.state_size = LARGE;
    job.blob = noise;
    job.blob_size = LARGE;
    return job;
}

static void check_job(const mr_claimed_job *job)
{
    CHECK(strcmp(job->args, large_args) == 0);
    CHECK_NUMBER((int64_t)job->state_size, LARGE);
    CHECK(memcmp(job->state, large, LARGE) == 0);
    CHECK_NUMBER((int64_t)job->blob_size, LARGE);
    CHECK(memcmp(job->blob, noise, LARGE) == 0);
}

static void check_all(mr_conn *conn, const char *queue, size_t count)
{
    mr_batch *batch = claim_some(conn, queue, 100);

    CHECK_NUMBER((int64_t)mr_batch_count(batch), (int64_t)count);
    for (size_t i = 0; i < count; i++) {
        check_job(mr_batch_job(batch, i));
    }
    CHECK_OK(mr_complete(conn, mr_batch_lease(batch), NULL, 0, NULL, NULL, &err));
    mr_batch_free(batch);
}

#define CODINGS \
    "millrace.part_coding(j.payload_state) || '/' || millrace.part_coding(j.payload_blob)"

// Every call that enqueues: args and state are coded, what does not become smaller is not.
static void coded_jobs(void)
{
    PGconn *session = begin("coded", "1000");
    mr_conn *conn = open_conn();
    mr_job_spec job = job_for("coded");
    const char *args[2] = {large_args, large_args};
    mr_job_spec jobs[2] = {job, job};

    CHECK_OK(mr_enqueue(conn, &job, NULL, &err));
    CHECK_OK(mr_enqueue_many(conn, &job, args, 2, 0, NULL, NULL, &err));
    CHECK_OK(mr_enqueue_jobs(conn, jobs, 2, 0, NULL, NULL, &err)); // alike
    jobs[1].ref = "another";
    CHECK_OK(mr_enqueue_jobs(conn, jobs, 2, 0, NULL, NULL, &err)); // not alike
    CHECK_TEXT(stored(session, "coded", CODINGS),
               "zstd/plain zstd/plain zstd/plain zstd/plain zstd/plain zstd/plain zstd/plain");
    CHECK_TEXT(stored(session, "coded", "j.payload_args ? '$coded'"),
               "true true true true true true true");
    CHECK_TEXT(stored(session, "coded", "millrace.part_size(j.payload_state)"),
               "5000 5000 5000 5000 5000 5000 5000");
    CHECK_TEXT(stored(session, "coded", "octet_length(j.payload_state) < 500"),
               "true true true true true true true");
    check_all(conn, "coded", 7);
    mr_conn_free(conn);
    PQfinish(session);
}

// Args alone, in a call that has nothing else; a line break in them is a blank afterwards.
static void coded_args(void)
{
    PGconn *session = begin("coded args", "1000");
    mr_conn *conn = open_conn();
    mr_job_spec job = MR_JOB_SPEC_INIT;
    char lines[sizeof(large_args)];
    const char *args[3] = {large_args, "{\"small\": 1}", lines};

    memcpy(lines, large_args, sizeof(lines));
    *strchr(lines, ' ') = '\n';
    job.kind = "k";
    job.queue = "coded args";
    CHECK_OK(mr_enqueue_many(conn, &job, args, 3, 0, NULL, NULL, &err));
    mr_batch *batch = claim_some(conn, "coded args", 3);
    CHECK_TEXT(mr_batch_job(batch, 1)->args, "{\"small\": 1}");
    CHECK(strcmp(mr_batch_job(batch, 0)->args, large_args) == 0);
    CHECK(strcmp(mr_batch_job(batch, 2)->args, large_args) == 0);
    mr_batch_free(batch);
    mr_conn_free(conn);
    PQfinish(session);
}

// Nothing is coded below the size, nor in a queue that does not want it.
static void coded_not(void)
{
    PGconn *session = begin("coded not", "null");
    mr_conn *conn = open_conn();
    mr_job_spec job = job_for("coded not");

    CHECK_OK(mr_enqueue(conn, &job, NULL, &err));
    session_run(session, "select millrace.set_queue('coded above', '{\"compress\": 5000}')");
    job.queue = "coded above";
    job.args = NULL;
    CHECK_OK(mr_enqueue(conn, &job, NULL, &err));
    CHECK_TEXT(stored(session, "coded not", CODINGS), "plain/plain");
    CHECK_TEXT(stored(session, "coded not", "j.payload_args ? '$coded'"), "false");
    CHECK_TEXT(stored(session, "coded above", CODINGS), "plain/plain");
    mr_conn_free(conn);
    PQfinish(session);
}

// Bytes that begin like coded ones, and args that look like them, are what they are.
static void coded_lookalikes(void)
{
    static const char *const args[] = {
        "{\"$coded\": \"iU1SUA0KGgpwAAAAAAAAAAJ7fQ==\"}",
        "{\"\\u0024coded\": \"iU1SUA0KGgpwAAAAAAAAAAJ7fQ==\"}",
        "{\"$coded\": 7}",
    };
    PGconn *session = begin("coded alike", "null");
    mr_conn *conn = open_conn();
    mr_job_spec job = MR_JOB_SPEC_INIT;

    job.kind = "k";
    job.queue = "coded alike";
    job.state = SIGNATURE;
    job.state_size = 8;
    job.blob = SIGNATURE "z\0\0\0\0\0\0\0\1x";
    job.blob_size = 18;
    for (size_t i = 0; i < sizeof(args) / sizeof(args[0]); i++) {
        job.args = args[i];
        CHECK_OK(mr_enqueue(conn, &job, NULL, &err));
        CHECK_OK(mr_enqueue_many(conn, &job, &args[i], 1, 0, NULL, NULL, &err));
        mr_batch *batch = claim_some(conn, "coded alike", 2);
        CHECK_NUMBER((int64_t)mr_batch_count(batch), 2);
        for (size_t at = 0; at < 2; at++) {
            const mr_claimed_job *got = mr_batch_job(batch, at);
            CHECK_TEXT(got->args, args[i]);
            CHECK_NUMBER((int64_t)got->state_size, 8);
            CHECK(memcmp(got->state, SIGNATURE, 8) == 0);
            CHECK_NUMBER((int64_t)got->blob_size, 18);
            CHECK(memcmp(got->blob, job.blob, 18) == 0);
        }
        CHECK_OK(mr_complete(conn, mr_batch_lease(batch), NULL, 0, NULL, NULL, &err));
        mr_batch_free(batch);
    }
    mr_conn_free(conn);
    PQfinish(session);
}

// State that a worker writes: by each call that can.
static void coded_outcomes(void)
{
    PGconn *session = begin("coded again", "1000");
    mr_conn *conn = open_conn();
    mr_conn *other = open_conn(); // that knows nothing of the claim
    char outcome[3 * LARGE];

    enqueue_plain(conn, "coded again", 4);
    mr_batch *batch = claim_some(conn, "coded again", 4);
    const char *lease = mr_batch_lease(batch);
    CHECK_OK(
        mr_fail(conn, lease, mr_batch_job(batch, 0)->id, "later", 1, 0, large, LARGE, NULL, &err));
    CHECK_OK(
        mr_fail(other, lease, mr_batch_job(batch, 1)->id, "later", 1, 0, large, LARGE, NULL, &err));
    snprintf(outcome, sizeof(outcome), "{\"args\": %s}", large_args);
    CHECK_OK(mr_requeue(other, lease, mr_batch_job(batch, 2)->id, outcome, large, LARGE, large,
                        LARGE, &err));
    snprintf(outcome, sizeof(outcome),
             "[{\"id\": %lld, \"outcome\": \"requeued\", \"changes\": {\"args\": %s}}]",
             (long long)mr_batch_job(batch, 3)->id, large_args);
    CHECK_OK(mr_finish(conn, lease, outcome, NULL, &err));
    mr_batch_free(batch);
    CHECK_TEXT(session_ask(session,
                           "select string_agg(distinct millrace.part_coding(d.payload_state), ' ')"
                           " from millrace.delayed d join millrace.queue q"
                           " on q.queue_id = d.lane >> 12"
                           " where q.queue_name = 'coded again'"),
               "zstd");
    CHECK_TEXT(session_ask(session, "select count(*) from millrace.job j"
                                    " join millrace.queue q on q.queue_id = j.lane >> 12"
                                    " where q.queue_name = 'coded again'"
                                    " and j.payload_args ? '$coded'"),
               "2");
    int seen = 0;
    while (seen < 4) {
        batch = claim_some(conn, "coded again", 4);
        for (size_t i = 0; i < mr_batch_count(batch); i++, seen++) {
            const mr_claimed_job *job = mr_batch_job(batch, i);
            CHECK(!job->state || memcmp(job->state, large, LARGE) == 0);
            CHECK(!job->blob || memcmp(job->blob, large, LARGE) == 0);
            CHECK(strlen(job->args) < 100 || strlen(job->args) == strlen(large_args));
        }
        mr_batch_free(batch);
    }
    mr_conn_free(other);
    mr_conn_free(conn);
    PQfinish(session);
}

// Inside the caller's transaction: one question more, and only once.
static void coded_wrapped(void)
{
    PGconn *session = begin("coded wrapped", "1000");
    PGconn *pg = open_session();
    mr_conn *conn = NULL;
    mr_job_spec job = job_for("coded wrapped");

    CHECK_OK(mr_conn_wrap(pg, &conn, &err));
    session_run(pg, "begin");
    CHECK_OK(mr_enqueue(conn, &job, NULL, &err));
    CHECK_OK(mr_enqueue(conn, &job, NULL, &err));
    session_run(pg, "rollback");
    session_run(pg, "begin");
    CHECK_OK(mr_enqueue(conn, &job, NULL, &err));
    session_run(pg, "commit");
    CHECK_TEXT(stored(session, "coded wrapped", CODINGS), "zstd/plain");
    check_all(conn, "coded wrapped", 1);
    mr_conn_free(conn);
    PQfinish(pg);
    PQfinish(session);
}

// What the owner of the tables can do to a row: each of them fails alone, for good, and says why.
static void damage(PGconn *session, const char *queue, int nth, const char *assignment)
{
    char statement[600];

    snprintf(statement, sizeof(statement),
             "update millrace.job j set %s where j.job_id = (select j.job_id from millrace.job j"
             " join millrace.queue q on q.queue_id = j.lane >> 12 where q.queue_name = '%s'"
             " order by j.job_id offset %d limit 1)",
             assignment, queue, nth);
    session_run(session, statement);
}

static const char *const damages[] = {
    // cut, changed within, too large by its header, no frame, a coding of tomorrow, no base64
    "payload_state = substr(payload_state, 1, octet_length(payload_state) - 3)",
    "payload_state = set_byte(payload_state, 40, get_byte(payload_state, 40) # 255)",
    "payload_state = set_byte(payload_state, 11, 1)",
    "payload_state = substr(payload_state, 1, 17)",
    "payload_state = set_byte(payload_state, 8, 113)",
    "payload_args = jsonb_build_object('$coded', (payload_args ->> '$coded') || '!')",
    "payload_args = jsonb_build_object('$coded', 'iU1SUA0KGgpwAAAAAAAAAAF7')",
};
enum { DAMAGES = sizeof(damages) / sizeof(damages[0]) };

static void enqueue_damaged(mr_conn *conn, PGconn *session, const char *queue)
{
    mr_job_spec job = job_for(queue);

    for (int i = 0; i < DAMAGES + 1; i++) {
        CHECK_OK(mr_enqueue(conn, &job, NULL, &err));
    }
    for (int i = 0; i < DAMAGES; i++) {
        damage(session, queue, i, damages[i]);
    }
}

static const char *dead_of(PGconn *session, const char *queue)
{
    char statement[300];

    snprintf(statement, sizeof(statement),
             "select count(*) || ' ' || bool_and(d.error ~ '^(state|args) cannot be decoded: .')"
             " || ' ' || min(d.cause) from millrace.dead_letters d where d.queue = '%s'",
             queue);
    return session_ask(session, statement);
}

static void coded_damaged(void)
{
    PGconn *session = begin("coded damaged", "1000");
    mr_conn *conn = open_conn();

    enqueue_damaged(conn, session, "coded damaged");
    check_all(conn, "coded damaged", 1);
    CHECK_TEXT(dead_of(session, "coded damaged"), "7 true failed");
    // where nothing is left of a batch, the next is claimed
    mr_job_spec job = job_for("coded damaged");
    CHECK_OK(mr_enqueue(conn, &job, NULL, &err));
    CHECK_OK(mr_enqueue(conn, &job, NULL, &err));
    session_run(session, "update millrace.job j set payload_state = substr(payload_state, 1, 30)"
                         " where j.job_id = (select min(j.job_id) from millrace.job j"
                         " join millrace.queue q on q.queue_id = j.lane >> 12"
                         " where q.queue_name = 'coded damaged' and not exists"
                         " (select from millrace.dead_letters d where d.id = j.job_id)"
                         " and j.job_id > (select max(d.id) from millrace.dead_letters d"
                         " where d.queue = 'coded damaged') + 1)");
    mr_claim_options options = MR_CLAIM_OPTIONS_INIT;
    mr_batch *batch = NULL;
    options.queue = "coded damaged";
    options.max_jobs = 1;
    CHECK_OK(mr_claim(conn, &options, &batch, &err));
    CHECK_NUMBER((int64_t)mr_batch_count(batch), 1);
    check_job(mr_batch_job(batch, 0));
    mr_batch_free(batch);
    mr_conn_free(conn);
    PQfinish(session);
}

static mr_reply *await_reply(mr_conn *conn)
{
    int64_t deadline_ms = now_ms() + 30000;
    mr_reply *reply;

    while (!(reply = mr_reply_next(conn))) {
        struct pollfd poll_fd = {.fd = mr_fd(conn), .events = POLLIN};
        CHECK(now_ms() < deadline_ms);
        poll(&poll_fd, 1, 1000);
        CHECK_OK(mr_advance(conn, &err));
    }
    return reply;
}

// The question is asked with the first job, which does not wait for the answer; the library's own
// calls are nobody else's replies.
static void coded_nowait(void)
{
    PGconn *session = begin("coded nowait", "1000");
    mr_conn *conn = open_conn();
    mr_job_spec job = job_for("coded nowait");
    mr_claim_options options = MR_CLAIM_OPTIONS_INIT;

    for (int i = 0; i < 3; i++) {
        CHECK_OK(mr_send_enqueue(conn, &job, &err));
        mr_reply *reply = await_reply(conn);
        CHECK_NUMBER(mr_reply_call(reply), MR_CALL_ENQUEUE);
        CHECK_OK(mr_reply_code(reply, &err));
        mr_reply_free(reply);
    }
    CHECK_TEXT(stored(session, "coded nowait", CODINGS), "plain/plain zstd/plain zstd/plain");
    damage(session, "coded nowait", 1, damages[0]);
    options.queue = "coded nowait";
    options.max_jobs = 10;
    CHECK_OK(mr_send_claim(conn, &options, &err));
    mr_reply *reply = await_reply(conn);
    CHECK_NUMBER(mr_reply_call(reply), MR_CALL_CLAIM);
    mr_batch *batch = mr_reply_take_batch(reply);
    CHECK_NUMBER((int64_t)mr_batch_count(batch), 2);
    check_job(mr_batch_job(batch, 0));
    check_job(mr_batch_job(batch, 1));
    CHECK_OK(mr_send_fail(conn, mr_batch_lease(batch), mr_batch_job(batch, 0)->id, "later", 3600000,
                          0, large, LARGE, &err));
    mr_reply_free(reply);
    reply = await_reply(conn);
    CHECK_NUMBER(mr_reply_call(reply), MR_CALL_FAIL);
    CHECK_OK(mr_reply_code(reply, &err));
    mr_reply_free(reply);
    CHECK(mr_reply_next(conn) == NULL);
    CHECK_TEXT(dead_of(session, "coded nowait"), "1 true failed");
    mr_batch_free(batch);
    mr_conn_free(conn);
    PQfinish(session);
}

// ---- the worker ----

static int keep_state(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    (void)arg;
    check_job(job);
    mr_outcome_state(outcome, large, LARGE);
    return mr_outcome_fail(outcome, "later", 3600000, 0);
}

static void coded_worker(void)
{
    PGconn *session = begin("coded worker", "1000");
    mr_conn *conn = open_conn();
    mr_worker_options options = MR_WORKER_OPTIONS_INIT;
    mr_worker_counts counts = MR_WORKER_COUNTS_INIT;
    mr_worker *worker = NULL;

    enqueue_damaged(conn, session, "coded worker");
    options.queue = "coded worker";
    options.handler = keep_state;
    options.concurrency = 2;
    options.until_empty = 1;
    CHECK_OK(mr_worker_new(&options, &worker, &err));
    CHECK_OK(mr_worker_run(worker, &err));
    mr_worker_stats(worker, &counts);
    CHECK_NUMBER(counts.failed, DAMAGES + 1);
    mr_worker_free(worker);
    CHECK_TEXT(session_ask(session,
                           "select millrace.part_coding(d.payload_state) from millrace.delayed d"
                           " join millrace.queue q on q.queue_id = d.lane >> 12"
                           " where q.queue_name = 'coded worker'"),
               "zstd");
    CHECK_TEXT(dead_of(session, "coded worker"), "7 true failed");
    mr_conn_free(conn);
    PQfinish(session);
}

// ---- looking ----

static void coded_story(void)
{
    PGconn *session = begin("coded story", "1000");
    mr_conn *conn = open_conn();
    mr_job_spec job = job_for("coded story");
    char *story = NULL;
    int64_t id = 0;

    job.state = large_args;
    job.state_size = strlen(large_args);
    CHECK_OK(mr_enqueue(conn, &job, &id, &err));
    CHECK_OK(mr_job(conn, id, &story, &err));
    CHECK(has(story, "\"coding\": \"zstd\", \"cut\": false, \"format\": \"json\""));
    CHECK(has(story, "\"args\": {") && !has(story, "$coded"));
    mr_free(story);
    mr_batch *batch = claim_some(conn, "coded story", 1);
    CHECK_OK(mr_fail(conn, mr_batch_lease(batch), id, "why", 0, 1, NULL, 0, NULL, &err));
    mr_batch_free(batch);
    CHECK_OK(mr_list_dead(conn, "coded story", NULL, 10, &story, &err));
    CHECK(has(story, "xxxxxxxx") && !has(story, "$coded"));
    mr_free(story);
    mr_conn_free(conn);
    PQfinish(session);
}

const struct driver_case coded_cases[] = {
    {"coded_jobs", coded_jobs},
    {"coded_args", coded_args},
    {"coded_not", coded_not},
    {"coded_lookalikes", coded_lookalikes},
    {"coded_outcomes", coded_outcomes},
    {"coded_wrapped", coded_wrapped},
    {"coded_damaged", coded_damaged},
    {"coded_nowait", coded_nowait},
    {"coded_worker", coded_worker},
    {"coded_story", coded_story},
    {NULL, NULL},
};
