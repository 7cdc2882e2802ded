// SPDX-License-Identifier: PostgreSQL
//
// Millrace as a program in C has it: mr_enqueue(), mr_enqueue_many(), mr_worker.

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench/crew.h"

enum {
    CALL_TIMEOUT_MS = 30000, // a large chunk on a slow disk
    GRACE_MS = 2000,
    LEASE_MS = 600000,
};

// A queue with one part is made by its first job.
static int prepare(struct site *site, const struct bench_spec *spec, struct mr_error *err)
{
    char settings[48];
    const char *values[] = {site->queue, settings};
    AUTO_RESULT *rows = NULL;

    if (spec->parts <= 1) {
        return 0;
    }
    snprintf(settings, sizeof(settings), "{\"parts\": %lld}", (long long)spec->parts);
    return conn_query_params(site->conn, "select millrace.set_queue($1, $2::jsonb)", 2, values,
                             &rows, err);
}

// It has no statistics that matter.
static int settle(struct site *site, struct mr_error *err)
{
    (void)site;
    (void)err;
    return 0;
}

static int session_open(struct session *session, struct mr_error *err)
{
    mr_conn_options options = MR_CONN_OPTIONS_INIT;

    options.dsn = buf_peek(&session->site->dsn);
    options.application_name = "millrace-bench";
    options.timeout_ms = CALL_TIMEOUT_MS;
    return mr_conn_open(&options, &session->millrace, err);
}

static void session_close(struct session *session)
{
    mr_conn_free(session->millrace);
    session->millrace = NULL;
}

static int enqueue(struct session *session, const char *const *args, size_t count, size_t chunk,
                   struct mr_error *err)
{
    mr_job_spec job = MR_JOB_SPEC_INIT;

    job.kind = "bench";
    job.queue = session->site->queue;
    if (count == 1) {
        job.args = args[0];
        return mr_enqueue(session->millrace, &job, NULL, err);
    }
    return mr_enqueue_many(session->millrace, &job, args, count, chunk, NULL, NULL, err);
}

static int claim(struct session *session, int batch, int64_t *ret_claim_us, int64_t *ret_count,
                 struct mr_error *err)
{
    mr_claim_options options = MR_CLAIM_OPTIONS_INIT;
    mr_batch *claimed = NULL;

    options.queue = session->site->queue;
    options.max_jobs = batch;
    options.lease_ms = LEASE_MS;
    int64_t begun = clock_us();
    int code = mr_claim(session->millrace, &options, &claimed, err);
    if (code) {
        return code;
    }
    *ret_claim_us = clock_us() - begun;
    *ret_count = (int64_t)mr_batch_count(claimed);
    if (*ret_count > 0) {
        code = mr_complete(session->millrace, mr_batch_lease(claimed), NULL, 0, NULL, NULL, err);
    }
    mr_batch_free(claimed);
    return code;
}

static int on_job(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    (void)outcome;
    crew_note(arg, job->args);
    return 0;
}

static int hand_open(struct hand *hand, struct mr_error *err)
{
    const struct crew *crew = hand->crew;
    mr_worker_options options = MR_WORKER_OPTIONS_INIT;

    options.dsn = buf_peek(&crew->site->dsn);
    options.queue = crew->site->queue;
    options.handler = on_job;
    options.arg = hand->crew;
    options.batch = crew->batch;
    options.concurrency = crew->concurrency;
    options.until_empty = crew->until_empty;
    options.grace_ms = GRACE_MS;
    return mr_worker_new(&options, &hand->worker, err);
}

static int hand_run(struct hand *hand, struct mr_error *err)
{
    mr_worker_counts counts = MR_WORKER_COUNTS_INIT;
    int code = mr_worker_run(hand->worker, err);

    mr_worker_stats(hand->worker, &counts);
    hand->completed = counts.completed;
    return code;
}

static void hand_stop(struct hand *hand)
{
    mr_worker_stop(hand->worker);
}

static void hand_close(struct hand *hand)
{
    mr_worker_free(hand->worker);
    hand->worker = NULL;
}

const struct contender contender_millrace = {
    .name = "millrace",
    .schema = "millrace",
    .prepare = prepare,
    .settle = settle,
    .session_open = session_open,
    .session_close = session_close,
    .enqueue = enqueue,
    .claim = claim,
    .hand_open = hand_open,
    .hand_run = hand_run,
    .hand_stop = hand_stop,
    .hand_close = hand_close,
};
