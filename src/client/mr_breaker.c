// SPDX-License-Identifier: PostgreSQL
//
// The circuit breaker of the library: that of base/breaker.h with a clock, chance and a mutex.

#include <millrace/millrace.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/breaker.h"
#include "base/clock.h"
#include "base/err.h"
#include "client/sized.h"

#define FAILURES_DEFAULT 5
#define OPEN_DEFAULT_MS  30000
// A wait and its jitter fit into an int64_t many times over.
#define OPEN_LIMIT_MS (366LL * 24 * 3600 * 1000)

struct mr_breaker {
    pthread_mutex_t mutex;
    struct breaker breaker;
};

static double share(void)
{
    return (double)random() / (double)RAND_MAX;
}

static int check(const mr_breaker_options *options, mr_error *err)
{
    if (options->failures < 0) {
        mr_error_set(err, MR_EUSAGE, "failures is negative: %d", options->failures);
        mr_error_hint(err, "Give a number from 1, or 0 for %d.", FAILURES_DEFAULT);
        return MR_EUSAGE;
    }
    if (options->open_ms < 0 || options->open_ms > OPEN_LIMIT_MS || options->open_max_ms < 0 ||
        options->open_max_ms > OPEN_LIMIT_MS) {
        mr_error_set(err, MR_EUSAGE, "open_ms and open_max_ms must be from 0 to a year");
        mr_error_hint(err, "Give milliseconds, or 0 for the default.");
        return MR_EUSAGE;
    }
    // written so that it is wrong for what is no number, too
    if (!(options->jitter >= 0 && options->jitter <= 1)) {
        mr_error_set(err, MR_EUSAGE, "jitter must be from 0 to 1");
        mr_error_hint(err, "Give 0.5 for up to half of the wait on top of it.");
        return MR_EUSAGE;
    }
    return 0;
}

int mr_breaker_new(const mr_breaker_options *from, mr_breaker **ret, mr_error *err)
{
    mr_breaker_options options = MR_BREAKER_OPTIONS_INIT;
    int code;

    if (from &&
        (code = sized_read(&options, sizeof(options), from, "MR_BREAKER_OPTIONS_INIT", err))) {
        return code;
    }
    if ((code = check(&options, err))) {
        return code;
    }
    mr_breaker *breaker = calloc(1, sizeof(*breaker));
    if (!breaker || pthread_mutex_init(&breaker->mutex, NULL)) {
        free(breaker);
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    breaker_init(&breaker->breaker,
                 (struct breaker_options){
                     .failures = options.failures ? options.failures : FAILURES_DEFAULT,
                     .open_ms = options.open_ms ? options.open_ms : OPEN_DEFAULT_MS,
                     .open_max_ms = options.open_max_ms,
                     .jitter = options.jitter,
                     .random = share,
                 });
    *ret = breaker;
    return 0;
}

int mr_breaker_allows(mr_breaker *breaker)
{
    pthread_mutex_lock(&breaker->mutex);
    int allowed = breaker_allows(&breaker->breaker, 1, clock_ms());
    breaker_started(&breaker->breaker, allowed);
    pthread_mutex_unlock(&breaker->mutex);
    return allowed;
}

void mr_breaker_good(mr_breaker *breaker)
{
    pthread_mutex_lock(&breaker->mutex);
    breaker_good(&breaker->breaker);
    pthread_mutex_unlock(&breaker->mutex);
}

void mr_breaker_failed(mr_breaker *breaker)
{
    pthread_mutex_lock(&breaker->mutex);
    breaker_failed(&breaker->breaker, clock_ms());
    pthread_mutex_unlock(&breaker->mutex);
}

void mr_breaker_neutral(mr_breaker *breaker)
{
    pthread_mutex_lock(&breaker->mutex);
    breaker_neutral(&breaker->breaker);
    pthread_mutex_unlock(&breaker->mutex);
}

static enum mr_breaker_status public_status(enum breaker_status status)
{
    switch (status) {
    case BREAKER_CLOSED: break;
    case BREAKER_OPEN: return MR_BREAKER_OPEN;
    case BREAKER_HALF_OPEN: return MR_BREAKER_HALF_OPEN;
    }
    return MR_BREAKER_CLOSED;
}

enum mr_breaker_status mr_breaker_status(mr_breaker *breaker)
{
    pthread_mutex_lock(&breaker->mutex);
    enum breaker_status status = breaker->breaker.status;
    pthread_mutex_unlock(&breaker->mutex);
    return public_status(status);
}

int64_t mr_breaker_retry_in_ms(mr_breaker *breaker)
{
    pthread_mutex_lock(&breaker->mutex);
    int64_t at_ms = breaker_retry_at_ms(&breaker->breaker);
    pthread_mutex_unlock(&breaker->mutex);
    int64_t left_ms = at_ms ? at_ms - clock_ms() : 0;
    return left_ms > 0 ? left_ms : 0;
}

void mr_breaker_free(mr_breaker *breaker)
{
    if (breaker) {
        pthread_mutex_destroy(&breaker->mutex);
        free(breaker);
    }
}
