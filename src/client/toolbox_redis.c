// SPDX-License-Identifier: PostgreSQL
//
// The toolbox on Redis. See toolbox.h, and docs/redis.md for the keys.
//
// An entry of the cache is a string with an end, a limiter a sorted set, a lock a string with an
// end. All that one call touches has one hash tag, so that it is in one slot of a cluster. A lock
// of a session cannot be had: a lease that is bound to a connection would have to be renewed while
// no call is made.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/like.h"
#include "base/str.h"
#include "client/mr_conn.h"
#include "client/toolbox.h"
#include "client/toolbox_check.h"
#include "store/redis_link.h"

#define CACHE_PREFIX "mr:{cache}:"
#define LOCK_PREFIX  "mr:{lock}:name:"
#define FENCE_KEY    "mr:{lock}:fence"
#define RATE_PREFIX  "mr:rate:"

// The longest key of ours: what a caller may give, with a prefix and a suffix.
#define KEY_SIZE (16384 + 64)
// A pattern for SCAN may have a backslash before each byte.
#define MATCH_SIZE (2 * KEY_SIZE)
// For all keys of one call.
#define KEYS_SIZE ((size_t)KEY_SIZE * 10000)
// Keys that Redis looks at in one go.
#define SCAN_COUNT "1000"

enum { NUMBER_SIZE = 24 };

static int out_of_memory(mr_error *err)
{
    mr_error_set(err, MR_ENOMEM, "out of memory");
    return MR_ENOMEM;
}

// ---- asking ----

static int ask(mr_conn *conn, int argc, const char *const *argv, int type, redisReply **ret,
               mr_error *err)
{
    struct redis_link *link = mr__conn_redis(conn);
    redisReply *reply = NULL;
    int code = redis_link_ask(link, argc, argv, NULL, &reply, err);

    if (code) {
        return code;
    }
    if (reply->type != type && reply->type != REDIS_REPLY_NIL) {
        freeReplyObject(reply);
        redis_link_strange(link, err);
        return MR_EDATABASE;
    }
    *ret = reply;
    return 0;
}

static int ask_number(mr_conn *conn, int argc, const char *const *argv, int64_t *ret, mr_error *err)
{
    redisReply *reply = NULL;
    int code = ask(conn, argc, argv, REDIS_REPLY_INTEGER, &reply, err);

    if (code == 0) {
        *ret = reply->integer;
        freeReplyObject(reply);
    }
    return code;
}

// A whole number, which a script writes as text where it may be large.
static bool read_number(const redisReply *reply, int64_t *ret)
{
    if (reply->type == REDIS_REPLY_INTEGER) {
        *ret = reply->integer;
        return true;
    }
    return reply->type == REDIS_REPLY_STRING &&
           str_parse_int(reply->str, INT64_MIN, INT64_MAX, ret);
}

static bool read_numbers(const redisReply *reply, int64_t *ret, size_t count)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!read_number(reply->element[i], &ret[i])) {
            return false;
        }
    }
    return true;
}

static const char *number_text(int64_t number, char ret[NUMBER_SIZE])
{
    snprintf(ret, NUMBER_SIZE, "%lld", (long long)number);
    return ret;
}

// A key of ours, checked; the caller frees it.
static int make_key(const char *prefix, const char *what, const char *text, const char *suffix,
                    char **ret, mr_error *err)
{
    int code = toolbox_check_key(what, text, err);

    if (code) {
        return code;
    }
    return asprintf(ret, "%s%s%s", prefix, text, suffix) < 0 ? out_of_memory(err) : 0;
}

// ---- cache: one key ----

static int cache_set(mr_conn *conn, const char *key, const char *value, int64_t ttl_ms,
                     mr_error *err)
{
    char ttl[NUMBER_SIZE];
    char *name = NULL;
    redisReply *reply = NULL;
    int code = make_key(CACHE_PREFIX, "key", key, "", &name, err);

    if (code == 0 && (code = toolbox_check_value(value, err)) == 0 &&
        (code = toolbox_check_ttl(ttl_ms, err)) == 0) {
        const char *const argv[] = {"SET", name, value, "PX", number_text(ttl_ms, ttl)};
        code = ask(conn, 5, argv, REDIS_REPLY_STATUS, &reply, err);
    }
    freeReplyObject(reply);
    free(name);
    return code;
}

// NULL for nil; false: out of memory.
static bool copy_value(const redisReply *reply, char **ret)
{
    *ret = reply->type == REDIS_REPLY_STRING ? strdup(reply->str) : NULL;
    return *ret || reply->type != REDIS_REPLY_STRING;
}

static int cache_get(mr_conn *conn, const char *key, char **ret, mr_error *err)
{
    char *name = NULL, *value = NULL;
    redisReply *reply = NULL;
    int code = make_key(CACHE_PREFIX, "key", key, "", &name, err);

    if (code == 0) {
        const char *const argv[] = {"GET", name};
        code = ask(conn, 2, argv, REDIS_REPLY_STRING, &reply, err);
    }
    if (code == 0 && !copy_value(reply, &value)) {
        code = out_of_memory(err);
    }
    if (code == 0) {
        *ret = value;
    }
    freeReplyObject(reply);
    free(name);
    return code;
}

static int cache_delete(mr_conn *conn, const char *key, bool *ret, mr_error *err)
{
    char *name = NULL;
    int64_t deleted = 0;
    int code = make_key(CACHE_PREFIX, "key", key, "", &name, err);

    if (code == 0) {
        const char *const argv[] = {"UNLINK", name};
        code = ask_number(conn, 2, argv, &deleted, err);
    }
    if (code == 0) {
        *ret = deleted > 0;
    }
    free(name);
    return code;
}

// ---- cache: many keys ----

// A key that was asked for before, with its place.
struct asked {
    const char *key;
    size_t place;
};

static int compare_asked(const void *a, const void *b)
{
    const struct asked *left = a, *right = b;
    int order = strcmp(left->key, right->key);

    return order ? order : (left->place > right->place) - (left->place < right->place);
}

// Frees the value of every key at all places but its first.
static int keep_first(const char *const *keys, size_t count, char **values, mr_error *err)
{
    struct asked *asked = calloc(count, sizeof(*asked));

    if (!asked) {
        return out_of_memory(err);
    }
    for (size_t i = 0; i < count; i++) {
        asked[i] = (struct asked){keys[i], i};
    }
    qsort(asked, count, sizeof(*asked), compare_asked);
    for (size_t i = 1; i < count; i++) {
        if (str_equal(asked[i].key, asked[i - 1].key)) {
            free(values[asked[i].place]);
            values[asked[i].place] = NULL;
        }
    }
    free(asked);
    return 0;
}

static int take_values(const redisReply *reply, size_t count, char **ret, mr_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!copy_value(reply->element[i], &ret[i])) {
            return out_of_memory(err);
        }
    }
    return 0;
}

// MGET and its keys, which lie one behind the other in `store`.
static int list_keys(const char *const *keys, size_t count, struct buf *store, const char ***ret,
                     mr_error *err)
{
    for (size_t i = 0; i < count; i++) {
        int code = toolbox_check_key("key", keys[i], err);
        if (code) {
            return code;
        }
        buf_puts(store, CACHE_PREFIX);
        buf_add(store, keys[i], strlen(keys[i]) + 1);
    }
    int code = buf_status(store, err);
    const char **argv = code ? NULL : calloc(count + 1, sizeof(*argv));
    if (!argv) {
        return code ? code : out_of_memory(err);
    }
    const char *at = buf_peek(store);
    argv[0] = "MGET";
    for (size_t i = 1; i <= count; i++) {
        argv[i] = at;
        at += strlen(at) + 1;
    }
    *ret = argv;
    return 0;
}

static int cache_get_many(mr_conn *conn, const char *const *keys, size_t count, char **ret,
                          mr_error *err)
{
    AUTO_BUF store;
    const char **argv = NULL;
    redisReply *reply = NULL;
    int code = toolbox_check_count(count, err);

    buf_init(&store, KEYS_SIZE);
    if (code == 0 && (code = list_keys(keys, count, &store, &argv, err)) == 0) {
        code = ask(conn, (int)count + 1, argv, REDIS_REPLY_ARRAY, &reply, err);
    }
    if (code == 0 && reply->elements != count) {
        code = redis_link_strange(mr__conn_redis(conn), err);
    }
    if (code == 0 && (code = take_values(reply, count, ret, err)) == 0) {
        code = keep_first(keys, count, ret, err);
    }
    freeReplyObject(reply);
    free(argv);
    return code;
}

// ---- cache: all keys ----

// What is done with a page of keys; argv[0] is free for a command.
typedef int page_fn(mr_conn *conn, const char **argv, int argc, void *arg, mr_error *err);

// The keys of a page that are like the pattern (NULL: all), behind argv[0].
static int pick_keys(const redisReply *keys, const char *pattern, const char **argv)
{
    int argc = 1;

    for (size_t i = 0; i < keys->elements; i++) {
        const redisReply *key = keys->element[i];
        bool ours = key->type == REDIS_REPLY_STRING && strlen(key->str) == key->len &&
                    str_starts(key->str, CACHE_PREFIX);
        if (ours && (!pattern || like_matches(key->str + strlen(CACHE_PREFIX), pattern))) {
            argv[argc++] = key->str;
        }
    }
    return argc;
}

static int do_page(mr_conn *conn, const redisReply *keys, const char *pattern, page_fn *page,
                   void *arg, mr_error *err)
{
    const char **argv = calloc(keys->elements + 1, sizeof(*argv));

    if (!argv) {
        return out_of_memory(err);
    }
    int argc = pick_keys(keys, pattern, argv);
    int code = argc > 1 ? page(conn, argv, argc, arg, err) : 0;
    free(argv);
    return code;
}

// What Redis is to look for: all that a pattern begins with, then anything. LIKE decides.
static void glob_of(const char *pattern, struct buf *out)
{
    buf_puts(out, CACHE_PREFIX);
    for (const char *at = pattern; *at && *at != '%' && *at != '_'; at++) {
        at += *at == '\\';
        buf_add(out, "\\", strchr("*?[]\\", *at) ? 1 : 0);
        buf_add(out, at, 1);
    }
    buf_puts(out, "*");
}

static bool is_scan(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
           reply->element[0]->type == REDIS_REPLY_STRING && reply->element[0]->len < NUMBER_SIZE &&
           reply->element[1]->type == REDIS_REPLY_ARRAY;
}

// Every key that is there from the beginning to the end comes at least once.
static int each_page(mr_conn *conn, const char *pattern, page_fn *page, void *arg, mr_error *err)
{
    AUTO_BUF match;
    char cursor[NUMBER_SIZE] = "0";
    int code;

    buf_init(&match, MATCH_SIZE);
    glob_of(pattern ? pattern : "", &match);
    if ((code = buf_status(&match, err))) {
        return code;
    }
    do {
        const char *const argv[] = {"SCAN", cursor, "MATCH", buf_peek(&match), "COUNT", SCAN_COUNT};
        redisReply *reply = NULL;
        if ((code = ask(conn, 6, argv, REDIS_REPLY_ARRAY, &reply, err))) {
            return code;
        }
        if (is_scan(reply)) {
            memcpy(cursor, reply->element[0]->str, reply->element[0]->len + 1);
            code = do_page(conn, reply->element[1], pattern, page, arg, err);
        } else {
            code = redis_link_strange(mr__conn_redis(conn), err);
        }
        freeReplyObject(reply);
    } while (code == 0 && !str_equal(cursor, "0"));
    return code;
}

static int delete_page(mr_conn *conn, const char **argv, int argc, void *arg, mr_error *err)
{
    int64_t *deleted = arg;
    int64_t n = 0;

    argv[0] = "UNLINK";
    int code = ask_number(conn, argc, argv, &n, err);
    *deleted += n;
    return code;
}

static int cache_delete_like(mr_conn *conn, const char *pattern, int64_t *ret, mr_error *err)
{
    int64_t deleted = 0;
    int code = toolbox_check_pattern(pattern, err);

    if (code == 0 && (code = each_page(conn, pattern, delete_page, &deleted, err)) == 0) {
        *ret = deleted;
    }
    return code;
}

static int count_page(mr_conn *conn, const char **argv, int argc, void *arg, mr_error *err)
{
    struct toolbox_figures *figures = arg;
    redisReply *reply = NULL;
    int64_t numbers[2];
    int code = redis_link_eval(mr__conn_redis(conn), "cache_stats.lua", argc - 1, argc - 1,
                               argv + 1, NULL, &reply, err);

    if (code) {
        return code;
    }
    if (read_numbers(reply, numbers, 2)) {
        figures->total += numbers[0];
        figures->valid += numbers[0];
        figures->bytes += numbers[1];
    } else {
        code = redis_link_strange(mr__conn_redis(conn), err);
    }
    freeReplyObject(reply);
    return code;
}

static int cache_stats(mr_conn *conn, struct toolbox_figures *ret, mr_error *err)
{
    struct toolbox_figures figures = {0};
    int code = each_page(conn, NULL, count_page, &figures, err);

    if (code == 0) {
        *ret = figures;
    }
    return code;
}

// ---- rate limiter ----

// Periods up to so long are counted together, as on PostgreSQL.
static const struct span {
    const char *prefix;
    int64_t most_ms;
} spans[] = {
    {RATE_PREFIX "hour:{", INT64_C(3600) * 1000},
    {RATE_PREFIX "day:{", INT64_C(86400) * 1000},
    {RATE_PREFIX "month:{", INT64_C(31) * 86400 * 1000},
};

static const struct span *span_of(int64_t per_ms)
{
    const struct span *span = spans;

    while (per_ms > span->most_ms) { // the last one is as long as any
        span++;
    }
    return span;
}

static int spend(mr_conn *conn, const char *name, int max_events, int64_t per_ms, int cost,
                 redisReply **ret, mr_error *err)
{
    char most[NUMBER_SIZE], per_us[NUMBER_SIZE], price[NUMBER_SIZE], keep_us[NUMBER_SIZE];
    const char *const argv[] = {
        name,
        number_text(max_events, most),
        number_text(per_ms * 1000, per_us),
        number_text(cost, price),
        number_text(span_of(per_ms)->most_ms * 1000, keep_us),
    };

    return redis_link_eval(mr__conn_redis(conn), "rate_limit.lua", 1, 5, argv, NULL, ret, err);
}

static int rate_limit(mr_conn *conn, const char *key, int max_events, int64_t per_ms, int cost,
                      struct toolbox_rate *ret, mr_error *err)
{
    enum { ALLOWED, REMAINING, RESETS, NUMBERS };
    char *name = NULL;
    redisReply *reply = NULL;
    int64_t numbers[NUMBERS];
    int code = toolbox_check_key("key", key, err);

    if (code || (code = toolbox_check_per(per_ms, err)) ||
        (code = make_key(span_of(per_ms)->prefix, "key", key, "}", &name, err))) {
        return code;
    }
    code = spend(conn, name, max_events, per_ms, cost, &reply, err);
    free(name);
    if (code) {
        return code;
    }
    if (read_numbers(reply, numbers, NUMBERS)) {
        *ret =
            (struct toolbox_rate){numbers[ALLOWED] != 0, (int)numbers[REMAINING], numbers[RESETS]};
    } else {
        code = redis_link_strange(mr__conn_redis(conn), err);
    }
    freeReplyObject(reply);
    return code;
}

// ---- locks ----

static int eval_number(mr_conn *conn, const char *script, int keys, int argc,
                       const char *const *argv, int64_t *ret, mr_error *err)
{
    redisReply *reply = NULL;
    int code = redis_link_eval(mr__conn_redis(conn), script, keys, argc, argv, NULL, &reply, err);

    if (code == 0 && reply->type == REDIS_REPLY_NIL) {
        *ret = 0;
    } else if (code == 0 && !read_number(reply, ret)) {
        code = redis_link_strange(mr__conn_redis(conn), err);
    }
    freeReplyObject(reply);
    return code;
}

static int lock_lease(mr_conn *conn, const char *name, const char *owner, int64_t ttl_ms,
                      int64_t *ret, mr_error *err)
{
    char ttl[NUMBER_SIZE];
    char *key = NULL;
    int64_t fence = 0;
    int code = make_key(LOCK_PREFIX, "name", name, "", &key, err);

    if (code == 0 && (code = toolbox_check_key("owner", owner, err)) == 0 &&
        (code = toolbox_check_ttl(ttl_ms, err)) == 0) {
        const char *const argv[] = {key, FENCE_KEY, owner, number_text(ttl_ms, ttl)};
        code = eval_number(conn, "lock_lease.lua", 2, 4, argv, &fence, err);
    }
    if (code == 0) {
        *ret = fence;
    }
    free(key);
    return code;
}

static int unlock_lease(mr_conn *conn, const char *name, const char *owner, bool *ret,
                        mr_error *err)
{
    char *key = NULL;
    int64_t held = 0;
    int code = make_key(LOCK_PREFIX, "name", name, "", &key, err);

    if (code == 0 && (code = toolbox_check_key("owner", owner, err)) == 0) {
        const char *const argv[] = {key, owner};
        code = eval_number(conn, "unlock_lease.lua", 1, 2, argv, &held, err);
    }
    if (code == 0) {
        *ret = held > 0;
    }
    free(key);
    return code;
}

const struct toolbox_ops toolbox_redis = {
    .cache_set = cache_set,
    .cache_get = cache_get,
    .cache_get_many = cache_get_many,
    .cache_delete = cache_delete,
    .cache_delete_like = cache_delete_like,
    .cache_stats = cache_stats,
    .rate_limit = rate_limit,
    .lock_lease = lock_lease,
    .unlock_lease = unlock_lease,
};
