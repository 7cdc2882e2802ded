// SPDX-License-Identifier: PostgreSQL
//
// Looks at the head of a request: see admit.h.

#include "http/admit.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "http/auth.h"
#include "http/exchange.h"
#include "http/ndjson.h"
#include "http/route.h"

struct head {
    int lengths, encodings, hosts, authorizations, origins, keys;
    bool odd_name; // one that is no name, or is a name of framing with more behind it
    const char *length, *encoding;
    bool wrong_length;
};

// MHD takes a blank before the colon for a part of the name, and appends a folded line to it: what
// looks like "Transfer-Encoding chunked" to others would be some header here.
static bool is_odd(const char *name)
{
    static const char *const framing[] = {"Content-Length", "Transfer-Encoding"};
    static const char token[] = "!#$%&'*+-.^_`|~0123456789"
                                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

    for (size_t i = 0; i < sizeof(framing) / sizeof(framing[0]); i++) {
        size_t length = strlen(framing[i]);
        if (strncasecmp(name, framing[i], length) == 0 && name[length]) {
            return true;
        }
    }
    return !name[0] || name[strspn(name, token)];
}

static enum MHD_Result on_header(void *arg, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    struct head *head = arg;

    (void)kind;
    head->odd_name = head->odd_name || is_odd(name);
    if (strcasecmp(name, "Content-Length") == 0) {
        head->lengths++;
        head->length = value ? value : "";
    } else if (strcasecmp(name, "Transfer-Encoding") == 0) {
        head->encodings++;
        head->encoding = value ? value : "";
    } else if (strcasecmp(name, "Host") == 0) {
        head->hosts++;
    } else if (strcasecmp(name, "Authorization") == 0) {
        head->authorizations++;
    } else if (strcasecmp(name, "Origin") == 0) {
        head->origins++;
    } else if (strcasecmp(name, "Idempotency-Key") == 0) {
        head->keys++;
    }
    return MHD_YES;
}

// ---- the steps: each says whether it was all right, and has replied when it was not ----

// Two opinions about where a request ends are how one is smuggled past a proxy.
static bool check_framing(struct exchange *exchange, const struct head *head)
{
    bool good = !head->odd_name && head->lengths + head->encodings <= 1 &&
                (!head->encoding || strcasecmp(head->encoding, "chunked") == 0) &&
                (!head->length || (head->length[0] && strlen(head->length) < 19 &&
                                   strspn(head->length, "0123456789") == strlen(head->length)));

    if (!good) {
        exchange_refuse(exchange, 400, "it is not clear where the request ends",
                        "Send one Content-Length, or Transfer-Encoding: chunked, and headers "
                        "of one line each.");
    }
    return good;
}

static bool check_origin(struct exchange *exchange, const struct head *head)
{
    const char *host = exchange_header(exchange, "Host");

    if (head->hosts != 1) {
        exchange_refuse(exchange, 400, "the request has to have one Host", NULL);
        return false;
    }
    if (!auth_host_allowed(host, exchange->http->options.hosts)) {
        exchange_refuse(exchange, 403, "unknown host",
                        "Names by which the daemon may be asked for are listed as hosts in the "
                        "http section.");
        return false;
    }
    if (head->origins > 1 || !auth_origin_allowed(exchange_header(exchange, "Origin"), host)) {
        exchange_refuse(exchange, 403, "a page of another origin may not ask", NULL);
        return false;
    }
    return true;
}

static bool find_route(struct exchange *exchange, const char *method)
{
    char allow[ROUTE_ALLOW_MAX];

    if (exchange->target_err.code) {
        exchange_refuse(exchange, 400, exchange->target_err.message, NULL);
        return false;
    }
    exchange->route = route_find(method, &exchange->target, exchange->variables, allow);
    if (exchange->route) {
        return true;
    }
    if (allow[0]) {
        exchange_refuse(exchange, 405, "the method is not allowed here", allow);
        if (exchange->response) {
            MHD_add_response_header(exchange->response, "Allow", allow);
        }
    } else {
        exchange_refuse(exchange, 404, "there is no such path", "See /openapi.json.");
    }
    return false;
}

static bool refuse_unauthorized(struct exchange *exchange, const char *message)
{
    exchange_refuse(exchange, 401, message, "Send Authorization: Bearer TOKEN.");
    if (exchange->response) {
        MHD_add_response_header(exchange->response, "WWW-Authenticate",
                                "Bearer realm=\"millrace\"");
    }
    return false;
}

static bool check_token(struct exchange *exchange, const struct head *head)
{
    const struct http_options *options = &exchange->http->options;
    const char *header = exchange_header(exchange, "Authorization");
    const char *token = head->authorizations == 1 ? auth_bearer(header) : NULL;
    char message[96];

    if (exchange->route->right == RIGHT_NONE) {
        return true;
    }
    if (!token) {
        return refuse_unauthorized(exchange, header ? "the token is malformed" : "no token");
    }
    const struct auth_token *known = auth_find(options->tokens, options->token_count, token);
    if (!known) {
        return refuse_unauthorized(exchange, "unknown token");
    }
    if (!(known->rights & exchange->route->right)) {
        snprintf(message, sizeof(message), "this takes a token with the role %s",
                 auth_role_of(exchange->route->right));
        exchange_refuse(exchange, 403, message, NULL);
        return false;
    }
    return true;
}

// `type` and what may follow it: ; charset=utf-8
static bool is_type(const char *header, const char *type)
{
    size_t length = strlen(type);

    return header && strncasecmp(header, type, length) == 0 &&
           (header[length] == '\0' || header[length] == ';' || header[length] == ' ');
}

// JSON is UTF-8 whatever a charset says; one that says otherwise is a mistake of the sender's.
static bool is_utf8(const char *header)
{
    const char *charset = strcasestr(header, "charset=");

    if (!charset) {
        return true;
    }
    charset += strlen("charset=");
    charset += *charset == '"';
    return strncasecmp(charset, "utf-8", 5) == 0 && strchr("\"; ", charset[5]);
}

static bool has_body(const struct head *head)
{
    return head->encoding || (head->length && strspn(head->length, "0") != strlen(head->length));
}

static bool check_type(struct exchange *exchange, const struct head *head)
{
    const char *type = exchange_header(exchange, "Content-Type");
    const char *coding = exchange_header(exchange, "Content-Encoding");

    if (has_body(head) && coding && strcasecmp(coding, "identity") != 0) {
        exchange_refuse(exchange, 415, "the body must not be compressed",
                        "Send it without Content-Encoding.");
        return false;
    }
    if (!has_body(head) || !exchange->route->body) {
        return true;
    }
    if (!is_type(type, "application/json") &&
        !(exchange->route->stream && is_type(type, "application/x-ndjson"))) {
        exchange_refuse(exchange, 415, "the body has to be JSON",
                        "Send Content-Type: application/json.");
        return false;
    }
    if (!is_utf8(type)) {
        exchange_refuse(exchange, 415, "the body has to be UTF-8",
                        "Send Content-Type: application/json, without another charset.");
        return false;
    }
    return true;
}

// Of two keys one would be forgotten, and the jobs sent again under that one enqueued again.
static bool check_key(struct exchange *exchange, const struct head *head)
{
    if (head->keys > 1) {
        exchange_refuse(exchange, 400, "the request has more than one Idempotency-Key", NULL);
    }
    return head->keys <= 1;
}

static bool check_size(struct exchange *exchange, const struct head *head)
{
    int64_t size = 0;

    if (head->length && (!str_parse_int(head->length, 0, INT64_MAX, &size) ||
                         size > exchange->http->options.max_body)) {
        exchange_refuse(exchange, 413, ADMIT_TOO_LARGE, ADMIT_TOO_LARGE_HINT);
        return false;
    }
    return true;
}

// A body of a route that takes none is as good as one that is refused.
static enum admission after_refusal(const struct head *head)
{
    int64_t size = 0;
    bool small = !head->length ||
                 (str_parse_int(head->length, 0, INT64_MAX, &size) && size <= ADMIT_DISCARD_MAX);

    return small && !head->encoding ? ADMIT_REPLIED : ADMIT_CLOSE;
}

enum admission admit(struct exchange *exchange, const char *method)
{
    struct head head = {0};

    MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, on_header, &head);
    if (!check_framing(exchange, &head)) {
        return ADMIT_CLOSE;
    }
    if (!check_origin(exchange, &head) || !find_route(exchange, method) ||
        !check_token(exchange, &head) || !check_type(exchange, &head) ||
        !check_key(exchange, &head)) {
        return after_refusal(&head);
    }
    if (exchange->http->stopping) {
        exchange_refuse(exchange, 503, "the daemon is stopping", NULL);
        return ADMIT_CLOSE;
    }
    if (exchange->route->stream &&
        is_type(exchange_header(exchange, "Content-Type"), "application/x-ndjson")) {
        return ndjson_begin(exchange) ? ADMIT_STREAM : after_refusal(&head);
    }
    return check_size(exchange, &head) ? ADMIT_RUN : after_refusal(&head);
}
