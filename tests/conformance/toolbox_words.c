// SPDX-License-Identifier: PostgreSQL
//
// The calls of the toolbox as words of a script: see conform.h.

#include <stdlib.h>
#include <string.h>

#include "conform.h"

// What is waited for comes within this.
#define PATIENCE_MS 30000
#define LOOK_MS     5
// Redis keeps the end of a key in milliseconds.
#define CLOCK_STEP_US 2000

// ---- cache ----

static int64_t set_us; // before the last `set`
static int64_t set_ttl_ms;

static void cache_set(char **args, int count)
{
    (void)count;
    set_us = now_us();
    set_ttl_ms = ms_of(args[2]);
    if (!say_failure(mr_cache_set(conform_conn(), args[0], args[1], set_ttl_ms, &conform_err))) {
        say("ok");
    }
}

static void cache_get(char **args, int count)
{
    char *value = NULL;

    (void)count;
    if (!say_failure(mr_cache_get(conform_conn(), args[0], &value, &conform_err))) {
        say_json(value);
    }
}

// As the backend gives it.
static void cache_get_raw(char **args, int count)
{
    char *value = NULL;

    (void)count;
    if (!say_failure(mr_cache_get(conform_conn(), args[0], &value, &conform_err))) {
        say("%s", value ? value : "none");
        mr_free(value);
    }
}

static void cache_get_many(char **args, int count)
{
    char *values[ARGS_MAX];

    if (!say_failure(mr_cache_get_many(conform_conn(), (const char *const *)args, (size_t)count,
                                       values, &conform_err))) {
        for (int i = 0; i < count; i++) {
            say_json(values[i]);
        }
        say("%d keys", count);
    }
}

// So many keys that are all the same.
static void cache_get_times(char **args, int count)
{
    size_t times = (size_t)number_of(args[1]);
    const char **keys = calloc(times, sizeof(*keys));
    char **values = calloc(times, sizeof(*values));
    size_t found = 0;

    (void)count;
    if (!keys || !values) {
        script_is_wrong("out of memory");
    }
    for (size_t i = 0; i < times; i++) {
        keys[i] = args[0];
    }
    if (!say_failure(mr_cache_get_many(conform_conn(), keys, times, values, &conform_err))) {
        for (size_t i = 0; i < times; i++) {
            found += values[i] != NULL;
            mr_free(values[i]);
        }
        say("%zu of %zu", found, times);
    }
    free(keys);
    free(values);
}

static void cache_delete(char **args, int count)
{
    int deleted = -1;

    (void)count;
    if (!say_failure(mr_cache_delete(conform_conn(), args[0], &deleted, &conform_err))) {
        say(deleted == 1 ? "deleted" : deleted == 0 ? "had no value" : "no answer");
    }
}

static void cache_delete_like(char **args, int count)
{
    int64_t deleted = -1;

    (void)count;
    if (!say_failure(mr_cache_delete_like(conform_conn(), args[0], &deleted, &conform_err))) {
        say("%lld deleted", (long long)deleted);
    }
}

// Keys that were deleted or have expired may be counted as such for a while, or not.
static void cache_stats(char **args, int count)
{
    int64_t total = -1, valid = -1, expired = -1, bytes = -1;

    (void)args;
    (void)count;
    if (!say_failure(
            mr_cache_stats(conform_conn(), &total, &valid, &expired, &bytes, &conform_err))) {
        say("%lld have a value%s%s", (long long)valid,
            total == valid + expired ? "" : ", and the total is another",
            valid > 0 && bytes < valid ? ", and the bytes are too few" : "");
    }
}

// Waits until the value of the last `set` is over.
static void cache_gone(char **args, int count)
{
    int64_t give_up_us = now_us() + (int64_t)PATIENCE_MS * 1000;
    char *value = NULL;

    (void)count;
    do {
        mr_free(value);
        value = NULL;
        pause_ms(LOOK_MS);
        if (say_failure(mr_cache_get(conform_conn(), args[0], &value, &conform_err))) {
            return;
        }
    } while (value && now_us() < give_up_us);
    if (value) {
        say("still there");
        mr_free(value);
        return;
    }
    say(now_us() + CLOCK_STEP_US < set_us + set_ttl_ms * 1000 ? "gone too early" : "gone");
}

// ---- rate limiter ----

static void rate_limit(char **args, int count)
{
    int allowed = -1, remaining = -1;
    int64_t resets_us = -1;
    int64_t before_us = now_us();
    int64_t per_ms = ms_of(args[2]);
    int cost = count > 3 ? (int)number_of(args[3]) : 1;

    if (say_failure(mr_rate_limit(conform_conn(), args[0], (int)number_of(args[1]), per_ms, cost,
                                  &allowed, &remaining, &resets_us, &conform_err))) {
        return;
    }
    bool in_time = resets_us >= before_us && resets_us <= now_us() + per_ms * 1000;
    say("%s, %d left, resets %s", allowed == 1 ? "allowed" : "refused", remaining,
        resets_us == 0 ? "never"
        : in_time      ? "within the period"
                       : "at a wrong time");
}

// Spends until the limiter refuses, then until it allows again: the window slides.
static void rate_slides(char **args, int count)
{
    int most = (int)number_of(args[1]);
    int64_t per_ms = ms_of(args[2]);
    int64_t first_us = now_us();
    int64_t give_up_us = first_us + (int64_t)PATIENCE_MS * 1000;
    int allowed = 1;

    (void)count;
    for (int spent = 0; spent <= most; spent++) {
        if (say_failure(mr_rate_limit(conform_conn(), args[0], most, per_ms, 1, &allowed, NULL,
                                      NULL, &conform_err))) {
            return;
        }
    }
    while (!allowed && now_us() < give_up_us) {
        pause_ms(LOOK_MS);
        if (say_failure(mr_rate_limit(conform_conn(), args[0], most, per_ms, 1, &allowed, NULL,
                                      NULL, &conform_err))) {
            return;
        }
    }
    bool early = now_us() < first_us + per_ms * 1000;
    say(!allowed ? "still refused" : early ? "more than the limit in a period" : "allowed again");
}

// ---- leases ----

static int64_t largest_fence;

static void say_fence(int64_t fence)
{
    if (fence == 0) {
        say("another has it");
        return;
    }
    if (fence > largest_fence) {
        largest_fence = fence;
        say("held, fence %s, the largest so far", name_of('F', fence));
    } else {
        say("held, fence %s", name_of('F', fence));
    }
}

static void lock_lease(char **args, int count)
{
    int64_t fence = -1;

    (void)count;
    if (!say_failure(mr_lock_lease(conform_conn(), args[0], args[1], ms_of(args[2]), &fence,
                                   &conform_err))) {
        say_fence(fence);
    }
}

static void unlock_lease(char **args, int count)
{
    int held = -1;

    (void)count;
    if (!say_failure(mr_unlock_lease(conform_conn(), args[0], args[1], &held, &conform_err))) {
        say(held == 1 ? "given back" : held == 0 ? "not held" : "no answer");
    }
}

// Asks until the lock can be had, because the lease of another is over.
static void lock_when_free(char **args, int count)
{
    int64_t give_up_us = now_us() + (int64_t)PATIENCE_MS * 1000;
    int64_t fence = 0;

    (void)count;
    do {
        if (say_failure(mr_lock_lease(conform_conn(), args[0], args[1], ms_of(args[2]), &fence,
                                      &conform_err))) {
            return;
        }
        pause_ms(fence ? 0 : LOOK_MS);
    } while (!fence && now_us() < give_up_us);
    say_fence(fence);
}

const struct word toolbox_words[] = {
    {"cache_set", 3, 3, cache_set},
    {"cache_get", 1, 1, cache_get},
    {"cache_get_raw", 1, 1, cache_get_raw},
    {"cache_get_many", 0, ARGS_MAX, cache_get_many},
    {"cache_get_times", 2, 2, cache_get_times},
    {"cache_delete", 1, 1, cache_delete},
    {"cache_delete_like", 1, 1, cache_delete_like},
    {"cache_stats", 0, 0, cache_stats},
    {"cache_gone", 1, 1, cache_gone},
    {"rate_limit", 3, 4, rate_limit},
    {"rate_slides", 3, 3, rate_slides},
    {"lock_lease", 3, 3, lock_lease},
    {"unlock_lease", 2, 2, unlock_lease},
    {"lock_when_free", 3, 3, lock_when_free},
    {NULL, 0, 0, NULL},
};
