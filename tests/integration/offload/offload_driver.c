// SPDX-License-Identifier: PostgreSQL
//
// Jobs with large payloads, by the library:
//
//   offload_driver put one|many|jobs COUNT SIZE    enqueues into q; what a job has depends on its n
//   offload_driver take complete|fail|requeue|keep MAX   claims from q and prints how many were
//   whole;
//                                                  fail and requeue give them another state of SIZE
//                                                  5000
//   offload_driver work                            a worker, until nothing is left; prints the same
//
// The address of the store is that of the environment, or $OFFLOAD_BLOBS as an option.

#include <millrace/millrace.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATE_NEW 5000

// Noise, so that nothing is to be gained by compression; `n` is the job's, or -1 for a new state.
static void fill(char *data, size_t size, int n)
{
    unsigned word = (unsigned)n * 2654435761U + 1;

    for (size_t i = 0; i < size; i++) {
        word = word * 1664525U + 1013904223U;
        data[i] = (char)(word >> 24);
    }
}

static bool is_filled(const void *data, size_t size, int n)
{
    char *wanted = malloc(size + 1);

    fill(wanted, size, n);
    bool same = data && memcmp(wanted, data, size) == 0;
    free(wanted);
    return same;
}

static int end(const mr_error *err)
{
    printf("error %d: %s\nhint: %s\n", err->code, err->message, err->hint);
    return 1;
}

static int open_conn(mr_conn **ret, mr_error *err)
{
    mr_conn_options options = MR_CONN_OPTIONS_INIT;

    options.blobs = getenv("OFFLOAD_BLOBS");
    return mr_conn_open(&options, ret, err);
}

static int put_all(mr_conn *conn, const char *how, mr_job_spec *jobs, size_t count, mr_error *err)
{
    int code = 0;

    if (strcmp(how, "one") == 0) {
        for (size_t i = 0; code == 0 && i < count; i++) {
            code = mr_enqueue(conn, &jobs[i], NULL, err);
        }
        return code;
    }
    for (size_t i = 0; strcmp(how, "jobs") == 0 && i < count; i++) {
        jobs[i].ref = i % 2 ? "odd" : "even"; // they differ: another call
    }
    return mr_enqueue_jobs(conn, jobs, count, 0, NULL, NULL, err);
}

static int put(const char *how, size_t count, size_t size)
{
    mr_job_spec *jobs = calloc(count, sizeof(*jobs));
    char(*args)[32] = calloc(count, sizeof(*args));
    mr_conn *conn = NULL;
    mr_error err;
    int code = open_conn(&conn, &err);

    for (size_t i = 0; i < count; i++) {
        char *state = malloc(size);
        fill(state, size, (int)i);
        snprintf(args[i], sizeof(args[i]), "{\"n\":%zu}", i);
        jobs[i] = (mr_job_spec)MR_JOB_SPEC_INIT;
        jobs[i].kind = "k";
        jobs[i].queue = "q";
        jobs[i].args = args[i];
        jobs[i].state = state;
        jobs[i].state_size = size;
        jobs[i].blob = "small";
        jobs[i].blob_size = 5;
    }
    code = code ? code : put_all(conn, how, jobs, count, &err);
    for (size_t i = 0; i < count; i++) {
        free((void *)(uintptr_t)jobs[i].state);
    }
    free(jobs);
    free(args);
    mr_conn_free(conn);
    return code ? end(&err) : 0;
}

static bool is_whole(const mr_claimed_job *job)
{
    int n = atoi(strchr(job->args, ':') + 1);

    return job->blob_size == 5 && memcmp(job->blob, "small", 5) == 0 &&
           (is_filled(job->state, job->state_size, n) ||
            (job->state_size == STATE_NEW && is_filled(job->state, STATE_NEW, -1)));
}

static int finish(mr_conn *conn, const mr_claimed_job *job, const char *how, mr_error *err)
{
    char state[STATE_NEW];

    fill(state, sizeof(state), -1);
    if (strcmp(how, "complete") == 0) {
        return mr_complete(conn, job->lease, &job->id, 1, NULL, NULL, err);
    }
    if (strcmp(how, "fail") == 0) {
        return mr_fail(conn, job->lease, job->id, "again", 1, 0, state, sizeof(state), NULL, err);
    }
    bool fresh = strcmp(how, "requeue") == 0;
    return mr_requeue(conn, job->lease, job->id, "{}", fresh ? state : NULL,
                      fresh ? sizeof(state) : 0, NULL, 0, err);
}

static int take(const char *how, int max)
{
    mr_claim_options options = MR_CLAIM_OPTIONS_INIT;
    mr_batch *batch = NULL;
    mr_conn *conn = NULL;
    mr_error err;
    size_t whole = 0;
    int code = open_conn(&conn, &err);

    options.queue = "q";
    options.max_jobs = max;
    code = code ? code : mr_claim(conn, &options, &batch, &err);
    for (size_t i = 0; code == 0 && i < mr_batch_count(batch); i++) {
        const mr_claimed_job *job = mr_batch_job(batch, i);
        whole += is_whole(job);
        code = finish(conn, job, how, &err);
    }
    if (code == 0) {
        printf("%zu jobs, %zu whole\n", mr_batch_count(batch), whole);
    }
    mr_batch_free(batch);
    mr_conn_free(conn);
    return code ? end(&err) : 0;
}

static atomic_int ran, ran_whole;

// A job that has its first state gets a new one and is run again.
static int handle(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    char state[STATE_NEW];

    (void)arg;
    ran++;
    ran_whole += is_whole(job);
    if (job->state_size == STATE_NEW) {
        return 0;
    }
    fill(state, sizeof(state), -1);
    return mr_outcome_requeue(outcome, "{}") || mr_outcome_state(outcome, state, sizeof(state));
}

static int work(void)
{
    mr_worker_options options = MR_WORKER_OPTIONS_INIT;
    mr_worker *worker = NULL;
    mr_error err;

    options.queue = "q";
    options.handler = handle;
    options.concurrency = 4;
    options.until_empty = 1;
    options.blobs = getenv("OFFLOAD_BLOBS");
    int code = mr_worker_new(&options, &worker, &err);
    code = code ? code : mr_worker_run(worker, &err);
    mr_worker_free(worker);
    printf("%d ran, %d whole\n", (int)ran, (int)ran_whole);
    return code ? end(&err) : 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "put") == 0) {
        return put(argv[2], (size_t)atol(argv[3]), (size_t)atol(argv[4]));
    }
    if (argc == 4 && strcmp(argv[1], "take") == 0) {
        return take(argv[2], atoi(argv[3]));
    }
    if (argc == 2 && strcmp(argv[1], "work") == 0) {
        return work();
    }
    return 2;
}
