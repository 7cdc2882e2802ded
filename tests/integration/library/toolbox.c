// SPDX-License-Identifier: PostgreSQL
//
// The toolbox of the library: cache, rate limiter, locks, circuit breaker.

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

#define LONG_KEY_SIZE 10240

static void cache_holds(void)
{
    mr_conn *conn = open_conn();
    const char *const odd[] = {"%", "a_b", "it's \"odd\" \\ {}", " ", "\xe9\x8d\xb5"};
    enum { ODD = sizeof(odd) / sizeof(odd[0]) };
    const char *keys[ODD + 2];
    char *values[ODD + 2];
    char *value = NULL;
    int deleted = -1;
    int64_t gone = 0, total = 0, valid = 0;

    for (int i = 0; i < ODD; i++) {
        CHECK_OK(mr_cache_set(conn, odd[i], "{\"n\": 1}", 60000, &err));
        CHECK_OK(mr_cache_get(conn, odd[i], &value, &err));
        CHECK_TEXT(value, "{\"n\": 1}");
        mr_free(value);
        keys[i + 1] = odd[i];
    }
    keys[0] = "not there";
    keys[ODD + 1] = odd[0];
    CHECK_OK(mr_cache_get_many(conn, keys, ODD + 2, values, &err));
    CHECK(values[0] == NULL && values[ODD + 1] == NULL);
    for (int i = 1; i <= ODD; i++) {
        CHECK_TEXT(values[i], "{\"n\": 1}");
        mr_free(values[i]);
    }
    CHECK_OK(mr_cache_get_many(conn, NULL, 0, NULL, &err));
    CHECK_OK(mr_cache_delete(conn, "%", &deleted, &err));
    CHECK_NUMBER(deleted, 1);
    CHECK_OK(mr_cache_delete(conn, "%", &deleted, &err));
    CHECK_NUMBER(deleted, 0);
    CHECK_OK(mr_cache_delete_like(conn, "a\\_b", &gone, &err));
    CHECK_NUMBER(gone, 1);
    value = (char *)conn;
    CHECK_OK(mr_cache_get(conn, "a_b", &value, &err));
    CHECK(value == NULL);
    CHECK_OK(mr_cache_stats(conn, &total, &valid, NULL, NULL, &err));
    CHECK(valid == ODD - 2 && total == valid);
    mr_conn_free(conn);
}

static void cache_expires(void)
{
    mr_conn *conn = open_conn();
    char *value = NULL;
    char key[LONG_KEY_SIZE + 1];

    memset(key, 'k', LONG_KEY_SIZE);
    key[LONG_KEY_SIZE] = '\0';
    CHECK_OK(mr_cache_set(conn, key, "1", 60000, &err));
    CHECK_OK(mr_cache_get(conn, key, &value, &err));
    CHECK_TEXT(value, "1");
    mr_free(value);
    CHECK_OK(mr_cache_set(conn, key, "2", 20, &err));
    pause_ms(30); // longer than that, however slow the machine
    CHECK_OK(mr_cache_get(conn, key, &value, &err));
    CHECK(value == NULL);
    mr_conn_free(conn);
}

static void cache_refuses(void)
{
    mr_conn *conn = open_conn();
    char *value = NULL;

    CHECK_CODE(mr_cache_set(NULL, "k", "1", 1, &err), MR_EUSAGE);
    CHECK_CODE(mr_cache_set(conn, NULL, "1", 1, &err), MR_EUSAGE);
    CHECK_CODE(mr_cache_set(conn, "k", NULL, 1, &err), MR_EUSAGE);
    CHECK_CODE(mr_cache_set(conn, "k", "1", 0, &err), MR_EUSAGE);
    CHECK_CODE(mr_cache_set(conn, "k", "1", -1, &err), MR_EUSAGE);
    CHECK_CODE(mr_cache_set(conn, "", "1", 1, &err), MR_EINVALID);
    CHECK_CODE(mr_cache_set(conn, "k", "{", 1, &err), MR_EINVALID);
    CHECK_CODE(mr_cache_set(conn, "\xff", "1", 1, &err), MR_EINVALID);
    CHECK_CODE(mr_cache_get(conn, NULL, &value, &err), MR_EUSAGE);
    CHECK_CODE(mr_cache_get(conn, "k", NULL, &err), MR_EUSAGE);
    CHECK_CODE(mr_cache_get_many(conn, NULL, 1, &value, &err), MR_EUSAGE);
    CHECK_CODE(mr_cache_delete_like(conn, "a\\", NULL, &err), MR_EINVALID);
    mr_conn_free(conn);
}

static void rate_limits(void)
{
    mr_conn *conn = open_conn();
    int allowed = -1, remaining = -1;
    int64_t resets_us = -1;

    CHECK_OK(mr_rate_limit(conn, "r", 3, 60000, 2, &allowed, &remaining, &resets_us, &err));
    CHECK(allowed == 1 && remaining == 1 && resets_us > (int64_t)1600000000 * 1000000);
    CHECK_OK(mr_rate_limit(conn, "r", 3, 60000, 2, &allowed, &remaining, NULL, &err));
    CHECK(allowed == 0 && remaining == 1);
    CHECK_OK(mr_rate_limit(conn, "r", 3, 60000, 4, &allowed, NULL, &resets_us, &err));
    CHECK(allowed == 0 && resets_us == 0);
    CHECK_OK(mr_rate_limit(conn, "r", 3, 60000, 1, NULL, NULL, NULL, &err));
    CHECK_OK(mr_rate_limit(conn, "r", 3, 60000, 0, &allowed, &remaining, NULL, &err));
    CHECK(allowed == 0 && remaining == 0);
    CHECK_CODE(mr_rate_limit(conn, NULL, 3, 1, 1, NULL, NULL, NULL, &err), MR_EUSAGE);
    CHECK_CODE(mr_rate_limit(conn, "r", 3, 0, 1, NULL, NULL, NULL, &err), MR_EUSAGE);
    CHECK_CODE(mr_rate_limit(conn, "r", -1, 1, 1, NULL, NULL, NULL, &err), MR_EUSAGE);
    CHECK_CODE(mr_rate_limit(conn, "r", 1, 1, -1, NULL, NULL, NULL, &err), MR_EUSAGE);
    CHECK_CODE(mr_rate_limit(conn, "r", 1, (int64_t)40 * 86400000, 1, NULL, NULL, NULL, &err),
               MR_EINVALID);
    mr_conn_free(conn);
}

static void locks(void)
{
    mr_conn *one = open_conn(), *two = open_conn();
    int got = -1;

    CHECK_OK(mr_lock(one, "l", 0, &err));
    CHECK_OK(mr_try_lock(two, "l", &got, &err));
    CHECK_NUMBER(got, 0);
    CHECK_CODE(mr_lock(two, "l", 50, &err), MR_ELOCK);
    CHECK_OK(mr_unlock(two, "l", &got, &err));
    CHECK_NUMBER(got, 0);
    CHECK_OK(mr_unlock(one, "l", &got, &err));
    CHECK_NUMBER(got, 1);
    CHECK_OK(mr_lock(two, "l", 0, &err));
    mr_conn_free(two);
    CHECK_OK(mr_lock(one, "l", 5000, &err)); // its holder has left
    CHECK_CODE(mr_lock(one, "l", -1, &err), MR_EUSAGE);
    CHECK_CODE(mr_lock(one, NULL, 0, &err), MR_EUSAGE);
    CHECK_CODE(mr_lock(one, "", 0, &err), MR_EINVALID);
    mr_conn_free(one);
}

// A connection that breaks has lost its locks, and unlock says so.
static void lock_is_lost(void)
{
    mr_conn *conn = open_conn();
    PGconn *session = open_session();
    int held = -1;

    CHECK_OK(mr_lock(conn, "lost", 0, &err));
    session_run(session,
                "select pg_terminate_backend(l.pid) from pg_locks l where l.locktype = "
                "'advisory' and l.objsubid = 1 and l.granted and l.classid::bigint << 32 | "
                "l.objid::bigint = millrace.lock_key('lost')");
    session_await(session, "select millrace.try_lock('lost')", "t");
    // the end of the connection may reach us only now
    if (mr_unlock(conn, "lost", &held, &err) == MR_ECONNECT) {
        err.code = 0;
        CHECK_OK(mr_unlock(conn, "lost", &held, &err));
    }
    CHECK_NUMBER(held, 0);
    PQfinish(session);
    mr_conn_free(conn);
}

// A holder that says nothing is ended by its server; one that speaks in time is not.
static void lock_is_guarded(void)
{
    mr_conn *conn = open_conn();
    PGconn *session = open_session();
    int held = -1;

    CHECK_CODE(mr_lock_guard(NULL, 1000, &err), MR_EUSAGE);
    CHECK_CODE(mr_lock_guard(conn, 0, &err), MR_EUSAGE);
    CHECK_CODE(mr_lock_guard(conn, 999, &err), MR_EINVALID);
    CHECK_CODE(mr_lock_guard(conn, INT64_C(86400001), &err), MR_EINVALID);
    CHECK_OK(mr_lock(conn, "guarded", 0, &err));
    CHECK_OK(mr_lock_guard(conn, 60000, &err));
    CHECK_OK(mr_unlock(conn, "guarded", &held, &err));
    CHECK_NUMBER(held, 1);
    if (PQserverVersion(session) >= 140000) {
        CHECK_OK(mr_lock(conn, "guarded", 0, &err));
        CHECK_OK(mr_lock_guard(conn, 1000, &err));
        session_await(session, "select millrace.try_lock('guarded')", "t");
    }
    PQfinish(session);
    mr_conn_free(conn);
}

static void leases(void)
{
    mr_conn *conn = open_conn();
    int64_t first = -1, second = -1, other = -1;
    int held = -1;

    CHECK_OK(mr_lock_lease(conn, "n", "me", 60000, &first, &err));
    CHECK(first > 0);
    CHECK_OK(mr_lock_lease(conn, "n", "you", 60000, &other, &err));
    CHECK_NUMBER(other, 0);
    CHECK_OK(mr_lock_lease(conn, "n", "me", 60000, &second, &err));
    CHECK_NUMBER(second, first);
    CHECK_OK(mr_unlock_lease(conn, "n", "you", &held, &err));
    CHECK_NUMBER(held, 0);
    CHECK_OK(mr_unlock_lease(conn, "n", "me", &held, &err));
    CHECK_NUMBER(held, 1);
    CHECK_OK(mr_lock_lease(conn, "n", "you", 50, &other, &err));
    CHECK(other > first);
    pause_ms(60);
    CHECK_OK(mr_lock_lease(conn, "n", "me", 60000, &second, &err));
    CHECK(second > other);
    CHECK_OK(mr_unlock_lease(conn, "n", "me", NULL, &err));
    CHECK_CODE(mr_lock_lease(conn, "n", "me", 0, &second, &err), MR_EUSAGE);
    CHECK_CODE(mr_lock_lease(conn, "n", NULL, 1, &second, &err), MR_EUSAGE);
    CHECK_CODE(mr_lock_lease(conn, "n", "me", 1, NULL, &err), MR_EUSAGE);
    CHECK_CODE(mr_unlock_lease(conn, NULL, "me", NULL, &err), MR_EUSAGE);
    mr_conn_free(conn);
}

static void no_session_locks(void)
{
    mr_conn_options options = MR_CONN_OPTIONS_INIT;
    mr_conn *conn = NULL;
    int got = -1;

    options.pooler = 1;
    CHECK_OK(mr_conn_open(&options, &conn, &err));
    CHECK_CODE(mr_lock(conn, "l", 0, &err), MR_EUSAGE);
    CHECK_CODE(mr_try_lock(conn, "l", &got, &err), MR_EUSAGE);
    CHECK_CODE(mr_unlock(conn, "l", &got, &err), MR_EUSAGE);
    CHECK_CODE(mr_lock_guard(conn, 60000, &err), MR_EUSAGE);
    mr_conn_free(conn);
}

static void in_a_transaction(void)
{
    PGconn *session = open_session();
    mr_conn *conn = NULL;
    char *value = NULL;
    int remaining = -1;

    CHECK_OK(mr_conn_wrap(session, &conn, &err));
    session_run(session, "begin");
    CHECK_OK(mr_cache_set(conn, "rolled back", "1", 60000, &err));
    CHECK_OK(mr_rate_limit(conn, "rolled back", 1, 60000, 1, NULL, &remaining, NULL, &err));
    CHECK_NUMBER(remaining, 0);
    session_run(session, "rollback");
    CHECK_OK(mr_cache_get(conn, "rolled back", &value, &err));
    CHECK(value == NULL);
    CHECK_OK(mr_rate_limit(conn, "rolled back", 1, 60000, 0, NULL, &remaining, NULL, &err));
    CHECK_NUMBER(remaining, 1);
    mr_conn_free(conn);
    PQfinish(session);
}

// ---- breaker ----

// One that has just opened.
static mr_breaker *broken(int64_t open_ms)
{
    mr_breaker_options options = MR_BREAKER_OPTIONS_INIT;
    mr_breaker *breaker = NULL;

    options.failures = 2;
    options.open_ms = open_ms;
    CHECK_OK(mr_breaker_new(&options, &breaker, &err));
    for (int i = 0; i < 2; i++) {
        CHECK(mr_breaker_allows(breaker));
        mr_breaker_failed(breaker);
    }
    return breaker;
}

static void breaks(void)
{
    mr_breaker_options options = MR_BREAKER_OPTIONS_INIT;
    mr_breaker *breaker = NULL;

    // one stays open as long as it is looked at, the other's time is over
    breaker = broken(60000);
    CHECK(mr_breaker_status(breaker) == MR_BREAKER_OPEN);
    CHECK(!mr_breaker_allows(breaker));
    CHECK(mr_breaker_retry_in_ms(breaker) > 0 && mr_breaker_retry_in_ms(breaker) <= 60000);
    mr_breaker_free(breaker);
    breaker = broken(20);
    pause_ms(30);
    CHECK(mr_breaker_allows(breaker));
    CHECK(mr_breaker_status(breaker) == MR_BREAKER_HALF_OPEN);
    CHECK(!mr_breaker_allows(breaker)); // one probe
    mr_breaker_neutral(breaker);
    CHECK(mr_breaker_allows(breaker));
    mr_breaker_good(breaker);
    CHECK(mr_breaker_status(breaker) == MR_BREAKER_CLOSED);
    CHECK(mr_breaker_allows(breaker) && mr_breaker_allows(breaker));
    mr_breaker_free(breaker);
    mr_breaker_free(NULL);
    options.jitter = 1.5;
    CHECK_CODE(mr_breaker_new(&options, &breaker, &err), MR_EUSAGE);
    options.jitter = 0;
    options.failures = -1;
    CHECK_CODE(mr_breaker_new(&options, &breaker, &err), MR_EUSAGE);
    options.failures = 0;
    options.open_max_ms = INT64_MAX;
    CHECK_CODE(mr_breaker_new(&options, &breaker, &err), MR_EUSAGE);
}

static void *probe(void *arg)
{
    int *let = calloc(1, sizeof(*let));

    for (int i = 0; let && i < 10000; i++) {
        *let += mr_breaker_allows(arg) != 0;
    }
    return let;
}

// However many threads ask, one of them is the probe.
static void breaks_for_threads(void)
{
    enum { THREADS = 8 };
    mr_breaker_options options = MR_BREAKER_OPTIONS_INIT;
    mr_breaker *breaker = NULL;
    pthread_t threads[THREADS];
    int all = 0;

    options.failures = 1;
    options.open_ms = 1;
    CHECK_OK(mr_breaker_new(&options, &breaker, &err));
    mr_breaker_failed(breaker);
    pause_ms(5);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, probe, breaker) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *let = NULL;
        pthread_join(threads[i], &let);
        CHECK(let != NULL);
        all += *(int *)let;
        free(let);
    }
    CHECK_NUMBER(all, 1);
    mr_breaker_free(breaker);
}

const struct driver_case toolbox_cases[] = {
    {"cache_holds", cache_holds},
    {"cache_expires", cache_expires},
    {"cache_refuses", cache_refuses},
    {"rate_limits", rate_limits},
    {"locks", locks},
    {"lock_is_lost", lock_is_lost},
    {"lock_is_guarded", lock_is_guarded},
    {"leases", leases},
    {"no_session_locks", no_session_locks},
    {"in_a_transaction", in_a_transaction},
    {"breaks", breaks},
    {"breaks_for_threads", breaks_for_threads},
    {NULL, NULL},
};
