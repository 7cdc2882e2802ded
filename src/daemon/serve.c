// SPDX-License-Identifier: PostgreSQL
//
// The daemon: see serve.h.
//
// Its parts (crew, upkeep, settings) each end by themselves after they were told to; the loop runs
// until the last of them has gone, and nothing here waits.

#include "daemon/serve.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/log.h"
#include "base/str.h"
#include "client/conn.h"
#include "client/dsn_list.h"
#include "daemon/bridges.h"
#include "daemon/carrier.h"
#include "daemon/crew.h"
#include "daemon/maintains.h"
#include "daemon/notify.h"
#include "daemon/pid_file.h"
#include "daemon/relays.h"
#include "daemon/settings.h"
#include "daemon/signals.h"
#include "http/http.h"

#define DEFAULT_MAINTAIN_MS 1000
#define COUNT_OF(array)     (sizeof(array) / sizeof((array)[0]))

struct serve {
    const struct serve_options *options;
    uv_loop_t loop;
    struct notify_watchdog watchdog;
    struct signals signals;
    struct config *config;
    struct crew *crew;
    struct bridges *bridges;
    struct relays *relays;
    struct maintains *maintain; // NULL: not a role, or ended
    struct carrier
        *carriers[DSN_LIST_MAX]; // of each database; NULL: no upkeep, no blob store, or ended
    struct settings *settings[DSN_LIST_MAX]; // of each database; NULL: nothing to apply, or applied
    struct http *http;                       // NULL: not a role, or ended
    struct tally tally;
    bool crew_ended;
    bool bridges_ended;
    bool relays_ended;
    bool maintained; // upkeep has connected
    bool ready;
    bool stopping;
    bool settings_again; // while they were applied the configuration changed
    int parts;           // upkeep and settings that have not ended
    int64_t rounds;      // of upkeep that has ended
};

// ---- roles ----

static const struct {
    const char *name;
    unsigned role;
} roles[] = {
    {"work", SERVE_WORK},     {"maintain", SERVE_MAINTAIN}, {"http", SERVE_HTTP},
    {"bridge", SERVE_BRIDGE}, {"relay", SERVE_RELAY},
};

static int parse_role(const char *name, unsigned *ret, struct mr_error *err)
{
    const char *nearest = roles[0].name;
    int nearest_distance = INT_MAX;

    for (size_t i = 0; i < COUNT_OF(roles); i++) {
        int distance = str_distance(name, roles[i].name);
        if (distance < nearest_distance) {
            nearest_distance = distance;
            nearest = roles[i].name;
        }
        if (distance == 0) {
            *ret |= roles[i].role;
            return 0;
        }
    }
    mr_error_set(err, MR_EUSAGE, "unknown role: \"%s\"", name);
    mr_error_hint(err, "The nearest is %s; write them with commas: --roles work,maintain.",
                  nearest);
    return MR_EUSAGE;
}

int serve_parse_roles(const char *text, unsigned *ret, struct mr_error *err)
{
    char name[STR_DISTANCE_MAX];
    unsigned all = 0;

    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        snprintf(name, sizeof(name), "%.*s", (int)length, at);
        int code = parse_role(name, &all, err);
        if (code) {
            return code;
        }
        at += length;
        if (!*at) {
            *ret = all;
            return 0;
        }
    }
}

// The roles as they are written, in a buffer of ROLE_NAMES_SIZE.
#define ROLE_NAMES_SIZE 64
static const char *role_names(unsigned which, char ret[ROLE_NAMES_SIZE])
{
    size_t used = 0;

    ret[0] = '\0';
    for (size_t i = 0; i < COUNT_OF(roles); i++) {
        if (which & roles[i].role) {
            used += (size_t)snprintf(ret + used, ROLE_NAMES_SIZE - used, "%s%s", used ? "," : "",
                                     roles[i].name);
        }
    }
    return ret;
}

// ---- the configuration ----

static struct config *no_file(void)
{
    struct config *config = calloc(1, sizeof(*config));

    if (config) {
        config->maintain_ms = DEFAULT_MAINTAIN_MS;
        config->log_level = LEVEL_INFO;
        config_http_init(&config->http);
    }
    return config;
}

// HTTP is served where the file has a section for it, or `millrace up` wants it.
static bool serves_http(const struct serve_options *options, const struct config *config)
{
    return (options->roles & SERVE_HTTP) && (config->http.given || options->http_hash);
}

static int complete_http(const struct serve_options *options, struct config *config,
                         struct mr_error *err)
{
    struct http_options *http = &config->http.options;

    if (!config->http.given && options->http_listen) {
        http->listen = options->http_listen;
        http->listen_fd = options->http_fd;
    }
    http->version = options->version;
    if (options->http_hash) {
        return config_add_token(config, "up", "admin", options->http_hash, err);
    }
    if (serves_http(options, config) ? http->token_count == 0 : options->roles == SERVE_HTTP) {
        mr_error_set(err, MR_ECONFIG, "http has no token");
        mr_error_hint(err, "Nobody could ask anything. `millrace token` makes one, and prints what "
                           "goes into the http section.");
        return MR_ECONFIG;
    }
    return 0;
}

// What cannot be spread over shards: each such section needs an address of its own then.
static int check_single(const struct serve_options *options, const struct config *config,
                        struct mr_error *err)
{
    const char *kind = NULL, *name = NULL;

    if (!conn_shards_dsn(config->dsn)) {
        return 0;
    }
    for (size_t i = 0; (options->roles & SERVE_BRIDGE) && !kind && i < config->bridge_count; i++) {
        kind = config->bridges[i].dsn ? NULL : "bridge";
        name = config->bridges[i].name;
    }
    for (size_t i = 0; (options->roles & SERVE_RELAY) && !kind && i < config->relay_count; i++) {
        kind = config->relays[i].dsn ? NULL : "relay";
        name = config->relays[i].name;
    }
    if (!kind) {
        return 0;
    }
    mr_error_set(err, MR_ECONFIG, "%s %s works on one database, and dsn names several", kind, name);
    mr_error_hint(err, "Give the section a dsn of its own, that of one shard; one section for each "
                       "shard serves all. docs/shards.md says more.");
    return MR_ECONFIG;
}

int serve_load(const struct serve_options *options, struct config **ret, struct mr_error *err)
{
    struct config *config = NULL;
    int code = config_check_environment(err);

    if (code == 0 && options->config_path) {
        code = config_load(options->config_path, &config, err);
    } else if (code == 0 && !(config = no_file())) {
        code = mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    if (code) {
        return code;
    }
    if (options->roles == SERVE_WORK && config->worker_count == 0) {
        config_free(config);
        mr_error_set(err, MR_ECONFIG, "no worker is configured, and work is the only role");
        mr_error_hint(err, "Add a worker section to the file, or the role maintain.");
        return MR_ECONFIG;
    }
    if (options->roles == SERVE_BRIDGE && config->bridge_count == 0) {
        config_free(config);
        mr_error_set(err, MR_ECONFIG, "no bridge is configured, and bridge is the only role");
        mr_error_hint(err, "Add a bridge section to the file.");
        return MR_ECONFIG;
    }
    if (options->roles == SERVE_RELAY && config->relay_count == 0) {
        config_free(config);
        mr_error_set(err, MR_ECONFIG, "no relay is configured, and relay is the only role");
        mr_error_hint(err, "Add a relay section to the file.");
        return MR_ECONFIG;
    }
    if (!str_empty(options->dsn)) {
        config->dsn = options->dsn;
    }
    code = complete_http(options, config, err);
    if (code == 0) {
        code = check_single(options, config, err);
    }
    if (code) {
        config_free(config);
        return code;
    }
    *ret = config;
    return 0;
}

// ---- the log ----

static void log_start(const struct serve *serve)
{
    char names[ROLE_NAMES_SIZE];
    // The role http without a section http has nothing to do, nor bridge or relay without one.
    unsigned shown = serve->options->roles;
    if (!serves_http(serve->options, serve->config)) {
        shown &= ~(unsigned)SERVE_HTTP;
    }
    if (serve->config->bridge_count == 0) {
        shown &= ~(unsigned)SERVE_BRIDGE;
    }
    if (serve->config->relay_count == 0) {
        shown &= ~(unsigned)SERVE_RELAY;
    }
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("version", serve->options->version),
        LOG_TEXT_FIELD("roles", role_names(shown, names)),
        LOG_TEXT_FIELD("config", serve->options->config_path),
        LOG_NUMBER_FIELD("workers", (int64_t)crew_size(serve->crew)),
        LOG_NUMBER_FIELD("pid", getpid()),
    };

    log_put(LEVEL_INFO, "serve.start", fields, COUNT_OF(fields), "millrace %s starts",
            serve->options->version);
}

static void log_end(const struct serve *serve)
{
    mr_worker_counts counts = MR_WORKER_COUNTS_INIT;

    crew_counts(serve->crew, &counts);
    const struct log_field fields[] = {
        LOG_NUMBER_FIELD("completed", counts.completed),
        LOG_NUMBER_FIELD("failed", counts.failed),
        LOG_NUMBER_FIELD("requeued", counts.requeued),
        LOG_NUMBER_FIELD("released", counts.released),
        LOG_NUMBER_FIELD("lost", counts.lost),
        LOG_NUMBER_FIELD("reconnects", counts.reconnects),
        LOG_NUMBER_FIELD("rounds", serve->rounds),
    };
    log_put(LEVEL_INFO, "serve.end", fields, COUNT_OF(fields), "millrace ends");
}

static void log_error(const char *event, const char *what, const struct mr_error *err)
{
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("detail", err->detail[0] ? err->detail : NULL),
        LOG_TEXT_FIELD("hint", err->hint[0] ? err->hint : NULL),
    };

    log_put(LEVEL_ERROR, event, fields, COUNT_OF(fields), "%s: %s", what, err->message);
}

// Every part has been connected once: what was asked for is being done.
static void check_ready(void *arg)
{
    struct serve *serve = arg;

    if (serve->ready || serve->stopping || !crew_connected(serve->crew) ||
        !bridges_ready(serve->bridges) || !relays_ready(serve->relays) ||
        (serve->maintain && !serve->maintained) || (serve->http && !http_connected(serve->http))) {
        return;
    }
    serve->ready = true;
    notify_supervisor("READY=1");
    log_put(LEVEL_INFO, "serve.ready", NULL, 0, "ready");
}

// ---- the parts ----

// The loop ends when nothing is left on it.
static void check_end(struct serve *serve)
{
    if (serve->stopping && serve->crew_ended && serve->bridges_ended && serve->relays_ended &&
        serve->parts == 0) {
        signals_close(&serve->signals);
    }
}

static void on_crew_ended(void *arg)
{
    struct serve *serve = arg;

    serve->crew_ended = true;
    check_end(serve);
}

static void on_bridges_ended(void *arg)
{
    struct serve *serve = arg;

    serve->bridges_ended = true;
    check_end(serve);
}

static void on_relays_ended(void *arg)
{
    struct serve *serve = arg;

    serve->relays_ended = true;
    check_end(serve);
}

static void on_part_ended(void *arg)
{
    struct serve *serve = arg;

    serve->parts--;
    check_end(serve);
}

static void on_maintain_connected(void *arg)
{
    struct serve *serve = arg;

    serve->maintained = true;
    check_ready(serve);
}

static int start_maintain(struct serve *serve, struct mr_error *err)
{
    const struct maintain_options options = {
        .dsn = serve->config->dsn,
        .pooler = serve->config->pooler,
        .every_ms = serve->config->maintain_ms,
        .connected = on_maintain_connected,
        .arg = serve,
    };

    if (!(serve->options->roles & SERVE_MAINTAIN)) {
        return 0;
    }
    int code = maintains_new(&options, &serve->loop, &serve->maintain, err);
    serve->parts += code == 0;
    return code;
}

static void stop_maintain(struct serve *serve)
{
    if (serve->maintain) {
        serve->rounds += maintains_rounds(serve->maintain);
        maintains_stop(serve->maintain, on_part_ended, serve);
        serve->maintain = NULL;
    }
}

// ---- the blob store ----

static void complete_carrier(const struct serve *serve, struct carrier_options *ret)
{
    const struct config_blobs *blobs = &serve->config->blobs;

    *ret = (struct carrier_options){
        .address = blobs->address ? blobs->address : getenv("MILLRACE_BLOBS"),
        .credentials = {.access_key = blobs->access_key, .secret_key = blobs->secret_key},
        .sweep_ms = blobs->sweep_ms,
        .orphan_ms = blobs->orphan_ms,
    };
}

static int start_carriers_of(struct serve *serve, struct carrier_options *options,
                             struct mr_error *err)
{
    const char *several = conn_shards_dsn(serve->config->dsn);
    struct dsn_list list;
    int code = dsn_list_parse(several ? several : serve->config->dsn, &list, err);

    if (code) {
        return code;
    }
    for (int i = 0; code == 0 && i < list.count; i++) {
        options->dsn = list.items[i];
        code = carrier_new(options, &serve->loop, &serve->carriers[i], err);
        serve->parts += code == 0;
    }
    dsn_list_done(&list);
    return code;
}

// Payloads are carried by whoever does upkeep and has a store.
static int start_carriers(struct serve *serve, struct mr_error *err)
{
    struct carrier_options options;

    complete_carrier(serve, &options);
    if (!(serve->options->roles & SERVE_MAINTAIN) || str_empty(options.address)) {
        return 0;
    }
    return start_carriers_of(serve, &options, err);
}

static void stop_carriers(struct serve *serve)
{
    for (int i = 0; i < DSN_LIST_MAX; i++) {
        if (serve->carriers[i]) {
            carrier_stop(serve->carriers[i], on_part_ended, serve);
            serve->carriers[i] = NULL;
        }
    }
}

// ---- http ----

static void on_http_connected(void *arg)
{
    check_ready(arg);
}

static void on_reasons(void *arg, struct buf *out)
{
    const struct serve *serve = arg;

    crew_reasons(serve->crew, out);
    bridges_reasons(serve->bridges, out);
    relays_reasons(serve->relays, out);
}

static void on_bridges(void *arg, void (*each)(void *each_arg, const struct http_bridge *bridge),
                       void *each_arg)
{
    const struct serve *serve = arg;

    bridges_each(serve->bridges, each, each_arg);
}

static void on_relays(void *arg, void (*each)(void *each_arg, const struct http_relay *relay),
                      void *each_arg)
{
    const struct serve *serve = arg;

    relays_each(serve->relays, each, each_arg);
}

static void on_breakers(void *arg, void (*each)(void *each_arg, const char *worker, bool open),
                        void *each_arg)
{
    const struct serve *serve = arg;

    crew_breakers(serve->crew, each, each_arg);
    if (serve->carriers[0]) {
        bool open = false;
        for (int i = 0; i < DSN_LIST_MAX && serve->carriers[i]; i++) {
            open = open || carrier_breaker_open(serve->carriers[i]);
        }
        each(each_arg, "blobs", open);
    }
}

static int64_t on_reconnects(void *arg)
{
    const struct serve *serve = arg;
    mr_worker_counts counts = MR_WORKER_COUNTS_INIT;

    crew_counts(serve->crew, &counts);
    return counts.reconnects + (serve->maintain ? maintains_reconnects(serve->maintain) : 0);
}

static void complete_options(const struct serve *serve, struct http_options *ret)
{
    *ret = serve->config->http.options;
    ret->dsn = serve->config->dsn;
    ret->pooler = serve->config->pooler;
    ret->blobs = config_depot(serve->config);
}

static int start_http(struct serve *serve, struct mr_error *err)
{
    const struct http_hooks hooks = {
        .connected = on_http_connected,
        .reasons = on_reasons,
        .breakers = on_breakers,
        .bridges = on_bridges,
        .relays = on_relays,
        .reconnects = on_reconnects,
        .arg = serve,
    };
    struct http_options options;

    if (!serves_http(serve->options, serve->config)) {
        return 0;
    }
    complete_options(serve, &options);
    int code = http_new(&options, &hooks, &serve->tally, &serve->loop, &serve->http, err);
    serve->parts += code == 0;
    return code;
}

static void stop_http(struct serve *serve)
{
    if (serve->http) {
        http_stop(serve->http, on_part_ended, serve);
        serve->http = NULL;
    }
}

// A section that came or went, tokens, hosts and aliases count at once; the rest needs a restart.
static void apply_http(struct serve *serve)
{
    struct http_options options;
    struct mr_error err;

    if (!serve->http || !serves_http(serve->options, serve->config)) {
        stop_http(serve);
        if (start_http(serve, &err)) {
            log_error("http.failed", "HTTP cannot be served", &err);
        }
        return;
    }
    complete_options(serve, &options);
    if (!http_apply(serve->http, &options)) {
        log_put(LEVEL_WARNING, "http.restart", NULL, 0,
                "listen, tls, dsn and limits of http count after a restart");
    }
}

// ---- settings ----

static bool applies_settings(const struct serve *serve)
{
    for (int i = 0; i < DSN_LIST_MAX; i++) {
        if (serve->settings[i]) {
            return true;
        }
    }
    return false;
}

static void stop_settings(struct serve *serve)
{
    for (int i = 0; i < DSN_LIST_MAX; i++) {
        if (serve->settings[i]) {
            settings_stop(serve->settings[i]);
        }
    }
}

static void on_settings_ended(void *arg, const struct settings *settings);

static int start_settings(struct serve *serve, struct mr_error *err)
{
    const char *several = conn_shards_dsn(serve->config->dsn);
    struct dsn_list list;
    int code = dsn_list_parse(several ? several : serve->config->dsn, &list, err);

    if (code) {
        return code;
    }
    for (int i = 0; code == 0 && i < list.count; i++) {
        code = settings_apply(serve->config, list.items[i], list.count > 1, &serve->loop,
                              on_settings_ended, serve, &serve->settings[i], err);
        serve->parts += code == 0 && serve->settings[i];
    }
    dsn_list_done(&list);
    return code;
}

static void on_settings_ended(void *arg, const struct settings *settings)
{
    struct serve *serve = arg;
    struct mr_error err;

    for (int i = 0; i < DSN_LIST_MAX; i++) {
        serve->settings[i] = serve->settings[i] == settings ? NULL : serve->settings[i];
    }
    if (serve->settings_again && !serve->stopping && !applies_settings(serve)) {
        serve->settings_again = false;
        if (start_settings(serve, &err)) {
            log_error("settings.failed", "settings cannot be applied", &err);
        }
    }
    on_part_ended(serve);
}

// ---- signals ----

static void on_stop(void *arg)
{
    struct serve *serve = arg;

    serve->stopping = true;
    notify_supervisor("STOPPING=1");
    stop_maintain(serve);
    stop_carriers(serve);
    stop_http(serve);
    stop_settings(serve);
    int64_t crew_ms = crew_stop(serve->crew);
    int64_t bridges_ms = serve->bridges ? bridges_stop(serve->bridges) : 0;
    int64_t relays_ms = serve->relays ? relays_stop(serve->relays) : 0;
    int64_t most_ms = crew_ms > bridges_ms ? crew_ms : bridges_ms;
    signals_limit(&serve->signals, (most_ms > relays_ms ? most_ms : relays_ms) + SIGNALS_MARGIN_MS);
    if (relays_ms == 0) {
        on_relays_ended(serve);
    }
    if (bridges_ms == 0) {
        on_bridges_ended(serve);
    }
    if (crew_size(serve->crew) == 0) {
        on_crew_ended(serve);
    }
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? str_equal(a, b) : a == b;
}

static bool same_blobs(const struct config *a, const struct config *b)
{
    return same_text(a->dsn, b->dsn) && same_text(a->blobs.address, b->blobs.address) &&
           same_text(a->blobs.access_key, b->blobs.access_key) &&
           same_text(a->blobs.secret_key, b->blobs.secret_key) &&
           a->blobs.sweep_ms == b->blobs.sweep_ms && a->blobs.orphan_ms == b->blobs.orphan_ms;
}

static bool same_upkeep(const struct config *a, const struct config *b)
{
    return same_text(a->dsn, b->dsn) && a->pooler == b->pooler && a->maintain_ms == b->maintain_ms;
}

// The new file counts from here on; what follows can fail no more than a first start.
static void take_config(struct serve *serve, struct config *config)
{
    struct config *before = serve->config;
    bool same = same_upkeep(before, config);
    bool same_store = same_blobs(before, config);
    struct mr_error err;

    serve->config = config;
    if (config_setup_log(config, &err)) {
        log_error("serve.reload", "the log stays as it was", &err);
    }
    if (!same) {
        stop_maintain(serve);
        if (start_maintain(serve, &err)) {
            log_error("maintain.failed", "upkeep cannot be started", &err);
        }
    }
    if (!same_store) {
        stop_carriers(serve);
        if (start_carriers(serve, &err)) {
            log_error("blobs.failed", "payloads cannot be carried", &err);
        }
    }
    if (applies_settings(serve)) {
        serve->settings_again = true;
        stop_settings(serve);
    } else if (start_settings(serve, &err)) {
        log_error("settings.failed", "settings cannot be applied", &err);
    }
    apply_http(serve);
    config_free(before);
}

static int reload(struct serve *serve, struct mr_error *err)
{
    struct config *config = NULL;
    int code = serve_load(serve->options, &config, err);

    if (code == 0 && (serve->options->roles & SERVE_WORK)) {
        code = crew_apply(serve->crew, config, err);
    }
    if (code == 0 && (serve->options->roles & SERVE_BRIDGE)) {
        code = bridges_apply(serve->bridges, config, err);
    }
    if (code == 0 && (serve->options->roles & SERVE_RELAY)) {
        code = relays_apply(serve->relays, config, err);
    }
    if (code) {
        config_free(config);
        return code;
    }
    take_config(serve, config);
    return 0;
}

static void on_reload(void *arg)
{
    struct serve *serve = arg;
    struct mr_error err;

    if (!serve->options->config_path) {
        log_put(LEVEL_INFO, "serve.reload", NULL, 0, "there is no file to read again");
        return;
    }
    notify_reloading();
    if (reload(serve, &err)) {
        log_error("serve.reload_refused", "the configuration stays as it was", &err);
    } else {
        log_put(LEVEL_INFO, "serve.reloaded", NULL, 0, "the configuration was read again");
    }
    notify_supervisor("READY=1");
}

// ---- the whole ----

// On failure what was started is on the loop and ends by itself after serve_abort().
static int start(struct serve *serve, struct mr_error *err)
{
    const struct crew_hooks hooks = {
        .connected = check_ready,
        .ended = on_crew_ended,
        .arg = serve,
    };
    const struct bridges_hooks bridges_hooks = {
        .connected = check_ready,
        .ended = on_bridges_ended,
        .arg = serve,
    };
    const struct relays_hooks relays_hooks = {
        .connected = check_ready,
        .ended = on_relays_ended,
        .arg = serve,
    };
    int code = crew_new(&serve->loop, &hooks, &serve->tally, &serve->crew, err);

    if (code == 0) {
        code = bridges_new(&serve->loop, &bridges_hooks, &serve->bridges, err);
    }
    if (code == 0) {
        code = relays_new(&serve->loop, &relays_hooks, &serve->relays, err);
    }
    if (code == 0 && (serve->options->roles & SERVE_WORK)) {
        code = crew_apply(serve->crew, serve->config, err);
    }
    if (code == 0 && (serve->options->roles & SERVE_BRIDGE)) {
        code = bridges_apply(serve->bridges, serve->config, err);
    }
    if (code == 0 && (serve->options->roles & SERVE_RELAY)) {
        code = relays_apply(serve->relays, serve->config, err);
    }
    if (code == 0) {
        code = start_maintain(serve, err);
    }
    if (code == 0) {
        code = start_carriers(serve, err);
    }
    if (code == 0) {
        code = start_http(serve, err);
    }
    return code ? code : start_settings(serve, err);
}

static int run(struct serve *serve, struct mr_error *err)
{
    const struct signals_hooks hooks = {.stop = on_stop, .reload = on_reload, .arg = serve};
    int code;

    uv_loop_init(&serve->loop);
    signals_init(&serve->signals, &serve->loop, &hooks);
    code = start(serve, err);
    if (code == 0) {
        log_start(serve);
    } else if (serve->crew) {
        on_stop(serve);
    } else {
        signals_close(&serve->signals);
    }
    notify_watchdog_start(&serve->watchdog, &serve->loop);
    uv_run(&serve->loop, UV_RUN_DEFAULT);
    notify_watchdog_stop(&serve->watchdog);
    uv_run(&serve->loop, UV_RUN_DEFAULT);
    if (code == 0) {
        log_end(serve);
    }
    crew_free(serve->crew);
    bridges_free(serve->bridges);
    relays_free(serve->relays);
    tally_done(&serve->tally);
    uv_loop_close(&serve->loop);
    return code;
}

int serve_run(const struct serve_options *options, struct mr_error *err)
{
    struct serve serve = {.options = options};
    int pid_fd = -1;
    int code = serve_load(options, &serve.config, err);

    if (code == 0) {
        code = config_setup_log(serve.config, err);
    }
    if (code == 0 && options->pid_file) {
        code = pid_file_write(options->pid_file, &pid_fd, err);
    }
    if (code == 0) {
        code = run(&serve, err);
    }
    pid_file_remove(options->pid_file, pid_fd);
    config_free(serve.config);
    return code;
}
