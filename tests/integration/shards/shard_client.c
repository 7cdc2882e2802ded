// SPDX-License-Identifier: PostgreSQL
//
// Calls of the library on the shards of MILLRACE_DSN, one verb a run:
//
//   one QUEUE [tenant=T] [key=K] [unique=U] [ref=R] [wait=MS]    enqueues, prints the id
//   many QUEUE COUNT CHUNK                 mr_enqueue_many; prints how many went to each shard
//   jobs QUEUE COUNT TENANTS [unique]      mr_enqueue_jobs; prints how many, and whether tenants
//   are together produce QUEUE COUNT [FILE]             one by one, until FILE is there; prints `in
//   REF SHARD`, `refused REF`,
//                                          `unclear REF`
//   consume QUEUE IDLE_MS                  claims and completes until nothing came for so long;
//   prints `done REF` lease QUEUE                            claims two jobs and goes through all
//   calls under a lease work QUEUE EXPECTED                    mr_worker until so many jobs are
//   done; prints `done REF` depth QUEUE, job ID, wait ID, dead QUEUE LIMIT, replay QUEUE, purge
//   QUEUE toolbox                                cache and lock
//
// A failure is printed as `failed CODE: MESSAGE`, exit status 1. SHARD_TIMEOUT_MS is timeout_ms.

#include <inttypes.h>
#include <millrace/millrace.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SHARDS = 32, ID_BITS = 48 };

static mr_conn *conn;
static mr_error err;

static int failed(int code)
{
    if (code) {
        printf("failed %d: %s\n", code, err.message);
        if (err.hint[0]) {
            printf("hint: %s\n", err.hint);
        }
    }
    return code;
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static void print_spread(const int64_t *ids, size_t count)
{
    size_t n[SHARDS] = {0};

    for (size_t i = 0; i < count; i++) {
        n[ids[i] >> ID_BITS]++;
    }
    for (int i = 0; i < SHARDS; i++) {
        if (n[i]) {
            printf("shard %d: %zu\n", i, n[i]);
        }
    }
}

static int open_conn(int64_t wait_ms)
{
    mr_conn_options options = MR_CONN_OPTIONS_INIT;
    const char *timeout = getenv("SHARD_TIMEOUT_MS");

    options.timeout_ms = timeout ? atoll(timeout) : 0;
    options.full_wait_ms = wait_ms;
    return failed(mr_conn_open(&options, &conn, &err));
}

// ---- producing ----

static int one(int argc, char **argv)
{
    mr_job_spec job = MR_JOB_SPEC_INIT;
    int64_t id = 0, wait_ms = 0;

    job.kind = "k";
    job.queue = argv[0];
    for (int i = 1; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        *value++ = '\0';
        switch (argv[i][0]) {
        case 't': job.tenant = value; break;
        case 'k': job.ordering_key = value; break;
        case 'u': job.unique_key = value; break;
        case 'r': job.ref = value; break;
        case 'w': wait_ms = atoll(value); break;
        }
    }
    if (open_conn(wait_ms) || failed(mr_enqueue(conn, &job, &id, &err))) {
        return 1;
    }
    printf("%" PRId64 "\n", id);
    return 0;
}

static int many(int argc, char **argv)
{
    size_t count = (size_t)atoll(argv[1]), done = 0;
    const char **args = calloc(count, sizeof(*args));
    int64_t *ids = calloc(count, sizeof(*ids));
    mr_job_spec job = MR_JOB_SPEC_INIT;

    (void)argc;
    job.kind = "k";
    job.queue = argv[0];
    for (size_t i = 0; i < count; i++) {
        args[i] = "{}";
    }
    int code = open_conn(0);
    if (code == 0) {
        code = failed(
            mr_enqueue_many(conn, &job, args, count, (size_t)atoll(argv[2]), ids, &done, &err));
        printf("in %zu\n", done);
        print_spread(ids, done);
    }
    free(args);
    free(ids);
    return code != 0;
}

// Whether all jobs of a tenant are on one shard.
static int are_together(const mr_job_spec *jobs, const int64_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(jobs[i].tenant, jobs[k].tenant) == 0 &&
                ids[i] >> ID_BITS != ids[k] >> ID_BITS) {
                return 0;
            }
        }
    }
    return 1;
}

static int jobs(int argc, char **argv)
{
    size_t count = (size_t)atoll(argv[1]), tenants = (size_t)atoll(argv[2]), done = 0, in = 0;
    mr_job_spec *specs = calloc(count, sizeof(*specs));
    int64_t *ids = calloc(count, sizeof(*ids));
    char(*names)[24] = calloc(count, sizeof(*names));

    for (size_t i = 0; i < count; i++) {
        specs[i] = (mr_job_spec)MR_JOB_SPEC_INIT;
        snprintf(names[i], sizeof(names[i]), "t%zu", i % tenants);
        specs[i].kind = "k";
        specs[i].queue = argv[0];
        specs[i].tenant = names[i];
        specs[i].unique_key = argc > 3 ? names[i] : NULL;
    }
    int code = open_conn(0);
    if (code == 0) {
        code = failed(mr_enqueue_jobs(conn, specs, count, 0, ids, &done, &err));
        for (size_t i = 0; i < count; i++) {
            in += ids[i] != 0;
        }
        printf("done %zu, in %zu, %s\n", done, in,
               are_together(specs, ids, done) ? "together" : "apart");
        print_spread(ids, done);
    }
    free(specs);
    free(ids);
    free(names);
    return code != 0;
}

static void produce_one(const char *queue, int number)
{
    char ref[16], tenant[16];
    mr_job_spec job = MR_JOB_SPEC_INIT;
    int64_t id = 0;

    snprintf(ref, sizeof(ref), "%d", number);
    snprintf(tenant, sizeof(tenant), "t%d", number % 50);
    job.kind = "k";
    job.queue = queue;
    job.ref = ref;
    job.tenant = tenant;
    int code = mr_enqueue(conn, &job, &id, &err);
    if (code == 0) {
        printf("in %s %d\n", ref, (int)(id >> ID_BITS));
    } else {
        printf("%s %s %d %s\n", code == MR_ECONNECT || code == MR_ETIMEOUT ? "unclear" : "refused",
               ref, code, err.message);
    }
    fflush(stdout);
}

static int produce(int argc, char **argv)
{
    int count = atoi(argv[1]);

    if (open_conn(0)) {
        return 1;
    }
    for (int i = 0; i < count && (argc < 3 || access(argv[2], F_OK)); i++) {
        produce_one(argv[0], i);
        usleep(1000); // the others have something to do, too
    }
    return 0;
}

// ---- working ----

static int complete_all(const mr_batch *batch)
{
    int code = mr_complete(conn, mr_batch_lease(batch), NULL, 0, NULL, NULL, &err);

    for (size_t i = 0; code == 0 && i < mr_batch_count(batch); i++) {
        printf("done %s\n", mr_batch_job(batch, i)->ref);
    }
    if (code) {
        printf("lost a batch: %s\n", err.message);
    }
    fflush(stdout);
    return code;
}

static int consume(int argc, char **argv)
{
    int64_t idle_ms = atoll(argv[1]), last_ms = now_ms();
    mr_claim_options options = MR_CLAIM_OPTIONS_INIT;

    (void)argc;
    options.queue = argv[0];
    options.max_jobs = 50;
    options.lease_ms = 2000;
    if (open_conn(0)) {
        return 1;
    }
    while (now_ms() - last_ms < idle_ms) {
        mr_batch *batch = NULL;
        int code = mr_claim(conn, &options, &batch, &err);
        if (code == 0 && mr_batch_count(batch) > 0) {
            complete_all(batch);
            last_ms = now_ms();
        } else {
            usleep(20000);
        }
        mr_batch_free(batch);
    }
    return 0;
}

static int under_lease(mr_batch *batch)
{
    const char *lease = mr_batch_lease(batch);
    int64_t id = mr_batch_job(batch, 0)->id, until_us = 0, *ids = NULL;
    size_t cancelled = 0;
    int n = 0, dead = 0;
    char *story = NULL;

    printf("lease %.3s, shard %d\n", lease, (int)(id >> ID_BITS));
    if (failed(mr_heartbeat(conn, lease, 0, &until_us, &err)) ||
        failed(mr_heartbeat_cancelled(conn, lease, 0, &until_us, &ids, &cancelled, &err)) ||
        failed(mr_progress(conn, lease, id, 50, "half", &err)) ||
        failed(mr_job(conn, id, &story, &err))) {
        return 1;
    }
    printf("%s\n", strstr(story, "\"running\"") ? "running" : story);
    mr_free(story);
    if (failed(mr_requeue(conn, lease, id, NULL, NULL, 0, NULL, 0, &err))) {
        return 1;
    }
    mr_batch_free(batch);
    mr_claim_options options = MR_CLAIM_OPTIONS_INIT;
    options.queue = "leases";
    mr_batch *again = NULL;
    if (failed(mr_claim(conn, &options, &again, &err))) {
        return 1;
    }
    lease = mr_batch_lease(again);
    id = mr_batch_job(again, 0)->id;
    if (failed(mr_release(conn, lease, NULL, 0, &n, &err)) ||
        failed(mr_complete(conn, lease, NULL, 0, NULL, &n, &err)) != MR_ELEASE) {
        return 1;
    }
    mr_batch_free(again);
    if (failed(mr_claim(conn, &options, &again, &err)) ||
        failed(mr_fail(conn, mr_batch_lease(again), id, "no", 0, 1, NULL, 0, &dead, &err))) {
        return 1;
    }
    printf("dead %d\n", dead);
    mr_batch_free(again);
    return 0;
}

static int lease(int argc, char **argv)
{
    mr_job_spec job = MR_JOB_SPEC_INIT;
    mr_claim_options options = MR_CLAIM_OPTIONS_INIT;
    mr_batch *batches[2] = {NULL, NULL};
    const char *leases[2];
    int n = 0;

    (void)argc;
    job.kind = "k";
    job.queue = options.queue = argv[0];
    if (open_conn(0) || failed(mr_enqueue(conn, &job, NULL, &err)) ||
        failed(mr_claim(conn, &options, &batches[0], &err)) || under_lease(batches[0])) {
        return 1;
    }
    // two jobs without a key are on two shards
    for (int i = 0; i < 2; i++) {
        if (failed(mr_enqueue(conn, &job, NULL, &err))) {
            return 1;
        }
    }
    for (int i = 0; i < 2; i++) {
        batches[i] = NULL;
        if (failed(mr_claim(conn, &options, &batches[i], &err))) {
            return 1;
        }
        leases[i] = mr_batch_lease(batches[i]);
    }
    printf("shards %s\n", strncmp(leases[0], leases[1], 3) ? "differ" : "are the same");
    if (failed(mr_complete_many(conn, leases, 2, &n, &err))) {
        return 1;
    }
    printf("completed %d\n", n);
    failed(mr_complete(conn, strchr(leases[0], ':') + 1, NULL, 0, NULL, NULL, &err));
    failed(mr_complete(conn, "s31:0.1.1.x", NULL, 0, NULL, NULL, &err));
    failed(mr_send_enqueue(conn, &job, &err));
    mr_batch_free(batches[0]);
    mr_batch_free(batches[1]);
    return 0;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int expected;
static mr_worker *worker;

static int handle(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    (void)outcome;
    (void)arg;
    pthread_mutex_lock(&lock);
    printf("done %s %.3s\n", job->ref, job->lease);
    fflush(stdout);
    int left = --expected;
    pthread_mutex_unlock(&lock);
    if (left == 0) {
        mr_worker_stop(worker);
    }
    return 0;
}

static int work(int argc, char **argv)
{
    mr_worker_options options = MR_WORKER_OPTIONS_INIT;
    mr_worker_counts counts = MR_WORKER_COUNTS_INIT;

    (void)argc;
    expected = atoi(argv[1]);
    options.queue = argv[0];
    options.handler = handle;
    options.concurrency = 4;
    options.until_empty = expected == 0;
    options.lease_ms = 2000;
    if (failed(mr_worker_new(&options, &worker, &err))) {
        return 1;
    }
    int code = failed(mr_worker_run(worker, &err));
    mr_worker_stats(worker, &counts);
    printf("completed %" PRId64 "\n", counts.completed);
    mr_worker_free(worker);
    return code != 0;
}

// ---- looking ----

static int look(int argc, char **argv, const char *verb)
{
    char *text = NULL;
    const char *status = NULL;
    int64_t n = 0;

    if (open_conn(0)) {
        return 1;
    }
    if (strcmp(verb, "depth") == 0) {
        if (failed(mr_depth(conn, argv[0], &n, &err)) == 0) {
            printf("%" PRId64 "\n", n);
        }
    } else if (strcmp(verb, "job") == 0) {
        if (failed(mr_job(conn, atoll(argv[0]), &text, &err)) == 0) {
            printf("%s\n", text);
        }
    } else if (strcmp(verb, "wait") == 0) {
        if (failed(mr_wait(conn, atoll(argv[0]), 30000, &status, NULL, NULL, &err)) == 0) {
            printf("%s\n", status);
        }
    } else if (strcmp(verb, "dead") == 0) {
        if (failed(mr_list_dead(conn, argv[0], NULL, atoi(argc > 1 ? argv[1] : "0"), &text,
                                &err)) == 0) {
            printf("%s\n", text);
        }
    } else if (strcmp(verb, "replay") == 0) {
        if (failed(mr_replay_all(conn, argv[0], NULL, 0, &n, &err)) == 0) {
            printf("%" PRId64 "\n", n);
        }
    } else if (failed(mr_purge_dead(conn, argv[0], 0, &n, &err)) == 0) {
        printf("%" PRId64 "\n", n);
    }
    mr_free(text);
    return err.code != 0;
}

static int toolbox(void)
{
    char *value = NULL;
    int locked = 0;

    if (open_conn(0) || failed(mr_cache_set(conn, "k", "7", 60000, &err)) ||
        failed(mr_cache_get(conn, "k", &value, &err)) ||
        failed(mr_try_lock(conn, "l", &locked, &err)) || failed(mr_unlock(conn, "l", NULL, &err))) {
        return 1;
    }
    printf("%s %d\n", value, locked);
    mr_free(value);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } verbs[] = {
        {"one", one},         {"many", many},   {"jobs", jobs}, {"produce", produce},
        {"consume", consume}, {"lease", lease}, {"work", work},
    };
    int status = -1;

    if (argc < 2) {
        return 2;
    }
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (strcmp(argv[1], verbs[i].name) == 0) {
            status = verbs[i].run(argc - 2, argv + 2);
        }
    }
    if (status < 0) {
        status = strcmp(argv[1], "toolbox") == 0 ? toolbox() : look(argc - 2, argv + 2, argv[1]);
    }
    mr_conn_free(conn);
    return status;
}
