// SPDX-License-Identifier: PostgreSQL
//
// The toolbox on PostgreSQL: each call is one of the SQL function with its name. See toolbox.h.

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "client/call.h"
#include "client/mr_conn.h"
#include "client/toolbox.h"

// Columns of CALL_CACHE_STATS, CALL_CACHE_GET_MANY and CALL_RATE_LIMIT.
enum { FIGURE_TOTAL, FIGURE_VALID, FIGURE_EXPIRED, FIGURE_BYTES, FIGURES };
enum { ENTRY_KEY, ENTRY_VALUE, ENTRY_COLUMNS };
enum { RATE_ALLOWED, RATE_REMAINING, RATE_RESETS, RATE_COLUMNS };

static int strange_answer(mr_error *err)
{
    mr_error_set(err, MR_ESCHEMA, "the server's answer has another form than expected");
    mr_error_hint(err, "The schema and the library are of different versions; upgrade the older "
                       "one (`millrace migrate` for the schema).");
    return MR_ESCHEMA;
}

// One row of `columns`, which the caller frees with its reply.
static int ask_row(mr_conn *conn, const struct call *call, int columns, mr_reply **ret,
                   mr_error *err)
{
    mr_reply *reply = NULL;
    int code = mr__conn_ask(conn, call, NULL, &reply, err);

    if (code) {
        return code;
    }
    if (PQntuples(reply->result) != 1 || PQnfields(reply->result) != columns) {
        mr_reply_free(reply);
        return strange_answer(err);
    }
    *ret = reply;
    return 0;
}

// The number in a column; null is 0.
static bool read_number(const PGresult *row, int column, int64_t *ret)
{
    *ret = 0;
    return PQgetisnull(row, 0, column) ||
           str_parse_int(PQgetvalue(row, 0, column), INT64_MIN, INT64_MAX, ret);
}

static int ask_number(mr_conn *conn, const struct call *call, int64_t *ret, mr_error *err)
{
    mr_reply *reply = NULL;
    int code = ask_row(conn, call, 1, &reply, err);

    if (code == 0 && !read_number(reply->result, 0, ret)) {
        code = strange_answer(err);
    }
    mr_reply_free(reply);
    return code;
}

static int ask_bool(mr_conn *conn, const struct call *call, bool *ret, mr_error *err)
{
    mr_reply *reply = NULL;
    int code = ask_row(conn, call, 1, &reply, err);

    if (code == 0) {
        *ret = str_equal(PQgetvalue(reply->result, 0, 0), "t");
    }
    mr_reply_free(reply);
    return code;
}

// ---- cache ----

static int cache_set(mr_conn *conn, const char *key, const char *value, int64_t ttl_ms,
                     mr_error *err)
{
    AUTO_CALL call;
    mr_reply *reply = NULL;

    call_init(&call, CALL_CACHE_SET);
    call_text(&call, key);
    call_text(&call, value);
    call_ms(&call, ttl_ms);
    int code = ask_row(conn, &call, 1, &reply, err);
    mr_reply_free(reply);
    return code;
}

static int cache_get(mr_conn *conn, const char *key, char **ret, mr_error *err)
{
    AUTO_CALL call;
    mr_reply *reply = NULL;
    char *text = NULL;

    call_init(&call, CALL_CACHE_GET);
    call_text(&call, key);
    int code = ask_row(conn, &call, 1, &reply, err);
    if (code) {
        return code;
    }
    if (!PQgetisnull(reply->result, 0, 0) && !(text = strdup(PQgetvalue(reply->result, 0, 0)))) {
        code = mr_error_set(err, MR_ENOMEM, "out of memory");
    } else {
        *ret = text;
    }
    mr_reply_free(reply);
    return code;
}

// Rows come in the order of the keys, each key once, at its first place: one pass finds them.
static bool fill(const PGresult *rows, const char *const *keys, size_t count, char **ret)
{
    int row = 0;

    for (size_t i = 0; i < count; i++) {
        if (row == PQntuples(rows) || !str_equal(PQgetvalue(rows, row, ENTRY_KEY), keys[i])) {
            continue;
        }
        ret[i] = strdup(PQgetvalue(rows, row++, ENTRY_VALUE));
        if (!ret[i]) {
            return false;
        }
    }
    return true;
}

static int cache_get_many(mr_conn *conn, const char *const *keys, size_t count, char **ret,
                          mr_error *err)
{
    AUTO_CALL call;
    mr_reply *reply = NULL;

    call_init(&call, CALL_CACHE_GET_MANY);
    call_texts(&call, keys, count);
    int code = mr__conn_ask(conn, &call, NULL, &reply, err);
    if (code) {
        return code;
    }
    if (PQnfields(reply->result) != ENTRY_COLUMNS) {
        code = strange_answer(err);
    } else if (!fill(reply->result, keys, count, ret)) {
        code = mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    mr_reply_free(reply);
    return code;
}

static int cache_delete(mr_conn *conn, const char *key, bool *ret, mr_error *err)
{
    AUTO_CALL call;

    call_init(&call, CALL_CACHE_DELETE);
    call_text(&call, key);
    return ask_bool(conn, &call, ret, err);
}

static int cache_delete_like(mr_conn *conn, const char *pattern, int64_t *ret, mr_error *err)
{
    AUTO_CALL call;

    call_init(&call, CALL_CACHE_DELETE_LIKE);
    call_text(&call, pattern);
    return ask_number(conn, &call, ret, err);
}

static int cache_stats(mr_conn *conn, struct toolbox_figures *ret, mr_error *err)
{
    AUTO_CALL call;
    mr_reply *reply = NULL;
    struct toolbox_figures figures;

    call_init(&call, CALL_CACHE_STATS);
    int code = ask_row(conn, &call, FIGURES, &reply, err);
    if (code) {
        return code;
    }
    if (read_number(reply->result, FIGURE_TOTAL, &figures.total) &&
        read_number(reply->result, FIGURE_VALID, &figures.valid) &&
        read_number(reply->result, FIGURE_EXPIRED, &figures.expired) &&
        read_number(reply->result, FIGURE_BYTES, &figures.bytes)) {
        *ret = figures;
    } else {
        code = strange_answer(err);
    }
    mr_reply_free(reply);
    return code;
}

// ---- rate limiter ----

static int rate_limit(mr_conn *conn, const char *key, int max_events, int64_t per_ms, int cost,
                      struct toolbox_rate *ret, mr_error *err)
{
    AUTO_CALL call;
    mr_reply *reply = NULL;
    int64_t remaining = 0;
    struct toolbox_rate rate = {0};

    call_init(&call, CALL_RATE_LIMIT);
    call_text(&call, key);
    call_number(&call, max_events);
    call_ms(&call, per_ms);
    call_number(&call, cost);
    int code = ask_row(conn, &call, RATE_COLUMNS, &reply, err);
    if (code) {
        return code;
    }
    rate.allowed = str_equal(PQgetvalue(reply->result, 0, RATE_ALLOWED), "t");
    if (read_number(reply->result, RATE_REMAINING, &remaining) &&
        read_number(reply->result, RATE_RESETS, &rate.resets_at_us)) {
        rate.remaining = (int)remaining;
        *ret = rate;
    } else {
        code = strange_answer(err);
    }
    mr_reply_free(reply);
    return code;
}

// ---- locks ----

static int ask_name(mr_conn *conn, enum call_kind kind, const char *name, bool *ret, mr_error *err)
{
    AUTO_CALL call;

    call_init(&call, kind);
    call_text(&call, name);
    return ask_bool(conn, &call, ret, err);
}

static int try_lock(mr_conn *conn, const char *name, bool *ret, mr_error *err)
{
    return ask_name(conn, CALL_TRY_LOCK, name, ret, err);
}

static int unlock(mr_conn *conn, const char *name, bool *ret, mr_error *err)
{
    return ask_name(conn, CALL_UNLOCK, name, ret, err);
}

static int lock_guard(mr_conn *conn, int64_t silence_ms, mr_error *err)
{
    AUTO_CALL call;
    mr_reply *reply = NULL;

    call_init(&call, CALL_LOCK_GUARD);
    call_ms(&call, silence_ms);
    int code = ask_row(conn, &call, 1, &reply, err);
    mr_reply_free(reply);
    return code;
}

static int lock_lease(mr_conn *conn, const char *name, const char *owner, int64_t ttl_ms,
                      int64_t *ret, mr_error *err)
{
    AUTO_CALL call;

    call_init(&call, CALL_LOCK_LEASE);
    call_text(&call, name);
    call_text(&call, owner);
    call_ms(&call, ttl_ms);
    return ask_number(conn, &call, ret, err);
}

static int unlock_lease(mr_conn *conn, const char *name, const char *owner, bool *ret,
                        mr_error *err)
{
    AUTO_CALL call;

    call_init(&call, CALL_UNLOCK_LEASE);
    call_text(&call, name);
    call_text(&call, owner);
    return ask_bool(conn, &call, ret, err);
}

const struct toolbox_ops toolbox_pg = {
    .cache_set = cache_set,
    .cache_get = cache_get,
    .cache_get_many = cache_get_many,
    .cache_delete = cache_delete,
    .cache_delete_like = cache_delete_like,
    .cache_stats = cache_stats,
    .rate_limit = rate_limit,
    .try_lock = try_lock,
    .unlock = unlock,
    .lock_guard = lock_guard,
    .lock_lease = lock_lease,
    .unlock_lease = unlock_lease,
};
