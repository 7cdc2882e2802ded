// SPDX-License-Identifier: PostgreSQL
//
// The bridges of a configuration: see bridges.h.

#include "daemon/bridges.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "daemon/bridge.h"

// One bridge with the configuration it was made of, which outlives the file's.
struct span {
    struct bridges *bridges;
    struct config_bridge config;
    struct bridge *bridge;
    bool leaving;
    struct span *next;
};

struct bridges {
    uv_loop_t *loop;
    struct bridges_hooks hooks;
    struct span *spans;
    bool stopping;
};

// ---- a copy of the configuration ----

static bool copy_text(const char **text)
{
    if (*text && !(*text = strdup(*text))) {
        return false;
    }
    return true;
}

static void free_copy(struct config_bridge *copy)
{
    free((char *)copy->name);
    free((char *)copy->redis);
    free((char *)copy->stream);
    free((char *)copy->group);
    free((char *)copy->consumer);
    free((char *)copy->dsn);
    free((char *)copy->settings_json);
}

static bool copy_config(const struct config_bridge *from, struct config_bridge *ret)
{
    *ret = *from;
    const char **texts[] = {&ret->name,     &ret->redis, &ret->stream,       &ret->group,
                            &ret->consumer, &ret->dsn,   &ret->settings_json};
    bool good = true;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        *texts[i] = good ? *texts[i] : NULL;
        good = good && copy_text(texts[i]);
    }
    return good;
}

// ---- one of them ----

static void free_span(struct span *span)
{
    free_copy(&span->config);
    free(span);
}

static void on_ended(void *arg)
{
    struct span *span = arg;
    struct bridges *bridges = span->bridges;
    struct span **at = &bridges->spans;

    while (*at != span) {
        at = &(*at)->next;
    }
    *at = span->next;
    bridge_free(span->bridge);
    free_span(span);
    if (bridges->stopping && !bridges->spans) {
        bridges->hooks.ended(bridges->hooks.arg);
    }
}

static void on_connected(void *arg)
{
    const struct span *span = arg;

    span->bridges->hooks.connected(span->bridges->hooks.arg);
}

static int add(struct bridges *bridges, const struct config *config,
               const struct config_bridge *wanted, struct mr_error *err)
{
    struct span *span = calloc(1, sizeof(*span));
    const struct bridge_hooks hooks = {
        .connected = on_connected,
        .ended = on_ended,
        .arg = span,
    };

    if (!span) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    span->bridges = bridges;
    int code = copy_config(wanted, &span->config)
                   ? bridge_new(&span->config, config->dsn, config->pooler, &hooks, bridges->loop,
                                &span->bridge, err)
                   : mr_error_set(err, MR_ENOMEM, "out of memory");
    if (code) {
        mr_error_prefix(err, "bridge %s", wanted->name);
        free_span(span);
        return code;
    }
    span->next = bridges->spans;
    bridges->spans = span;
    return 0;
}

static void leave(struct span *span)
{
    span->leaving = true;
    bridge_stop(span->bridge);
}

// ---- all of them ----

int bridges_new(uv_loop_t *loop, const struct bridges_hooks *hooks, struct bridges **ret,
                struct mr_error *err)
{
    struct bridges *bridges = calloc(1, sizeof(*bridges));

    if (!bridges) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    bridges->loop = loop;
    bridges->hooks = *hooks;
    *ret = bridges;
    return 0;
}

void bridges_free(struct bridges *bridges)
{
    free(bridges);
}

static struct span *find(const struct bridges *bridges, const struct config_bridge *wanted)
{
    struct span *span = bridges->spans;

    while (span && (span->leaving || !config_bridge_equal(&span->config, wanted))) {
        span = span->next;
    }
    return span;
}

static bool is_wanted(const struct config *config, const struct span *span)
{
    for (size_t i = 0; i < config->bridge_count; i++) {
        if (config_bridge_equal(&config->bridges[i], &span->config)) {
            return true;
        }
    }
    return false;
}

int bridges_apply(struct bridges *bridges, const struct config *config, struct mr_error *err)
{
    struct span *before = bridges->spans;

    for (size_t i = 0; i < config->bridge_count; i++) {
        int code =
            find(bridges, &config->bridges[i]) ? 0 : add(bridges, config, &config->bridges[i], err);
        if (code) { // what is new goes again
            for (struct span *span = bridges->spans; span != before; span = span->next) {
                leave(span);
            }
            return code;
        }
    }
    for (struct span *span = bridges->spans; span; span = span->next) {
        if (!span->leaving && !is_wanted(config, span)) {
            leave(span);
        }
    }
    return 0;
}

int64_t bridges_stop(struct bridges *bridges)
{
    bridges->stopping = true;
    for (struct span *span = bridges->spans; span; span = span->next) {
        leave(span);
    }
    return bridges->spans ? BRIDGE_GRACE_MS : 0;
}

bool bridges_ready(const struct bridges *bridges)
{
    for (const struct span *span = bridges->spans; span; span = span->next) {
        if (!span->leaving && !bridge_ready(span->bridge)) {
            return false;
        }
    }
    return true;
}

void bridges_each(const struct bridges *bridges,
                  void (*each)(void *arg, const struct http_bridge *bridge), void *arg)
{
    struct http_bridge figures;

    for (const struct span *span = bridges->spans; span; span = span->next) {
        if (!span->leaving) {
            bridge_figures(span->bridge, &figures);
            each(arg, &figures);
        }
    }
}

void bridges_reasons(const struct bridges *bridges, struct buf *out)
{
    for (const struct span *span = bridges->spans; span; span = span->next) {
        const char *trouble = bridge_trouble(span->bridge);
        AUTO_BUF text;
        buf_init(&text, MR_ERROR_MESSAGE_SIZE * 2);
        if (trouble) {
            buf_printf(&text, "bridge %s: %s", span->config.name, trouble);
            buf_puts(out, out->len ? "," : "");
            json_add_string(out, buf_peek(&text));
        }
    }
}
