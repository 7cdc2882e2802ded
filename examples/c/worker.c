// SPDX-License-Identifier: PostgreSQL
//
// A worker: runs the jobs of a queue, on as many threads as there are cores, until SIGTERM.
//
//   cc -o worker worker.c $(pkg-config --cflags --libs millrace)
//   MILLRACE_DSN=dbname=mill ./worker mail

#include <millrace/millrace.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static mr_worker *worker;

static void on_signal(int number)
{
    (void)number;
    mr_worker_stop(worker);
}

// Not 0: the attempt failed, and the job comes back after its backoff.
static int handle(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    (void)arg;
    if (strcmp(job->kind, "send_invoice") != 0) {
        mr_outcome_fail(outcome, "only invoices are sent here", 0, 1); // never again
        return 1;
    }
    printf("job %lld, attempt %d: %s\n", (long long)job->id, job->attempt, job->args);
    return mr_outcome_complete(outcome, "{\"sent\": true}");
}

int main(int argc, char **argv)
{
    mr_worker_options options = MR_WORKER_OPTIONS_INIT;
    struct sigaction action = {.sa_handler = on_signal};
    mr_error err;

    options.queue = argc > 1 ? argv[1] : "default";
    options.handler = handle;
    if (mr_worker_new(&options, &worker, &err) == 0) {
        sigaction(SIGTERM, &action, NULL);
        sigaction(SIGINT, &action, NULL);
        if (mr_worker_run(worker, &err) == 0) {
            mr_worker_free(worker);
            return 0;
        }
    }
    fprintf(stderr, "worker: %s\nhint: %s\n", err.message, err.hint);
    mr_worker_free(worker);
    return 1;
}
