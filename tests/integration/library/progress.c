// SPDX-License-Identifier: PostgreSQL
//
// Reports of progress, and waiting for the end of a job.

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

static int64_t enqueue_one(mr_conn *conn, const char *queue)
{
    mr_job_spec job = MR_JOB_SPEC_INIT;
    int64_t id = 0;

    job.kind = "k";
    job.queue = queue;
    CHECK_OK(mr_enqueue(conn, &job, &id, &err));
    return id;
}

static bool story_has(mr_conn *conn, int64_t id, const char *text)
{
    char *story = NULL;

    CHECK_OK(mr_job(conn, id, &story, &err));
    bool found = has(story, text);
    mr_free(story);
    return found;
}

// ---- reporting ----

static void reports(void)
{
    mr_conn *conn = open_conn();
    char note[1100];

    int64_t id = enqueue_one(conn, "reports");
    mr_batch *batch = claim_some(conn, "reports", 1);
    const char *lease = mr_batch_lease(batch);
    CHECK(!story_has(conn, id, "\"progress\""));
    CHECK_OK(mr_progress(conn, lease, id, 12.5, "page 1", &err));
    CHECK(story_has(conn, id, "\"progress\": 12.5"));
    CHECK(story_has(conn, id, "\"progress_note\": \"page 1\""));
    CHECK_OK(mr_progress(conn, lease, id, 100, NULL, &err));
    CHECK(story_has(conn, id, "\"progress\": 100"));
    // wrong ones
    CHECK_CODE(mr_progress(conn, NULL, id, 1, NULL, &err), MR_EUSAGE);
    CHECK_CODE(mr_progress(conn, lease, id, -0.5, NULL, &err), MR_EINVALID);
    CHECK_CODE(mr_progress(conn, lease, id, 100.5, NULL, &err), MR_EINVALID);
    CHECK_CODE(mr_progress(conn, lease, id, NAN, NULL, &err), MR_EINVALID);
    CHECK_CODE(mr_progress(conn, lease, id, INFINITY, NULL, &err), MR_EINVALID);
    CHECK_CODE(mr_progress(conn, lease, id, 1, "\xff", &err), MR_EINVALID);
    memset(note, 'x', sizeof(note));
    note[1001] = '\0';
    CHECK_CODE(mr_progress(conn, lease, id, 1, note, &err), MR_EINVALID);
    CHECK_CODE(mr_progress(conn, lease, id + 1, 1, NULL, &err), MR_EUNKNOWN);
    CHECK_CODE(mr_progress(conn, "no lease", id, 1, NULL, &err), MR_ELEASE);
    CHECK(story_has(conn, id, "\"progress\": 100"));
    CHECK_OK(mr_complete(conn, lease, NULL, 0, NULL, NULL, &err));
    CHECK_CODE(mr_progress(conn, lease, id, 1, NULL, &err), MR_ELEASE);
    mr_batch_free(batch);
    mr_conn_free(conn);
}

// ---- waiting ----

static void waits(void)
{
    mr_conn *conn = open_conn();
    PGconn *session = open_session();
    const char *status = NULL;
    char *result = NULL, *failure = NULL;
    char statement[128];

    int64_t id = enqueue_one(conn, "waits");
    CHECK_CODE(mr_wait(conn, id, 0, &status, &result, &failure, &err), MR_ETIMEOUT);
    CHECK(has(err.message, "it is available"));
    CHECK(!status && !result && !failure);
    mr_batch *batch = claim_some(conn, "waits", 1);
    int64_t begun_ms = now_ms();
    CHECK_CODE(mr_wait(conn, id, 120, &status, &result, &failure, &err), MR_ETIMEOUT);
    CHECK(has(err.message, "it is running"));
    CHECK(now_ms() - begun_ms >= 120);
    CHECK_OK(mr_complete(conn, mr_batch_lease(batch), NULL, 0, "{\"sum\": 5}", NULL, &err));
    mr_batch_free(batch);
    CHECK_OK(mr_wait(conn, id, 0, &status, &result, &failure, &err));
    CHECK_TEXT(status, "completed");
    CHECK_TEXT(result, "{\"sum\": 5}");
    CHECK(failure == NULL);
    mr_free(result);
    CHECK_OK(mr_wait(conn, id, INT64_MAX, NULL, NULL, NULL, &err));
    // a dead one
    id = enqueue_one(conn, "waits");
    batch = claim_some(conn, "waits", 1);
    CHECK_OK(mr_fail(conn, mr_batch_lease(batch), id, "bad luck", 0, 1, NULL, 0, NULL, &err));
    mr_batch_free(batch);
    CHECK_OK(mr_wait(conn, id, 5000, &status, &result, &failure, &err));
    CHECK_TEXT(status, "dead");
    CHECK_TEXT(failure, "bad luck");
    CHECK(result == NULL);
    mr_free(failure);
    // a cancelled one
    id = enqueue_one(conn, "waits");
    snprintf(statement, sizeof(statement), "select millrace.cancel(%lld, 'enough')", (long long)id);
    session_run(session, statement);
    CHECK_OK(mr_wait(conn, id, 5000, &status, &result, &failure, &err));
    CHECK_TEXT(status, "cancelled");
    CHECK_TEXT(failure, "enough");
    mr_free(failure);
    CHECK_CODE(mr_wait(conn, id + 1000000, 5000, &status, NULL, NULL, &err), MR_EUNKNOWN);
    CHECK_CODE(mr_wait(conn, id, -1, &status, NULL, NULL, &err), MR_EUSAGE);
    CHECK_CODE(mr_wait(NULL, id, 0, &status, NULL, NULL, &err), MR_EUSAGE);
    PQfinish(session);
    mr_conn_free(conn);
}

// Completes a job, after having ended every other session of the library's.
static void *end_it(void *arg)
{
    const int64_t *id = arg;
    PGconn *session = open_session();
    char statement[512];

    snprintf(statement, sizeof(statement),
             "select count(*) from pg_stat_activity where datname = current_database()"
             " and query like '%%millrace.outcome(%%' and pid <> pg_backend_pid()");
    session_await(session, statement, "1");
    session_run(session, "select pg_terminate_backend(pid) from pg_stat_activity"
                         " where datname = current_database()"
                         " and query like '%millrace.outcome(%' and pid <> pg_backend_pid()");
    snprintf(statement, sizeof(statement),
             "select millrace.complete(c.lease, array[%lld]::bigint[], '\"late\"')"
             " from millrace.claim('waits long') c",
             (long long)*id);
    session_run(session, statement);
    PQfinish(session);
    return NULL;
}

// The connection breaks while it waits, and the job ends a moment later.
static void waits_through_trouble(void)
{
    mr_conn *conn = open_conn();
    const char *status = NULL;
    char *result = NULL;
    pthread_t thread;

    int64_t id = enqueue_one(conn, "waits long");
    CHECK(pthread_create(&thread, NULL, end_it, &id) == 0);
    CHECK_OK(mr_wait(conn, id, 30000, &status, &result, NULL, &err));
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_TEXT(status, "completed");
    CHECK_TEXT(result, "\"late\"");
    mr_free(result);
    mr_conn_free(conn);
}

static void waits_wrapped(void)
{
    PGconn *session = open_session();
    mr_conn *conn = NULL;
    const char *status = NULL;

    CHECK_OK(mr_conn_wrap(session, &conn, &err));
    int64_t id = enqueue_one(conn, "waits wrapped");
    CHECK_CODE(mr_wait(conn, id, 30, &status, NULL, NULL, &err), MR_ETIMEOUT);
    mr_batch *batch = claim_some(conn, "waits wrapped", 1);
    CHECK_OK(mr_complete(conn, mr_batch_lease(batch), NULL, 0, NULL, NULL, &err));
    CHECK_OK(mr_wait(conn, id, 30, &status, NULL, NULL, &err));
    CHECK_TEXT(status, "completed");
    mr_batch_free(batch);
    mr_conn_free(conn);
    PQfinish(session);
}

// ---- a worker's handler ----

static mr_worker_counts work_off(const char *queue, mr_handler *handler, void *arg)
{
    mr_worker_options options = MR_WORKER_OPTIONS_INIT;
    mr_worker_counts counts = MR_WORKER_COUNTS_INIT;
    mr_worker *worker = NULL;

    options.pooler = getenv("MR_TEST_POOLER") != NULL;
    options.queue = queue;
    options.handler = handler;
    options.arg = arg;
    options.concurrency = 4;
    options.until_empty = 1;
    CHECK_OK(mr_worker_new(&options, &worker, &err));
    CHECK_OK(mr_worker_run(worker, &err));
    mr_worker_stats(worker, &counts);
    mr_worker_free(worker);
    return counts;
}

// Thousands of reports within some two seconds.
static int report_often(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    char note[64];

    (void)job;
    (void)arg;
    for (int i = 1; i <= 1000; i++) {
        for (int k = 0; k < 10; k++) {
            snprintf(note, sizeof(note), "step %d.%d", i, k);
            CHECK_NUMBER(mr_outcome_progress(outcome, i / 10.0, note), 0);
        }
        pause_ms(2);
    }
    return 0;
}

// At most one a second and the last: a job that reports for two seconds leaves four rows, where the
// machine is slow some more; not ten thousand. The last one is there, and none came after the end.
static void worker_reports(void)
{
    mr_conn *conn = open_conn();
    PGconn *session = open_session();
    int64_t begun_ms = now_ms();

    enqueue_plain(conn, "w reports", 4);
    CHECK_NUMBER(work_off("w reports", report_often, NULL).completed, 4);
    int64_t seconds = (now_ms() - begun_ms) / 1000 + 1;
    // Once, whatever else is in the log: nothing is known of how much that is.
    session_run(session, "create temp table w_reports as"
                         " select id, finished_at from millrace.jobs where queue = 'w reports'");
    CHECK(
        atoi(session_ask(session, "select max(n) from (select count(*) as n from millrace.report r"
                                  " join w_reports j on j.id = r.job_id group by r.job_id) s")) <=
        seconds + 1);
    CHECK_TEXT(session_ask(session, "select count(*) from w_reports"
                                    " where millrace.job(id) ->> 'progress' = '100'"
                                    " and millrace.job(id) ->> 'progress_note' = 'step 1000.9'"),
               "4");
    CHECK_TEXT(session_ask(session, "select count(*) from w_reports j"
                                    " join millrace.report r on r.job_id = j.id"
                                    " where r.reported_at > j.finished_at"),
               "0");
    PQfinish(session);
    mr_conn_free(conn);
}

// What is wrong is said to the handler and nobody else; the job is none the worse.
static int report_badly(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    char note[1200];

    (void)job;
    (void)arg;
    CHECK_NUMBER(mr_outcome_progress(outcome, -1, NULL), MR_EINVALID);
    CHECK_NUMBER(mr_outcome_progress(outcome, 100.1, NULL), MR_EINVALID);
    CHECK_NUMBER(mr_outcome_progress(outcome, NAN, NULL), MR_EINVALID);
    CHECK_NUMBER(mr_outcome_progress(outcome, 5, "\xc3("), MR_EINVALID);
    CHECK_NUMBER(mr_outcome_progress(NULL, 5, NULL), MR_EUSAGE);
    // 999 bytes, then characters of two: the cut is before the first of them
    memset(note, 'x', sizeof(note));
    for (size_t i = 999; i < sizeof(note) - 1; i += 2) {
        memcpy(note + i, "\xc3\xbc", 2);
    }
    note[sizeof(note) - 1] = '\0';
    CHECK_NUMBER(mr_outcome_progress(outcome, 60, note), 0);
    return mr_outcome_fail(outcome, "on purpose", 0, 1);
}

static void worker_reports_badly(void)
{
    mr_conn *conn = open_conn();
    PGconn *session = open_session();

    enqueue_plain(conn, "w badly", 1);
    CHECK_NUMBER(work_off("w badly", report_badly, NULL).failed, 1);
    CHECK_TEXT(session_ask(session,
                           "select concat_ws(' ', status, error, millrace.job(id) ->> 'progress',"
                           " length(millrace.job(id) ->> 'progress_note'),"
                           " octet_length(millrace.job(id) ->> 'progress_note'))"
                           " from millrace.jobs where queue = 'w badly'"),
               "dead on purpose 60 999 999");
    PQfinish(session);
    mr_conn_free(conn);
}

const struct driver_case progress_cases[] = {
    {"reports", reports},
    {"waits", waits},
    {"waits_through_trouble", waits_through_trouble},
    {"waits_wrapped", waits_wrapped},
    {"worker_reports", worker_reports},
    {"worker_reports_badly", worker_reports_badly},
    {0},
};
