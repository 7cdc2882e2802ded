// SPDX-License-Identifier: PostgreSQL
//
// Unique jobs: a key that is held makes no second job, one at a time and in bulk.

#include <stddef.h>

#include "driver.h"

static mr_job_spec spec_of(const char *queue, const char *key)
{
    mr_job_spec job = MR_JOB_SPEC_INIT;

    job.kind = "once";
    job.queue = queue;
    job.unique_key = key;
    return job;
}

static int64_t enqueue(mr_conn *conn, const mr_job_spec *job)
{
    int64_t id = 0;

    CHECK_OK(mr_enqueue(conn, job, &id, &err));
    CHECK(id > 0);
    return id;
}

// Takes the one job of a queue, which has to be this, and leaves it open.
static mr_batch *take(mr_conn *conn, const char *queue, int64_t id)
{
    mr_batch *batch = claim_some(conn, queue, 10);

    CHECK_NUMBER((int64_t)mr_batch_count(batch), 1);
    CHECK_NUMBER(mr_batch_job(batch, 0)->id, id);
    return batch;
}

static void complete(mr_conn *conn, mr_batch *batch)
{
    CHECK_OK(mr_complete(conn, mr_batch_lease(batch), NULL, 0, NULL, NULL, &err));
    mr_batch_free(batch);
}

static void unique_one(void)
{
    mr_conn *conn = open_conn();
    mr_job_spec job = spec_of("unique one", "a \"key\" \xc3\xa9");
    int64_t id = enqueue(conn, &job);

    CHECK_NUMBER(enqueue(conn, &job), id);
    CHECK_NUMBER(depth_of(conn, "unique one"), 1);
    job.queue = "unique one, elsewhere";
    CHECK(enqueue(conn, &job) != id);
    job.queue = "unique one";
    mr_batch *batch = take(conn, "unique one", id);
    CHECK_NUMBER(enqueue(conn, &job), id);
    complete(conn, batch);
    CHECK(enqueue(conn, &job) != id);
    CHECK_NUMBER(depth_of(conn, "unique one"), 1);
    mr_conn_free(conn);
}

static void unique_replaced(void)
{
    mr_conn *conn = open_conn();
    mr_job_spec job = spec_of("unique replaced", "a");
    int64_t id = enqueue(conn, &job);

    job.args = "{\"n\": 2}";
    job.on_conflict = "ignore";
    CHECK_NUMBER(enqueue(conn, &job), id);
    job.args = "{\"n\": 3}";
    job.on_conflict = "replace";
    CHECK_NUMBER(enqueue(conn, &job), id);
    mr_batch *batch = take(conn, "unique replaced", id);
    CHECK_TEXT(mr_batch_job(batch, 0)->args, "{\"n\": 3}");
    complete(conn, batch);
    mr_conn_free(conn);
}

static void unique_for_a_while(void)
{
    mr_conn *conn = open_conn();
    mr_job_spec job = spec_of("unique for a while", "a");

    job.unique_for_ms = 3600 * 1000;
    int64_t id = enqueue(conn, &job);
    complete(conn, take(conn, "unique for a while", id));
    CHECK_NUMBER(enqueue(conn, &job), id);
    CHECK_NUMBER(depth_of(conn, "unique for a while"), 0);
    mr_conn_free(conn);
}

// Every job of a call gets an id, also those that are not made.
static void unique_many(void)
{
    enum { COUNT = 4 };
    static const char *const keys[COUNT] = {"a", "b", "a", NULL};
    static const char *const args[COUNT] = {"1", "2", "3", "4"};
    mr_conn *conn = open_conn();
    mr_job_spec jobs[COUNT];
    int64_t ids[COUNT], again[COUNT];
    size_t done = 0;

    for (int i = 0; i < COUNT; i++) {
        jobs[i] = spec_of("unique many", keys[i]);
        jobs[i].args = args[i];
        jobs[i].unique_for_ms = keys[i] ? 60000 : 0;
    }
    CHECK_OK(mr_enqueue_jobs(conn, jobs, COUNT, 0, ids, &done, &err));
    CHECK_NUMBER((int64_t)done, COUNT);
    CHECK_NUMBER(ids[2], ids[0]);
    CHECK(ids[1] != ids[0] && ids[3] != ids[0] && ids[3] != ids[1]);
    CHECK_NUMBER(depth_of(conn, "unique many"), 3);
    jobs[1].on_conflict = "replace";
    jobs[1].args = "\"new\"";
    CHECK_OK(mr_enqueue_jobs(conn, jobs, 2, 1, again, &done, &err));
    CHECK_NUMBER(again[0], ids[0]);
    CHECK_NUMBER(again[1], ids[1]);
    // one key for all of them
    mr_job_spec job = spec_of("unique many of one", "a");
    CHECK_OK(mr_enqueue_many(conn, &job, args, COUNT, 3, again, &done, &err));
    CHECK_NUMBER((int64_t)done, COUNT);
    CHECK(again[1] == again[0] && again[2] == again[0] && again[3] == again[0]);
    complete(conn, take(conn, "unique many of one", again[0]));
    mr_conn_free(conn);
}

static void unique_refused(void)
{
    mr_conn *conn = open_conn();
    mr_job_spec job = spec_of("unique refused", "");

    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_EINVALID);
    CHECK_CODE(mr_enqueue_jobs(conn, &job, 1, 0, NULL, NULL, &err), MR_EINVALID);
    job.unique_key = "a";
    job.on_conflict = "fail";
    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_EINVALID);
    CHECK_CODE(mr_enqueue_jobs(conn, &job, 1, 0, NULL, NULL, &err), MR_EINVALID);
    // nothing to be in conflict about
    job.unique_key = NULL;
    job.on_conflict = "replace";
    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_EINVALID);
    CHECK_CODE(mr_enqueue_jobs(conn, &job, 1, 0, NULL, NULL, &err), MR_EINVALID);
    job.on_conflict = NULL;
    job.unique_for_ms = 1000;
    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_EINVALID);
    CHECK_CODE(mr_enqueue_jobs(conn, &job, 1, 0, NULL, NULL, &err), MR_EINVALID);
    job.unique_for_ms = -1;
    CHECK_CODE(mr_enqueue_jobs(conn, &job, 1, 0, NULL, NULL, &err), MR_EUSAGE);
    CHECK_NUMBER(depth_of(conn, "unique refused"), 0);
    mr_conn_free(conn);
}

// A header from before on_conflict knew unique_key: what lies behind its struct is not read.
static void unique_older(void)
{
    mr_conn *conn = open_conn();
    mr_job_spec job = spec_of("unique older", "a");

    job.on_conflict = "nonsense";
    job.unique_for_ms = -1;
    job.size = offsetof(mr_job_spec, on_conflict);
    int64_t id = enqueue(conn, &job);
    CHECK_NUMBER(enqueue(conn, &job), id);
    mr_conn_free(conn);
}

const struct driver_case unique_cases[] = {
    {"unique_one", unique_one},
    {"unique_replaced", unique_replaced},
    {"unique_for_a_while", unique_for_a_while},
    {"unique_many", unique_many},
    {"unique_refused", unique_refused},
    {"unique_older", unique_older},
    {0},
};
