// SPDX-License-Identifier: PostgreSQL
//
// Whether the daemon is alive, and whether it can serve.

#include "http/api.h"
#include "http/exchange.h"

void api_healthz(struct exchange *exchange)
{
    static const char body[] = "{\"status\":\"alive\"}";

    exchange_reply_text(exchange, 200, body, sizeof(body) - 1);
}

void api_readyz(struct exchange *exchange)
{
    struct http *http = exchange->http;
    AUTO_BUF body;

    buf_init(&body, 64 * 1024);
    AUTO_BUF reasons;
    buf_init(&reasons, 60 * 1024);
    if (!sites_connected(http)) {
        buf_puts(&reasons, sites_several(http) ? "\"no shard can be reached\""
                                               : "\"the database cannot be reached\"");
    }
    if (http->stopping) {
        buf_printf(&reasons, "%s\"the daemon is stopping\"", reasons.len ? "," : "");
    }
    http->hooks.reasons(http->hooks.arg, &reasons);
    buf_printf(&body, "{\"status\":\"%s\",\"reasons\":[%s]", reasons.len ? "not ready" : "ready",
               buf_peek(&reasons));
    if (sites_several(http)) {
        buf_puts(&body, ",\"shards\":");
        sites_describe(http, &body);
    }
    buf_puts(&body, "}");
    exchange_reply(exchange, reasons.len ? 503 : 200, &body);
}
