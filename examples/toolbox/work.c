// SPDX-License-Identifier: PostgreSQL
//
// A consumer of one queue: `register` jobs note a face and ask for its verification, `verify` jobs
// call the endpoint. A line for each attempt:
//
//   verify job=65 attempt=1 from=17948376123 to=17948376130 tenant=A face=f1 failed: no answer
//
// from, to: when it was claimed and when it was done, before that was told to the database, in
// milliseconds since 1970.
//
// Both may do a job twice, after a crash between its effect and its completion; neither minds.
//
// The breaker is asked before a job is claimed. While it is open no job is taken, so an outage
// costs the attempts of as many jobs as it takes to notice, and no more.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "toolbox.h"

// A lease is longer than any call takes, so nothing has to be renewed.
enum { POLL_MS = 20, OPEN_MS = 30 * 1000, LEASE_MS = 2 * 60 * 1000 };

struct consumer {
    const char *queue;
    // Does a job, and tells the breaker. NULL: done; otherwise what went wrong, in static or the
    // consumer's memory.
    const char *(*work)(struct consumer *consumer, const json_t *args);
    const char *done;    // in a word
    const char *tenants; // directory
    const char *verifier_url;
    mr_conn *conn;
    mr_breaker *breaker;
    enum mr_breaker_status breaker_was;
    char problem[128];
};

static const char *text_of(const json_t *args, const char *name)
{
    const char *text = json_string_value(json_object_get(args, name));

    return text != NULL ? text : "";
}

static int verify_later(struct consumer *consumer, const json_t *args, mr_error *err)
{
    mr_job_spec job = MR_JOB_SPEC_INIT;
    char *text = json_dumps(args, JSON_COMPACT);
    int code;

    job.kind = "verify";
    job.queue = VERIFY_QUEUE;
    job.args = text;
    code = mr_enqueue(consumer->conn, &job, NULL, err);
    free(text);
    return code;
}

static const char *do_register(struct consumer *consumer, const json_t *args)
{
    const char *tenant = text_of(args, "tenant");
    json_t *config = NULL;
    mr_error err = {0};
    enum tenant_found found =
        tenant_config(consumer->conn, consumer->tenants, tenant, &config, &err);
    bool verify = json_is_true(json_object_get(config, "verify"));

    json_decref(config);
    mr_breaker_neutral(consumer->breaker); // nobody else is called
    if (found == TENANT_UNKNOWN) {
        return "no such tenant";
    }
    if (found == TENANT_ERROR ||
        face_note(consumer->conn, tenant, text_of(args, "face"), "registered", &err) != 0 ||
        (verify && verify_later(consumer, args, &err) != 0)) {
        snprintf(consumer->problem, sizeof(consumer->problem), "%.120s", err.message);
        return consumer->problem;
    }
    return NULL;
}

// An answer that refuses the document says that the endpoint is there: only silence and a 5xx are
// failures for the breaker.
static const char *do_verify(struct consumer *consumer, const json_t *args)
{
    char *body = json_dumps(args, JSON_COMPACT);
    long status = call_post(consumer->verifier_url, body);
    mr_error err;

    free(body);
    if (status == 0 || status >= 500) {
        mr_breaker_failed(consumer->breaker);
    } else {
        mr_breaker_good(consumer->breaker);
    }
    if (status != 200) {
        snprintf(consumer->problem, sizeof(consumer->problem), "the verifier answered %ld", status);
        return consumer->problem;
    }
    if (face_note(consumer->conn, text_of(args, "tenant"), text_of(args, "face"), "verified",
                  &err) != 0) {
        return "verified, but not noted";
    }
    return NULL;
}

static long long now_ms(void)
{
    struct timespec time;

    clock_gettime(CLOCK_REALTIME, &time);
    return time.tv_sec * 1000LL + time.tv_nsec / 1000000;
}

static void tell_breaker(struct consumer *consumer)
{
    static const char *const words[] = {"closed", "open", "half open"};
    enum mr_breaker_status now = mr_breaker_status(consumer->breaker);

    if (now != consumer->breaker_was) {
        printf("breaker %s\n", words[now]);
    }
    consumer->breaker_was = now;
}

// Retries are the database's: 2^attempt seconds and up to half of that on top, then a dead letter.
static int finish(struct consumer *consumer, const mr_claimed_job *job, const json_t *args,
                  const char *problem, const char **ret_how, mr_error *err)
{
    int dead = 0, code;

    if (problem == NULL) {
        *ret_how = consumer->done;
        return mr_complete(consumer->conn, job->lease, &job->id, 1, NULL, NULL, err);
    }
    code = mr_fail(consumer->conn, job->lease, job->id, problem, 0, 0, NULL, 0, &dead, err);
    if (code == 0 && dead) {
        code = face_note(consumer->conn, text_of(args, "tenant"), text_of(args, "face"), "given up",
                         err);
    }
    *ret_how = dead ? "dead: " : "failed: ";
    return code;
}

static int work_job(struct consumer *consumer, const mr_claimed_job *job, mr_error *err)
{
    json_t *args = json_loads(job->args, 0, NULL);
    long long from_ms = now_ms();
    const char *problem = consumer->work(consumer, args);
    long long to_ms = now_ms();
    const char *how = "";
    int code = finish(consumer, job, args, problem, &how, err);

    if (code == 0) {
        printf("%s job=%lld attempt=%d from=%lld to=%lld tenant=%s face=%s %s%s\n", job->kind,
               (long long)job->id, job->attempt, from_ms, to_ms, text_of(args, "tenant"),
               text_of(args, "face"), how, problem != NULL ? problem : "");
    }
    json_decref(args);
    return code;
}

// Takes one job and does it. 1: done; 0: there was none; negative: the database said no.
static int work_one(struct consumer *consumer, mr_error *err)
{
    mr_claim_options options = MR_CLAIM_OPTIONS_INIT;
    mr_batch *batch = NULL;
    const mr_claimed_job *job;
    int code;

    options.queue = consumer->queue;
    options.worker = consumer->queue;
    options.lease_ms = LEASE_MS;
    code = mr_claim(consumer->conn, &options, &batch, err);
    job = code == 0 ? mr_batch_job(batch, 0) : NULL;
    if (job == NULL) {
        mr_breaker_neutral(consumer->breaker);
    } else {
        code = work_job(consumer, job, err) < 0 ? err->code : 1;
    }
    mr_batch_free(batch);
    return code;
}

static int consume(struct consumer *consumer)
{
    int code = 0;
    mr_error err;

    while (!signal_came(code > 0 ? 0 : POLL_MS)) {
        bool allowed = mr_breaker_allows(consumer->breaker);

        tell_breaker(consumer);
        code = allowed ? work_one(consumer, &err) : 0;
        tell_breaker(consumer);
        if (code < 0) {
            complain(consumer->queue, &err);
        }
    }
    return 0;
}

int command_work(int argc, char **argv)
{
    static const struct consumer consumers[] = {
        {.queue = REGISTER_QUEUE, .work = do_register, .done = "registered"},
        {.queue = VERIFY_QUEUE, .work = do_verify, .done = "verified"},
    };
    bool verifies = strcmp(argv[0], VERIFY_QUEUE) == 0;
    struct consumer consumer = consumers[verifies];
    mr_breaker_options options = MR_BREAKER_OPTIONS_INIT;
    mr_error err;
    int status = 1;

    if (strcmp(argv[0], consumer.queue) != 0) {
        fprintf(stderr, "toolbox: %s: no such queue\n", argv[0]);
        return 2;
    }
    consumer.tenants = argv[1];
    consumer.verifier_url = argv[2];
    options.open_ms = argc > 3 ? strtoll(argv[3], NULL, 10) : OPEN_MS;
    if (mr_breaker_new(&options, &consumer.breaker, &err) != 0) {
        complain("breaker", &err);
    } else if (db_open(&consumer.conn) == 0) {
        printf("%s are worked off\n", consumer.queue);
        status = consume(&consumer);
    }
    mr_conn_free(consumer.conn);
    mr_breaker_free(consumer.breaker);
    return status;
}
