// SPDX-License-Identifier: PostgreSQL
//
// A stream of jobs: see ndjson.h.

#include "http/ndjson.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handler/trace.h"
#include "http/exchange.h"
#include "http/job_line.h"
#include "http/payloads.h"
#include "http/place.h"

struct stream {
    struct splitter splitter;
    bool taken;       // the line in `lines` was handed out: the next byte begins another
    struct buf chunk; // an array of jobs, without its end
    int64_t line;     // number of the last one
    int64_t first;    // line of the chunk
    int jobs;         // in the chunk
    int64_t enqueued; // committed
    bool flying;      // a chunk is under way
    bool over;        // the body has ended
    char traceparent[64];
    bool unknown;                   // what a queue wants with payloads is
    char queue[PAYLOADS_NAME_SIZE]; // the last one of which it is
};

// ---- lines ----

size_t splitter_take(struct splitter *splitter, const char *data, size_t size,
                     struct json_slice *ret_line)
{
    const char *end = memchr(data, '\n', size);
    size_t length = end ? (size_t)(end - data) : size;

    *ret_line = (struct json_slice){0};
    if (end && splitter->line.len == 0) { // whole, as most are: no copy
        *ret_line = (struct json_slice){data, length};
        return length + 1;
    }
    buf_add(&splitter->line, data, length);
    if (end) {
        *ret_line = (struct json_slice){buf_peek(&splitter->line), splitter->line.len};
    }
    return end ? length + 1 : length;
}

struct json_slice splitter_rest(const struct splitter *splitter)
{
    return (struct json_slice){buf_peek(&splitter->line), splitter->line.len};
}

bool splitter_is_blank(struct json_slice line)
{
    size_t i = 0;

    while (i < line.len && strchr(" \t\r", line.at[i]) && line.at[i]) {
        i++;
    }
    return i == line.len;
}

// ---- replies ----

static void stream_fail(struct exchange *exchange, const struct mr_error *err)
{
    struct stream *stream = exchange->work;
    char members[64];

    snprintf(members, sizeof(members), ",\"enqueued\":%" PRId64, stream->enqueued);
    exchange_fail_with(exchange, err, members);
}

static void reply(struct exchange *exchange)
{
    struct stream *stream = exchange->work;
    AUTO_BUF body;

    buf_init(&body, 64);
    buf_printf(&body, "{\"enqueued\":%" PRId64 "}", stream->enqueued);
    exchange_reply(exchange, 201, &body);
}

// ---- chunks ----

static void on_enqueued(void *arg, struct json_slice value)
{
    struct job_line job;

    if (job_line_read(value, &job, NULL) == 0) {
        job_line_count(job.queue, job.kind, arg);
    }
}

static void chunk_answered(void *arg, PGresult *result, const struct mr_error *err)
{
    struct exchange *exchange = arg;
    struct stream *stream = exchange->work;

    stream->flying = exchange->busy = false;
    if (err) {
        struct mr_error mine = *err;
        mr_error_prefix(&mine, "lines %" PRId64 " to %" PRId64, stream->first, stream->line);
        stream_fail(exchange, &mine);
        return;
    }
    stream->enqueued += PQntuples(result);
    json_each_element((struct json_slice){stream->chunk.data, stream->chunk.len}, on_enqueued,
                      exchange->http->tally, NULL);
    buf_done(&stream->chunk);
    stream->jobs = 0;
    if (stream->over) {
        ndjson_end(exchange);
    } else {
        exchange_resume(exchange);
    }
}

static int add_job(struct exchange *exchange, const struct job_line *job, const char *traceparent,
                   struct buf *out, struct mr_error *err)
{
    struct stream *stream = exchange->work;
    char queue[PAYLOADS_NAME_SIZE];
    bool unknown = false;
    int code = payloads_add_job(exchange, job, traceparent, out, queue, &unknown, err);

    if (unknown) {
        stream->unknown = true;
        memcpy(stream->queue, queue, sizeof(queue));
    }
    return code;
}

struct again {
    struct exchange *exchange;
    struct buf out;
    int jobs;
};

static void on_job_again(void *arg, struct json_slice value)
{
    struct again *again = arg;
    struct job_line job;

    buf_puts(&again->out, again->jobs++ ? "," : "[");
    if (job_line_read(value, &job, NULL) ||
        add_job(again->exchange, &job, NULL, &again->out, NULL)) {
        again->out.status = again->out.status ? again->out.status : MR_ENOMEM;
    }
}

static void send_chunk(struct exchange *exchange);

// What the queue wants is known now: the jobs of the chunk once more. They have their traces.
static void chunk_again(struct exchange *exchange)
{
    struct stream *stream = exchange->work;
    struct again again = {.exchange = exchange};

    stream->flying = exchange->busy = false;
    stream->unknown = false;
    buf_init(&again.out, CALL_SIZE_MAX);
    buf_puts(&stream->chunk, "]");
    json_each_element((struct json_slice){stream->chunk.data, stream->chunk.len}, on_job_again,
                      &again, NULL);
    buf_done(&stream->chunk);
    stream->chunk = again.out;
    send_chunk(exchange);
}

static void send_chunk(struct exchange *exchange)
{
    struct stream *stream = exchange->work;
    struct mr_error err;
    AUTO_CALL call;

    call_init(&call, CALL_API_ENQUEUE_JOBS);
    if (stream->unknown && stream->chunk.status == 0) {
        stream->flying = exchange->busy = true;
        payloads_ask(exchange, stream->queue, chunk_again);
        return;
    }
    buf_puts(&stream->chunk, "]");
    call_text_sized(&call, buf_peek(&stream->chunk), stream->chunk.len);
    int code = buf_status(&stream->chunk, &err);
    code = code ? code
                : database_call(exchange->site->db, DATABASE_COMMON, &call, chunk_answered,
                                exchange, &err);
    if (code) {
        stream_fail(exchange, &err);
        return;
    }
    stream->flying = exchange->busy = true;
}

static void take_line(struct exchange *exchange, struct json_slice line)
{
    struct stream *stream = exchange->work;
    struct job_line job;
    struct mr_error err;

    stream->line++;
    if (splitter_is_blank(line)) {
        return;
    }
    if (job_line_read(line, &job, &err) || place_check(exchange, &job, &err)) {
        mr_error_prefix(&err, "line %" PRId64, stream->line);
        stream_fail(exchange, &err);
        return;
    }
    stream->first = stream->jobs ? stream->first : stream->line;
    buf_puts(&stream->chunk, stream->jobs++ ? "," : "[");
    if (add_job(exchange, &job, stream->traceparent[0] ? stream->traceparent : NULL, &stream->chunk,
                &err)) {
        mr_error_prefix(&err, "line %" PRId64, stream->line);
        stream_fail(exchange, &err);
    }
}

// Whether no more lines may be taken before the chunk has gone.
static bool is_full(const struct stream *stream)
{
    return stream->jobs >= NDJSON_CHUNK_JOBS || stream->chunk.len >= NDJSON_CHUNK_BYTES;
}

static void line_too_long(struct exchange *exchange)
{
    const struct stream *stream = exchange->work;
    struct mr_error err;

    mr_error_set(&err, MR_ELIMIT, "line %" PRId64 " is longer than %lld bytes", stream->line + 1,
                 (long long)exchange->http->options.max_body);
    stream_fail(exchange, &err);
}

static size_t on_data(struct exchange *exchange, const char *data, size_t size)
{
    struct stream *stream = exchange->work;
    size_t taken = 0;

    while (taken < size && !stream->flying && !exchange_replied(exchange)) {
        struct json_slice line;
        if (stream->taken) {
            stream->splitter.line.len = 0;
            stream->taken = false;
        }
        taken += splitter_take(&stream->splitter, data + taken, size - taken, &line);
        if (stream->splitter.line.status) {
            line_too_long(exchange);
        } else if (line.at) {
            take_line(exchange, line);
            stream->taken = true;
        }
        if (!exchange_replied(exchange) && is_full(stream)) {
            send_chunk(exchange);
        }
    }
    return exchange_replied(exchange) ? size : taken;
}

// ---- beginning and end ----

static void on_ended(struct exchange *exchange, bool delivered)
{
    struct stream *stream = exchange->work;

    (void)delivered;
    buf_done(&stream->splitter.line);
    buf_done(&stream->chunk);
    free(stream);
}

// Of several shards a stream goes to one: a chunk is a transaction.
static bool stream_placed(struct exchange *exchange)
{
    struct mr_error err;

    if (!exchange->site) {
        exchange_refuse(exchange, 400, "a stream goes to one of several shards: say which",
                        "Give its number as shard=N in the query, or send arrays or single jobs.");
        return false;
    }
    if (site_check_open(exchange->site, &err)) {
        exchange_fail(exchange, &err);
        return false;
    }
    return true;
}

bool ndjson_begin(struct exchange *exchange)
{
    const char *traceparent = exchange_header(exchange, "traceparent");
    struct stream *stream = NULL;

    if (exchange_header(exchange, "Idempotency-Key")) {
        exchange_refuse(exchange, 400, "a stream cannot have an Idempotency-Key",
                        "It is committed chunk by chunk. Send an array instead.");
        return false;
    }
    if (sites_several(exchange->http) && (!place(exchange) || !stream_placed(exchange))) {
        return false;
    }
    stream = calloc(1, sizeof(*stream));
    if (!stream) {
        exchange_refuse(exchange, 503, "out of memory", NULL);
        return false;
    }
    buf_init(&stream->splitter.line, (size_t)exchange->http->options.max_body);
    buf_init(&stream->chunk, CALL_SIZE_MAX);
    if (trace_is_parent(traceparent)) {
        snprintf(stream->traceparent, sizeof(stream->traceparent), "%s", traceparent);
    }
    exchange->work = stream;
    exchange->ended = on_ended;
    exchange->data = on_data;
    return true;
}

void ndjson_end(struct exchange *exchange)
{
    struct stream *stream = exchange->work;

    stream->over = true;
    if (stream->flying) { // and comes back here
        return;
    }
    if (!stream->taken && stream->splitter.line.len > 0) {
        stream->taken = true;
        take_line(exchange, splitter_rest(&stream->splitter));
    }
    if (exchange_replied(exchange)) {
        return;
    }
    if (stream->jobs > 0) {
        send_chunk(exchange);
    } else {
        reply(exchange);
    }
}
