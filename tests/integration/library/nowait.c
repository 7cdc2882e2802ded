// SPDX-License-Identifier: PostgreSQL
//
// Requests without waiting, driven with poll().

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver.h"

// The next reply, waited for with nothing but the descriptor.
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

static int64_t await_number(mr_conn *conn, enum mr_call call)
{
    mr_reply *reply = await_reply(conn);

    CHECK_OK(mr_reply_code(reply, &err));
    CHECK_NUMBER(mr_reply_call(reply), call);
    int64_t number = mr_reply_number(reply);
    CHECK(mr_reply_take_batch(reply) == NULL);
    mr_reply_free(reply);
    return number;
}

static mr_batch *await_batch(mr_conn *conn)
{
    mr_reply *reply = await_reply(conn);

    CHECK_OK(mr_reply_code(reply, &err));
    CHECK_NUMBER(mr_reply_call(reply), MR_CALL_CLAIM);
    mr_batch *batch = mr_reply_take_batch(reply);
    CHECK(mr_reply_take_batch(reply) == NULL);
    mr_reply_free(reply);
    return batch;
}

static void many_in_flight(void)
{
    enum { COUNT = 600 };
    mr_conn *conn = open_conn();
    mr_job_spec job = MR_JOB_SPEC_INIT;
    int64_t last = 0;

    job.kind = "k";
    job.queue = "in flight";
    for (int i = 0; i < COUNT; i++) {
        // one of them is refused, and hurts nobody else
        job.args = i == 300 ? "{" : "{}";
        CHECK_OK(mr_send_enqueue(conn, &job, &err));
    }
    for (int i = 0; i < COUNT; i++) {
        mr_reply *reply = await_reply(conn);
        CHECK_CODE(mr_reply_code(reply, &err), i == 300 ? MR_EINVALID : MR_OK);
        CHECK(i == 300 || mr_reply_number(reply) > last);
        last = i == 300 ? last : mr_reply_number(reply);
        mr_reply_free(reply);
    }
    CHECK(mr_reply_next(conn) == NULL);
    CHECK_NUMBER(depth_of(conn, "in flight"), COUNT - 1);
    mr_conn_free(conn);
}

// Finish and next claim in one round trip, as a worker does.
static void every_call(void)
{
    mr_conn *conn = open_conn();
    mr_claim_options options = MR_CLAIM_OPTIONS_INIT;

    enqueue_plain(conn, "every", 6);
    options.queue = "every";
    options.max_jobs = 5;
    CHECK_OK(mr_send_claim(conn, &options, &err));
    mr_batch *batch = await_batch(conn);
    CHECK_NUMBER((int64_t)mr_batch_count(batch), 5);
    const char *lease = mr_batch_lease(batch);
    int64_t ids[5];
    for (size_t i = 0; i < 5; i++) {
        ids[i] = mr_batch_job(batch, i)->id;
    }
    CHECK_OK(mr_send_heartbeat(conn, lease, 60000, &err));
    CHECK_OK(mr_send_progress(conn, lease, ids[0], 50, "half", &err));
    CHECK_OK(mr_send_fail(conn, lease, ids[0], "no", 0, 1, NULL, 0, &err));
    CHECK_OK(mr_send_fail(conn, lease, ids[1], "later", 3600000, 0, "s", 1, &err));
    CHECK_OK(
        mr_send_requeue(conn, lease, ids[2], "{\"delay\": \"1 hour\"}", NULL, 0, NULL, 0, &err));
    CHECK_OK(mr_send_release(conn, lease, &ids[3], 1, &err));
    CHECK_OK(mr_send_finish(conn, lease, "[]", &err));
    CHECK_OK(mr_send_complete(conn, lease, NULL, 0, "1", &err));
    CHECK_OK(mr_send_claim(conn, &options, &err));
    CHECK(await_number(conn, MR_CALL_HEARTBEAT) > mr_batch_job(batch, 0)->lease_until_us);
    CHECK_NUMBER(await_number(conn, MR_CALL_PROGRESS), 0);
    CHECK_NUMBER(await_number(conn, MR_CALL_FAIL), 1);
    CHECK_NUMBER(await_number(conn, MR_CALL_FAIL), 0);
    CHECK_NUMBER(await_number(conn, MR_CALL_REQUEUE), ids[2]);
    CHECK_NUMBER(await_number(conn, MR_CALL_RELEASE), 1);
    CHECK_NUMBER(await_number(conn, MR_CALL_FINISH), 0);
    CHECK_NUMBER(await_number(conn, MR_CALL_COMPLETE), 1);
    mr_batch_free(batch);
    batch = await_batch(conn);
    CHECK(mr_batch_count(batch) > 0);
    mr_batch_free(batch);
    mr_conn_free(conn);
}

// What a heartbeat says of cancelled jobs is the reply's; other replies know of none.
static void replies_with_cancelled(void)
{
    mr_conn *conn = open_conn();
    PGconn *session = open_session();
    const int64_t *ids = NULL;
    char statement[128];

    enqueue_plain(conn, "replies", 2);
    mr_batch *batch = claim_some(conn, "replies", 2);
    int64_t id = mr_batch_job(batch, 1)->id;
    snprintf(statement, sizeof(statement), "select millrace.cancel(%lld)", (long long)id);
    CHECK_TEXT(session_ask(session, statement), "running");
    CHECK_OK(mr_send_heartbeat(conn, mr_batch_lease(batch), 0, &err));
    CHECK_OK(mr_send_release(conn, mr_batch_lease(batch), NULL, 0, &err));
    mr_reply *reply = await_reply(conn);
    CHECK_OK(mr_reply_code(reply, &err));
    CHECK_NUMBER((int64_t)mr_reply_cancelled(reply, NULL), 1);
    CHECK_NUMBER((int64_t)mr_reply_cancelled(reply, &ids), 1);
    CHECK_NUMBER(ids[0], id);
    mr_reply_free(reply);
    reply = await_reply(conn);
    CHECK_NUMBER(mr_reply_number(reply), 2);
    CHECK_NUMBER((int64_t)mr_reply_cancelled(reply, &ids), 0);
    CHECK(ids == NULL);
    mr_reply_free(reply);
    CHECK_NUMBER(depth_of(conn, "replies"), 1); // the other one was cancelled
    mr_batch_free(batch);
    PQfinish(session);
    mr_conn_free(conn);
}

static void has_a_limit(void)
{
    mr_conn *conn = open_conn();
    mr_job_spec job = MR_JOB_SPEC_INIT;
    int sent = 0, code = 0;

    job.kind = "k";
    job.queue = "limit";
    while (sent < 100000 && (code = mr_send_enqueue(conn, &job, &err)) == 0) {
        sent++;
    }
    CHECK_CODE(code, MR_ELIMIT);
    CHECK(sent > 256);
    for (int i = 0; i < sent; i++) {
        (void)await_number(conn, MR_CALL_ENQUEUE);
    }
    CHECK_OK(mr_send_enqueue(conn, &job, &err));
    mr_reply_free(await_reply(conn));
    CHECK_NUMBER(depth_of(conn, "limit"), sent + 1);
    mr_conn_free(conn);
}

static void wrong_requests(void)
{
    mr_conn *conn = open_conn();
    mr_job_spec job = MR_JOB_SPEC_INIT;
    mr_claim_options options = MR_CLAIM_OPTIONS_INIT;

    CHECK_CODE(mr_send_enqueue(conn, &job, &err), MR_EUSAGE);
    options.max_jobs = -1;
    CHECK_CODE(mr_send_claim(conn, &options, &err), MR_EUSAGE);
    CHECK_CODE(mr_send_complete(conn, NULL, NULL, 0, NULL, &err), MR_EUSAGE);
    CHECK_CODE(mr_send_fail(conn, "l", 1, NULL, 0, 0, NULL, 0, &err), MR_EUSAGE);
    CHECK_CODE(mr_send_finish(conn, "l", NULL, &err), MR_EUSAGE);
    CHECK_CODE(mr_send_requeue(conn, NULL, 1, NULL, NULL, 0, NULL, 0, &err), MR_EUSAGE);
    CHECK_CODE(mr_send_release(conn, "l", NULL, 1, &err), MR_EUSAGE);
    CHECK_CODE(mr_send_heartbeat(conn, "l", -1, &err), MR_EUSAGE);
    CHECK_CODE(mr_send_progress(conn, NULL, 1, 50, NULL, &err), MR_EUSAGE);
    CHECK_CODE(mr_advance(NULL, &err), MR_EUSAGE);
    CHECK_NUMBER(mr_fd(NULL), -1);
    mr_reply_free(NULL);
    mr_conn_free(conn);
}

// Blocking calls between others, and an end with replies that nobody took.
static void mixed(void)
{
    mr_conn *conn = open_conn();
    mr_job_spec job = MR_JOB_SPEC_INIT;

    job.kind = "k";
    job.queue = "mixed";
    CHECK_OK(mr_send_enqueue(conn, &job, &err));
    CHECK_OK(mr_enqueue(conn, &job, NULL, &err));
    CHECK_NUMBER(depth_of(conn, "mixed"), 2);
    mr_reply_free(await_reply(conn));
    for (int i = 0; i < 300; i++) {
        CHECK_OK(mr_send_enqueue(conn, &job, &err));
    }
    CHECK_OK(mr_advance(conn, &err));
    mr_conn_free(conn);
}

const struct driver_case nowait_cases[] = {
    {"many_in_flight", many_in_flight},
    {"every_call", every_call},
    {"replies_with_cancelled", replies_with_cancelled},
    {"has_a_limit", has_a_limit},
    {"wrong_requests", wrong_requests},
    {"mixed", mixed},
    {0},
};
