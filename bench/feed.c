// SPDX-License-Identifier: PostgreSQL
//
// Puts jobs into a queue, through the library: feed QUEUE JOBS CONTENT [--rate JOBS] [--chunk JOBS]
// [--run-at TIME]. Called by bench/scaling_part.py; the database is MILLRACE_DSN's.
//
//   small   about 200 bytes of args
//   json    4.5 KB: 2.7 KB of state, 1.6 KB of blob, 300 bytes of args and meta, all of it JSON
//           whose keys repeat and whose values (ids, numbers, times) do not
//   noise   the same sizes, bytes that cannot be compressed
//
// Without --rate as fast as it goes. Prints how long it took, and what of its own processor.

#include <getopt.h>
#include <millrace/millrace.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db.h"

enum {
    STATE_SIZE = 2700,
    BLOB_SIZE = 1600,
    ARGS_SIZE = 256,
    META_SIZE = 160,
    TENANT_SIZE = 24,
    TENANTS = 977,
    CHUNK_MAX = 1000,
};

static struct {
    const char *queue, *content, *run_at;
    long jobs, rate, chunk;
} feed = {.chunk = 500};

struct job {
    char args[ARGS_SIZE], meta[META_SIZE], tenant[TENANT_SIZE];
    char state[STATE_SIZE + 1], blob[BLOB_SIZE + 1];
};

static uint64_t random_next(void)
{
    static uint64_t seed = 88172645463325252U; // xorshift, of Marsaglia
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

// ---- what a job has ----

static void write_noise(char *to, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = (char)(random_next() >> 24);
}

// Frames of a virtual machine that waits for a request.
static void write_state(char *to)
{
    size_t used = (size_t)snprintf(to, STATE_SIZE + 1,
                                   "{\"state\":{\"id\":\"%016lx-%016lx\",\"ops\":%lu,\"frames\":[",
                                   random_next(), random_next(), random_next() % 100000);
    while (used < STATE_SIZE)
        used += (size_t)snprintf(
            to + used, STATE_SIZE + 1 - used,
            "{\"ip\":%lu,\"chunk\":\"root\",\"stackStart\":%lu,\"argCount\":%lu,\"closure\":{\"type\":"
            "\"hogClosure\",\"callable\":\"fetch\",\"id\":\"%08lx\"},\"value\":\"%.6f\"},",
            random_next() % 4096, random_next() % 64, random_next() % 4, random_next() % UINT32_MAX,
            (double)(random_next() % 1000000) / 997);
}

// The body of a request: an event with its properties.
static void write_blob(char *to)
{
    static const char *const names[] = {"$os",           "$browser",     "$current_url",
                                        "$device_id",    "$session_id",  "$screen_height",
                                        "$screen_width", "$referrer",    "utm_source",
                                        "plan",          "organization", "$lib_version"};
    size_t used = (size_t)snprintf(
        to, BLOB_SIZE + 1,
        "{\"event\":\"$pageview\",\"distinct_id\":\"%016lx\",\"timestamp\":\"2026-11-%02luT%02lu:%02lu:"
        "%02lu.%03luZ\",\"properties\":{",
        random_next(), 1 + random_next() % 30, random_next() % 24, random_next() % 60,
        random_next() % 60, random_next() % 1000);
    for (size_t i = 0; used < BLOB_SIZE; i++)
        used += (size_t)snprintf(to + used, BLOB_SIZE + 1 - used,
                                 "\"%s\":\"%08lx\",\"$set_%s\":%lu,", names[i % 12],
                                 random_next() % UINT32_MAX, names[i % 12], random_next() % 10000);
}

static void write_job(struct job *job, mr_job_spec *spec, long number)
{
    *spec = (mr_job_spec)MR_JOB_SPEC_INIT;
    spec->kind = "invocation";
    spec->queue = feed.queue;
    spec->run_at = feed.run_at;
    snprintf(
        job->args, ARGS_SIZE,
        "{\"team\": %ld, \"event\": \"%016lx\", \"function\": \"%016lx%016lx\", \"distinct\": \"%ld\", "
        "\"url\": \"https://hooks.example.org/in/%08lx\"}",
        number % TENANTS, random_next(), random_next(), random_next(), number * 31 % 1000003,
        random_next() % UINT32_MAX);
    spec->args = job->args;
    snprintf(job->tenant, TENANT_SIZE, "team-%ld", number % TENANTS);
    spec->tenant = job->tenant;
    if (strcmp(feed.content, "small") == 0)
        return;
    snprintf(job->meta, META_SIZE,
             "{\"trace\": \"%016lx\", \"source\": \"ingestion\", \"tries\": %lu}", random_next(),
             random_next() % 3);
    spec->meta = job->meta;
    if (strcmp(feed.content, "noise") == 0) {
        write_noise(job->state, STATE_SIZE);
        write_noise(job->blob, BLOB_SIZE);
    } else {
        write_state(job->state);
        write_blob(job->blob);
    }
    spec->state = job->state;
    spec->state_size = STATE_SIZE;
    spec->blob = job->blob;
    spec->blob_size = BLOB_SIZE;
}

// ---- putting ----

static void put(mr_conn *conn)
{
    struct job *jobs = calloc((size_t)feed.chunk, sizeof *jobs);
    mr_job_spec *specs = calloc((size_t)feed.chunk, sizeof *specs);
    double start = now_s();
    mr_error err;

    if (!jobs || !specs)
        die("out of memory");
    for (long sent = 0; sent < feed.jobs;) {
        long count = feed.jobs - sent < feed.chunk ? feed.jobs - sent : feed.chunk;
        for (long i = 0; i < count; i++)
            write_job(&jobs[i], &specs[i], sent + i);
        while (feed.rate > 0 && (now_s() - start) * (double)feed.rate < (double)sent)
            pause_ms(1);
        if (mr_enqueue_jobs(conn, specs, (size_t)count, CHUNK_MAX, NULL, NULL, &err))
            die("%s", err.message);
        sent += count;
    }
    printf("{\"jobs\": %ld, \"seconds\": %.3f, \"cpu_s\": %.3f}\n", feed.jobs, now_s() - start,
           process_cpu_s(getpid()));
    free(jobs);
    free(specs);
}

static long number_of(const char *text, long most)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (*end || number < 1 || number > most)
        die("not a number from 1 to %ld: %s", most, text);
    return number;
}

static void read_arguments(int argc, char **argv)
{
    static const struct option options[] = {{"rate", required_argument, NULL, 'r'},
                                            {"chunk", required_argument, NULL, 'c'},
                                            {"run-at", required_argument, NULL, 'a'},
                                            {0}};
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'r')
            feed.rate = number_of(optarg, 1000000);
        else if (option == 'c')
            feed.chunk = number_of(optarg, CHUNK_MAX);
        else if (option == 'a')
            feed.run_at = optarg;
        else
            die("usage: feed QUEUE JOBS small|json|noise [--rate JOBS] [--chunk JOBS] [--run-at TIME]");
    }
    if (argc - optind != 3)
        die("usage: feed QUEUE JOBS small|json|noise [--rate JOBS] [--chunk JOBS] [--run-at TIME]");
    feed.queue = argv[optind];
    feed.jobs = number_of(argv[optind + 1], 100000000);
    feed.content = argv[optind + 2];
    if (strcmp(feed.content, "small") != 0 && strcmp(feed.content, "json") != 0 &&
        strcmp(feed.content, "noise") != 0)
        die("not a content: %s", feed.content);
}

int main(int argc, char **argv)
{
    mr_conn_options options = MR_CONN_OPTIONS_INIT;
    mr_conn *conn;
    mr_error err;

    read_arguments(argc, argv);
    if (mr_conn_open(&options, &conn, &err))
        die("%s", err.message);
    put(conn);
    mr_conn_free(conn);
    return 0;
}
