// SPDX-License-Identifier: PostgreSQL
//
// POST /api/v1/dead/replay: one dead letter, some, or what a filter says.

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/str.h"
#include "http/across.h"
#include "http/api.h"
#include "http/exchange.h"
#include "http/params.h"

#define IDS_MAX 1000

// Many replays, each a transaction of its own, answered together.
struct replays {
    int left;
    int64_t replayed;
    struct mr_error err; // of the first that failed
};

static void on_ended(struct exchange *exchange, bool delivered)
{
    (void)delivered;
    free(exchange->work);
}

static bool is_trouble(const struct mr_error *err)
{
    return err->code == MR_ECONNECT || err->code == MR_ETIMEOUT;
}

// That of a shard which cannot be asked counts more than an id that is no dead letter.
static void note(struct replays *replays, const struct mr_error *err)
{
    if (!replays->err.code || (is_trouble(err) && !is_trouble(&replays->err))) {
        replays->err = *err;
    }
}

// Ids that are no dead letters any more are nobody's mistake: they are not counted. Nothing at all
// is one.
static void finish(struct exchange *exchange)
{
    const struct replays *replays = exchange->work;
    AUTO_BUF body;

    buf_init(&body, 64);
    if (sites_several(exchange->http) && is_trouble(&replays->err)) {
        buf_printf(&body, ",\"replayed\":%" PRId64, replays->replayed);
        exchange_fail_with(exchange, &replays->err, buf_peek(&body));
        return;
    }
    if (replays->replayed == 0 && replays->err.code) {
        exchange_fail(exchange, &replays->err);
        return;
    }
    buf_printf(&body, "{\"replayed\":%" PRId64 "}", replays->replayed);
    exchange_reply(exchange, 200, &body);
}

static void answered(void *arg, PGresult *result, const struct mr_error *err)
{
    struct exchange *exchange = arg;
    struct replays *replays = exchange->work;

    (void)result;
    replays->replayed += !err;
    if (err) {
        note(replays, err);
    }
    if (--replays->left == 0) {
        finish(exchange);
    }
}

// Of several shards, the one that the id names.
static int find_site(struct http *http, int64_t id, struct site **ret, struct mr_error *err)
{
    int number = shard_of_id(id);

    if (!sites_several(http)) {
        *ret = &http->sites[0];
        return 0;
    }
    if (number < 0) {
        mr_error_set(err, MR_EUNKNOWN, "job %" PRId64 " does not exist", id);
        mr_error_sqlstate(err, "MR003");
        return MR_EUNKNOWN;
    }
    int code = sites_find(http, number, ret, err);
    return code ? code : site_check(*ret, err);
}

static void replay_one(struct exchange *exchange, int64_t id)
{
    struct replays *replays = exchange->work;
    struct site *site = NULL;
    struct mr_error err;
    AUTO_CALL call;

    call_init(&call, CALL_API_REPLAY);
    call_number(&call, id);
    replays->left++;
    int code = find_site(exchange->http, id, &site, &err);
    code = code ? code : database_call(site->db, DATABASE_COMMON, &call, answered, exchange, &err);
    if (code) {
        note(replays, &err);
        replays->left--;
    }
}

// False when it is no array of a few whole numbers.
static bool replay_ids(struct exchange *exchange, struct json_slice ids)
{
    json_t *list = json_loadb(ids.at, ids.len, JSON_DECODE_ANY, NULL);
    bool good = json_is_array(list) && json_array_size(list) <= IDS_MAX;
    size_t i = 0;
    json_t *id = NULL;

    json_array_foreach(list, i, id)
    {
        good = good && json_is_integer(id);
    }
    for (i = 0; good && i < json_array_size(list); i++) {
        replay_one(exchange, json_integer_value(json_array_get(list, i)));
    }
    json_decref(list);
    return good;
}

static void replay_some(struct exchange *exchange, const struct params *params)
{
    struct json_slice ids = params_member(params, "ids");
    struct replays *replays = calloc(1, sizeof(*replays));
    struct mr_error err;
    int64_t id = 0;

    if (!replays) {
        exchange_refuse(exchange, 503, "out of memory", NULL);
        return;
    }
    exchange->work = replays;
    exchange->ended = on_ended;
    if (!ids.at && params_number(params, "id", 0, INT64_MAX, 0, &id, &err)) {
        exchange_fail(exchange, &err);
        return;
    }
    if (!ids.at) {
        replay_one(exchange, id);
    } else if (!replay_ids(exchange, ids)) {
        exchange_refuse(exchange, 400, "\"ids\" has to be an array of at most 1000 whole numbers",
                        NULL);
        return;
    }
    if (replays->left == 0) {
        finish(exchange);
    }
}

void api_replay(struct exchange *exchange)
{
    struct params params;
    struct mr_error err;
    AUTO_CALL call;

    call_init(&call, exchange->route->call);
    if (!api_params(exchange, &params)) {
        return;
    }
    int ways = (params_member(&params, "id").at != NULL) +
               (params_member(&params, "ids").at != NULL) +
               (params_member(&params, "queue").at != NULL);
    if (ways != 1) {
        exchange_refuse(exchange, 400, "say which: one of id, ids and queue", NULL);
        return;
    }
    if (!params_member(&params, "queue").at) {
        replay_some(exchange, &params);
        return;
    }
    if (!exchange->site) {
        across_call(exchange, &params, 4, NULL);
        return;
    }
    if (params_fill(&params, 4, &call, &err)) {
        exchange_fail(exchange, &err);
        return;
    }
    exchange_call(exchange, DATABASE_COMMON, &call, api_answer);
}
