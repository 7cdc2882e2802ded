// SPDX-License-Identifier: PostgreSQL
//
// A stream of jobs: see ndjson.h.

#include "http/ndjson.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handler/trace.h"
#include "http/chunk.h"
#include "http/exchange.h"
#include "http/place.h"

// What a reply says beside its error: the lines of a chunk, and each shard with its trouble.
#define MEMBERS_MAX (256 * 1024)

struct stream {
    struct splitter splitter;
    bool taken;   // the line in `lines` was handed out: the next byte begins another
    int64_t line; // number of the last one
    struct chunk *chunk;
    bool flying; // it is under way
    bool over;   // the body has ended
    char traceparent[64];
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
    const struct stream *stream = exchange->work;
    AUTO_BUF members;

    buf_init(&members, MEMBERS_MAX);
    buf_printf(&members, ",\"enqueued\":%" PRId64, chunk_enqueued(stream->chunk));
    if (!exchange->site) {
        buf_printf(&members, ",\"line\":%" PRId64, stream->line);
    }
    chunk_tell(stream->chunk, true, &members);
    exchange_fail_with(exchange, err, members.status ? NULL : buf_peek(&members));
}

static void reply(struct exchange *exchange)
{
    const struct stream *stream = exchange->work;
    AUTO_BUF body;

    buf_init(&body, MEMBERS_MAX);
    buf_printf(&body, "{\"enqueued\":%" PRId64, chunk_enqueued(stream->chunk));
    chunk_tell(stream->chunk, false, &body);
    buf_puts(&body, "}");
    exchange_reply(exchange, 201, &body);
}

// ---- chunks ----

static void chunk_over(struct exchange *exchange, const struct mr_error *err)
{
    struct stream *stream = exchange->work;

    stream->flying = exchange->busy = false;
    if (err) {
        stream_fail(exchange, err);
    } else if (stream->over) {
        ndjson_end(exchange);
    } else {
        exchange_resume(exchange);
    }
}

static void chunk_asked(struct exchange *exchange)
{
    const struct stream *stream = exchange->work;

    chunk_go_on(stream->chunk);
}

static void send_chunk(struct exchange *exchange)
{
    struct stream *stream = exchange->work;

    stream->flying = exchange->busy = true;
    chunk_send(stream->chunk);
}

static void take_line(struct exchange *exchange, struct json_slice line)
{
    struct stream *stream = exchange->work;
    struct mr_error err;

    stream->line++;
    if (splitter_is_blank(line)) {
        return;
    }
    if (chunk_add(stream->chunk, line, stream->traceparent[0] ? stream->traceparent : NULL,
                  stream->line, &err)) {
        mr_error_prefix(&err, "line %" PRId64, stream->line);
        stream_fail(exchange, &err);
    }
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
        if (!exchange_replied(exchange) && chunk_is_full(stream->chunk)) {
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
    chunk_free(stream->chunk);
    free(stream);
}

// Where it has chosen a shard, that one has to take jobs.
static bool stream_placed(struct exchange *exchange)
{
    struct mr_error err;

    if (exchange->site && site_check_open(exchange->site, &err)) {
        exchange_fail(exchange, &err);
        return false;
    }
    return true;
}

static struct stream *stream_new(struct exchange *exchange)
{
    static const struct chunk_hooks hooks = {.over = chunk_over, .asked = chunk_asked};
    const char *traceparent = exchange_header(exchange, "traceparent");
    struct stream *stream = calloc(1, sizeof(*stream));

    if (!stream) {
        return NULL;
    }
    stream->chunk = chunk_new(exchange, &hooks);
    if (!stream->chunk) {
        free(stream);
        return NULL;
    }
    buf_init(&stream->splitter.line, (size_t)exchange->http->options.max_body);
    if (trace_is_parent(traceparent)) {
        snprintf(stream->traceparent, sizeof(stream->traceparent), "%s", traceparent);
    }
    return stream;
}

bool ndjson_begin(struct exchange *exchange)
{
    struct stream *stream = NULL;

    if (exchange_header(exchange, "Idempotency-Key")) {
        exchange_refuse(exchange, 400, "a stream cannot have an Idempotency-Key",
                        "It is committed chunk by chunk. Send an array instead.");
        return false;
    }
    if (sites_several(exchange->http) && (!place(exchange) || !stream_placed(exchange))) {
        return false;
    }
    stream = stream_new(exchange);
    if (!stream) {
        exchange_refuse(exchange, 503, "out of memory", NULL);
        return false;
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
    if (!chunk_is_empty(stream->chunk)) {
        send_chunk(exchange);
    } else {
        reply(exchange);
    }
}
