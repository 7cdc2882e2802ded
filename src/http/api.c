// SPDX-License-Identifier: PostgreSQL
//
// Routes that are one call of the database: see api.h.

#include "http/api.h"

#include "http/across.h"
#include "http/exchange.h"
#include "http/params.h"
#include "http/payloads.h"

bool api_params(struct exchange *exchange, struct params *ret)
{
    struct mr_error err;

    *ret = (struct params){
        .route = exchange->route,
        .variables = exchange->variables,
        .target = &exchange->target,
        .body = {buf_peek(&exchange->body), exchange->body.len},
    };
    if (params_read(ret, &err)) {
        exchange_fail(exchange, &err);
        return false;
    }
    return true;
}

// What is told of jobs, their payloads decoded.
static void reply_shown(struct exchange *exchange, unsigned status, struct json_slice text)
{
    struct mr_error err;
    AUTO_BUF body;

    buf_init(&body, CALL_SIZE_MAX);
    if (parcel_json_show(text, &body, &err)) {
        exchange_fail(exchange, &err);
    } else {
        exchange_reply(exchange, status, &body);
    }
}

void api_answer(void *arg, PGresult *result, const struct mr_error *err)
{
    struct exchange *exchange = arg;

    if (err) {
        exchange_fail(exchange, err);
        return;
    }
    if (PQntuples(result) == 0 || PQgetisnull(result, 0, 0)) {
        exchange_refuse(exchange, 404, "there is no such thing", NULL);
        return;
    }
    unsigned status = exchange->route->status ? exchange->route->status : 200;
    struct json_slice text = {PQgetvalue(result, 0, 0), (size_t)PQgetlength(result, 0, 0)};
    if (parcel_json_is_coded(text)) {
        reply_shown(exchange, status, text);
    } else {
        exchange_reply_text(exchange, status, text.at, text.len);
    }
}

void api_call(struct exchange *exchange)
{
    struct params params;
    struct mr_error err;
    AUTO_CALL call;

    call_init(&call, exchange->route->call);
    if (!api_params(exchange, &params)) {
        return;
    }
    if (!exchange->site) {
        across_call(exchange, &params, ROUTE_PARAMS_MAX, NULL);
        return;
    }
    if (params_fill(&params, ROUTE_PARAMS_MAX, &call, &err)) {
        exchange_fail(exchange, &err);
        return;
    }
    exchange_call(exchange, DATABASE_COMMON, &call, api_answer);
}

void api_settle(struct exchange *exchange)
{
    payloads_code_body(exchange, api_call);
}
