// SPDX-License-Identifier: PostgreSQL
//
// The calls about jobs as words of a script: see conform.h. Jobs are called J1, J2... in the order
// in which they were enqueued, leases L1, L2...

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conform.h"

#define PATIENCE_MS 30000
#define LOOK_MS     20
#define LEASES_MAX  500
#define IDS_MAX     2000
#define LINE_SIZE   4096
// Messages show a lease up to here.
#define LEASE_SHOWN 80

static char *leases[LEASES_MAX];
static int lease_count;
static int64_t ids[IDS_MAX];
static int id_count;

// ---- names ----

static int64_t remember_id(int64_t id)
{
    for (int i = 0; i < id_count; i++) {
        if (ids[i] == id) {
            return i + 1;
        }
    }
    if (id_count == IDS_MAX) {
        script_is_wrong("too many jobs");
    }
    ids[id_count++] = id;
    return id_count;
}

// J3, or a number as it stands.
static int64_t id_of(const char *word)
{
    if (*word != 'J') {
        return number_of(word);
    }
    int64_t at = number_of(word + 1);
    if (at < 1 || at > id_count) {
        script_is_wrong("there is no job %s", word);
    }
    return ids[at - 1];
}

static void remember_lease(const char *lease)
{
    if (lease_count == LEASES_MAX || !(leases[lease_count] = strdup(lease))) {
        script_is_wrong("too many leases");
    }
    lease_count++;
}

// L1, or a text as it stands; NULL stays.
static const char *lease_of(const char *word)
{
    if (!word || *word != 'L') {
        return word;
    }
    int64_t at = number_of(word + 1);
    if (at < 1 || at > lease_count) {
        script_is_wrong("there is no lease %s", word);
    }
    return leases[at - 1];
}

static void replace(char *text, size_t size, const char *what, const char *by)
{
    char whole[sizeof(conform_err.message)];
    char *at = strstr(text, what);

    if (at) {
        snprintf(whole, sizeof(whole), "%.*s%s%s", (int)(at - text), text, by, at + strlen(what));
        snprintf(text, size, "%s", whole);
    }
}

// A failure with names in the place of what differs from run to run.
static bool failed(int code)
{
    char shown[LEASE_SHOWN + 1], name[32];

    if (code == 0) {
        return false;
    }
    for (int i = 0; i < lease_count; i++) {
        snprintf(shown, sizeof(shown), "%s", leases[i]);
        snprintf(name, sizeof(name), "L%d", i + 1);
        replace(conform_err.message, sizeof(conform_err.message), shown, name);
    }
    for (int i = 0; i < id_count; i++) {
        snprintf(shown, sizeof(shown), " %lld", (long long)ids[i]);
        snprintf(name, sizeof(name), " J%d", i + 1);
        if (ids[i] > 999) { // smaller ones may be limits
            replace(conform_err.message, sizeof(conform_err.message), shown, name);
        }
    }
    return say_failure(code);
}

// ---- options ----

struct options {
    mr_job_spec job;
    mr_claim_options claim;
    int64_t retry_ms;
    int no_retry;
    const char *state;
};

static void set_texts(struct options *options, const char *name, const char *value)
{
    const struct {
        const char *name;
        const char **target;
    } rows[] = {
        {"queue", &options->job.queue},
        {"run_at", &options->job.run_at},
        {"tenant", &options->job.tenant},
        {"ref", &options->job.ref},
        {"meta", &options->job.meta},
        {"unique_key", &options->job.unique_key},
        {"on_conflict", &options->job.on_conflict},
        {"ordering_key", &options->job.ordering_key},
        {"worker", &options->claim.worker},
        {"state", &options->state},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            *rows[i].target = value;
            return;
        }
    }
    script_is_wrong("unknown option %s", name);
}

static bool set_times(struct options *options, const char *name, const char *value)
{
    const struct {
        const char *name;
        int64_t *target;
    } rows[] = {
        {"delay", &options->job.delay_ms},        {"timeout", &options->job.timeout_ms},
        {"expires", &options->job.expires_in_ms}, {"unique_for", &options->job.unique_for_ms},
        {"lease", &options->claim.lease_ms},      {"retry", &options->retry_ms},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            *rows[i].target = ms_of(value);
            return true;
        }
    }
    return false;
}

static bool set_numbers(struct options *options, const char *name, const char *value)
{
    const struct {
        const char *name;
        int *target;
    } rows[] = {
        {"priority", &options->job.priority},
        {"max_attempts", &options->job.max_attempts},
        {"no_retry", &options->no_retry},
        {"without_state", &options->claim.without_state},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            *rows[i].target = (int)number_of(value);
            return true;
        }
    }
    return false;
}

// name value, in pairs; returns nothing that has to be freed.
static struct options read_options(char **args, int count)
{
    struct options options = {.job = MR_JOB_SPEC_INIT, .claim = MR_CLAIM_OPTIONS_INIT};

    if (count % 2) {
        script_is_wrong("an option has no value");
    }
    for (int i = 0; i < count; i += 2) {
        if (!args[i + 1] || (!set_times(&options, args[i], args[i + 1]) &&
                             !set_numbers(&options, args[i], args[i + 1]))) {
            set_texts(&options, args[i], args[i + 1]);
        }
    }
    options.job.state = options.state;
    options.job.state_size = options.state ? strlen(options.state) : 0;
    return options;
}

// ---- producing ----

// enqueue KIND ARGS [OPTION VALUE]...
static void enqueue(char **args, int count)
{
    struct options options = read_options(args + 2, count - 2);
    int64_t id = 0;

    options.job.kind = args[0];
    options.job.args = args[1];
    if (!failed(mr_enqueue(conform_conn(), &options.job, &id, &conform_err))) {
        say("J%lld", (long long)remember_id(id));
    }
}

static void say_ids(const int64_t *given, size_t done)
{
    char line[LINE_SIZE] = "";
    int used = 0;

    for (size_t i = 0; i < done; i++) {
        used += snprintf(line + used, sizeof(line) - (size_t)used, " J%lld",
                         (long long)remember_id(given[i]));
    }
    say("%zu done:%s", done, line);
}

// enqueue_many QUEUE KIND CHUNK ARGS...
static void enqueue_many(char **args, int count)
{
    mr_job_spec job = MR_JOB_SPEC_INIT;
    int64_t given[ARGS_MAX];
    size_t done = 99;

    job.queue = args[0];
    job.kind = args[1];
    if (failed(mr_enqueue_many(conform_conn(), &job, (const char *const *)args + 3,
                               (size_t)count - 3, (size_t)number_of(args[2]), given, &done,
                               &conform_err))) {
        say("%zu done", done);
        return;
    }
    say_ids(given, done);
}

// enqueue_jobs QUEUE [KIND ARGS PRIORITY STATE]...
static void enqueue_jobs(char **args, int count)
{
    mr_job_spec jobs[ARGS_MAX / 4 + 1];
    int64_t given[ARGS_MAX];
    size_t jobs_count = (size_t)(count - 1) / 4;
    size_t done = 99;

    for (size_t i = 0; i < jobs_count; i++) {
        char **words = args + 1 + 4 * i;
        jobs[i] = (mr_job_spec)MR_JOB_SPEC_INIT;
        jobs[i].queue = args[0];
        jobs[i].kind = words[0];
        jobs[i].args = words[1];
        jobs[i].priority = (int)number_of(words[2]);
        jobs[i].state = words[3];
        jobs[i].state_size = words[3] ? strlen(words[3]) : 0;
    }
    if (failed(mr_enqueue_jobs(conform_conn(), jobs, jobs_count, 0, given, &done, &conform_err))) {
        say("%zu done", done);
        return;
    }
    say_ids(given, done);
}

// enqueue_times QUEUE KIND COUNT: many jobs, of which the ids are not kept
static void enqueue_times(char **args, int count)
{
    mr_job_spec job = MR_JOB_SPEC_INIT;
    size_t times = (size_t)number_of(args[2]), done = 0;
    const char **all = calloc(times, sizeof(*all));

    (void)count;
    job.queue = args[0];
    job.kind = args[1];
    for (size_t i = 0; i < times; i++) {
        all[i] = "{}";
    }
    if (!failed(mr_enqueue_many(conform_conn(), &job, all, times, 0, NULL, &done, &conform_err))) {
        say("%zu done", done);
    }
    free(all);
}

// enqueue_heavy QUEUE COUNT BYTES: as many jobs with states of that size in one call; all of them
// are one buffer here
static void enqueue_heavy(char **args, int count)
{
    size_t times = (size_t)number_of(args[1]), size = (size_t)number_of(args[2]), done = 0;
    mr_job_spec *jobs = calloc(times, sizeof(*jobs));
    char *bytes = calloc(1, size);

    (void)count;
    for (size_t i = 0; jobs && bytes && i < times; i++) {
        jobs[i] = (mr_job_spec)MR_JOB_SPEC_INIT;
        jobs[i].queue = args[0];
        jobs[i].kind = "k";
        jobs[i].state = bytes;
        jobs[i].state_size = size;
    }
    if (!failed(mr_enqueue_jobs(conform_conn(), jobs, times, 0, NULL, &done, &conform_err))) {
        say("%zu done", done);
    }
    free(jobs);
    free(bytes);
}

// ---- claiming ----

// Texts that are there, JSON in one form.
static void add_json(char *line, size_t size, const char *name, const char *json)
{
    json_t *value = json ? json_loads(json, JSON_DECODE_ANY, NULL) : NULL;
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    size_t used = strlen(line);

    if (json) {
        snprintf(line + used, size - used, "%s%.200s", name, text ? text : "not JSON");
    }
    free(text);
    json_decref(value);
}

static void add_text(char *line, size_t size, const char *name, const char *text)
{
    size_t used = strlen(line);

    if (text) {
        snprintf(line + used, size - used, "%s%s", name, text);
    }
}

static void say_job(const mr_claimed_job *job)
{
    char line[LINE_SIZE];

    snprintf(line, sizeof(line), "J%lld %s %s", (long long)remember_id(job->id), job->queue,
             job->kind);
    add_json(line, sizeof(line), " ", job->args);
    snprintf(line + strlen(line), sizeof(line) - strlen(line), ", attempt %d of %d, priority %d",
             job->attempt, job->max_attempts, job->priority);
    add_text(line, sizeof(line), ", tenant ", job->tenant);
    add_text(line, sizeof(line), ", ref ", job->ref);
    add_json(line, sizeof(line), ", meta ", job->meta);
    if (job->state) {
        snprintf(line + strlen(line), sizeof(line) - strlen(line), ", state %zu bytes %.*s",
                 job->state_size, (int)job->state_size, (const char *)job->state);
    }
    if (job->timeout_ms) {
        snprintf(line + strlen(line), sizeof(line) - strlen(line), ", timeout %lld ms",
                 (long long)job->timeout_ms);
    }
    say("%s", line);
}

static void say_batch(mr_batch *batch, int64_t before_us, int64_t lease_ms)
{
    for (size_t i = 0; i < mr_batch_count(batch); i++) {
        const mr_claimed_job *job = mr_batch_job(batch, i);
        say_job(job);
        if (job->lease_until_us < before_us + lease_ms * 1000 ||
            job->lease_until_us > now_us() + lease_ms * 1000 || job->created_at_us > now_us()) {
            say("a time that cannot be");
        }
    }
    if (mr_batch_lease(batch)) {
        remember_lease(mr_batch_lease(batch));
        say("lease L%d", lease_count);
    } else {
        say("nothing");
    }
}

// claim QUEUE MAX [OPTION VALUE]...
static void claim(char **args, int count)
{
    struct options options = read_options(args + 2, count - 2);
    int64_t before_us = now_us();
    mr_batch *batch = NULL;

    options.claim.queue = args[0];
    options.claim.max_jobs = (int)number_of(args[1]);
    if (!failed(mr_claim(conform_conn(), &options.claim, &batch, &conform_err))) {
        say_batch(batch, before_us, options.claim.lease_ms ? options.claim.lease_ms : 30000);
        mr_batch_free(batch);
    }
}

// The same until there is something.
static void await(char **args, int count)
{
    struct options options = read_options(args + 2, count - 2);
    int64_t end_us = now_us() + PATIENCE_MS * INT64_C(1000);

    options.claim.queue = args[0];
    options.claim.max_jobs = (int)number_of(args[1]);
    for (;;) {
        int64_t before_us = now_us();
        mr_batch *batch = NULL;
        if (failed(mr_claim(conform_conn(), &options.claim, &batch, &conform_err))) {
            return;
        }
        if (mr_batch_count(batch) > 0 || now_us() > end_us) {
            say_batch(batch, before_us, options.claim.lease_ms ? options.claim.lease_ms : 30000);
            mr_batch_free(batch);
            return;
        }
        mr_batch_free(batch);
        pause_ms(LOOK_MS);
    }
}

// drain QUEUE BATCH: claims and completes until there is nothing, and says how many
static void drain(char **args, int count)
{
    mr_claim_options options = MR_CLAIM_OPTIONS_INIT;
    int all = 0;

    (void)count;
    options.queue = args[0];
    options.max_jobs = (int)number_of(args[1]);
    for (;;) {
        mr_batch *batch = NULL;
        int done = 0;
        if (failed(mr_claim(conform_conn(), &options, &batch, &conform_err))) {
            return;
        }
        size_t jobs = mr_batch_count(batch);
        if (jobs && failed(mr_complete(conform_conn(), mr_batch_lease(batch), NULL, 0, NULL, &done,
                                       &conform_err))) {
            return;
        }
        mr_batch_free(batch);
        all += done;
        if (!jobs) {
            say("%d completed", all);
            return;
        }
    }
}

// ---- under a lease ----

static size_t read_ids(char **args, int count, int64_t *ret)
{
    for (int i = 0; i < count; i++) {
        ret[i] = id_of(args[i]);
    }
    return (size_t)count;
}

static void complete(char **args, int count)
{
    int64_t wanted[ARGS_MAX];
    size_t n = read_ids(args + 1, count - 1, wanted);
    int done = -1;

    if (!failed(
            mr_complete(conform_conn(), lease_of(args[0]), wanted, n, NULL, &done, &conform_err))) {
        say("%d completed", done);
    }
}

static void complete_many(char **args, int count)
{
    const char *all[ARGS_MAX];
    int done = -1;

    for (int i = 0; i < count; i++) {
        all[i] = lease_of(args[i]);
    }
    if (!failed(mr_complete_many(conform_conn(), all, (size_t)count, &done, &conform_err))) {
        say("%d completed", done);
    }
}

// complete_with LEASE RESULT
static void complete_with(char **args, int count)
{
    int done = -1;

    (void)count;
    if (!failed(mr_complete(conform_conn(), lease_of(args[0]), NULL, 0, args[1], &done,
                            &conform_err))) {
        say("%d completed", done);
    }
}

// fail LEASE JOB ERROR [OPTION VALUE]...
static void fail(char **args, int count)
{
    struct options options = read_options(args + 3, count - 3);
    int dead = -1;

    if (!failed(mr_fail(conform_conn(), lease_of(args[0]), id_of(args[1]), args[2],
                        options.retry_ms, options.no_retry, options.state,
                        options.state ? strlen(options.state) : 0, &dead, &conform_err))) {
        say(dead == 1 ? "dead" : dead == 0 ? "comes back" : "no answer");
    }
}

static void release(char **args, int count)
{
    int64_t wanted[ARGS_MAX];
    size_t n = read_ids(args + 1, count - 1, wanted);
    int done = -1;

    if (!failed(mr_release(conform_conn(), lease_of(args[0]), wanted, n, &done, &conform_err))) {
        say("%d released", done);
    }
}

// heartbeat LEASE [TIME]: by TIME, else by the 30 s of the default
static void heartbeat(char **args, int count)
{
    int64_t extend_ms = count > 1 ? ms_of(args[1]) : 0;
    int64_t by_us = (extend_ms ? extend_ms : 30000) * 1000;
    int64_t before_us = now_us(), until_us = 0;

    if (!failed(
            mr_heartbeat(conform_conn(), lease_of(args[0]), extend_ms, &until_us, &conform_err))) {
        say(until_us >= before_us + by_us && until_us <= now_us() + by_us ? "extended"
                                                                          : "another end");
    }
}

static void heartbeat_cancelled(char **args, int count)
{
    int64_t *cancelled = NULL;
    size_t n = 99;

    (void)count;
    if (!failed(mr_heartbeat_cancelled(conform_conn(), lease_of(args[0]), 0, NULL, &cancelled, &n,
                                       &conform_err))) {
        say("%zu cancelled", n);
        mr_free(cancelled);
    }
}

// ---- looking and dead letters ----

static void depth(char **args, int count)
{
    int64_t jobs = -1;

    (void)count;
    if (!failed(mr_depth(conform_conn(), args[0], &jobs, &conform_err))) {
        say("%lld available", (long long)jobs);
    }
}

static const char *member(const json_t *letter, const char *name)
{
    const char *text = json_string_value(json_object_get(letter, name));

    return text ? text : "null";
}

static void say_letter(const json_t *letter)
{
    char line[LINE_SIZE];
    char *args = json_dumps(json_object_get(letter, "args"),
                            JSON_ENCODE_ANY | JSON_SORT_KEYS | JSON_COMPACT);
    char died[11] = "", created[11] = "";

    snprintf(died, sizeof(died), "%s", member(letter, "died_at"));
    snprintf(created, sizeof(created), "%s", member(letter, "created_at"));
    snprintf(line, sizeof(line), "J%lld %s %s %s %s: %.100s, attempt %lld of %lld, tenant %s%s",
             (long long)remember_id(json_integer_value(json_object_get(letter, "id"))),
             member(letter, "queue"), member(letter, "kind"), args ? args : "",
             member(letter, "cause"), member(letter, "error"),
             (long long)json_integer_value(json_object_get(letter, "attempt")),
             (long long)json_integer_value(json_object_get(letter, "max_attempts")),
             member(letter, "tenant"), strcmp(died, created) < 0 ? ", died before its time" : "");
    free(args);
    say("%s", line);
}

// dead QUEUE [KIND [LIMIT]]
static void dead(char **args, int count)
{
    char *text = NULL;

    if (failed(mr_list_dead(conform_conn(), args[0], count > 1 ? args[1] : NULL,
                            count > 2 ? (int)number_of(args[2]) : 0, &text, &conform_err))) {
        return;
    }
    json_t *page = json_loads(text, 0, NULL);
    const json_t *jobs = json_object_get(page, "jobs");
    for (size_t i = 0; i < json_array_size(jobs); i++) {
        say_letter(json_array_get(jobs, i));
    }
    const json_t *complete = json_object_get(page, "complete");
    say("%zu dead letters%s", json_array_size(jobs),
        json_is_true(complete)    ? ""
        : json_is_false(complete) ? ", perhaps more"
                                  : ", perhaps all");
    json_decref(page);
    mr_free(text);
}

static void replay(char **args, int count)
{
    (void)count;
    if (!failed(mr_replay(conform_conn(), id_of(args[0]), &conform_err))) {
        say("replayed");
    }
}

// replay_all QUEUE [KIND [MAX]]
static void replay_all(char **args, int count)
{
    int64_t done = -1;

    if (!failed(mr_replay_all(conform_conn(), args[0], count > 1 ? args[1] : NULL,
                              count > 2 ? (int)number_of(args[2]) : 0, &done, &conform_err))) {
        say("%lld replayed", (long long)done);
    }
}

// purge_dead QUEUE [OLDER]
static void purge_dead(char **args, int count)
{
    int64_t done = -1;

    if (!failed(mr_purge_dead(conform_conn(), args[0], count > 1 ? ms_of(args[1]) : 0, &done,
                              &conform_err))) {
        say("%lld removed", (long long)done);
    }
}

// ---- what Redis has not ----

static void requeue(char **args, int count)
{
    (void)count;
    if (!failed(mr_requeue(conform_conn(), lease_of(args[0]), id_of(args[1]), NULL, NULL, 0, NULL,
                           0, &conform_err))) {
        say("requeued");
    }
}

static void finish(char **args, int count)
{
    int done = -1;

    (void)count;
    if (!failed(mr_finish(conform_conn(), lease_of(args[0]), args[1], &done, &conform_err))) {
        say("%d finished", done);
    }
}

static void progress(char **args, int count)
{
    (void)count;
    if (!failed(mr_progress(conform_conn(), lease_of(args[0]), id_of(args[1]), 50, "half",
                            &conform_err))) {
        say("reported");
    }
}

static void story(char **args, int count)
{
    char *text = NULL;

    (void)count;
    if (!failed(mr_job(conform_conn(), id_of(args[0]), &text, &conform_err))) {
        say("a story");
        mr_free(text);
    }
}

// enqueue_mixed QUEUE QUEUE: two jobs of two queues in one call
static void enqueue_mixed(char **args, int count)
{
    mr_job_spec jobs[2] = {MR_JOB_SPEC_INIT, MR_JOB_SPEC_INIT};
    int64_t given[2];
    size_t done = 99;

    (void)count;
    for (int i = 0; i < 2; i++) {
        jobs[i].kind = "k";
        jobs[i].queue = args[i];
    }
    if (!failed(mr_enqueue_jobs(conform_conn(), jobs, 2, 0, given, &done, &conform_err))) {
        say_ids(given, done);
    }
}

static int handle(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    (void)job;
    (void)outcome;
    (void)arg;
    return 0;
}

static void work(char **args, int count)
{
    mr_worker_options options = MR_WORKER_OPTIONS_INIT;
    mr_worker *worker = NULL;

    (void)count;
    options.queue = args[0];
    options.handler = handle;
    options.until_empty = 1;
    if (!failed(mr_worker_new(&options, &worker, &conform_err)) &&
        !failed(mr_worker_run(worker, &conform_err))) {
        say("worked");
    }
    mr_worker_free(worker);
}

const struct word queue_words[] = {
    {"enqueue", 2, ARGS_MAX, enqueue},
    {"enqueue_many", 3, ARGS_MAX, enqueue_many},
    {"enqueue_jobs", 1, ARGS_MAX, enqueue_jobs},
    {"enqueue_times", 3, 3, enqueue_times},
    {"enqueue_heavy", 3, 3, enqueue_heavy},
    {"enqueue_mixed", 2, 2, enqueue_mixed},
    {"claim", 2, ARGS_MAX, claim},
    {"await", 2, ARGS_MAX, await},
    {"drain", 2, 2, drain},
    {"complete", 1, ARGS_MAX, complete},
    {"complete_many", 0, ARGS_MAX, complete_many},
    {"complete_with", 2, 2, complete_with},
    {"fail", 3, ARGS_MAX, fail},
    {"release", 1, ARGS_MAX, release},
    {"heartbeat", 1, 2, heartbeat},
    {"heartbeat_cancelled", 1, 1, heartbeat_cancelled},
    {"depth", 1, 1, depth},
    {"dead", 1, 3, dead},
    {"replay", 1, 1, replay},
    {"replay_all", 1, 3, replay_all},
    {"purge_dead", 1, 2, purge_dead},
    {"requeue", 2, 2, requeue},
    {"finish", 2, 2, finish},
    {"progress", 2, 2, progress},
    {"story", 1, 1, story},
    {"work", 1, 1, work},
    {NULL, 0, 0, NULL},
};
