// SPDX-License-Identifier: PostgreSQL
//
// The toolbox of the library: checks what C can get wrong and calls the backend of the connection.
// See toolbox.h.

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/mr_conn.h"
#include "client/shards.h"
#include "client/toolbox.h"

// Pauses while a lock is waited for: the first, and the longest. Each is half as long again.
#define PAUSE_FIRST_MS 10
#define PAUSE_MAX_MS   500

static int wrong(mr_error *err, const char *what, const char *hint)
{
    mr_error_set(err, MR_EUSAGE, "%s", what);
    mr_error_hint(err, "%s", hint);
    return MR_EUSAGE;
}

static int check_text(const char *text, const char *what, mr_error *err)
{
    if (!text) {
        mr_error_set(err, MR_EUSAGE, "no %s was given", what);
        mr_error_hint(err, "Give a text of 1 to 16,384 bytes.");
        return MR_EUSAGE;
    }
    return 0;
}

static int check_ms(int64_t ms, const char *what, mr_error *err)
{
    if (ms <= 0) {
        mr_error_set(err, MR_EUSAGE, "%s must be above 0, not %lld", what, (long long)ms);
        mr_error_hint(err, "Give milliseconds; nothing is kept for ever.");
        return MR_EUSAGE;
    }
    return 0;
}

// The backend, or NULL and the error. Of several shards one has the toolbox: *conn is that one
// then.
static const struct toolbox_ops *backend(mr_conn **conn, mr_error *err)
{
    if (!*conn) {
        wrong(err, "no connection was given", "Make one with mr_conn_open() or mr_conn_wrap().");
        return NULL;
    }
    if (mr__conn_shards(*conn)) {
        *conn = shards_toolbox(mr__conn_shards(*conn));
    }
    return mr__conn_toolbox(*conn);
}

static int give_bool(int code, bool value, int *ret)
{
    if (code == 0 && ret) {
        *ret = value;
    }
    return code;
}

// ---- cache ----

int mr_cache_set(mr_conn *conn, const char *key, const char *value, int64_t ttl_ms, mr_error *err)
{
    const struct toolbox_ops *ops = backend(&conn, err);

    if (!ops || check_text(key, "key", err) || check_ms(ttl_ms, "ttl_ms", err)) {
        return MR_EUSAGE;
    }
    return value ? ops->cache_set(conn, key, value, ttl_ms, err)
                 : wrong(err, "no value was given", "Give JSON; mr_cache_delete() removes a key.");
}

int mr_cache_get(mr_conn *conn, const char *key, char **ret, mr_error *err)
{
    const struct toolbox_ops *ops = backend(&conn, err);

    if (!ops || check_text(key, "key", err)) {
        return MR_EUSAGE;
    }
    return ret ? ops->cache_get(conn, key, ret, err)
               : wrong(err, "no place was given for the value", "Give ret.");
}

// Values come all or none: what a failure leaves of them is freed.
static int get_many(const struct toolbox_ops *ops, mr_conn *conn, const char *const *keys,
                    size_t count, char **ret, mr_error *err)
{
    char **values = calloc(count, sizeof(*values));

    if (!values) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    int code = ops->cache_get_many(conn, keys, count, values, err);
    if (code == 0) {
        memcpy(ret, values, count * sizeof(*values));
    }
    for (size_t i = 0; code && i < count; i++) {
        free(values[i]);
    }
    free(values);
    return code;
}

int mr_cache_get_many(mr_conn *conn, const char *const *keys, size_t count, char **ret,
                      mr_error *err)
{
    const struct toolbox_ops *ops = backend(&conn, err);

    if (!ops) {
        return MR_EUSAGE;
    }
    if (count > 0 && (!keys || !ret)) {
        return wrong(err, "a count of keys, but no keys or no place for their values",
                     "Give keys and ret with room for as many.");
    }
    for (size_t i = 0; i < count; i++) {
        if (check_text(keys[i], "key", err)) {
            return MR_EUSAGE;
        }
    }
    return count > 0 ? get_many(ops, conn, keys, count, ret, err) : 0;
}

int mr_cache_delete(mr_conn *conn, const char *key, int *ret_deleted, mr_error *err)
{
    const struct toolbox_ops *ops = backend(&conn, err);
    bool deleted = false;

    if (!ops || check_text(key, "key", err)) {
        return MR_EUSAGE;
    }
    int code = ops->cache_delete(conn, key, &deleted, err);
    return give_bool(code, deleted, ret_deleted);
}

int mr_cache_delete_like(mr_conn *conn, const char *pattern, int64_t *ret_deleted, mr_error *err)
{
    const struct toolbox_ops *ops = backend(&conn, err);
    int64_t deleted = 0;

    if (!ops || check_text(pattern, "pattern", err)) {
        return MR_EUSAGE;
    }
    int code = ops->cache_delete_like(conn, pattern, &deleted, err);
    if (code == 0 && ret_deleted) {
        *ret_deleted = deleted;
    }
    return code;
}

static void give_number(int64_t number, int64_t *ret)
{
    if (ret) {
        *ret = number;
    }
}

int mr_cache_stats(mr_conn *conn, int64_t *ret_total, int64_t *ret_valid, int64_t *ret_expired,
                   int64_t *ret_bytes, mr_error *err)
{
    const struct toolbox_ops *ops = backend(&conn, err);
    struct toolbox_figures figures;

    if (!ops) {
        return MR_EUSAGE;
    }
    int code = ops->cache_stats(conn, &figures, err);
    if (code == 0) {
        give_number(figures.total, ret_total);
        give_number(figures.valid, ret_valid);
        give_number(figures.expired, ret_expired);
        give_number(figures.bytes, ret_bytes);
    }
    return code;
}

// ---- rate limiter ----

int mr_rate_limit(mr_conn *conn, const char *key, int max_events, int64_t per_ms, int cost,
                  int *ret_allowed, int *ret_remaining, int64_t *ret_resets_at_us, mr_error *err)
{
    const struct toolbox_ops *ops = backend(&conn, err);
    struct toolbox_rate rate;

    if (!ops || check_text(key, "key", err) || check_ms(per_ms, "per_ms", err)) {
        return MR_EUSAGE;
    }
    if (max_events < 0 || cost < 0) {
        return wrong(err, "max_events and cost must not be negative", "Give 0 or more.");
    }
    int code = ops->rate_limit(conn, key, max_events, per_ms, cost, &rate, err);
    if (code) {
        return code;
    }
    if (ret_remaining) {
        *ret_remaining = rate.remaining;
    }
    give_number(rate.resets_at_us, ret_resets_at_us);
    return give_bool(0, rate.allowed, ret_allowed);
}

// ---- locks ----

// Whether the connection is one session of the server's for as long as it lasts.
static int check_session(const mr_conn *conn, const struct toolbox_ops *ops, mr_error *err)
{
    if (!ops->try_lock) {
        mr__conn_needs_pg("a lock of a session", err);
        mr_error_hint(err, "Use mr_lock_lease(), which belongs to no session.");
        return MR_EUSAGE;
    }
    if (mr__conn_has_session(conn)) {
        return 0;
    }
    return wrong(err, "a lock of a session needs a connection that is one",
                 "Behind a pooler use mr_lock_lease(), or open a connection without one.");
}

int mr_try_lock(mr_conn *conn, const char *name, int *ret_locked, mr_error *err)
{
    const struct toolbox_ops *ops = backend(&conn, err);
    bool locked = false;

    if (!ops || check_text(name, "name", err) || check_session(conn, ops, err)) {
        return MR_EUSAGE;
    }
    int code = ops->try_lock(conn, name, &locked, err);
    return give_bool(code, locked, ret_locked);
}

static int timed_out(const char *name, int64_t wait_ms, mr_error *err)
{
    mr_error_set(err, MR_ELOCK, "lock \"%.100s\" was not granted within %lld ms", name,
                 (long long)wait_ms);
    mr_error_hint(err, "Another session has it. Wait longer, or look in pg_locks for its holder.");
    return MR_ELOCK;
}

int mr_lock(mr_conn *conn, const char *name, int64_t wait_ms, mr_error *err)
{
    int64_t begun_ms = clock_ms();
    int64_t pause_ms = PAUSE_FIRST_MS;
    int locked = 0;

    if (wait_ms < 0) {
        return wrong(err, "wait_ms is negative", "Give milliseconds, or 0 to try once.");
    }
    for (;;) {
        int code = mr_try_lock(conn, name, &locked, err);
        if (code || locked) {
            return code;
        }
        int64_t left_ms = wait_ms - (clock_ms() - begun_ms);
        if (left_ms <= 0) {
            return timed_out(name, wait_ms, err);
        }
        poll(NULL, 0, (int)(pause_ms < left_ms ? pause_ms : left_ms));
        pause_ms = pause_ms * 3 / 2 < PAUSE_MAX_MS ? pause_ms * 3 / 2 : PAUSE_MAX_MS;
    }
}

int mr_unlock(mr_conn *conn, const char *name, int *ret_held, mr_error *err)
{
    const struct toolbox_ops *ops = backend(&conn, err);
    bool held = false;

    if (!ops || check_text(name, "name", err) || check_session(conn, ops, err)) {
        return MR_EUSAGE;
    }
    int code = ops->unlock(conn, name, &held, err);
    return give_bool(code, held, ret_held);
}

int mr_lock_guard(mr_conn *conn, int64_t silence_ms, mr_error *err)
{
    const struct toolbox_ops *ops = backend(&conn, err);

    if (!ops || check_session(conn, ops, err) || check_ms(silence_ms, "silence_ms", err)) {
        return MR_EUSAGE;
    }
    return ops->lock_guard(conn, silence_ms, err);
}

int mr_lock_lease(mr_conn *conn, const char *name, const char *owner, int64_t ttl_ms,
                  int64_t *ret_fence, mr_error *err)
{
    const struct toolbox_ops *ops = backend(&conn, err);

    if (!ops || check_text(name, "name", err) || check_text(owner, "owner", err) ||
        check_ms(ttl_ms, "ttl_ms", err)) {
        return MR_EUSAGE;
    }
    return ret_fence ? ops->lock_lease(conn, name, owner, ttl_ms, ret_fence, err)
                     : wrong(err, "no place was given for the fencing number", "Give ret_fence.");
}

int mr_unlock_lease(mr_conn *conn, const char *name, const char *owner, int *ret_held,
                    mr_error *err)
{
    const struct toolbox_ops *ops = backend(&conn, err);
    bool held = false;

    if (!ops || check_text(name, "name", err) || check_text(owner, "owner", err)) {
        return MR_EUSAGE;
    }
    int code = ops->unlock_lease(conn, name, owner, &held, err);
    return give_bool(code, held, ret_held);
}
