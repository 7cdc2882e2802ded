// SPDX-License-Identifier: PostgreSQL
//
// What a reply says: see reply.h.

#include "http/reply.h"

#include "base/json.h"
#include "base/str.h"

static const struct {
    unsigned status;
    const char *code;
} words[] = {
    {400, "bad_request"}, {401, "unauthorized"},       {403, "forbidden"},
    {404, "not_found"},   {405, "method_not_allowed"}, {409, "conflict"},
    {413, "too_large"},   {415, "unsupported_media"},  {429, "queue_full"},
    {503, "unavailable"}, {500, "internal"},
};

enum { WORD_COUNT = sizeof(words) / sizeof(words[0]) };

const char *reply_code(unsigned status)
{
    size_t i = 0;

    while (i < WORD_COUNT - 1 && words[i].status != status) {
        i++;
    }
    return words[i].code;
}

// By how the SQLSTATE begins.
static const struct {
    const char *sqlstate;
    unsigned status;
    const char *code; // NULL: the word for the status
} states[] = {
    {"22", 400, NULL},    {"MR001", 409, "lease_lost"},
    {"MR002", 429, NULL}, {"MR003", 404, NULL},
    {"MR004", 503, NULL}, {"MR005", 409, NULL},
    {"42501", 403, NULL}, {"57P0", 503, NULL},
    {"57014", 503, NULL}, {"53", 503, NULL},
    {"08", 503, NULL},    {"40", 503, NULL},
    {"55P03", 503, NULL}, {"25006", 503, NULL},
    {"54", 400, NULL},    {"55006", 409, NULL},
};

// What was not said by the server.
static const struct {
    int code;
    unsigned status;
} codes[] = {
    {MR_EINVALID, 400}, {MR_EUSAGE, 400}, {MR_ELIMIT, 413},  {MR_ECONNECT, 503},
    {MR_ETIMEOUT, 503}, {MR_ENOMEM, 503}, {MR_ESCHEMA, 503},
};

unsigned reply_status(const struct mr_error *err, const char **ret_code)
{
    unsigned status = 500;

    *ret_code = NULL;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        status = err->code == codes[i].code ? codes[i].status : status;
    }
    for (size_t i = 0; err->sqlstate[0] && i < sizeof(states) / sizeof(states[0]); i++) {
        if (str_starts(err->sqlstate, states[i].sqlstate)) {
            status = states[i].status;
            *ret_code = states[i].code;
            break;
        }
    }
    *ret_code = *ret_code ? *ret_code : reply_code(status);
    return status;
}

void reply_error_body(struct buf *out, const char *code, const char *message, const char *hint,
                      const char *members)
{
    buf_puts(out, "{\"error\":{\"code\":");
    json_add_string(out, code);
    buf_puts(out, ",\"message\":");
    json_add_string(out, message);
    if (!str_empty(hint)) {
        buf_puts(out, ",\"hint\":");
        json_add_string(out, hint);
    }
    buf_printf(out, "}%s}", members ? members : "");
}

void reply_headers(struct MHD_Response *response, const char *type, const char *policy)
{
    const struct {
        const char *name, *value;
    } rows[] = {
        {"Content-Type", type},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Content-Security-Policy", policy ? policy : "default-src 'none'; frame-ancestors 'none'"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        MHD_add_response_header(response, rows[i].name, rows[i].value);
    }
    if (!policy) {
        MHD_add_response_header(response, "Cache-Control", "no-store");
    }
}
