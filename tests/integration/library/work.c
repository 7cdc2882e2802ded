// SPDX-License-Identifier: PostgreSQL
//
// Working with blocking calls, on a connection of the library's or of the caller's.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

static void completes(void)
{
    mr_conn *conn = open_conn();
    int done = 0;

    enqueue_plain(conn, "completes", 3);
    CHECK_NUMBER(depth_of(conn, "completes"), 3);
    mr_batch *batch = claim_some(conn, "completes", 10);
    CHECK_NUMBER((int64_t)mr_batch_count(batch), 3);
    CHECK_NUMBER(depth_of(conn, "completes"), 0);
    int64_t id = mr_batch_job(batch, 1)->id;
    CHECK_OK(mr_complete(conn, mr_batch_lease(batch), &id, 1, "{\"sum\": 3}", &done, &err));
    CHECK_NUMBER(done, 1);
    char *story = NULL;
    CHECK_OK(mr_job(conn, id, &story, &err));
    CHECK(has(story, "\"completed\"") && has(story, "\"sum\": 3"));
    mr_free(story);
    CHECK_OK(mr_complete(conn, mr_batch_lease(batch), NULL, 0, NULL, &done, &err));
    CHECK_NUMBER(done, 2);
    // all is finished: the lease is void
    CHECK_CODE(mr_complete(conn, mr_batch_lease(batch), NULL, 0, NULL, &done, &err), MR_ELEASE);
    mr_batch_free(batch);
    mr_conn_free(conn);
}

static void finds_nothing(void)
{
    mr_conn *conn = open_conn();
    mr_claim_options options = MR_CLAIM_OPTIONS_INIT;
    mr_batch *batch = NULL;
    char *story = NULL;

    options.queue = "nothing here";
    CHECK_OK(mr_claim(conn, &options, &batch, &err));
    CHECK_NUMBER((int64_t)mr_batch_count(batch), 0);
    CHECK(mr_batch_job(batch, 0) == NULL && mr_batch_lease(batch) == NULL);
    CHECK_CODE(mr_complete(conn, mr_batch_lease(batch), NULL, 0, NULL, NULL, &err), MR_EUSAGE);
    mr_batch_free(batch);
    mr_batch_free(NULL);
    CHECK_NUMBER(depth_of(conn, "nothing here"), 0);
    CHECK_CODE(mr_job(conn, INT64_MAX, &story, &err), MR_EUNKNOWN);
    CHECK(story == NULL);
    mr_free(NULL);
    mr_conn_free(conn);
}

static void completes_many(void)
{
    mr_conn *conn = open_conn();
    mr_batch *batches[2];
    const char *leases[2];
    int done = 0;

    enqueue_plain(conn, "completes many", 3);
    for (int i = 0; i < 2; i++) {
        batches[i] = claim_some(conn, "completes many", i + 1);
        leases[i] = mr_batch_lease(batches[i]);
    }
    CHECK_OK(mr_complete_many(conn, NULL, 0, &done, &err));
    CHECK_NUMBER(done, 0);
    CHECK_OK(mr_complete_many(conn, leases, 2, &done, &err));
    CHECK_NUMBER(done, 3);
    CHECK_CODE(mr_complete_many(conn, leases, 2, &done, &err), MR_ELEASE);
    leases[1] = NULL;
    CHECK_CODE(mr_complete_many(conn, leases, 2, &done, &err), MR_EUSAGE);
    mr_batch_free(batches[0]);
    mr_batch_free(batches[1]);
    mr_conn_free(conn);
}

static void fails(void)
{
    mr_conn *conn = open_conn();
    int dead = 7;
    char *story = NULL;

    enqueue_plain(conn, "fails", 2);
    mr_batch *batch = claim_some(conn, "fails", 2);
    const char *lease = mr_batch_lease(batch);
    int64_t first = mr_batch_job(batch, 0)->id, second = mr_batch_job(batch, 1)->id;
    CHECK_CODE(mr_fail(conn, lease, first, NULL, 0, 0, NULL, 0, &dead, &err), MR_EUSAGE);
    CHECK_CODE(mr_fail(conn, lease, first, "x", -1, 0, NULL, 0, &dead, &err), MR_EUSAGE);
    CHECK_CODE(mr_fail(conn, lease, INT64_MAX, "x", 0, 0, NULL, 0, &dead, &err), MR_EUNKNOWN);
    CHECK_NUMBER(dead, 7);
    CHECK_OK(mr_fail(conn, lease, first, "no route to host", 10, 0, "step 2", 6, &dead, &err));
    CHECK_NUMBER(dead, 0);
    CHECK_OK(mr_fail(conn, lease, second, "will never do", 0, 1, NULL, 0, &dead, &err));
    CHECK_NUMBER(dead, 1);
    CHECK_OK(mr_job(conn, second, &story, &err));
    CHECK(has(story, "\"dead\"") && has(story, "will never do"));
    mr_free(story);
    mr_batch_free(batch);
    // it comes back after its 10 ms, with the state that the failure left
    batch = claim_some(conn, "fails", 2);
    CHECK_NUMBER(mr_batch_job(batch, 0)->id, first);
    CHECK_NUMBER(mr_batch_job(batch, 0)->attempt, 2);
    CHECK(mr_batch_job(batch, 0)->state_size == 6 &&
          memcmp(mr_batch_job(batch, 0)->state, "step 2", 6) == 0);
    mr_batch_free(batch);
    mr_conn_free(conn);
}

static void requeues(void)
{
    mr_conn *conn = open_conn();

    enqueue_plain(conn, "requeues", 1);
    mr_batch *batch = claim_some(conn, "requeues", 1);
    int64_t id = mr_batch_job(batch, 0)->id;
    const char *lease = mr_batch_lease(batch);
    CHECK_CODE(mr_requeue(conn, lease, id, "{", NULL, 0, NULL, 0, &err), MR_EINVALID);
    CHECK_CODE(mr_requeue(conn, lease, id, NULL, NULL, 3, NULL, 0, &err), MR_EUSAGE);
    CHECK_OK(mr_requeue(conn, lease, id, "{\"queue\": \"requeued\", \"args\": [2]}", "s", 1, "bb",
                        2, &err));
    mr_batch_free(batch);
    batch = claim_some(conn, "requeued", 1);
    const mr_claimed_job *claimed = mr_batch_job(batch, 0);
    CHECK_NUMBER(claimed->id, id);
    CHECK_NUMBER(claimed->attempt, 1);
    CHECK_TEXT(claimed->args, "[2]");
    CHECK(claimed->state_size == 1 && claimed->blob_size == 2);
    CHECK(memcmp(claimed->state, "s", 1) == 0 && memcmp(claimed->blob, "bb", 2) == 0);
    CHECK_OK(mr_requeue(conn, mr_batch_lease(batch), id, NULL, NULL, 0, NULL, 0, &err));
    mr_batch_free(batch);
    CHECK_NUMBER(depth_of(conn, "requeued"), 1);
    mr_conn_free(conn);
}

static void releases(void)
{
    mr_conn *conn = open_conn();
    int done = 0;

    enqueue_plain(conn, "releases", 3);
    mr_batch *batch = claim_some(conn, "releases", 3);
    int64_t ids[2] = {mr_batch_job(batch, 0)->id, mr_batch_job(batch, 2)->id};
    CHECK_CODE(mr_release(conn, mr_batch_lease(batch), NULL, 1, &done, &err), MR_EUSAGE);
    CHECK_OK(mr_release(conn, mr_batch_lease(batch), ids, 2, &done, &err));
    CHECK_NUMBER(done, 2);
    CHECK_NUMBER(depth_of(conn, "releases"), 2);
    CHECK_OK(mr_release(conn, mr_batch_lease(batch), NULL, 0, &done, &err));
    CHECK_NUMBER(done, 1);
    mr_batch_free(batch);
    batch = claim_some(conn, "releases", 3);
    CHECK_NUMBER(mr_batch_job(batch, 0)->attempt, 1);
    mr_batch_free(batch);
    mr_conn_free(conn);
}

static void beats(void)
{
    mr_conn *conn = open_conn();
    int64_t until_us = 0;

    enqueue_plain(conn, "beats", 1);
    mr_batch *batch = claim_some(conn, "beats", 1);
    int64_t before_us = mr_batch_job(batch, 0)->lease_until_us;
    CHECK_CODE(mr_heartbeat(conn, mr_batch_lease(batch), -1, &until_us, &err), MR_EUSAGE);
    CHECK_OK(mr_heartbeat(conn, mr_batch_lease(batch), 3600 * 1000, &until_us, &err));
    CHECK(until_us > before_us + INT64_C(3000) * 1000 * 1000);
    CHECK_OK(mr_heartbeat(conn, mr_batch_lease(batch), 0, NULL, &err));
    CHECK_CODE(mr_heartbeat(conn, "no such lease", 0, &until_us, &err), MR_ELEASE);
    mr_batch_free(batch);
    mr_conn_free(conn);
}

static void cancel(PGconn *session, int64_t id, const char *expected)
{
    char statement[128];

    snprintf(statement, sizeof(statement), "select millrace.cancel(%lld, 'enough')", (long long)id);
    CHECK_TEXT(session_ask(session, statement), expected);
}

static void has_status(mr_conn *conn, int64_t id, const char *status)
{
    char found[64];
    char *story = NULL;

    snprintf(found, sizeof(found), "\"status\": \"%s\"", status);
    CHECK_OK(mr_job(conn, id, &story, &err));
    CHECK(has(story, found));
    mr_free(story);
}

// A heartbeat names the jobs that were cancelled as long as they are open; how they end is up to
// the worker.
static void hears_of_cancelled(void)
{
    mr_conn *conn = open_conn();
    PGconn *session = open_session();
    int64_t until_us = 0, *ids = NULL;
    size_t count = 7;
    int dead = 7;

    enqueue_plain(conn, "cancelled", 4);
    mr_batch *batch = claim_some(conn, "cancelled", 4);
    const char *lease = mr_batch_lease(batch);
    int64_t jobs[4];
    for (size_t i = 0; i < 4; i++) {
        jobs[i] = mr_batch_job(batch, i)->id;
    }
    CHECK_CODE(mr_heartbeat_cancelled(conn, lease, 0, NULL, NULL, &count, &err), MR_EUSAGE);
    CHECK_CODE(mr_heartbeat_cancelled(conn, lease, 0, NULL, &ids, NULL, &err), MR_EUSAGE);
    CHECK_CODE(mr_heartbeat_cancelled(conn, NULL, 0, NULL, &ids, &count, &err), MR_EUSAGE);
    CHECK_OK(mr_heartbeat_cancelled(conn, lease, 0, NULL, &ids, &count, &err));
    CHECK(ids == NULL && count == 0);
    for (int i = 2; i >= 0; i--) {
        cancel(session, jobs[i], "running");
    }
    CHECK_OK(mr_heartbeat_cancelled(conn, lease, 3600 * 1000, &until_us, &ids, &count, &err));
    CHECK(until_us > mr_batch_job(batch, 0)->lease_until_us);
    CHECK_NUMBER((int64_t)count, 3);
    CHECK(ids[0] == jobs[0] && ids[1] == jobs[1] && ids[2] == jobs[2]);
    mr_free(ids);
    CHECK_OK(mr_heartbeat(conn, lease, 0, &until_us, &err)); // without them
    CHECK_OK(mr_fail(conn, lease, jobs[0], "stopped", 0, 1, NULL, 0, &dead, &err));
    CHECK_NUMBER(dead, 0);
    CHECK_OK(mr_release(conn, lease, &jobs[1], 1, NULL, &err));
    CHECK_OK(mr_heartbeat_cancelled(conn, lease, 0, NULL, &ids, &count, &err));
    CHECK_NUMBER((int64_t)count, 1);
    CHECK_NUMBER(ids[0], jobs[2]);
    mr_free(ids);
    CHECK_OK(mr_complete(conn, lease, NULL, 0, NULL, NULL, &err));
    has_status(conn, jobs[0], "cancelled");
    has_status(conn, jobs[1], "cancelled");
    has_status(conn, jobs[2], "completed");
    has_status(conn, jobs[3], "completed");
    mr_batch_free(batch);
    PQfinish(session);
    mr_conn_free(conn);
}

static void finishes(void)
{
    mr_conn *conn = open_conn();
    char outcomes[512];
    int done = 0;

    enqueue_plain(conn, "finishes", 3);
    mr_batch *batch = claim_some(conn, "finishes", 3);
    snprintf(outcomes, sizeof(outcomes),
             "[{\"id\": %lld, \"outcome\": \"completed\", \"result\": 1},"
             " {\"id\": %lld, \"outcome\": \"failed\", \"error\": \"e\", \"retry\": false},"
             " {\"id\": %lld, \"outcome\": \"released\"}]",
             (long long)mr_batch_job(batch, 0)->id, (long long)mr_batch_job(batch, 1)->id,
             (long long)mr_batch_job(batch, 2)->id);
    CHECK_CODE(mr_finish(conn, mr_batch_lease(batch), NULL, &done, &err), MR_EUSAGE);
    CHECK_CODE(mr_finish(conn, mr_batch_lease(batch), "[{]", &done, &err), MR_EINVALID);
    CHECK_OK(mr_finish(conn, mr_batch_lease(batch), outcomes, &done, &err));
    CHECK_NUMBER(done, 3);
    CHECK_NUMBER(depth_of(conn, "finishes"), 1);
    mr_batch_free(batch);
    mr_conn_free(conn);
}

// The lease ends, another claim gets the job, and the first worker's word counts no more.
static void loses_its_lease(void)
{
    mr_conn *conn = open_conn();
    mr_claim_options options = MR_CLAIM_OPTIONS_INIT;
    mr_batch *batch = NULL;

    enqueue_plain(conn, "loses", 1);
    options.queue = "loses";
    options.lease_ms = 1;
    options.worker = "slow";
    CHECK_OK(mr_claim(conn, &options, &batch, &err));
    CHECK_NUMBER((int64_t)mr_batch_count(batch), 1);
    mr_batch *again = claim_some(conn, "loses", 1);
    CHECK_NUMBER(mr_batch_job(again, 0)->id, mr_batch_job(batch, 0)->id);
    CHECK_NUMBER(mr_batch_job(again, 0)->attempt, 2);
    CHECK_CODE(mr_complete(conn, mr_batch_lease(batch), NULL, 0, NULL, NULL, &err), MR_ELEASE);
    CHECK_TEXT(err.sqlstate, "MR001");
    CHECK_CODE(mr_fail(conn, mr_batch_lease(batch), mr_batch_job(batch, 0)->id, "late", 0, 0, NULL,
                       0, NULL, &err),
               MR_ELEASE);
    CHECK_CODE(mr_release(conn, mr_batch_lease(batch), NULL, 0, NULL, &err), MR_ELEASE);
    CHECK_OK(mr_complete(conn, mr_batch_lease(again), NULL, 0, NULL, NULL, &err));
    options.max_jobs = 10001;
    CHECK_CODE(mr_claim(conn, &options, &batch, &err), MR_EUSAGE);
    options.max_jobs = -1;
    CHECK_CODE(mr_claim(conn, &options, &batch, &err), MR_EUSAGE);
    mr_batch_free(batch);
    mr_batch_free(again);
    mr_conn_free(conn);
}

// ---- a connection of the caller's ----

static void wrapped(void)
{
    PGconn *session = open_session();
    mr_conn *conn = NULL;
    mr_job_spec job = MR_JOB_SPEC_INIT;
    size_t done = 0;

    CHECK_CODE(mr_conn_wrap(NULL, &conn, &err), MR_EUSAGE);
    CHECK_OK(mr_conn_wrap(session, &conn, &err));
    job.kind = "wrapped";
    job.queue = "wrapped";
    session_run(session, "begin");
    CHECK_OK(mr_enqueue(conn, &job, NULL, &err));
    CHECK_OK(mr_enqueue_jobs(conn, &job, 1, 0, NULL, &done, &err));
    session_run(session, "rollback");
    CHECK_NUMBER(depth_of(conn, "wrapped"), 0);
    session_run(session, "begin");
    CHECK_OK(mr_enqueue(conn, &job, NULL, &err));
    session_run(session, "commit");
    CHECK_NUMBER(depth_of(conn, "wrapped"), 1);
    // an effect and its completion in one transaction
    mr_batch *batch = claim_some(conn, "wrapped", 1);
    session_run(session, "begin");
    CHECK_OK(mr_complete(conn, mr_batch_lease(batch), NULL, 0, NULL, NULL, &err));
    session_run(session, "rollback");
    CHECK_OK(mr_complete(conn, mr_batch_lease(batch), NULL, 0, NULL, NULL, &err));
    mr_batch_free(batch);
    mr_conn_free(conn);
    session_run(session, "select 1"); // still open
    PQfinish(session);
}

static void wrapped_wrongly(void)
{
    PGconn *session = open_session();
    mr_conn *conn = NULL;
    mr_job_spec job = MR_JOB_SPEC_INIT;

    PQsetClientEncoding(session, "LATIN1");
    CHECK_CODE(mr_conn_wrap(session, &conn, &err), MR_EUSAGE);
    PQsetClientEncoding(session, "UTF8");
    CHECK_OK(mr_conn_wrap(session, &conn, &err));
    job.kind = "wrongly";
    CHECK_NUMBER(mr_fd(conn), -1);
    CHECK_CODE(mr_advance(conn, &err), MR_EUSAGE);
    CHECK_CODE(mr_send_enqueue(conn, &job, &err), MR_EUSAGE);
    CHECK(mr_reply_next(conn) == NULL);
    CHECK(PQsendQuery(session, "select 1") == 1);
    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_EUSAGE);
    for (PGresult *result; (result = PQgetResult(session));) {
        PQclear(result);
    }
    // a refusal leaves the caller's transaction aborted, as any other would
    session_run(session, "begin");
    job.args = "{";
    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_EINVALID);
    CHECK(PQtransactionStatus(session) == PQTRANS_INERROR);
    session_run(session, "rollback");
    mr_conn_free(conn);
    PQfinish(session);
    mr_conn_free(NULL);
}

const struct driver_case work_cases[] = {
    {"completes", completes},
    {"finds_nothing", finds_nothing},
    {"completes_many", completes_many},
    {"fails", fails},
    {"requeues", requeues},
    {"releases", releases},
    {"beats", beats},
    {"hears_of_cancelled", hears_of_cancelled},
    {"finishes", finishes},
    {"loses_its_lease", loses_its_lease},
    {"wrapped", wrapped},
    {"wrapped_wrongly", wrapped_wrongly},
    {0},
};
