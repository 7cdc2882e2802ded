// SPDX-License-Identifier: PostgreSQL
//
// A worker of the library's that takes its jobs from Redis: `via REDIS QUEUE`, until nothing comes
// any more. Jobs of the kind "bad" fail. Prints what it has done.

#include <millrace/millrace.h>
#include <stdio.h>
#include <string.h>

static int handle(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    (void)arg;
    mr_outcome_progress(outcome, 50, "half");
    if (strcmp(job->kind, "bad") == 0) {
        mr_outcome_fail(outcome, "bad as its kind", 0, 1);
    }
    return 0;
}

int main(int argc, char **argv)
{
    mr_worker_options options = MR_WORKER_OPTIONS_INIT;
    mr_worker_counts counts = MR_WORKER_COUNTS_INIT;
    mr_worker *worker = NULL;
    mr_error err;

    if (argc != 3) {
        return 2;
    }
    options.redis = argv[1];
    options.queue = argv[2];
    options.handler = handle;
    options.concurrency = 4;
    options.until_empty = 1;
    if (mr_worker_new(&options, &worker, &err) || mr_worker_run(worker, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    mr_worker_stats(worker, &counts);
    printf("completed %lld, failed %lld, lost %lld\n", (long long)counts.completed,
           (long long)counts.failed, (long long)counts.lost);
    mr_worker_free(worker);
    return 0;
}
