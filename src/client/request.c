// SPDX-License-Identifier: PostgreSQL
//
// What callers of the library ask for: see request.h.
//
// Only what C can get wrong is checked here: missing pointers, sizes without bytes, negative
// times. What a value means is the server's to judge, in one place for every language.

#include "client/request.h"

#include "client/sized.h"

// ---- checks ----

static int wrong(mr_error *err, const char *what, const char *hint)
{
    mr_error_set(err, MR_EUSAGE, "%s", what);
    mr_error_hint(err, "%s", hint);
    return MR_EUSAGE;
}

int request_check_lease(const char *lease, mr_error *err)
{
    return lease ? 0
                 : wrong(err, "no lease was given",
                         "Give mr_batch_lease() of the claim; it is NULL when a batch is empty.");
}

int request_check_ids(const int64_t *ids, size_t count, mr_error *err)
{
    return ids || count == 0 ? 0
                             : wrong(err, "a count of ids, but no ids",
                                     "Give the ids, or a count of 0 for all open jobs.");
}

int request_check_cancelled(int64_t **ret_ids, const size_t *ret_count, mr_error *err)
{
    return ret_ids && ret_count ? 0
                                : wrong(err, "no place was given for the cancelled ids",
                                        "Give ret_ids and ret_count, or call mr_heartbeat().");
}

int request_check_bytes(const void *data, size_t size, const char *what, mr_error *err)
{
    if (!data && size > 0) {
        mr_error_set(err, MR_EUSAGE, "%s: a size of %zu, but no bytes", what, size);
        mr_error_hint(err, "Give a pointer to the bytes, or a size of 0.");
        return MR_EUSAGE;
    }
    return 0;
}

int request_check_ms(int64_t ms, const char *what, mr_error *err)
{
    if (ms < 0) {
        mr_error_set(err, MR_EUSAGE, "%s is negative: %lld", what, (long long)ms);
        mr_error_hint(err, "Give milliseconds, or 0 for the default.");
        return MR_EUSAGE;
    }
    return 0;
}

// ---- producing ----

int request_read_job(const mr_job_spec *from, mr_job_spec *ret, mr_error *err)
{
    mr_job_spec job = MR_JOB_SPEC_INIT;
    int code;

    if (!from) {
        return wrong(err, "no job was given", "Give an mr_job_spec, begun with MR_JOB_SPEC_INIT.");
    }
    if ((code = sized_read(&job, sizeof(job), from, "MR_JOB_SPEC_INIT", err))) {
        return code;
    }
    if (!job.kind) {
        return wrong(err, "the job has no kind", "Set mr_job_spec.kind: what sort of job it is.");
    }
    if (job.max_attempts < 0) {
        return wrong(err, "max_attempts is negative",
                     "Give a number from 1, or 0 for what the kind's policy or the queue says.");
    }
    if ((code = request_check_ms(job.delay_ms, "delay_ms", err)) ||
        (code = request_check_ms(job.timeout_ms, "timeout_ms", err)) ||
        (code = request_check_ms(job.expires_in_ms, "expires_in_ms", err)) ||
        (code = request_check_ms(job.unique_for_ms, "unique_for_ms", err)) ||
        (code = request_check_bytes(job.state, job.state_size, "state", err)) ||
        (code = request_check_bytes(job.blob, job.blob_size, "blob", err))) {
        return code;
    }
    *ret = job;
    return 0;
}

void request_enqueue(struct call *call, const mr_job_spec *job)
{
    call_init(call, CALL_ENQUEUE);
    call_text(call, job->kind);
    call_text(call, job->args);
    call_text(call, job->queue);
    call_number(call, job->priority);
    call_text(call, job->run_at);
    call_ms(call, job->delay_ms);
    call_text(call, job->unique_key);
    call_text(call, job->ordering_key);
    call_text(call, job->tenant);
    call_text(call, job->ref);
    if (job->max_attempts) {
        call_number(call, job->max_attempts);
    } else {
        call_null(call);
    }
    call_ms(call, job->timeout_ms);
    call_ms(call, job->expires_in_ms);
    call_text(call, job->meta);
    call_bytes(call, job->state, job->state_size);
    call_bytes(call, job->blob, job->blob_size);
    call_text(call, job->on_conflict);
    call_ms(call, job->unique_for_ms);
}

// ---- working ----

int request_read_claim(const mr_claim_options *from, mr_claim_options *ret, mr_error *err)
{
    mr_claim_options options = MR_CLAIM_OPTIONS_INIT;
    int code;

    if (from &&
        (code = sized_read(&options, sizeof(options), from, "MR_CLAIM_OPTIONS_INIT", err))) {
        return code;
    }
    if (options.max_jobs < 0 || options.max_jobs > CLAIM_JOBS_MAX) {
        mr_error_set(err, MR_EUSAGE, "max_jobs is %d", options.max_jobs);
        mr_error_hint(err, "Give a number from 1 to %d, or 0 for 1.", CLAIM_JOBS_MAX);
        return MR_EUSAGE;
    }
    if ((code = request_check_ms(options.lease_ms, "lease_ms", err))) {
        return code;
    }
    options.max_jobs = options.max_jobs ? options.max_jobs : 1;
    *ret = options;
    return 0;
}

int request_claim(struct call *call, const mr_claim_options *from, const char **ret_queue,
                  mr_error *err)
{
    mr_claim_options options;
    int code;

    call_init(call, CALL_CLAIM);
    if ((code = request_read_claim(from, &options, err))) {
        return code;
    }
    call_text(call, options.queue);
    call_text(call, options.worker);
    call_number(call, options.max_jobs);
    call_ms(call, options.lease_ms);
    call_bool(call, !options.without_state);
    *ret_queue = options.queue;
    return 0;
}

int request_complete(struct call *call, const char *lease, const int64_t *ids, size_t count,
                     const char *result, mr_error *err)
{
    int code;

    call_init(call, CALL_COMPLETE);
    if ((code = request_check_lease(lease, err)) || (code = request_check_ids(ids, count, err))) {
        return code;
    }
    call_text(call, lease);
    call_numbers(call, ids, count);
    call_text(call, result);
    return 0;
}

int request_complete_many(struct call *call, const char *const *leases, size_t count, mr_error *err)
{
    call_init(call, CALL_COMPLETE_MANY);
    for (size_t i = 0; i < count; i++) {
        int code = request_check_lease(leases ? leases[i] : NULL, err);
        if (code) {
            return code;
        }
    }
    call_texts(call, leases, count);
    return 0;
}

int request_check_fail(const char *lease, const char *error, int64_t retry_in_ms, const void *state,
                       size_t state_size, mr_error *err)
{
    int code;

    if (!error) {
        return wrong(err, "no error was given", "Say in a text why the job failed.");
    }
    if ((code = request_check_lease(lease, err)) ||
        (code = request_check_ms(retry_in_ms, "retry_in_ms", err))) {
        return code;
    }
    return request_check_bytes(state, state_size, "state", err);
}

int request_fail(struct call *call, const char *lease, int64_t id, const char *error,
                 int64_t retry_in_ms, int no_retry, const void *state, size_t state_size,
                 mr_error *err)
{
    int code;

    call_init(call, CALL_FAIL);
    if ((code = request_check_fail(lease, error, retry_in_ms, state, state_size, err))) {
        return code;
    }
    call_text(call, lease);
    call_number(call, id);
    call_text(call, error);
    call_ms(call, retry_in_ms);
    call_bool(call, !no_retry);
    call_bytes(call, state, state_size);
    return 0;
}

int request_finish(struct call *call, const char *lease, const char *outcomes, mr_error *err)
{
    int code;

    call_init(call, CALL_FINISH);
    if (!outcomes) {
        return wrong(err, "no outcomes were given",
                     "Give a JSON array of objects with id and outcome.");
    }
    if ((code = request_check_lease(lease, err))) {
        return code;
    }
    call_text(call, lease);
    call_text(call, outcomes);
    return 0;
}

int request_requeue(struct call *call, const char *lease, int64_t id, const char *changes,
                    const void *state, size_t state_size, const void *blob, size_t blob_size,
                    mr_error *err)
{
    int code;

    call_init(call, CALL_REQUEUE);
    if ((code = request_check_lease(lease, err)) ||
        (code = request_check_bytes(state, state_size, "state", err)) ||
        (code = request_check_bytes(blob, blob_size, "blob", err))) {
        return code;
    }
    call_text(call, lease);
    call_number(call, id);
    call_text(call, changes);
    call_bytes(call, state, state_size);
    call_bytes(call, blob, blob_size);
    return 0;
}

int request_release(struct call *call, const char *lease, const int64_t *ids, size_t count,
                    mr_error *err)
{
    int code;

    call_init(call, CALL_RELEASE);
    if ((code = request_check_lease(lease, err)) || (code = request_check_ids(ids, count, err))) {
        return code;
    }
    call_text(call, lease);
    call_numbers(call, ids, count);
    return 0;
}

int request_heartbeat(struct call *call, const char *lease, int64_t extend_ms, mr_error *err)
{
    int code;

    call_init(call, CALL_HEARTBEAT);
    if ((code = request_check_lease(lease, err)) ||
        (code = request_check_ms(extend_ms, "extend_ms", err))) {
        return code;
    }
    call_text(call, lease);
    call_ms(call, extend_ms);
    return 0;
}

int request_progress(struct call *call, const char *lease, int64_t id, double percent,
                     const char *note, mr_error *err)
{
    int code;

    call_init(call, CALL_PROGRESS);
    if ((code = request_check_lease(lease, err))) {
        return code;
    }
    call_text(call, lease);
    call_number(call, id);
    call_real(call, percent);
    call_text(call, note);
    return 0;
}

// ---- looking ----

int request_depth(struct call *call, const char *queue, mr_error *err)
{
    (void)err;
    call_init(call, CALL_DEPTH);
    call_text(call, queue ? queue : "default");
    return 0;
}

int request_job(struct call *call, int64_t id, mr_error *err)
{
    (void)err;
    call_init(call, CALL_JOB);
    call_number(call, id);
    return 0;
}

int request_outcome(struct call *call, int64_t id, mr_error *err)
{
    (void)err;
    call_init(call, CALL_OUTCOME);
    call_number(call, id);
    return 0;
}
