// SPDX-License-Identifier: PostgreSQL
//
// Many jobs at once: a chunk is one statement.
//
// Jobs that differ in nothing but their args go as a binary jsonb[], which costs the least.
// Anything else goes as one array of objects, as enqueue_jobs() takes it. A text of the caller's
// is put into that array only if it is one JSON value: a job must not smuggle in another.

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/json_scan.h"
#include "client/mr_conn.h"
#include "client/request.h"

#define CHUNK_DEFAULT 10000
#define CHUNK_MAX     1000000

// ---- one job as an object ----

static void add_name(struct buf *out, const char *name)
{
    buf_printf(out, ",\"%s\":", name);
}

static void add_text(struct buf *out, const char *name, const char *text)
{
    if (text) {
        add_name(out, name);
        json_add_string(out, text);
    }
}

static void add_ms(struct buf *out, const char *name, int64_t ms)
{
    if (ms > 0) {
        add_name(out, name);
        buf_printf(out, "\"%lld ms\"", (long long)ms);
    }
}

static void add_bytes(struct buf *out, const char *name, const void *data, size_t size)
{
    if (data) {
        add_name(out, name);
        buf_puts(out, "\"");
        base64_add(out, data, size);
        buf_puts(out, "\"");
    }
}

static int add_json(struct buf *out, const char *name, const char *json, mr_error *err)
{
    if (!json) {
        return 0;
    }
    int code = json_check(json_slice_of(json), err);
    if (code) {
        mr_error_prefix(err, "%s", name);
        mr_error_hint(err, "Give one JSON value.");
        return code;
    }
    add_name(out, name);
    buf_puts(out, json);
    return 0;
}

static int add_job(struct buf *out, const mr_job_spec *job, mr_error *err)
{
    int code;

    buf_puts(out, "{\"kind\":");
    json_add_string(out, job->kind);
    if ((code = add_json(out, "args", job->args, err)) ||
        (code = add_json(out, "meta", job->meta, err))) {
        return code;
    }
    add_text(out, "queue", job->queue);
    add_name(out, "priority");
    buf_printf(out, "%d", job->priority);
    if (job->max_attempts) {
        add_name(out, "max_attempts");
        buf_printf(out, "%d", job->max_attempts);
    }
    add_text(out, "run_at", job->run_at);
    add_ms(out, "delay", job->delay_ms);
    add_ms(out, "timeout", job->timeout_ms);
    add_ms(out, "expires_in", job->expires_in_ms);
    add_text(out, "unique_key", job->unique_key);
    add_text(out, "ordering_key", job->ordering_key);
    add_text(out, "tenant", job->tenant);
    add_text(out, "ref", job->ref);
    add_bytes(out, "state", job->state, job->state_size);
    add_bytes(out, "blob", job->blob, job->blob_size);
    buf_puts(out, "}");
    return 0;
}

// ---- where jobs come from ----

// One job and many args, or many jobs.
struct source {
    mr_job_spec job;         // shared, read and checked
    const char *const *args; // NULL: many jobs
    const char *jobs;        // as the caller's header laid them out
    size_t stride;
    bool plain; // nothing but kind, queue, priority, run_at and args
};

static bool is_plain(const mr_job_spec *job)
{
    return !job->max_attempts && !job->delay_ms && !job->timeout_ms && !job->expires_in_ms &&
           !job->unique_key && !job->ordering_key && !job->tenant && !job->ref && !job->meta &&
           !job->state && !job->blob;
}

static int source_job(const struct source *source, size_t at, mr_job_spec *ret, mr_error *err)
{
    if (!source->args) {
        return request_read_job(
            (const mr_job_spec *)(const void *)(source->jobs + at * source->stride), ret, err);
    }
    *ret = source->job;
    ret->args = source->args[at];
    return 0;
}

static int call_many(struct call *call, const struct source *source, size_t from, size_t count)
{
    call_init(call, CALL_ENQUEUE_MANY);
    call_text(call, source->job.kind);
    call_json_array(call, source->args + from, count);
    call_text(call, source->job.queue);
    call_number(call, source->job.priority);
    call_text(call, source->job.run_at);
    return 0;
}

static int call_jobs(struct call *call, const struct source *source, size_t from, size_t count,
                     mr_error *err)
{
    AUTO_BUF text;
    int code = 0;

    call_init(call, CALL_ENQUEUE_JOBS);
    buf_init(&text, CALL_SIZE_MAX);
    buf_puts(&text, "[");
    for (size_t i = 0; i < count && text.status == 0; i++) {
        mr_job_spec job;
        buf_puts(&text, i ? "," : "");
        if ((code = source_job(source, from + i, &job, err)) ||
            (code = add_job(&text, &job, err))) {
            mr_error_prefix(err, "job %zu", from + i);
            return code;
        }
    }
    buf_puts(&text, "]");
    call_text(call, buf_peek(&text));
    call->store.status = text.status ? text.status : call->store.status;
    return call_status(call, err);
}

// ---- chunks ----

// Ids are in binary.
static int read_ids(const PGresult *result, size_t count, int64_t *ret_ids, mr_error *err)
{
    if ((size_t)PQntuples(result) != count) {
        return mr_error_set(err, MR_EINTERNAL, "%zu jobs went in, and %d ids came back", count,
                            PQntuples(result));
    }
    for (size_t i = 0; ret_ids && i < count; i++) {
        uint64_t network = 0;
        memcpy(&network, PQgetvalue(result, (int)i, 0), sizeof(network));
        ret_ids[i] = (int64_t)be64toh(network);
    }
    return 0;
}

static int send_chunk(mr_conn *conn, const struct source *source, size_t from, size_t count,
                      int64_t *ret_ids, mr_error *err)
{
    AUTO_CALL call;
    mr_reply *reply = NULL;
    int code = source->plain ? call_many(&call, source, from, count)
                             : call_jobs(&call, source, from, count, err);

    if (code || (code = mr__conn_ask(conn, &call, NULL, &reply, err))) {
        return code;
    }
    code = read_ids(reply->result, count, ret_ids, err);
    mr_reply_free(reply);
    return code;
}

static int send_all(mr_conn *conn, const struct source *source, size_t count, size_t chunk,
                    int64_t *ret_ids, size_t *done, mr_error *err)
{
    if (chunk > CHUNK_MAX) {
        mr_error_set(err, MR_EUSAGE, "a chunk of %zu jobs is too large", chunk);
        mr_error_hint(err, "Give at most %d, or 0 for %d.", CHUNK_MAX, CHUNK_DEFAULT);
        return MR_EUSAGE;
    }
    chunk = chunk ? chunk : CHUNK_DEFAULT;
    while (*done < count) {
        size_t next = count - *done < chunk ? count - *done : chunk;
        int code = send_chunk(conn, source, *done, next, ret_ids ? ret_ids + *done : NULL, err);
        if (code) {
            return code;
        }
        *done += next;
    }
    return 0;
}

static int no_pointer(const char *what, size_t at, mr_error *err)
{
    mr_error_set(err, MR_EUSAGE, "%s %zu is missing", what, at);
    mr_error_hint(err, "Give as many as `count` says, none of them NULL.");
    return MR_EUSAGE;
}

int mr_enqueue_many(mr_conn *conn, const mr_job_spec *job, const char *const *args, size_t count,
                    size_t chunk, int64_t *ret_ids, size_t *ret_done, mr_error *err)
{
    struct source source = {.args = args};
    size_t done = 0;
    int code = request_read_job(job, &source.job, err);

    for (size_t i = 0; code == 0 && i < count; i++) {
        code = args && args[i] ? 0 : no_pointer("args", i, err);
    }
    if (code == 0) {
        source.plain = is_plain(&source.job);
        code = send_all(conn, &source, count, chunk, ret_ids, &done, err);
    }
    if (ret_done) {
        *ret_done = done;
    }
    return code;
}

// The structs lie as far apart as the caller's header made them large.
static int read_stride(const mr_job_spec *jobs, size_t count, struct source *source, mr_error *err)
{
    if (count == 0) {
        return 0;
    }
    if (!jobs) {
        return no_pointer("job", 0, err);
    }
    source->jobs = (const char *)jobs;
    source->stride = jobs->size;
    return request_read_job(jobs, &source->job, err);
}

int mr_enqueue_jobs(mr_conn *conn, const mr_job_spec *jobs, size_t count, size_t chunk,
                    int64_t *ret_ids, size_t *ret_done, mr_error *err)
{
    struct source source = {0};
    size_t done = 0;
    int code = read_stride(jobs, count, &source, err);

    if (code == 0) {
        code = send_all(conn, &source, count, chunk, ret_ids, &done, err);
    }
    if (ret_done) {
        *ret_done = done;
    }
    return code;
}
