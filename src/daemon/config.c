// SPDX-License-Identifier: PostgreSQL
//
// The configuration file: see config.h.

#include "daemon/config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "client/dsn_list.h"
#include "daemon/carrier.h"
#include "daemon/config_parts.h"

#define FILE_MAX         (1024 * 1024)
#define SETTINGS_MAX     (64 * 1024)
#define DEFAULT_MAINTAIN 1000
#define DEFAULT_PRIORITY 50
// of a relay
#define DEFAULT_RELAY_BATCH    500
#define DEFAULT_IN_FLIGHT      10000
#define DEFAULT_RELAY_BYTES    (INT64_C(256) * 1024 * 1024)
#define DEFAULT_RELAY_POLL_MS  100
#define DEFAULT_RELAY_GRACE_MS 30000
#define DEFAULT_RELAY_WARN     1000
// of a bridge
#define DEFAULT_GROUP        "millrace"
#define DEFAULT_BRIDGE_BATCH 500
#define DEFAULT_BLOCK_MS     1000
#define DEFAULT_RECLAIM_MS   60000

// ---- memory ----

struct block {
    struct block *next;
    char text[];
};

// A copy that lives as long as the configuration; NULL for NULL and without memory.
static const char *keep(struct config *config, const char *text)
{
    size_t size = text ? strlen(text) + 1 : 0;
    struct block *block = text ? malloc(sizeof(*block) + size) : NULL;

    if (!block) {
        config->broken = config->broken || text;
        return NULL;
    }
    memcpy(block->text, text, size);
    block->next = config->memory;
    config->memory = block;
    return block->text;
}

void config_free(struct config *config)
{
    if (!config) {
        return;
    }
    for (struct block *block = config->memory, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    free(config->workers);
    free(config->queues);
    free(config->retries);
    free(config->schedules);
    free(config->bridges);
    free(config->relays);
    free(config->http.tokens);
    free(config->http.aliases);
    free(config->http.hosts);
    free(config);
}

// ---- values that may be absent ----

static const char *text_of(struct config *config, cfg_t *section, const char *key)
{
    return cfg_size(section, key) ? keep(config, cfg_getstr(section, key)) : NULL;
}

// One address, or several as one text.
static const char *dsn_of(struct config *config, cfg_t *section)
{
    AUTO_BUF list;

    buf_init(&list, DSN_LIST_SIZE_MAX);
    for (unsigned i = 0; i < cfg_size(section, "dsn"); i++) {
        dsn_list_add(&list, cfg_getnstr(section, "dsn", i));
    }
    config->broken = config->broken || list.status;
    return list.len ? keep(config, buf_peek(&list)) : NULL;
}

static int64_t number_of(cfg_t *section, const char *key, int64_t fallback)
{
    return cfg_size(section, key) ? cfg_getint(section, key) : fallback;
}

static double real_of(cfg_t *section, const char *key, double fallback)
{
    return cfg_size(section, key) ? cfg_getfloat(section, key) : fallback;
}

static bool flag_of(cfg_t *section, const char *key, bool fallback)
{
    return cfg_size(section, key) ? cfg_getbool(section, key) : fallback;
}

// ---- sections ----

static void take_handler(struct config *config, cfg_t *section, struct config_worker *ret)
{
    for (int kind = 0; kind < CONFIG_HANDLERS; kind++) {
        if (cfg_size(section, config_handler_keys[kind])) {
            ret->kind = (enum handler_kind)kind;
            ret->target = text_of(config, section, config_handler_keys[kind]);
        }
    }
}

static void take_worker(struct config *config, cfg_t *section, struct config_worker *ret)
{
    config_worker_init(ret);
    ret->name = keep(config, cfg_title(section));
    ret->queue = text_of(config, section, "queue");
    ret->dsn = dsn_of(config, section);
    ret->redis = text_of(config, section, "redis");
    ret->secret = text_of(config, section, "secret");
    take_handler(config, section, ret);
    ret->pooler = flag_of(section, "pooler", false);
    ret->per_batch = flag_of(section, "per_batch", false);
    ret->procedure = flag_of(section, "procedure", false);
    ret->private_networks = flag_of(section, "private_networks", false);
    ret->concurrency = (int)number_of(section, "concurrency", ret->concurrency);
    ret->batch = (int)number_of(section, "batch", ret->batch);
    ret->batch_wait_ms = number_of(section, "batch_wait", ret->batch_wait_ms);
    ret->lease_ms = number_of(section, "lease", ret->lease_ms);
    ret->poll_ms = number_of(section, "poll", ret->poll_ms);
    ret->timeout_ms = number_of(section, "timeout", ret->timeout_ms);
    ret->grace_ms = number_of(section, "grace", ret->grace_ms);
    if (cfg_size(section, "breaker")) {
        cfg_t *breaker = cfg_getsec(section, "breaker");
        ret->breaker.failures = (int)number_of(breaker, "failures", ret->breaker.failures);
        ret->breaker.open_ms = number_of(breaker, "open_for", ret->breaker.open_ms);
    }
}

static void add_setting(struct buf *json, cfg_t *section, const struct config_setting *setting)
{
    if (!cfg_size(section, setting->name)) {
        return;
    }
    buf_printf(json, "%s\"%s\":", json->len > 1 ? "," : "", setting->name);
    if (setting->type == SETTING_NUMBER) {
        buf_printf(json, "%ld", cfg_getint(section, setting->name));
    } else {
        json_add_string(json, cfg_getstr(section, setting->name));
    }
}

static void take_queue(struct config *config, cfg_t *section, struct config_queue *ret)
{
    AUTO_BUF json;

    buf_init(&json, SETTINGS_MAX);
    buf_puts(&json, "{");
    for (const struct config_setting *setting = config_settings; setting->name; setting++) {
        add_setting(&json, section, setting);
    }
    buf_puts(&json, "}");
    config->broken = config->broken || buf_status(&json, NULL);
    ret->name = keep(config, cfg_title(section));
    ret->settings_json = keep(config, buf_peek(&json));
    ret->has_retention = cfg_size(section, "retention") > 0;
    ret->has_max_attempts = cfg_size(section, "max_attempts") > 0;
}

static void take_retry(struct config *config, cfg_t *section, struct config_retry *ret)
{
    ret->kind = keep(config, cfg_title(section));
    ret->max_attempts = (int)number_of(section, "max_attempts", 3);
    ret->base_ms = number_of(section, "base", 2000);
    ret->factor = real_of(section, "factor", 2);
    ret->cap_ms = number_of(section, "cap", 60 * 60 * 1000);
    ret->jitter = real_of(section, "jitter", 0.5);
}

static void take_schedule(struct config *config, cfg_t *section, struct config_schedule *ret)
{
    ret->name = keep(config, cfg_title(section));
    ret->cron = text_of(config, section, "cron");
    ret->kind = text_of(config, section, "kind");
    ret->args = text_of(config, section, "args");
    ret->queue = text_of(config, section, "queue");
    ret->timezone = text_of(config, section, "timezone");
    ret->catch_up = text_of(config, section, "catch_up");
    ret->active = flag_of(section, "active", true);
    ret->priority = (int)number_of(section, "priority", DEFAULT_PRIORITY);
}

// The keys that bridge_apply() gets.
static const char *bridge_settings(struct config *config, cfg_t *section)
{
    AUTO_BUF json;

    buf_init(&json, SETTINGS_MAX);
    buf_puts(&json, "{");
    for (const struct config_setting *setting = config_bridge_settings; setting->name; setting++) {
        add_setting(&json, section, setting);
    }
    buf_puts(&json, "}");
    config->broken = config->broken || buf_status(&json, NULL);
    return keep(config, buf_peek(&json));
}

static void take_bridge(struct config *config, cfg_t *section, struct config_bridge *ret)
{
    const char *group = text_of(config, section, "group");
    const char *from = text_of(config, section, "from");

    ret->name = keep(config, cfg_title(section));
    ret->redis = text_of(config, section, "redis");
    ret->stream = text_of(config, section, "stream");
    ret->group = group ? group : DEFAULT_GROUP;
    ret->consumer = text_of(config, section, "consumer");
    ret->from_new = from && str_equal(from, "new");
    ret->batch = (int)number_of(section, "batch", DEFAULT_BRIDGE_BATCH);
    ret->block_ms = number_of(section, "block", DEFAULT_BLOCK_MS);
    ret->reclaim_ms = number_of(section, "reclaim", DEFAULT_RECLAIM_MS);
    ret->dsn = text_of(config, section, "dsn");
    ret->pooler = flag_of(section, "pooler", false);
    ret->settings_json = bridge_settings(config, section);
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? str_equal(a, b) : a == b;
}

bool config_bridge_equal(const struct config_bridge *a, const struct config_bridge *b)
{
    return same_text(a->name, b->name) && same_text(a->redis, b->redis) &&
           same_text(a->stream, b->stream) && same_text(a->group, b->group) &&
           same_text(a->consumer, b->consumer) && a->from_new == b->from_new &&
           a->batch == b->batch && a->block_ms == b->block_ms && a->reclaim_ms == b->reclaim_ms &&
           same_text(a->dsn, b->dsn) && a->pooler == b->pooler &&
           same_text(a->settings_json, b->settings_json);
}

// ---- relays ----

static void take_relay(struct config *config, cfg_t *section, struct config_relay *ret)
{
    ret->name = keep(config, cfg_title(section));
    ret->queue = text_of(config, section, "queue");
    ret->redis = text_of(config, section, "redis");
    ret->batch = (int)number_of(section, "batch", DEFAULT_RELAY_BATCH);
    ret->in_flight = number_of(section, "in_flight", DEFAULT_IN_FLIGHT);
    ret->max_bytes = number_of(section, "max_bytes", DEFAULT_RELAY_BYTES);
    ret->reclaim_ms = number_of(section, "reclaim", DEFAULT_RECLAIM_MS);
    ret->lease_ms = number_of(section, "lease", 0);
    ret->poll_ms = number_of(section, "poll", DEFAULT_RELAY_POLL_MS);
    ret->grace_ms = number_of(section, "grace", DEFAULT_RELAY_GRACE_MS);
    ret->warn = number_of(section, "warn", DEFAULT_RELAY_WARN);
    ret->dsn = text_of(config, section, "dsn");
    ret->pooler = flag_of(section, "pooler", false);
}

bool config_relay_equal(const struct config_relay *a, const struct config_relay *b)
{
    return same_text(a->name, b->name) && same_text(a->queue, b->queue) &&
           same_text(a->redis, b->redis) && a->batch == b->batch && a->in_flight == b->in_flight &&
           a->max_bytes == b->max_bytes && a->reclaim_ms == b->reclaim_ms &&
           a->lease_ms == b->lease_ms && a->poll_ms == b->poll_ms && a->grace_ms == b->grace_ms &&
           a->warn == b->warn && same_text(a->dsn, b->dsn) && a->pooler == b->pooler;
}

// ---- http ----

void config_http_init(struct config_http *http)
{
    *http = (struct config_http){.options = {
                                     .listen = HTTP_DEFAULT_LISTEN,
                                     .max_connections = HTTP_DEFAULT_CONNECTIONS,
                                     .max_body = HTTP_DEFAULT_MAX_BODY,
                                     .idle_ms = HTTP_DEFAULT_IDLE_MS,
                                 }};
}

static void add_token(struct config *config, const char *name, const char *role, const char *hash)
{
    struct config_http *http = &config->http;
    size_t count = http->options.token_count;
    struct auth_token *tokens = realloc(http->tokens, (count + 1) * sizeof(*tokens));

    if (!tokens) {
        config->broken = true;
        return;
    }
    tokens[count] = (struct auth_token){.name = keep(config, name)};
    auth_parse_role(role, &tokens[count].rights);
    auth_parse_hash(hash, tokens[count].hash);
    http->options.tokens = http->tokens = tokens;
    http->options.token_count++;
}

int config_add_token(struct config *config, const char *name, const char *role, const char *hash,
                     struct mr_error *err)
{
    add_token(config, name, role, hash);
    return config->broken ? mr_error_set(err, MR_ENOMEM, "out of memory") : 0;
}

static void take_aliases(struct config *config, cfg_t *section)
{
    struct config_http *http = &config->http;
    unsigned count = cfg_size(section, "alias");

    http->aliases = calloc(count + 1, sizeof(*http->aliases));
    config->broken = config->broken || !http->aliases;
    for (unsigned i = 0; http->aliases && i < count; i++) {
        cfg_t *alias = cfg_getnsec(section, "alias", i);
        http->aliases[i] = (struct http_alias){
            .name = keep(config, cfg_title(alias)),
            .metric = text_of(config, alias, "metric"),
            .queue = text_of(config, alias, "queue"),
        };
    }
    http->options.aliases = http->aliases;
    http->options.alias_count = http->aliases ? count : 0;
}

static void take_hosts(struct config *config, cfg_t *section)
{
    struct config_http *http = &config->http;
    unsigned count = cfg_size(section, "hosts");

    http->hosts = calloc(count + 1, sizeof(*http->hosts));
    config->broken = config->broken || !http->hosts;
    for (unsigned i = 0; http->hosts && i < count; i++) {
        http->hosts[i] = keep(config, cfg_getnstr(section, "hosts", i));
    }
    http->options.hosts = http->hosts;
}

static void take_http(struct config *config, cfg_t *cfg)
{
    struct http_options *options = &config->http.options;

    config_http_init(&config->http);
    if (!cfg_size(cfg, "http")) {
        return;
    }
    cfg_t *section = cfg_getsec(cfg, "http");
    const char *listen = text_of(config, section, "listen");
    config->http.given = true;
    options->listen = listen ? listen : options->listen;
    options->tls_cert = text_of(config, section, "tls_cert");
    options->tls_key = text_of(config, section, "tls_key");
    options->max_connections = number_of(section, "max_connections", options->max_connections);
    options->max_body = number_of(section, "max_body", options->max_body);
    options->idle_ms = number_of(section, "idle", options->idle_ms);
    options->disk_path = text_of(config, section, "disk_path");
    take_hosts(config, section);
    take_aliases(config, section);
    for (unsigned i = 0; i < cfg_size(section, "token"); i++) {
        cfg_t *token = cfg_getnsec(section, "token", i);
        add_token(config, cfg_title(token), cfg_getstr(token, "role"), cfg_getstr(token, "hash"));
    }
}

static void take_blobs(struct config *config, cfg_t *cfg)
{
    config->blobs.address = text_of(config, cfg, "blobs");
    config->blobs.access_key = text_of(config, cfg, "blobs_access_key");
    config->blobs.secret_key = text_of(config, cfg, "blobs_secret_key");
    config->blobs.sweep_ms = number_of(cfg, "blobs_sweep", CARRIER_SWEEP_MS);
    config->blobs.orphan_ms = number_of(cfg, "blobs_orphans", CARRIER_ORPHAN_MS);
}

// An array of one entry a section, at least one so that it is never NULL.
static void *make_array(struct config *config, cfg_t *cfg, const char *section, size_t size,
                        size_t *ret_count)
{
    size_t count = cfg_size(cfg, section);
    void *array = calloc(count ? count : 1, size);

    config->broken = config->broken || !array;
    *ret_count = array ? count : 0;
    return array;
}

static void take_sections(struct config *config, cfg_t *cfg)
{
    config->workers =
        make_array(config, cfg, "worker", sizeof(*config->workers), &config->worker_count);
    config->queues =
        make_array(config, cfg, "queue", sizeof(*config->queues), &config->queue_count);
    config->retries =
        make_array(config, cfg, "retry", sizeof(*config->retries), &config->retry_count);
    config->schedules =
        make_array(config, cfg, "schedule", sizeof(*config->schedules), &config->schedule_count);
    config->bridges =
        make_array(config, cfg, "bridge", sizeof(*config->bridges), &config->bridge_count);
    for (unsigned int i = 0; i < config->bridge_count; i++) {
        take_bridge(config, cfg_getnsec(cfg, "bridge", i), &config->bridges[i]);
    }
    config->relays =
        make_array(config, cfg, "relay", sizeof(*config->relays), &config->relay_count);
    for (unsigned int i = 0; i < config->relay_count; i++) {
        take_relay(config, cfg_getnsec(cfg, "relay", i), &config->relays[i]);
    }
    for (unsigned int i = 0; i < config->worker_count; i++) {
        take_worker(config, cfg_getnsec(cfg, "worker", i), &config->workers[i]);
    }
    for (unsigned int i = 0; i < config->queue_count; i++) {
        take_queue(config, cfg_getnsec(cfg, "queue", i), &config->queues[i]);
    }
    for (unsigned int i = 0; i < config->retry_count; i++) {
        take_retry(config, cfg_getnsec(cfg, "retry", i), &config->retries[i]);
    }
    for (unsigned int i = 0; i < config->schedule_count; i++) {
        take_schedule(config, cfg_getnsec(cfg, "schedule", i), &config->schedules[i]);
    }
}

static int build(cfg_t *cfg, struct config **ret, struct mr_error *err)
{
    struct config *config = calloc(1, sizeof(*config));

    if (!config) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    config->dsn = dsn_of(config, cfg);
    config->pooler = flag_of(cfg, "pooler", false);
    config->log_format = (enum log_format)cfg_getint(cfg, "log");
    config->log_level = (enum log_level)cfg_getint(cfg, "log_level");
    config->maintain_ms = number_of(cfg, "maintain", DEFAULT_MAINTAIN);
    take_sections(config, cfg);
    take_http(config, cfg);
    take_blobs(config, cfg);
    if (config->broken) {
        config_free(config);
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    *ret = config;
    return 0;
}

// ---- the file ----

static int read_file(const char *path, struct buf *text, struct mr_error *err)
{
    FILE *file = fopen(path, "re");
    char part[4096];
    size_t size;

    if (!file) {
        mr_error_set(err, MR_EIO, "cannot read %s: %s", path, strerror(errno));
        mr_error_hint(err, "The file is chosen with -c FILE, else MILLRACE_CONFIG.");
        return MR_EIO;
    }
    while ((size = fread(part, 1, sizeof(part), file)) > 0) {
        buf_add(text, part, size);
    }
    int failed = ferror(file) ? errno : 0;
    fclose(file);
    if (failed) {
        return mr_error_set(err, MR_EIO, "cannot read %s: %s", path, strerror(failed));
    }
    if (text->status == MR_ELIMIT || strlen(buf_peek(text)) != text->len) {
        return mr_error_set(err, MR_ECONFIG, "%s: not a configuration file: %s", path,
                            text->status ? "larger than 1 MiB" : "it has zero bytes");
    }
    return buf_status(text, err);
}

int config_load(const char *path, struct config **ret, struct mr_error *err)
{
    cfg_t *cfg = NULL;
    AUTO_BUF text;

    buf_init(&text, FILE_MAX);
    int code = read_file(path, &text, err);
    if (code == 0) {
        code = config_check_variables(path, buf_peek(&text), err);
    }
    if (code == 0) {
        code = config_parse(path, buf_peek(&text), &cfg, err);
    }
    if (code) {
        return code;
    }
    code = build(cfg, ret, err);
    cfg_free(cfg);
    return code;
}
