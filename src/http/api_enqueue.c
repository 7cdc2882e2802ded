// SPDX-License-Identifier: PostgreSQL
//
// POST /api/v1/jobs: one job or an array of them. A stream of them is ndjson.c's.

#include <endian.h>
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "handler/trace.h"
#include "http/api.h"
#include "http/enqueue_group.h"
#include "http/exchange.h"
#include "http/job_line.h"
#include "http/ndjson.h"
#include "http/payloads.h"
#include "http/place.h"

#define KEY_MAX 255

// ---- many ----

static void on_enqueued(void *arg, struct json_slice value)
{
    struct job_line job;

    if (job_line_read(value, &job, NULL) == 0) {
        job_line_count(job.queue, job.kind, arg);
    }
}

static void many_answered(void *arg, PGresult *result, const struct mr_error *err)
{
    struct exchange *exchange = arg;
    AUTO_BUF body;

    buf_init(&body, CALL_SIZE_MAX);
    if (err) {
        exchange_fail(exchange, err);
        return;
    }
    json_each_element((struct json_slice){exchange->body.data, exchange->body.len}, on_enqueued,
                      exchange->http->tally, NULL);
    buf_puts(&body, "{\"ids\":[");
    for (int row = 0; row < PQntuples(result); row++) {
        uint64_t id;
        memcpy(&id, PQgetvalue(result, row, 0), sizeof(id));
        buf_printf(&body, "%s%" PRIu64, row ? "," : "", be64toh(id));
    }
    buf_puts(&body, "]}");
    exchange_reply(exchange, 201, &body);
}

// `one`: a reply to a single job has its id, too.
static void send_many(struct exchange *exchange, const char *key, const struct buf *jobs, bool one)
{
    AUTO_CALL call;

    call_init(&call, key ? CALL_API_ENQUEUE_ONCE : CALL_API_ENQUEUE_JOBS);
    if (key) {
        call_text(&call, key);
    }
    call_text_sized(&call, buf_peek(jobs), jobs->len);
    if (key) {
        call_bool(&call, one);
    }
    exchange_call(exchange, DATABASE_COMMON, &call, key ? api_answer : many_answered);
}

struct many {
    struct exchange *exchange;
    const char *traceparent;
    struct buf *out;
    size_t count;
    struct mr_error *err;
    int code;
    bool unknown;                   // what a queue wants with payloads is
    char queue[PAYLOADS_NAME_SIZE]; // that one
};

static void on_element(void *arg, struct json_slice value)
{
    struct many *many = arg;
    struct job_line job;

    if (many->code || many->unknown) {
        return;
    }
    buf_puts(many->out, many->count++ ? "," : "");
    if ((many->code = job_line_read(value, &job, many->err)) ||
        (many->code = payloads_add_job(many->exchange, &job, many->traceparent, many->out,
                                       many->queue, &many->unknown, many->err))) {
        mr_error_prefix(many->err, "job %zu", many->count);
    }
}

static void many_shipped(struct exchange *exchange)
{
    send_many(exchange, exchange_header(exchange, "Idempotency-Key"), &exchange->packed, false);
}

static void enqueue_many(struct exchange *exchange, struct json_slice body, const char *key,
                         const char *traceparent)
{
    AUTO_BUF jobs;
    struct mr_error err;
    struct many many = {
        .exchange = exchange, .traceparent = traceparent, .out = &jobs, .err = &err};

    buf_init(&jobs, CALL_SIZE_MAX);
    buf_puts(&jobs, "[");
    int code = json_each_element(body, on_element, &many, &err);
    code = code ? code : many.code;
    buf_puts(&jobs, "]");
    code = code ? code : buf_status(&jobs, &err);
    if (code) {
        exchange_fail(exchange, &err);
    } else if (many.unknown) { // and comes back here
        parcel_done(&exchange->parcel);
        payloads_ask(exchange, many.queue, api_enqueue);
    } else if (!payloads_ships(exchange, &jobs, many_shipped, api_enqueue)) {
        send_many(exchange, key, &jobs, false);
    }
}

// ---- one ----

static void enqueue_once(struct exchange *exchange, const char *key)
{
    AUTO_BUF array;

    buf_init(&array, CALL_SIZE_MAX);
    buf_printf(&array, "[%s]", buf_peek(&exchange->body));
    send_many(exchange, key, &array, true);
}

// The body is what is enqueued.
static void send_one(struct exchange *exchange, const struct job_line *job)
{
    const char *key = exchange_header(exchange, "Idempotency-Key");

    if (key) {
        enqueue_once(exchange, key);
    } else {
        exchange->kind = job->kind; // they point into the body
        exchange->queue = job->queue;
        enqueue_group_add(exchange->site->group, exchange, job->alone);
    }
}

// The body becomes the job with its trace, and with its payload as the queue wants it.
static void one_packed(struct exchange *exchange)
{
    struct job_line job;
    struct mr_error err;

    payloads_take_packed(exchange);
    struct json_slice body = {exchange->body.data, exchange->body.len};
    if (job_line_read(body, &job, &err)) {
        exchange_fail(exchange, &err);
    } else {
        send_one(exchange, &job);
    }
}

static void complete(struct exchange *exchange, const char *traceparent, const struct job_line *job)
{
    char queue[PAYLOADS_NAME_SIZE];
    struct mr_error err;
    bool unknown;
    AUTO_BUF text;

    buf_init(&text, CALL_SIZE_MAX);
    if (payloads_add_job(exchange, job, traceparent, &text, queue, &unknown, &err)) {
        exchange_fail(exchange, &err);
    } else if (!payloads_ships(exchange, &text, one_packed, api_enqueue)) {
        exchange->packed = text;
        buf_init(&text, CALL_SIZE_MAX);
        one_packed(exchange);
    }
}

static void enqueue_one(struct exchange *exchange, struct json_slice body, const char *traceparent)
{
    struct job_line job;
    struct mr_error err;
    char queue[PAYLOADS_NAME_SIZE];
    bool unknown = false;
    int code = job_line_read(body, &job, &err);
    bool codes = code == 0 && payloads_codes(exchange, &job, queue, &unknown);

    if (code) {
        exchange_fail(exchange, &err);
    } else if (unknown) { // and comes back here
        payloads_ask(exchange, queue, api_enqueue);
    } else if (traceparent || codes) {
        complete(exchange, traceparent, &job);
    } else {
        send_one(exchange, &job);
    }
}

// ---- the whole ----

static bool read_key(struct exchange *exchange, const char **ret)
{
    *ret = exchange_header(exchange, "Idempotency-Key");
    if (*ret && (str_empty(*ret) || strlen(*ret) > KEY_MAX)) {
        exchange_refuse(exchange, 400, "the Idempotency-Key has to have 1 to 255 bytes", NULL);
        return false;
    }
    return true;
}

void api_enqueue(struct exchange *exchange)
{
    struct json_slice body = {buf_peek(&exchange->body), exchange->body.len};
    const char *traceparent = exchange_header(exchange, "traceparent");
    const char *key = NULL;

    if (exchange->data) {
        ndjson_end(exchange);
        return;
    }
    if (!read_key(exchange, &key) || !place_jobs(exchange, key)) {
        return;
    }
    traceparent = trace_is_parent(traceparent) ? traceparent : NULL;
    if (body.at[strspn(body.at, " \t\r\n")] == '[') {
        enqueue_many(exchange, body, key, traceparent);
    } else {
        enqueue_one(exchange, body, traceparent);
    }
}
