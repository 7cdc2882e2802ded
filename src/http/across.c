// SPDX-License-Identifier: PostgreSQL
//
// Requests that are about all shards: see across.h.

#include "http/across.h"

#include <stdlib.h>

#include "base/str.h"
#include "client/parcel_json.h"
#include "http/exchange.h"
#include "http/merge.h"
#include "http/reply.h"

// What a shard has said.
struct share {
    struct exchange *exchange;
    struct site *site;
    bool skipped; // it was not asked: its page was the last
    struct buf text;
    struct mr_error err; // code 0: there is a text
};

struct across {
    across_shape_fn *shape;
    int left;
    size_t count;
    struct share shares[];
};

static void on_ended(struct exchange *exchange, bool delivered)
{
    struct across *across = exchange->work;

    (void)delivered;
    for (size_t i = 0; i < across->count; i++) {
        buf_done(&across->shares[i].text);
    }
    free(across);
}

static bool has_said(const struct share *share)
{
    return !share->skipped && share->err.code == 0;
}

// ---- the reply ----

// How each shard does; with what it said where `results`.
static void describe(const struct across *across, bool results, struct buf *out)
{
    buf_puts(out, "\"shards\":[");
    for (size_t i = 0; i < across->count; i++) {
        const struct share *share = &across->shares[i];
        buf_puts(out, i ? "," : "");
        site_describe(share->site, share->err.code ? &share->err : NULL, out);
        if (results && has_said(share)) {
            out->len--; // inside of its brace
            buf_puts(out, ",\"result\":");
            buf_add(out, buf_peek(&share->text), share->text.len);
            buf_puts(out, "}");
        }
    }
    buf_puts(out, "]");
}

static void fail(struct exchange *exchange, const struct mr_error *err)
{
    const struct across *across = exchange->work;
    AUTO_BUF members;

    buf_init(&members, REPLY_ERROR_MAX / 2);
    buf_puts(&members, ",");
    describe(across, exchange->route->place == PLACE_EACH, &members);
    exchange_fail_with(exchange, err, members.status ? NULL : buf_peek(&members));
}

static json_t *read_share(const struct share *share)
{
    json_t *value = json_loadb(buf_peek(&share->text), share->text.len, 0, NULL);

    merge_mark(value, site_number(share->site));
    return value;
}

static json_t *add_up(const struct across *across)
{
    json_t *all = NULL;

    for (size_t i = 0; i < across->count; i++) {
        json_t *one = has_said(&across->shares[i]) ? read_share(&across->shares[i]) : NULL;
        if (all && one) {
            merge_figures(all, one);
            json_decref(one);
        } else if (one) {
            all = one;
        }
    }
    return all;
}

static json_t *add_histories(const struct across *across)
{
    json_t *answers[SHARD_NUMBERS], *all = NULL;
    size_t count = 0;

    for (size_t i = 0; i < across->count; i++) {
        json_t *one = has_said(&across->shares[i]) ? read_share(&across->shares[i]) : NULL;
        if (one) {
            answers[count++] = one;
        }
    }
    all = merge_history(answers, count);
    for (size_t i = 0; i < count; i++) {
        json_decref(answers[i]);
    }
    return all;
}

static int add_figures(const struct exchange *exchange, struct buf *out, struct mr_error *err)
{
    bool history = exchange->route->call == CALL_API_HISTORY;
    json_t *all = history ? add_histories(exchange->work) : add_up(exchange->work);
    char *text = json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(15));

    json_decref(all);
    if (!text || text[0] != '{') {
        free(text);
        return mr_error_set(err, MR_EDATABASE, "the shards' answers cannot be added up");
    }
    buf_puts(out, text);
    out->len--; // its brace
    free(text);
    return 0;
}

static int add_pages(const struct exchange *exchange, struct buf *out, struct mr_error *err)
{
    static const struct {
        enum call_kind call;
        const char *by;
    } orders[] = {
        {CALL_API_LIST_JOBS, "created_at"},
        {CALL_API_LIST_DEAD, "died_at"},
        {CALL_API_LIST_BATCHES, "began_at"},
    };
    const struct across *across = exchange->work;
    struct merge_page pages[SHARD_NUMBERS];
    const char *by = NULL;
    size_t count = 0;

    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        by = orders[i].call == exchange->route->call ? orders[i].by : by;
    }
    for (size_t i = 0; i < across->count; i++) {
        const struct share *share = &across->shares[i];
        if (has_said(share)) {
            pages[count++] = (struct merge_page){site_number(share->site),
                                                 {buf_peek(&share->text), share->text.len}};
        }
    }
    buf_puts(out, "{");
    return merge_pages(pages, count, by, out, err);
}

// The failure that counts; NULL: none does.
static const struct mr_error *worst(const struct exchange *exchange)
{
    const struct across *across = exchange->work;
    const struct mr_error *unknown = NULL, *other = NULL;
    size_t said = 0;

    for (size_t i = 0; i < across->count; i++) {
        const struct share *share = &across->shares[i];
        said += has_said(share);
        if (share->err.code == MR_EUNKNOWN) {
            unknown = unknown ? unknown : &share->err;
        } else if (share->err.code) {
            other = other ? other : &share->err;
        }
    }
    if (said > 0) {
        return exchange->route->place == PLACE_EACH ? other : NULL;
    }
    return other ? other : unknown;
}

// An object without its end, to which the shards are added.
static int add_body(const struct exchange *exchange, struct buf *out, struct mr_error *err)
{
    int code = 0;

    if (exchange->route->place == PLACE_APART) {
        buf_puts(out, "{");
        return buf_status(out, err);
    }
    code = exchange->route->place == PLACE_LIST ? add_pages(exchange, out, err)
                                                : add_figures(exchange, out, err);
    buf_puts(out, ",");
    return code;
}

static void finish(struct exchange *exchange)
{
    const struct across *across = exchange->work;
    const struct mr_error *why = worst(exchange);
    struct mr_error err;
    AUTO_BUF body;

    buf_init(&body, CALL_SIZE_MAX);
    if (why) {
        fail(exchange, why);
    } else if (add_body(exchange, &body, &err)) {
        exchange_fail(exchange, &err);
    } else {
        describe(across, exchange->route->place == PLACE_APART, &body);
        buf_puts(&body, "}");
        exchange_reply(exchange, exchange->route->status, &body);
    }
}

// ---- the calls ----

static void take(struct share *share, const PGresult *result)
{
    if (PQntuples(result) == 0 || PQgetisnull(result, 0, 0)) {
        mr_error_set(&share->err, MR_EUNKNOWN, "there is no such thing");
        mr_error_sqlstate(&share->err, "MR003");
        return;
    }
    struct json_slice text = {PQgetvalue(result, 0, 0), (size_t)PQgetlength(result, 0, 0)};
    const struct across *across = share->exchange->work;
    if (across->shape) {
        across->shape(share->site, text, &share->text);
        buf_status(&share->text, &share->err);
    } else if (parcel_json_is_coded(text)) {
        parcel_json_show(text, &share->text, &share->err);
    } else {
        buf_add(&share->text, text.at, text.len);
        buf_status(&share->text, &share->err);
    }
}

static void answered(void *arg, PGresult *result, const struct mr_error *err)
{
    struct share *share = arg;
    struct exchange *exchange = share->exchange;
    struct across *across = exchange->work;

    if (err) {
        share->err = *err;
    } else {
        take(share, result);
    }
    if (--across->left == 0) {
        finish(exchange);
    }
}

static const char **after_of(struct target *target)
{
    for (size_t i = 0; i < target->query_count; i++) {
        if (str_equal(target->query[i].name, "after")) {
            return &target->query[i].value;
        }
    }
    return NULL;
}

// The parameters as they are for one shard: of a page that goes on, where it does so there. False
// where it does not.
static bool fill(struct share *share, struct params *params, size_t count, struct call *call)
{
    const char **after = after_of(&share->exchange->target);
    const char *all = after ? *after : NULL;
    char *mine = NULL;

    call_init(call, params->route->call);
    if (params->route->place == PLACE_LIST && after) {
        mine = merge_cursor(all, site_number(share->site));
        if (!mine) {
            share->skipped = true;
            return false;
        }
        *after = mine;
    }
    bool good = params_fill(params, count, call, &share->err) == 0;
    if (mine) {
        *after = all;
        free(mine);
    }
    return good;
}

static void ask(struct share *share, struct params *params, size_t count)
{
    struct across *across = share->exchange->work;
    AUTO_CALL call;

    if (fill(share, params, count, &call) && site_check(share->site, &share->err) == 0 &&
        database_call(share->site->db, DATABASE_COMMON, &call, answered, share, &share->err) == 0) {
        across->left++;
    }
}

static bool is_after(struct exchange *exchange)
{
    const char **after = after_of(&exchange->target);

    for (int i = 0; after && i < exchange->http->site_count; i++) {
        char *mine = merge_cursor(*after, site_number(&exchange->http->sites[i]));
        free(mine);
        if (mine) {
            return true;
        }
    }
    return !after;
}

void across_call(struct exchange *exchange, struct params *params, size_t count,
                 across_shape_fn *shape)
{
    size_t sites = (size_t)exchange->http->site_count;
    struct across *across = NULL;

    if (exchange->route->place == PLACE_LIST && !is_after(exchange)) {
        exchange_refuse(exchange, 400, "\"after\" is not what a page of all shards had as next",
                        "With shard=N it is that of a page of this shard.");
        return;
    }
    across = calloc(1, sizeof(*across) + sites * sizeof(across->shares[0]));
    if (!across) {
        exchange_refuse(exchange, 503, "out of memory", NULL);
        return;
    }
    across->shape = shape;
    across->count = sites;
    across->left = 1; // this
    exchange->work = across;
    exchange->ended = on_ended;
    for (size_t i = 0; i < sites; i++) {
        across->shares[i].exchange = exchange;
        across->shares[i].site = &exchange->http->sites[i];
        buf_init(&across->shares[i].text, CALL_SIZE_MAX);
        ask(&across->shares[i], params, count);
    }
    if (--across->left == 0) {
        finish(exchange);
    }
}
