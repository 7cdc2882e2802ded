// SPDX-License-Identifier: PostgreSQL
//
// Producing: what goes in comes out as it was, and what is wrong is refused.

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

static void everything_of_a_job(void)
{
    static const char state[] = "state\0with a zero", blob[] = "\1\2\3";
    mr_conn *conn = open_conn();
    mr_job_spec job = MR_JOB_SPEC_INIT;
    int64_t id = 0;

    job.kind = "send";
    job.args = "{\"to\": \"ada\", \"n\": 12345678901234567890}";
    job.queue = "everything";
    job.priority = 7;
    job.max_attempts = 5;
    job.timeout_ms = 90500;
    job.tenant = "t-ü";
    job.ref = "r-1";
    job.meta = "[1, null]";
    job.state = state;
    job.state_size = sizeof(state);
    job.blob = blob;
    job.blob_size = 0;
    CHECK_OK(mr_enqueue(conn, &job, &id, &err));
    CHECK(id > 0);

    mr_batch *batch = claim_some(conn, "everything", 10);
    CHECK_NUMBER((int64_t)mr_batch_count(batch), 1);
    CHECK(mr_batch_job(batch, 1) == NULL);
    const mr_claimed_job *claimed = mr_batch_job(batch, 0);
    CHECK_NUMBER(claimed->id, id);
    CHECK_NUMBER(claimed->attempt, 1);
    CHECK_NUMBER(claimed->max_attempts, 5);
    CHECK_NUMBER(claimed->priority, 7);
    CHECK_NUMBER(claimed->timeout_ms, 90500);
    CHECK_TEXT(claimed->queue, "everything");
    CHECK_TEXT(claimed->kind, "send");
    CHECK_TEXT(claimed->args, "{\"n\": 12345678901234567890, \"to\": \"ada\"}");
    CHECK_TEXT(claimed->meta, "[1, null]");
    CHECK_TEXT(claimed->tenant, "t-ü");
    CHECK_TEXT(claimed->ref, "r-1");
    CHECK_TEXT(claimed->source, NULL);
    CHECK_TEXT(claimed->lease, mr_batch_lease(batch));
    CHECK_NUMBER((int64_t)claimed->state_size, (int64_t)sizeof(state));
    CHECK(memcmp(claimed->state, state, sizeof(state)) == 0);
    CHECK(claimed->blob != NULL);
    CHECK_NUMBER((int64_t)claimed->blob_size, 0);
    // 2020 to 2100, and the lease in the future of the job
    CHECK(claimed->created_at_us > INT64_C(1577836800000000));
    CHECK(claimed->created_at_us < INT64_C(4102444800000000));
    CHECK(claimed->lease_until_us > claimed->created_at_us);
    CHECK_OK(mr_complete(conn, mr_batch_lease(batch), NULL, 0, NULL, NULL, &err));
    mr_batch_free(batch);
    mr_conn_free(conn);
}

static void defaults_of_a_job(void)
{
    mr_conn *conn = open_conn();
    mr_job_spec job = MR_JOB_SPEC_INIT;
    mr_claim_options options = MR_CLAIM_OPTIONS_INIT;
    mr_batch *batch = NULL;

    job.kind = "least";
    CHECK_OK(mr_enqueue(conn, &job, NULL, NULL));
    CHECK_OK(mr_claim(conn, &options, &batch, &err));
    const mr_claimed_job *claimed = mr_batch_job(batch, 0);
    CHECK_TEXT(claimed->queue, "default");
    CHECK_TEXT(claimed->args, "{}");
    CHECK_TEXT(claimed->meta, NULL);
    CHECK_NUMBER(claimed->priority, 50);
    CHECK_NUMBER(claimed->max_attempts, 3);
    CHECK_NUMBER(claimed->timeout_ms, 0);
    CHECK(claimed->state == NULL && claimed->blob == NULL);
    CHECK(claimed->tenant == NULL && claimed->ref == NULL);
    CHECK_OK(mr_release(conn, mr_batch_lease(batch), NULL, 0, NULL, &err));
    mr_batch_free(batch);
    // without options at all
    CHECK_OK(mr_claim(conn, NULL, &batch, &err));
    CHECK_NUMBER((int64_t)mr_batch_count(batch), 1);
    CHECK_OK(mr_complete(conn, mr_batch_lease(batch), NULL, 0, NULL, NULL, &err));
    mr_batch_free(batch);
    mr_conn_free(conn);
}

static void delayed(void)
{
    mr_conn *conn = open_conn();
    mr_job_spec job = MR_JOB_SPEC_INIT;
    char *story = NULL;
    int64_t id = 0;

    job.kind = "later";
    job.queue = "delayed";
    job.delay_ms = 3600 * 1000;
    CHECK_OK(mr_enqueue(conn, &job, &id, &err));
    CHECK_NUMBER(depth_of(conn, "delayed"), 0);
    CHECK_OK(mr_job(conn, id, &story, &err));
    CHECK(has(story, "\"scheduled\""));
    mr_free(story);
    job.delay_ms = 0;
    job.run_at = "2001-01-01 00:00:00+00";
    CHECK_OK(mr_enqueue(conn, &job, &id, &err));
    CHECK_NUMBER(depth_of(conn, "delayed"), 1);
    job.run_at = "sometime";
    CHECK_CODE(mr_enqueue(conn, &job, &id, &err), MR_EINVALID);
    mr_conn_free(conn);
}

// `count` args {"n": 0}, {"n": 1} and so on.
static char **make_args(size_t count)
{
    char **args = calloc(count, sizeof(*args));

    for (size_t i = 0; i < count; i++) {
        args[i] = malloc(32);
        snprintf(args[i], 32, "{\"n\": %zu}", i);
    }
    return args;
}

static void free_args(char **args, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(args[i]);
    }
    free(args);
}

// What came out is what went in, in order.
static void check_many(mr_conn *conn, const char *queue, const int64_t *ids, size_t count,
                       const char *tenant)
{
    mr_batch *batch = claim_some(conn, queue, (int)count);
    char expected[32];

    CHECK_NUMBER((int64_t)mr_batch_count(batch), (int64_t)count);
    for (size_t i = 0; i < count; i++) {
        const mr_claimed_job *claimed = mr_batch_job(batch, i);
        snprintf(expected, sizeof(expected), "{\"n\": %zu}", i);
        CHECK_TEXT(claimed->args, expected);
        CHECK_NUMBER(claimed->id, ids[i]);
        CHECK_TEXT(claimed->kind, "many");
        CHECK_TEXT(claimed->tenant, tenant);
        CHECK_NUMBER(claimed->priority, 3);
    }
    mr_batch_free(batch);
}

static void many(void)
{
    enum { COUNT = 25 };
    mr_conn *conn = open_conn();
    mr_job_spec job = MR_JOB_SPEC_INIT;
    char **args = make_args(COUNT);
    int64_t ids[COUNT] = {0};
    size_t done = 99;

    job.kind = "many";
    job.queue = "many";
    job.priority = 3;
    CHECK_OK(mr_enqueue_many(conn, &job, NULL, 0, 0, NULL, &done, &err));
    CHECK_NUMBER((int64_t)done, 0);
    CHECK_NUMBER(depth_of(conn, "many"), 0);
    CHECK_OK(mr_enqueue_many(conn, &job, (const char *const *)args, COUNT, 10, ids, &done, &err));
    CHECK_NUMBER((int64_t)done, COUNT);
    check_many(conn, "many", ids, COUNT, NULL);
    // an option that enqueue_many() does not have
    job.queue = "many with a tenant";
    job.tenant = "ten";
    CHECK_OK(mr_enqueue_many(conn, &job, (const char *const *)args, COUNT, 7, ids, &done, &err));
    CHECK_NUMBER((int64_t)done, COUNT);
    check_many(conn, "many with a tenant", ids, COUNT, "ten");
    free_args(args, COUNT);
    mr_conn_free(conn);
}

// More than a statement's worth in a chunk: one transaction, in order, whatever a statement of it
// says.
static void many_in_pieces(void)
{
    enum { COUNT = 2500, BAD = 2400 };
    mr_conn *conn = open_conn();
    PGconn *session = open_session();
    mr_job_spec job = MR_JOB_SPEC_INIT;
    char **args = make_args(COUNT);
    const char *const *given = (const char *const *)args;
    int64_t *ids = calloc(COUNT, sizeof(*ids));
    size_t done = 99;

    job.kind = "many";
    job.queue = "pieces";
    job.priority = 3;
    CHECK_OK(mr_enqueue_many(conn, &job, given, COUNT, 0, ids, &done, &err));
    CHECK_NUMBER((int64_t)done, COUNT);
    CHECK_TEXT(session_ask(session, "select count(distinct j.xid) from millrace.job j"
                                    " join millrace.queue q on q.queue_id = j.lane >> 12"
                                    " where q.queue_name = 'pieces'"),
               "1");
    check_many(conn, "pieces", ids, COUNT, NULL);
    CHECK_OK(mr_enqueue_many(conn, &job, given, COUNT, 1700, ids, &done, &err));
    CHECK_NUMBER((int64_t)done, COUNT);
    check_many(conn, "pieces", ids, COUNT, NULL);

    // the last piece is refused: none of its chunk is in, and the connection is as good as before
    job.queue = "bad pieces";
    snprintf(args[BAD], 3, "{:");
    CHECK_CODE(mr_enqueue_many(conn, &job, given, COUNT, 0, ids, &done, &err), MR_EINVALID);
    CHECK_NUMBER((int64_t)done, 0);
    CHECK_NUMBER(depth_of(conn, "bad pieces"), 0);
    CHECK_OK(mr_enqueue_many(conn, &job, given, BAD, 0, NULL, &done, &err));
    CHECK_NUMBER(depth_of(conn, "bad pieces"), BAD);

    // where there is room for one, a call is let in whole
    session_run(session, "select millrace.set_queue('whole', '{\"depth_limit\": 2500}')");
    job.queue = "whole";
    CHECK_OK(mr_enqueue_many(conn, &job, given, 1, 0, NULL, &done, &err));
    CHECK_OK(mr_enqueue_many(conn, &job, given, BAD, 0, NULL, &done, &err));
    CHECK_NUMBER(depth_of(conn, "whole"), BAD + 1);
    free(ids);
    free_args(args, COUNT);
    PQfinish(session);
    mr_conn_free(conn);
}

static void jobs(void)
{
    enum { COUNT = 5 };
    mr_conn *conn = open_conn();
    mr_job_spec specs[COUNT];
    int64_t ids[COUNT];
    size_t done = 99;

    CHECK_OK(mr_enqueue_jobs(conn, NULL, 0, 0, NULL, &done, &err));
    CHECK_NUMBER((int64_t)done, 0);
    for (int i = 0; i < COUNT; i++) {
        specs[i] = (mr_job_spec)MR_JOB_SPEC_INIT;
        specs[i].kind = i % 2 ? "odd \"kind\"" : "even\nkind";
        specs[i].queue = "jobs";
        specs[i].priority = 10 + i;
        specs[i].ref = i == 3 ? "three" : NULL;
        specs[i].state = i == 4 ? "\0\xff" : NULL;
        specs[i].state_size = i == 4 ? 2 : 0;
        specs[i].timeout_ms = 1000 * i;
    }
    CHECK_OK(mr_enqueue_jobs(conn, specs, COUNT, 2, ids, &done, &err));
    CHECK_NUMBER((int64_t)done, COUNT);
    for (int i = 0; i < COUNT; i++) { // one priority a claim
        mr_batch *batch = claim_some(conn, "jobs", COUNT);
        const mr_claimed_job *claimed = mr_batch_job(batch, 0);
        CHECK_NUMBER(claimed->id, ids[i]);
        CHECK_TEXT(claimed->kind, specs[i].kind);
        CHECK_TEXT(claimed->ref, specs[i].ref);
        CHECK_NUMBER(claimed->timeout_ms, specs[i].timeout_ms);
        CHECK_NUMBER((int64_t)claimed->state_size, (int64_t)specs[i].state_size);
        CHECK(i != 4 || memcmp(claimed->state, "\0\xff", 2) == 0);
        mr_batch_free(batch);
    }
    mr_conn_free(conn);
}

// Nothing is different but args, state and blob: binary arrays. One that is turns all of its chunk
// to objects, with the same effect.
static void heavy_jobs(void)
{
    enum { COUNT = 6, CHUNK = 3 };
    static const char *const args[COUNT] = {"1", NULL, "{\"a\": [2]}", "\"3\"", "4", "5"};
    mr_conn *conn = open_conn();
    mr_job_spec specs[COUNT];
    int64_t ids[COUNT];
    size_t done = 0;

    for (int i = 0; i < COUNT; i++) {
        specs[i] = (mr_job_spec)MR_JOB_SPEC_INIT;
        specs[i].kind = "heavy";
        specs[i].queue = "heavy jobs";
        specs[i].args = args[i];
        specs[i].state = i % 2 ? "\0s\xff" : NULL;
        specs[i].state_size = i % 2 ? 3 : 0;
        specs[i].blob = i % 3 ? NULL : "";
        specs[i].tenant = i == 4 ? "ten" : NULL;
    }
    CHECK_OK(mr_enqueue_jobs(conn, specs, COUNT, CHUNK, ids, &done, &err));
    CHECK_NUMBER((int64_t)done, COUNT);
    mr_batch *batch = claim_some(conn, "heavy jobs", COUNT);
    CHECK_NUMBER((int64_t)mr_batch_count(batch), COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        const mr_claimed_job *claimed = mr_batch_job(batch, i);
        CHECK_NUMBER(claimed->id, ids[i]);
        CHECK_TEXT(claimed->args, args[i] ? args[i] : "{}");
        CHECK_TEXT(claimed->tenant, specs[i].tenant);
        CHECK_NUMBER((int64_t)claimed->state_size, i % 2 ? 3 : 0);
        CHECK(i % 2 ? memcmp(claimed->state, "\0s\xff", 3) == 0 : !claimed->state);
        CHECK(!claimed->blob == (i % 3 != 0));
    }
    mr_batch_free(batch);
    for (int i = 0; i < COUNT; i++) {
        specs[i].queue = "heavy and bad";
        specs[i].tenant = NULL;
    }
    specs[4].args = "{\"a\":}";
    CHECK_CODE(mr_enqueue_jobs(conn, specs, COUNT, CHUNK, ids, &done, &err), MR_EINVALID);
    CHECK_NUMBER((int64_t)done, CHUNK);
    CHECK(strstr(err.message, "job 4: args"));
    CHECK_NUMBER(depth_of(conn, "heavy and bad"), CHUNK);
    mr_conn_free(conn);
}

static void bad_json(void)
{
    static const char *const some[] = {"{}", "1", "{\"a\":}", "{}"};
    static const char *const smuggled[] = {"1},{\"kind\":\"evil\""};
    mr_conn *conn = open_conn();
    mr_job_spec job = MR_JOB_SPEC_INIT;
    int64_t ids[4];
    size_t done = 99;

    job.kind = "bad";
    job.queue = "bad json";
    job.args = "{";
    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_EINVALID);
    job.args = NULL;
    CHECK_CODE(mr_enqueue_many(conn, &job, some, 4, 2, ids, &done, &err), MR_EINVALID);
    CHECK_NUMBER((int64_t)done, 2); // the chunk before it is in
    CHECK_NUMBER(depth_of(conn, "bad json"), 2);
    job.ref = "not plain";
    CHECK_CODE(mr_enqueue_many(conn, &job, some, 4, 0, ids, &done, &err), MR_EINVALID);
    CHECK_NUMBER((int64_t)done, 0);
    CHECK_CODE(mr_enqueue_many(conn, &job, smuggled, 1, 0, ids, &done, &err), MR_EINVALID);
    job.args = smuggled[0];
    CHECK_CODE(mr_enqueue_jobs(conn, &job, 1, 0, ids, &done, &err), MR_EINVALID);
    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_EINVALID);
    CHECK_NUMBER(depth_of(conn, "bad json"), 2);
    // jsonb has no room for it, though it is JSON
    job.args = "\"\\u0000\"";
    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_EINVALID);
    mr_conn_free(conn);
}

static void bad_text(void)
{
    mr_conn *conn = open_conn();
    mr_job_spec job = MR_JOB_SPEC_INIT;

    job.kind = "broken \xc3\x28";
    job.queue = "bad text";
    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_EINVALID);
    CHECK_CODE(mr_enqueue_jobs(conn, &job, 1, 0, NULL, NULL, &err), MR_EINVALID);
    job.kind = "";
    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_EINVALID);
    job.kind = "k";
    job.ordering_key = "in a queue without order";
    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_EINVALID);
    job.ordering_key = NULL;
    job.priority = 100;
    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_EINVALID);
    CHECK_NUMBER(depth_of(conn, "bad text"), 0);
    mr_conn_free(conn);
}

static void wrong_arguments(void)
{
    static const char *const holes[] = {"{}", NULL};
    mr_conn *conn = open_conn();
    mr_job_spec job = MR_JOB_SPEC_INIT;
    size_t done = 99;

    CHECK_CODE(mr_enqueue(conn, NULL, NULL, &err), MR_EUSAGE);
    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_EUSAGE);
    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_EUSAGE);
    job.kind = "k";
    CHECK_CODE(mr_enqueue(NULL, &job, NULL, &err), MR_EUSAGE);
    CHECK_CODE(mr_enqueue_many(conn, &job, holes, 2, 0, NULL, &done, &err), MR_EUSAGE);
    CHECK_NUMBER((int64_t)done, 0);
    CHECK_CODE(mr_enqueue_many(conn, &job, holes, 1, 1000001, NULL, NULL, &err), MR_EUSAGE);
    CHECK_CODE(mr_enqueue_jobs(conn, NULL, 1, 0, NULL, NULL, &err), MR_EUSAGE);
    job.delay_ms = -1;
    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_EUSAGE);
    job.delay_ms = 0;
    job.unique_for_ms = -1;
    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_EUSAGE);
    job.unique_for_ms = 0;
    job.max_attempts = -1;
    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_EUSAGE);
    job.max_attempts = 0;
    job.state_size = 1;
    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_EUSAGE);
    // and nobody has to listen
    CHECK(mr_enqueue(conn, &job, NULL, NULL) == MR_EUSAGE);
    mr_conn_free(conn);
}

// A struct of an older header ends earlier: what lies behind it is not read.
static void sizes(void)
{
    mr_conn *conn = open_conn();
    mr_job_spec job = MR_JOB_SPEC_INIT;
    mr_conn_options options = MR_CONN_OPTIONS_INIT;
    mr_conn *other = NULL;

    job.kind = "older";
    job.queue = "sizes";
    job.meta = "nonsense";
    job.size = offsetof(mr_job_spec, meta);
    CHECK_OK(mr_enqueue(conn, &job, NULL, &err));
    job.size = 0;
    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_EUSAGE);
    job.size = sizeof(job) + 1;
    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_EUSAGE);
    CHECK_CODE(mr_enqueue_jobs(conn, &job, 1, 0, NULL, NULL, &err), MR_EUSAGE);
    options.size = 0;
    CHECK_CODE(mr_conn_open(&options, &other, &err), MR_EUSAGE);
    options.size = sizeof(options) * 2;
    CHECK_CODE(mr_conn_open(&options, &other, &err), MR_EUSAGE);
    CHECK(other == NULL);
    CHECK_NUMBER(depth_of(conn, "sizes"), 1);
    mr_conn_free(conn);
}

// Jobs of an older header lie closer together.
static void older_jobs(void)
{
    enum { OLD_SIZE = offsetof(mr_job_spec, tenant), COUNT = 3 };
    mr_conn *conn = open_conn();
    char *memory = calloc(COUNT, OLD_SIZE);
    int64_t ids[COUNT];

    for (int i = 0; i < COUNT; i++) {
        mr_job_spec job = MR_JOB_SPEC_INIT;
        job.size = OLD_SIZE;
        job.kind = "older";
        job.queue = "older jobs";
        memcpy(memory + i * OLD_SIZE, &job, OLD_SIZE);
    }
    CHECK_OK(mr_enqueue_jobs(conn, (const mr_job_spec *)(void *)memory, COUNT, 0, ids, NULL, &err));
    CHECK_NUMBER(depth_of(conn, "older jobs"), COUNT);
    free(memory);
    mr_conn_free(conn);
}

static mr_conn *open_conn_waiting(int64_t full_wait_ms)
{
    mr_conn_options options = MR_CONN_OPTIONS_INIT;
    mr_conn *conn = NULL;

    options.pooler = getenv("MR_TEST_POOLER") != NULL;
    options.full_wait_ms = full_wait_ms;
    CHECK_OK(mr_conn_open(&options, &conn, &err));
    return conn;
}

// A depth_limit that came since the queue was asked: the chunk goes as one call then, which is let
// in as a whole. In pieces, each of which finds those before it in its way, it never would be.
static void pieces_meet_a_limit(void)
{
    enum { COUNT = 2400 };
    mr_conn *conn = open_conn_waiting(60000);
    PGconn *session = open_session();
    mr_job_spec job = MR_JOB_SPEC_INIT;
    char **args = make_args(COUNT);
    const char *const *given = (const char *const *)args;
    size_t done = 99;

    job.kind = "many";
    job.queue = "limited";
    CHECK_OK(mr_enqueue_many(conn, &job, given, COUNT, 0, NULL, &done, &err));
    session_run(session, "select millrace.set_queue('limited', '{\"depth_limit\": 2401}')");
    CHECK_OK(mr_enqueue_many(conn, &job, given, COUNT, 0, NULL, &done, &err));
    CHECK_NUMBER((int64_t)done, COUNT);
    CHECK_NUMBER(depth_of(conn, "limited"), 2 * COUNT);
    free_args(args, COUNT);
    PQfinish(session);
    mr_conn_free(conn);
}

// Takes all jobs of a queue in the background, ten times a second, until the caller is through.
static void drain_begin(PGconn *session, const char *queue)
{
    char text[300];

    snprintf(text, sizeof(text),
             "do $$ begin for i in 1 .. 600 loop perform pg_sleep(0.1);"
             " perform count(*) from millrace.claim('%s', max_jobs => 100); commit;"
             " end loop; end $$",
             queue);
    CHECK(PQsendQuery(session, text) == 1);
}

static void drain_end(PGconn *session)
{
    PGcancel *cancel = PQgetCancel(session);
    char why[200];
    PGresult *result;

    CHECK(PQcancel(cancel, why, sizeof(why)) == 1);
    while ((result = PQgetResult(session))) {
        PQclear(result);
    }
    PQfreeCancel(cancel);
}

static void full_queue(void)
{
    static const char *const args[] = {"1", "2", "3", "4", "5", "6", "7"};
    PGconn *session = open_session();
    mr_conn *conn = open_conn(), *waiting = open_conn_waiting(300);
    mr_job_spec job = MR_JOB_SPEC_INIT;
    size_t done = 99;
    int64_t id = -1;

    session_run(session, "select millrace.set_queue('full', '{\"depth_limit\": 3}')");
    job.kind = "k";
    job.queue = "full";
    // chunks of two: two are let in, and the third finds it full
    CHECK_CODE(mr_enqueue_many(conn, &job, args, 7, 2, NULL, &done, &err), MR_EFULL);
    CHECK_NUMBER((int64_t)done, 4);
    CHECK_NUMBER(depth_of(conn, "full"), 4);
    CHECK(mr_enqueue(conn, &job, &id, &err) == MR_EFULL);
    CHECK_NUMBER(id, -1);
    CHECK_TEXT(err.sqlstate, "MR002");
    CHECK(has(err.message, "queue 'full' is full"));
    CHECK(has(err.hint, "4 jobs wait in it and its depth_limit is 3"));
    CHECK_TEXT(err.detail, "");
    memset(&err, 0, sizeof(err));
    CHECK(mr_enqueue(conn, &job, NULL, NULL) == MR_EFULL);
    // more than it ever takes is no matter of time
    CHECK_CODE(mr_enqueue_many(waiting, &job, args, 4, 0, NULL, &done, &err), MR_EINVALID);
    CHECK_NUMBER((int64_t)done, 0);

    int64_t begun_ms = now_ms();
    CHECK(mr_enqueue(waiting, &job, &id, &err) == MR_EFULL);
    CHECK(now_ms() - begun_ms >= 300);
    CHECK_TEXT(err.detail, "There was no room within 300 ms.");
    memset(&err, 0, sizeof(err));
    CHECK_NUMBER(depth_of(conn, "full"), 4);
    mr_conn_free(waiting);
    mr_conn_free(conn);
    PQfinish(session);
}

static void waits_for_room(void)
{
    static const char *const args[] = {"1", "2", "3", "4", "5", "6", "7"};
    PGconn *session = open_session(), *taker = open_session();
    mr_conn *conn = open_conn_waiting(60000);
    mr_job_spec job = MR_JOB_SPEC_INIT;
    int64_t ids[7] = {0}, id = 0;
    size_t done = 0;

    session_run(session, "select millrace.set_queue('room', '{\"depth_limit\": 4}')");
    job.kind = "k";
    job.queue = "room";
    enqueue_plain(conn, "room", 4);
    drain_begin(taker, "room");
    CHECK_OK(mr_enqueue(conn, &job, &id, &err));
    CHECK(id > 0);
    // chunk by chunk, nothing lost and nothing twice
    enqueue_plain(conn, "room", 4);
    CHECK_OK(mr_enqueue_many(conn, &job, args, 7, 2, ids, &done, &err));
    CHECK_NUMBER((int64_t)done, 7);
    drain_end(taker);
    session_await(session,
                  "select string_agg(j.args #>> '{}', ' ' order by j.id) from millrace.jobs j"
                  " where j.queue = 'room' and j.args <> '{}' and jsonb_typeof(j.args) = 'number'",
                  "1 2 3 4 5 6 7");
    mr_conn_free(conn);
    PQfinish(taker);
    PQfinish(session);
}

static char *make_string(size_t size)
{
    char *text = malloc(size + 1);

    memset(text, 'x', size);
    text[0] = text[size - 1] = '"';
    text[size] = '\0';
    return text;
}

static void huge(void)
{
    enum { STATE_SIZE = 10 << 20 };
    mr_conn *conn = open_conn();
    mr_job_spec job = MR_JOB_SPEC_INIT;
    char *text = make_string(2 << 20);
    char *state = make_string(STATE_SIZE);

    job.kind = "huge";
    job.queue = "huge";
    job.args = text;
    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_EINVALID); // max_args is 1 MiB
    text[1000] = '"';
    text[1001] = '\0';
    job.state = state;
    job.state_size = STATE_SIZE;
    CHECK_OK(mr_enqueue(conn, &job, NULL, &err));
    mr_batch *batch = claim_some(conn, "huge", 1);
    CHECK_NUMBER((int64_t)mr_batch_job(batch, 0)->state_size, STATE_SIZE);
    CHECK(memcmp(mr_batch_job(batch, 0)->state, state, STATE_SIZE) == 0);
    CHECK_OK(mr_release(conn, mr_batch_lease(batch), NULL, 0, NULL, &err));
    mr_batch_free(batch);
    mr_claim_options options = MR_CLAIM_OPTIONS_INIT;
    options.queue = "huge";
    options.without_state = 1;
    CHECK_OK(mr_claim(conn, &options, &batch, &err));
    CHECK(mr_batch_job(batch, 0)->state == NULL);
    mr_batch_free(batch);
    free(text);
    free(state);
    mr_conn_free(conn);
}

const struct driver_case produce_cases[] = {
    {"everything_of_a_job", everything_of_a_job},
    {"defaults_of_a_job", defaults_of_a_job},
    {"delayed", delayed},
    {"many", many},
    {"many_in_pieces", many_in_pieces},
    {"pieces_meet_a_limit", pieces_meet_a_limit},
    {"jobs", jobs},
    {"heavy_jobs", heavy_jobs},
    {"bad_json", bad_json},
    {"bad_text", bad_text},
    {"wrong_arguments", wrong_arguments},
    {"sizes", sizes},
    {"older_jobs", older_jobs},
    {"huge", huge},
    {"full_queue", full_queue},
    {"waits_for_room", waits_for_room},
    {0},
};
