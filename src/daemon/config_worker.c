// SPDX-License-Identifier: PostgreSQL
//
// A worker as configured, by a file or the command line: its defaults, its likes, its station.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "daemon/config.h"

#define DEFAULT_BATCH            100
#define DEFAULT_POLL_MS          100
#define DEFAULT_GRACE_MS         30000
#define DEFAULT_HEALTH_MS        15000
#define DEFAULT_BREAKER_FAILURES 5
#define DEFAULT_BREAKER_OPEN_MS  30000

void config_worker_init(struct config_worker *worker)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t poll_ms = config_environment_number("QUEUE_POLL_INTERVAL_MS");

    *worker = (struct config_worker){
        .concurrency = cores > 0 ? (int)cores : 1,
        .batch = DEFAULT_BATCH,
        .poll_ms = poll_ms ? poll_ms : DEFAULT_POLL_MS,
        .grace_ms = DEFAULT_GRACE_MS,
        .breaker = {.failures = DEFAULT_BREAKER_FAILURES, .open_ms = DEFAULT_BREAKER_OPEN_MS},
    };
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? str_equal(a, b) : a == b;
}

bool config_worker_equal(const struct config_worker *a, const struct config_worker *b)
{
    return same_text(a->name, b->name) && same_text(a->queue, b->queue) &&
           same_text(a->dsn, b->dsn) && same_text(a->redis, b->redis) && a->pooler == b->pooler &&
           a->kind == b->kind && same_text(a->target, b->target) &&
           a->concurrency == b->concurrency && a->batch == b->batch &&
           a->batch_wait_ms == b->batch_wait_ms && a->lease_ms == b->lease_ms &&
           a->poll_ms == b->poll_ms && a->timeout_ms == b->timeout_ms &&
           a->grace_ms == b->grace_ms && a->per_batch == b->per_batch &&
           a->procedure == b->procedure && a->private_networks == b->private_networks &&
           same_text(a->secret, b->secret) && a->breaker.failures == b->breaker.failures &&
           a->breaker.open_ms == b->breaker.open_ms;
}

void config_worker_name(const char *worker, char *name)
{
    char host[256] = "localhost";

    gethostname(host, sizeof(host) - 1);
    snprintf(name, CONFIG_WORKER_NAME_SIZE, "%.100s@%.80s:%d", worker, host, (int)getpid());
    str_trim_utf8(name);
}

struct depot_options config_depot(const struct config *config)
{
    return (struct depot_options){
        .address = config->blobs.address,
        .credentials = {.access_key = config->blobs.access_key,
                        .secret_key = config->blobs.secret_key},
    };
}

void config_worker_station(const struct config_worker *worker, const struct config *config,
                           char *name, struct station_options *ret)
{
    const char *dsn = worker->dsn ? worker->dsn : config ? config->dsn : NULL;
    bool pooler = worker->pooler || (config && config->pooler);

    config_worker_name(worker->name, name);
    *ret = (struct station_options){
        .worker = {.dsn = dsn,
                   .pooler = pooler,
                   .redis = worker->redis,
                   .queue = worker->queue,
                   .name = name,
                   .batch = worker->batch,
                   .lease_ms = worker->lease_ms,
                   .poll_ms = worker->poll_ms,
                   .batch_wait_ms = worker->batch_wait_ms,
                   .grace_ms = worker->grace_ms,
                   .health_ms = DEFAULT_HEALTH_MS},
        .handler = {.kind = worker->kind,
                    .name = worker->name,
                    .target = worker->target,
                    .dsn = dsn,
                    .pooler = pooler,
                    .concurrency = worker->concurrency,
                    .batch = worker->batch,
                    .timeout_ms = worker->timeout_ms,
                    .per_batch = worker->per_batch,
                    .procedure = worker->procedure,
                    .private_networks = worker->private_networks,
                    .secret = worker->secret},
        .breaker = worker->breaker,
    };
    if (config) {
        ret->worker.blobs = config_depot(config);
    }
}
