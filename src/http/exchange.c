// SPDX-License-Identifier: PostgreSQL
//
// One request and its reply: see exchange.h.

#include "http/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "http/hangup.h"
#include "http/reply.h"

struct exchange *exchange_new(struct http *http, const char *uri)
{
    struct exchange *exchange = calloc(1, sizeof(*exchange));

    if (!exchange) {
        return NULL;
    }
    exchange->http = http;
    exchange->site = sites_several(http) ? NULL : &http->sites[0];
    buf_init(&exchange->body, (size_t)http->options.max_body);
    buf_init(&exchange->packed, CALL_SIZE_MAX);
    buf_init(&exchange->unpacked, CALL_SIZE_MAX);
    target_read(uri, &exchange->target, &exchange->target_err);
    http->exchanges++;
    return exchange;
}

void exchange_free(struct exchange *exchange, bool delivered)
{
    exchange->http->exchanges--;
    if (exchange->ended) {
        exchange->ended(exchange, delivered);
    }
    hangup_forget(&exchange->hangup);
    if (exchange->response) {
        MHD_destroy_response(exchange->response);
    }
    target_done(&exchange->target);
    buf_done(&exchange->body);
    buf_done(&exchange->packed);
    buf_done(&exchange->unpacked);
    parcel_done(&exchange->parcel);
    free(exchange);
}

const char *exchange_header(const struct exchange *exchange, const char *name)
{
    return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

// ---- replies ----

bool exchange_replied(const struct exchange *exchange)
{
    return exchange->response;
}

void exchange_reply_with(struct exchange *exchange, unsigned status, struct MHD_Response *response)
{
    exchange->status = status;
    exchange->response = response;
    exchange_resume(exchange);
}

static void reply_json(struct exchange *exchange, unsigned status, struct MHD_Response *response)
{
    // without memory for a reply the connection is closed
    exchange->gone = exchange->gone || !response;
    if (response) {
        reply_headers(response, "application/json", NULL);
    }
    exchange_reply_with(exchange, status, response);
}

void exchange_reply_text(struct exchange *exchange, unsigned status, const char *json, size_t size)
{
    reply_json(exchange, status,
               MHD_create_response_from_buffer(size, (void *)json, MHD_RESPMEM_MUST_COPY));
}

void exchange_reply(struct exchange *exchange, unsigned status, struct buf *body)
{
    struct MHD_Response *response = NULL;

    if (body->status == 0 && body->data) {
        response = MHD_create_response_from_buffer(body->len, body->data, MHD_RESPMEM_MUST_FREE);
    }
    if (response) {
        *body = (struct buf){.max = body->max};
    }
    reply_json(exchange, status, response);
}

static void reply_error(struct exchange *exchange, unsigned status, const char *code,
                        const char *message, const char *hint, const char *members)
{
    AUTO_BUF body;

    buf_init(&body, REPLY_ERROR_MAX + (members ? strlen(members) : 0));
    reply_error_body(&body, code, message, hint, members);
    exchange_reply(exchange, status, &body);
    if (exchange->response && status == 429) {
        MHD_add_response_header(exchange->response, "Retry-After", "1");
    }
    if (exchange->response && status == 503) {
        MHD_add_response_header(exchange->response, "Retry-After", "2");
    }
}

static void log_defect(const struct mr_error *err)
{
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("sqlstate", err->sqlstate),
        LOG_TEXT_FIELD("detail", err->detail[0] ? err->detail : NULL),
    };

    log_put(LEVEL_ERROR, "http.failed", fields, 2, "a request failed: %s", err->message);
}

void exchange_fail_with(struct exchange *exchange, const struct mr_error *err, const char *members)
{
    const char *code = NULL;
    unsigned status = reply_status(err, &code);

    if (status == 500) {
        log_defect(err);
    }
    reply_error(exchange, status, code, err->message, err->hint, members);
}

void exchange_fail(struct exchange *exchange, const struct mr_error *err)
{
    exchange_fail_with(exchange, err, NULL);
}

void exchange_refuse(struct exchange *exchange, unsigned status, const char *message,
                     const char *hint)
{
    reply_error(exchange, status, reply_code(status), message, hint, NULL);
}

// ---- waiting ----

void exchange_suspend(struct exchange *exchange)
{
    exchange->suspended = true;
    MHD_suspend_connection(exchange->connection);
}

void exchange_resume(struct exchange *exchange)
{
    if (exchange->suspended) {
        hangup_forget(&exchange->hangup);
        exchange->suspended = false;
        MHD_resume_connection(exchange->connection);
        http_kick(exchange->http);
    }
}

static void on_left(void *arg)
{
    struct exchange *exchange = arg;

    exchange->gone = true;
    hangup_forget(&exchange->hangup);
    exchange->left(exchange);
}

void exchange_watch(struct exchange *exchange, void (*left)(struct exchange *exchange))
{
    exchange->left = left;
    hangup_watch(exchange->http->loop, exchange->visit->fd, on_left, exchange, &exchange->hangup);
}

void exchange_call(struct exchange *exchange, enum database_lane lane, const struct call *call,
                   database_answer_fn *answer)
{
    struct mr_error err;

    if (database_call(exchange->site->db, lane, call, answer, exchange, &err)) {
        exchange_fail(exchange, &err);
    }
}
