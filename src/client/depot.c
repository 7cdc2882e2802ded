// SPDX-License-Identifier: PostgreSQL
//
// The blob store as clients use it: see depot.h.

#include "client/depot.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/breaker.h"
#include "base/clock.h"
#include "base/str.h"

// Calls at once; each runs many transfers.
enum { HANDLES = 4 };

#define BREAKER_OPEN_MS     5000
#define BREAKER_OPEN_MAX_MS 60000

static const struct blob_options store_options = {
    .attempts = 3,
    .connect_timeout_ms = 3000,
    .call_timeout_ms = DEPOT_CALL_MS,
};

struct depot {
    pthread_mutex_t lock;
    pthread_cond_t free_handle;
    struct blob_store *stores[HANDLES];
    bool busy[HANDLES];
    bool stopping;
    struct breaker breaker; // under the lock
};

int depot_new(const struct depot_options *options, struct depot **ret, struct mr_error *err)
{
    const char *address = options && options->address ? options->address : getenv("MILLRACE_BLOBS");
    struct depot *depot;
    int code = 0;

    *ret = NULL;
    if (str_empty(address)) {
        return 0;
    }
    depot = calloc(1, sizeof(*depot));
    if (!depot) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    pthread_mutex_init(&depot->lock, NULL);
    pthread_cond_init(&depot->free_handle, NULL);
    breaker_init(&depot->breaker, (struct breaker_options){.failures = 1,
                                                           .open_ms = BREAKER_OPEN_MS,
                                                           .open_max_ms = BREAKER_OPEN_MAX_MS});
    for (int i = 0; code == 0 && i < HANDLES; i++) {
        code = blob_open(address, options ? &options->credentials : NULL, &store_options,
                         &depot->stores[i], err);
    }
    if (code) {
        depot_free(depot);
        return code;
    }
    *ret = depot;
    return 0;
}

void depot_free(struct depot *depot)
{
    if (!depot) {
        return;
    }
    for (int i = 0; i < HANDLES; i++) {
        blob_free(depot->stores[i]);
    }
    pthread_cond_destroy(&depot->free_handle);
    pthread_mutex_destroy(&depot->lock);
    free(depot);
}

void depot_stop(struct depot *depot)
{
    pthread_mutex_lock(&depot->lock);
    depot->stopping = true;
    pthread_mutex_unlock(&depot->lock);
    for (int i = 0; i < HANDLES; i++) {
        blob_stop(depot->stores[i]);
    }
}

static int free_handle(const struct depot *depot)
{
    for (int i = 0; i < HANDLES; i++) {
        if (!depot->busy[i]) {
            return i;
        }
    }
    return -1;
}

// A handle to be used alone; -1: the store is left alone for now. Whoever waits for a handle waits
// for a call, which has an end.
static int begin(struct depot *depot)
{
    int at;

    pthread_mutex_lock(&depot->lock);
    while ((at = free_handle(depot)) < 0) {
        pthread_cond_wait(&depot->free_handle, &depot->lock);
    }
    if (depot->stopping || breaker_allows(&depot->breaker, 1, clock_ms()) == 0) {
        at = -1;
    } else {
        depot->busy[at] = true;
        breaker_started(&depot->breaker, 1);
    }
    pthread_mutex_unlock(&depot->lock);
    return at;
}

static bool store_failed(const struct blob_item *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (items[i].result != BLOB_STOPPED && blob_result_is_of_store(items[i].result)) {
            return true;
        }
    }
    return false;
}

static void end(struct depot *depot, int at, bool failed)
{
    pthread_mutex_lock(&depot->lock);
    depot->busy[at] = false;
    if (failed) {
        breaker_failed(&depot->breaker, clock_ms());
    } else {
        breaker_good(&depot->breaker);
    }
    pthread_cond_signal(&depot->free_handle);
    pthread_mutex_unlock(&depot->lock);
}

static void refuse_all(struct blob_item *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        items[i].body = NULL;
        items[i].result = BLOB_TRANSIENT;
        snprintf(items[i].text, sizeof(items[i].text),
                 "the blob store did not answer and is left alone for a while");
        items[i].hint = "Is it running, and may this client use it?";
    }
}

int depot_put(struct depot *depot, struct blob_item *items, size_t count, struct mr_error *err)
{
    int at = begin(depot);

    if (at < 0) {
        refuse_all(items, count);
        return mr_error_set(err, MR_ECONNECT, "%s", count ? items[0].text : "it is stopping");
    }
    int code = blob_put_many(depot->stores[at], items, count, err);
    end(depot, at, code != 0 && store_failed(items, count));
    return code;
}

void depot_get(struct depot *depot, struct blob_item *items, size_t count)
{
    struct mr_error err;
    int at = begin(depot);

    if (at < 0) {
        refuse_all(items, count);
        return;
    }
    int code = blob_get_many(depot->stores[at], items, count, &err);
    if (code == MR_ENOMEM || code == MR_EUSAGE) { // of the call: nothing was sent
        refuse_all(items, count);
    }
    end(depot, at, code != 0 && store_failed(items, count));
}

int depot_has(struct depot *depot, const char *prefix, bool *ret, struct mr_error *err)
{
    AUTO_BLOB_PAGE page = {0};
    int at = begin(depot);

    if (at < 0) {
        return mr_error_set(err, MR_ECONNECT, "the blob store is left alone for a while");
    }
    int code = blob_list(depot->stores[at], prefix, NULL, &page, err);
    end(depot, at, code == MR_ECONNECT);
    *ret = code == 0 && page.count > 0;
    return code;
}

int64_t depot_pause_ms(struct depot *depot)
{
    pthread_mutex_lock(&depot->lock);
    int64_t wait_ms = breaker_retry_at_ms(&depot->breaker) - clock_ms();
    pthread_mutex_unlock(&depot->lock);
    return wait_ms > DEPOT_PAUSE_MIN_MS ? wait_ms : DEPOT_PAUSE_MIN_MS;
}
