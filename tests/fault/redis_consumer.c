// SPDX-License-Identifier: PostgreSQL
//
// A consumer that is going to be killed: claims jobs of a queue under short leases, stalls now and
// then for longer than its lease, and completes. See redis_queue.bats.
//
//     redis_consumer fill QUEUE COUNT     enqueues jobs and prints their ids
//     redis_consumer run QUEUE LOG        until it is killed; on SIGTERM it finishes what it has
//
// LOG gets a line before each completion and one after it, each in one write: `try`, then `done`,
// `void` (the lease was lost) or `unknown` (the answer was), and the ids.

#include <fcntl.h>
#include <millrace/millrace.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BATCH = 10,
    LEASE_MS = 300,
    STALL_MS = 600,
    IDLE_MS = 5,
    FILL_CHUNK = 500,
    LINE_SIZE = 4096,
    OPENINGS = 300,
    OPEN_MS = 100
};

static mr_error err;
static volatile sig_atomic_t over;

static void on_term(int number)
{
    (void)number;
    over = 1;
}

static void die(const char *what)
{
    fprintf(stderr, "%s: %s\n%s\n", what, err.message, err.hint);
    exit(1);
}

// Redis may be gone for a moment.
static mr_conn *open_conn(void)
{
    mr_conn *conn = NULL;
    int code = MR_ECONNECT;

    for (int i = 0; code == MR_ECONNECT && i < OPENINGS; i++) {
        poll(NULL, 0, i ? OPEN_MS : 0);
        code = mr_conn_open(NULL, &conn, &err);
    }
    if (code) {
        die("open");
    }
    return conn;
}

static int fill(const char *queue, size_t count)
{
    mr_conn *conn = open_conn();
    mr_job_spec job = MR_JOB_SPEC_INIT;
    const char **args = calloc(count, sizeof(*args));
    int64_t *ids = calloc(count, sizeof(*ids));

    if (!args || !ids) {
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        args[i] = "{}";
    }
    job.kind = "k";
    job.queue = queue;
    if (mr_enqueue_many(conn, &job, args, count, FILL_CHUNK, ids, NULL, &err)) {
        die("enqueue");
    }
    for (size_t i = 0; i < count; i++) {
        printf("%lld\n", (long long)ids[i]);
    }
    free(args);
    free(ids);
    mr_conn_free(conn);
    return 0;
}

static void note(int log, const char *what, const mr_batch *batch)
{
    char line[LINE_SIZE];
    int used = snprintf(line, sizeof(line), "%s", what);

    for (size_t i = 0; i < mr_batch_count(batch); i++) {
        used += snprintf(line + used, sizeof(line) - (size_t)used, " %lld",
                         (long long)mr_batch_job(batch, i)->id);
    }
    line[used++] = '\n';
    if (write(log, line, (size_t)used) != used) {
        exit(1);
    }
}

static void finish(mr_conn *conn, int log, const mr_batch *batch)
{
    int done = 0;

    poll(NULL, 0, random() % 12 ? 1 : STALL_MS);
    note(log, "try", batch);
    int code = mr_complete(conn, mr_batch_lease(batch), NULL, 0, NULL, &done, &err);
    if (code == 0 && (size_t)done == mr_batch_count(batch)) {
        note(log, "done", batch);
    } else if (code == MR_ELEASE) {
        note(log, "void", batch);
    } else if (code == MR_ECONNECT || code == MR_ETIMEOUT) {
        note(log, "unknown", batch);
    } else {
        die("complete");
    }
}

static int run(const char *queue, const char *path)
{
    mr_conn *conn = open_conn();
    mr_claim_options options = MR_CLAIM_OPTIONS_INIT;
    int log = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);

    srandom((unsigned)getpid());
    options.queue = queue;
    options.max_jobs = BATCH;
    options.lease_ms = LEASE_MS;
    while (!over) {
        mr_batch *batch = NULL;
        int code = mr_claim(conn, &options, &batch, &err);
        if (code && code != MR_ECONNECT && code != MR_ETIMEOUT) {
            die("claim");
        }
        if (mr_batch_count(batch)) {
            finish(conn, log, batch);
        } else {
            poll(NULL, 0, IDLE_MS);
        }
        mr_batch_free(batch);
    }
    mr_conn_free(conn);
    return 0;
}

int main(int argc, char **argv)
{
    signal(SIGTERM, on_term);
    if (argc == 4 && strcmp(argv[1], "fill") == 0) {
        return fill(argv[2], strtoul(argv[3], NULL, 10));
    }
    if (argc == 4 && strcmp(argv[1], "run") == 0) {
        return run(argv[2], argv[3]);
    }
    return 2;
}
