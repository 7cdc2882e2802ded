// SPDX-License-Identifier: PostgreSQL
//
// The toolbox behind one table: what a backend has to do for cache, rate limiter and locks.
// mr_toolbox.c checks arguments and calls through the table of the connection, which is chosen with
// the DSN; toolbox_pg.c is the one for PostgreSQL, toolbox_redis.c the one for Redis.
//
// For all of them: strings are borrowed until the call returns; times are above 0; ret_ parameters
// are given, and written only on success; a text in *ret is the caller's, from malloc().

#ifndef MILLRACE_CLIENT_TOOLBOX_H
#define MILLRACE_CLIENT_TOOLBOX_H

#include <millrace/millrace.h>
#include <stdbool.h>

struct toolbox_figures {
    int64_t total, valid, expired, bytes;
};

struct toolbox_rate {
    bool allowed;
    int remaining;
    int64_t resets_at_us; // 0: never
};

struct toolbox_ops {
    int (*cache_set)(mr_conn *conn, const char *key, const char *value, int64_t ttl_ms,
                     mr_error *err);
    // *ret is NULL where there is no value.
    int (*cache_get)(mr_conn *conn, const char *key, char **ret, mr_error *err);
    // ret has room for `count`, all of them NULL, and the same rule holds for each. What a failure
    // leaves there is the caller's, too.
    int (*cache_get_many)(mr_conn *conn, const char *const *keys, size_t count, char **ret,
                          mr_error *err);
    int (*cache_delete)(mr_conn *conn, const char *key, bool *ret, mr_error *err);
    int (*cache_delete_like)(mr_conn *conn, const char *pattern, int64_t *ret, mr_error *err);
    int (*cache_stats)(mr_conn *conn, struct toolbox_figures *ret, mr_error *err);
    int (*rate_limit)(mr_conn *conn, const char *key, int max_events, int64_t per_ms, int cost,
                      struct toolbox_rate *ret, mr_error *err);
    // Locks of the connection: NULL where a backend has none.
    int (*try_lock)(mr_conn *conn, const char *name, bool *ret, mr_error *err);
    int (*unlock)(mr_conn *conn, const char *name, bool *ret, mr_error *err);
    int (*lock_guard)(mr_conn *conn, int64_t silence_ms, mr_error *err);
    // *ret is 0 when another owner has it.
    int (*lock_lease)(mr_conn *conn, const char *name, const char *owner, int64_t ttl_ms,
                      int64_t *ret, mr_error *err);
    int (*unlock_lease)(mr_conn *conn, const char *name, const char *owner, bool *ret,
                        mr_error *err);
};

extern const struct toolbox_ops toolbox_pg;
extern const struct toolbox_ops toolbox_redis;

#endif
