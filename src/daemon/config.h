// SPDX-License-Identifier: PostgreSQL
//
// The configuration file as a tree of plain structs. See docs/configuration.md.

#ifndef MILLRACE_DAEMON_CONFIG_H
#define MILLRACE_DAEMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/breaker.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "daemon/station.h"
#include "handler/handler.h"
#include "http/http.h"

// worker NAME { queue, exec | run | http | sql | plugin, dsn, redis, concurrency, batch,
// batch_wait,
//               lease, poll, timeout, grace, per_batch, pooler, secret, breaker { failures,
//               open_for } }
struct config_worker {
    const char *name;
    const char *queue;
    const char *dsn; // NULL: the file's
    bool pooler;
    const char *redis; // jobs come by way of this Redis; NULL: from PostgreSQL
    enum handler_kind kind;
    const char *target;
    int concurrency;
    int batch;
    int64_t batch_wait_ms;
    int64_t lease_ms;
    int64_t poll_ms;
    int64_t timeout_ms;
    int64_t grace_ms;
    bool per_batch;
    bool procedure;
    bool private_networks;
    const char *secret;
    struct breaker_options breaker;
};

// queue NAME { setting = value ... }: passed to set_queue() as they are.
struct config_queue {
    const char *name;
    const char *settings_json;
    // whether the file says them: otherwise $QUEUE_RETENTION_HOURS and $MAX_RETRY_ATTEMPTS do
    bool has_retention;
    bool has_max_attempts;
};

// retry KIND { max_attempts, base, factor, cap, jitter }
struct config_retry {
    const char *kind;
    int max_attempts;
    int64_t base_ms;
    double factor;
    int64_t cap_ms;
    double jitter;
};

// schedule NAME { cron, timezone, kind, queue, args, catch_up, priority, active }: passed to
// schedule(), which has the defaults of what is NULL.
struct config_schedule {
    const char *name;
    const char *cron;
    const char *kind;
    const char *args; // JSON
    const char *queue;
    const char *timezone;
    const char *catch_up;
    bool active;
    int priority;
};

// bridge NAME { redis, stream, group, consumer, from, batch, block, reclaim, sql | queue, kind,
//               kind_from, priority, tenant_from, ordering_key_from, unique_key_from, json, dsn,
//               pooler }
struct config_bridge {
    const char *name;
    const char *redis; // an address that redis_url_parse() reads
    const char *stream;
    const char *group;
    const char *consumer; // NULL: the name of the host
    bool from_new;        // a new group begins behind what is in the stream
    int batch;
    int64_t block_ms;
    int64_t reclaim_ms;
    const char *dsn; // NULL: the file's
    bool pooler;
    const char *settings_json; // of bridge_apply(): sql, queue, kind and so on
};

// relay NAME { queue, redis, batch, in_flight, max_bytes, reclaim, lease, poll, grace, warn, dsn,
//              pooler }
struct config_relay {
    const char *name;
    const char *queue;
    const char *redis;  // an address that redis_url_parse() reads
    int batch;          // jobs in one claim
    int64_t in_flight;  // jobs that it holds at most
    int64_t max_bytes;  // and bytes of them, about
    int64_t reclaim_ms; // after so long entries are taken from a worker that is silent
    int64_t lease_ms;   // 0: as the queue says
    int64_t poll_ms;
    int64_t grace_ms;
    int64_t warn;    // entries with workers from which it warns; 0: never
    const char *dsn; // NULL: the file's
    bool pooler;
};

// http { listen, hosts, tls_cert, tls_key, max_connections, max_body, idle, disk_path,
//        token NAME { role, hash }, alias NAME { metric, queue } }
struct config_http {
    bool given;                  // the file has the section
    struct http_options options; // without what the daemon adds: dsn, version
    struct auth_token *tokens;
    struct http_alias *aliases;
    const char **hosts;
};

// blobs, blobs_access_key, blobs_secret_key, blobs_sweep, blobs_orphans: see carrier_new().
struct config_blobs {
    const char *address; // NULL: $MILLRACE_BLOBS, which may not be set either
    // both or none; NULL: those of the environment
    const char *access_key;
    const char *secret_key;
    // between two looks for orphans, and how old one must be
    int64_t sweep_ms, orphan_ms;
};

struct config {
    const char *dsn; // NULL: not given
    bool pooler;
    int64_t maintain_ms; // cadence
    enum log_format log_format;
    enum log_level log_level;
    struct config_worker *workers;
    size_t worker_count;
    struct config_queue *queues;
    size_t queue_count;
    struct config_retry *retries;
    size_t retry_count;
    struct config_schedule *schedules;
    size_t schedule_count;
    struct config_bridge *bridges;
    size_t bridge_count;
    struct config_relay *relays;
    size_t relay_count;
    struct config_http http;
    struct config_blobs blobs;
    void *memory; // what all the pointers point into
    bool broken;  // while it is built: out of memory
};

// Reads a file. *ret is the caller's, config_free(). Fails with MR_ECONFIG: the message is
// `FILE:LINE: what`, the hint names the nearest valid key; MR_EIO, MR_ENOMEM.
int config_load(const char *path, struct config **ret, struct mr_error *err);
void config_free(struct config *config);

// Adds a token to those of the file. Fails with MR_ENOMEM.
int config_add_token(struct config *config, const char *name, const char *role, const char *hash,
                     struct mr_error *err);
// What the HTTP part has when there is no section.
void config_http_init(struct config_http *http);

// Limits of names and of a worker's numbers.
#define CONFIG_NAME_MAX        200
#define CONFIG_CONCURRENCY_MAX 10000
#define CONFIG_BATCH_MAX       10000
// And of a bridge's times.
#define CONFIG_BLOCK_MAX_MS   5000
#define CONFIG_RECLAIM_MIN_MS 1000
// Jobs that a relay holds.
#define CONFIG_IN_FLIGHT_MAX 1000000

// Defaults of a worker, with $QUEUE_POLL_INTERVAL_MS taken into account.
void config_worker_init(struct config_worker *worker);

// How the database knows a worker: NAME@HOST:PID.
#define CONFIG_WORKER_NAME_SIZE 201

// What a station is made with. `config` gives what the worker leaves to the file; NULL: nothing.
// `name` has room for CONFIG_WORKER_NAME_SIZE bytes and is written; *ret borrows it and the
// worker's strings. Its dsn may name several shards: a station is made for one of them.
void config_worker_station(const struct config_worker *worker, const struct config *config,
                           char *name, struct station_options *ret);

// The blob store that workers and relays read payloads from. Borrowed from `config`.
struct depot_options config_depot(const struct config *config);

// The same worker, so that a reload can leave it running.
bool config_worker_equal(const struct config_worker *a, const struct config_worker *b);

// The same, for a relay's name, or a worker's.
void config_worker_name(const char *worker, char *name);

// The same relay.
bool config_relay_equal(const struct config_relay *a, const struct config_relay *b);

// The same bridge.
bool config_bridge_equal(const struct config_bridge *a, const struct config_bridge *b);

// Checks the numbers that the environment gives: $QUEUE_POLL_INTERVAL_MS, $QUEUE_RETENTION_HOURS,
// $MAX_RETRY_ATTEMPTS. Fails with MR_EUSAGE.
int config_check_environment(struct mr_error *err);

// The number in a variable of the environment; 0 when it is not set or none.
int64_t config_environment_number(const char *variable);

// Sets the log up as the file says, which may be NULL; $MILLRACE_LOG and $MILLRACE_LOG_LEVEL win.
// Fails with MR_EUSAGE for a value of theirs that is none.
int config_setup_log(const struct config *config, struct mr_error *err);

#endif
