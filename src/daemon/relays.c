// SPDX-License-Identifier: PostgreSQL
//
// The relays of a configuration: see relays.h.

#include "daemon/relays.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "daemon/relay.h"

#define RESTART_MS 5000

// One relay with the configuration it was made of, which outlives the file's.
struct post {
    struct relays *relays;
    struct config_relay config;
    const char *dsn; // the file's
    bool pooler;
    struct depot_options blobs;
    struct relay *relay; // NULL: it waits to be started again
    uv_timer_t restart;
    bool leaving;
    struct post *next;
};

struct relays {
    uv_loop_t *loop;
    struct relays_hooks hooks;
    struct post *posts;
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

static void free_copy(struct config_relay *copy)
{
    free((char *)copy->name);
    free((char *)copy->queue);
    free((char *)copy->redis);
    free((char *)copy->dsn);
}

static bool copy_config(const struct config_relay *from, struct config_relay *ret)
{
    *ret = *from;
    const char **texts[] = {&ret->name, &ret->queue, &ret->redis, &ret->dsn};
    bool good = true;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        *texts[i] = good ? *texts[i] : NULL;
        good = good && copy_text(texts[i]);
    }
    return good;
}

// ---- one of them ----

static void free_post(struct post *post)
{
    free_copy(&post->config);
    free((char *)post->dsn);
    free((char *)post->blobs.address);
    free((char *)post->blobs.credentials.access_key);
    free((char *)post->blobs.credentials.secret_key);
    free(post);
}

static void on_post_closed(uv_handle_t *handle)
{
    struct post *post = handle->data;
    struct relays *relays = post->relays;
    struct post **at = &relays->posts;

    while (*at != post) {
        at = &(*at)->next;
    }
    *at = post->next;
    free_post(post);
    if (relays->stopping && !relays->posts) {
        relays->hooks.ended(relays->hooks.arg);
    }
}

static void close_post(struct post *post)
{
    if (!uv_is_closing((uv_handle_t *)&post->restart)) {
        uv_close((uv_handle_t *)&post->restart, on_post_closed);
    }
}

static int start(struct post *post, struct mr_error *err);

static void on_restart(uv_timer_t *timer)
{
    struct post *post = timer->data;
    struct mr_error err;

    if (start(post, &err)) {
        log_put(LEVEL_ERROR, "relay.not_started", NULL, 0, "relay %s: %s", post->config.name,
                err.message);
        uv_timer_start(&post->restart, on_restart, RESTART_MS, 0);
    }
}

// By itself it ends only when it cannot go on.
static void on_ended(void *arg)
{
    struct post *post = arg;

    relay_free(post->relay);
    post->relay = NULL;
    if (post->leaving) {
        close_post(post);
    } else {
        uv_timer_start(&post->restart, on_restart, RESTART_MS, 0);
    }
}

static void on_connected(void *arg)
{
    const struct post *post = arg;

    post->relays->hooks.connected(post->relays->hooks.arg);
}

static int start(struct post *post, struct mr_error *err)
{
    const struct relay_hooks hooks = {
        .connected = on_connected,
        .ended = on_ended,
        .arg = post,
    };
    const struct relay_options options = {
        .config = &post->config,
        .queue = post->config.queue,
        .dsn = post->dsn,
        .pooler = post->pooler,
        .blobs = post->blobs,
    };

    return relay_new(&options, &hooks, post->relays->loop, &post->relay, err);
}

static int add(struct relays *relays, const struct config *config,
               const struct config_relay *wanted, struct mr_error *err)
{
    struct post *post = calloc(1, sizeof(*post));

    if (!post) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    post->relays = relays;
    post->dsn = config->dsn;
    post->blobs = config_depot(config);
    post->pooler = config->pooler;
    bool copied = copy_config(wanted, &post->config);
    copied = copy_text(&post->dsn) && copied;
    copied = copy_text(&post->blobs.address) && copied;
    copied = copy_text(&post->blobs.credentials.access_key) && copied;
    copied = copy_text(&post->blobs.credentials.secret_key) && copied;
    int code = copied ? start(post, err) : mr_error_set(err, MR_ENOMEM, "out of memory");
    if (code) {
        mr_error_prefix(err, "relay %s", wanted->name);
        free_post(post);
        return code;
    }
    uv_timer_init(relays->loop, &post->restart);
    post->restart.data = post;
    post->next = relays->posts;
    relays->posts = post;
    return 0;
}

static void leave(struct post *post)
{
    post->leaving = true;
    if (post->relay) {
        relay_stop(post->relay);
    } else {
        close_post(post);
    }
}

// ---- all of them ----

int relays_new(uv_loop_t *loop, const struct relays_hooks *hooks, struct relays **ret,
               struct mr_error *err)
{
    struct relays *relays = calloc(1, sizeof(*relays));

    if (!relays) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    relays->loop = loop;
    relays->hooks = *hooks;
    *ret = relays;
    return 0;
}

void relays_free(struct relays *relays)
{
    free(relays);
}

static struct post *find(const struct relays *relays, const struct config_relay *wanted)
{
    struct post *post = relays->posts;

    while (post && (post->leaving || !config_relay_equal(&post->config, wanted))) {
        post = post->next;
    }
    return post;
}

static bool is_wanted(const struct config *config, const struct post *post)
{
    for (size_t i = 0; i < config->relay_count; i++) {
        if (config_relay_equal(&config->relays[i], &post->config)) {
            return true;
        }
    }
    return false;
}

int relays_apply(struct relays *relays, const struct config *config, struct mr_error *err)
{
    struct post *before = relays->posts;

    for (size_t i = 0; i < config->relay_count; i++) {
        int code =
            find(relays, &config->relays[i]) ? 0 : add(relays, config, &config->relays[i], err);
        if (code) { // what is new goes again
            for (struct post *post = relays->posts; post != before; post = post->next) {
                leave(post);
            }
            return code;
        }
    }
    for (struct post *post = relays->posts; post; post = post->next) {
        if (!post->leaving && !is_wanted(config, post)) {
            leave(post);
        }
    }
    return 0;
}

int64_t relays_stop(struct relays *relays)
{
    int64_t grace_ms = 0;

    relays->stopping = true;
    for (struct post *post = relays->posts; post; post = post->next) {
        grace_ms = post->config.grace_ms > grace_ms ? post->config.grace_ms : grace_ms;
        leave(post);
    }
    return relays->posts ? grace_ms + 1 : 0;
}

bool relays_ready(const struct relays *relays)
{
    for (const struct post *post = relays->posts; post; post = post->next) {
        if (!post->leaving && (!post->relay || !relay_ready(post->relay))) {
            return false;
        }
    }
    return true;
}

void relays_each(const struct relays *relays,
                 void (*each)(void *arg, const struct http_relay *relay), void *arg)
{
    struct http_relay figures;

    for (const struct post *post = relays->posts; post; post = post->next) {
        if (!post->leaving && post->relay) {
            relay_figures(post->relay, &figures);
            each(arg, &figures);
        }
    }
}

void relays_reasons(const struct relays *relays, struct buf *out)
{
    for (const struct post *post = relays->posts; post; post = post->next) {
        const char *trouble =
            post->relay ? relay_trouble(post->relay) : "has failed and is started again soon";
        AUTO_BUF text;
        buf_init(&text, MR_ERROR_MESSAGE_SIZE * 2);
        if (trouble) {
            buf_printf(&text, "relay %s: %s", post->config.name, trouble);
            buf_puts(out, out->len ? "," : "");
            json_add_string(out, buf_peek(&text));
        }
    }
}
