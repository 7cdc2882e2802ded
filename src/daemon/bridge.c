// SPDX-License-Identifier: PostgreSQL
//
// A bridge: see bridge.h.
//
// One thing at a time: read, apply, acknowledge; now and then look how far behind it is, and take
// over what a dead consumer left. Every answer only notes what it says; the next step is chosen in
// on_turn(), a turn of the loop of its own, so that nothing is closed inside of a callback.
//
// 1. An entry is acknowledged only after the transaction that applied it has committed.
// 2. What was applied is written in that transaction (bridge_apply), and asked there first: an
//    entry that comes again has no effect, whoever reads it and however often.
// 3. After each connect the consumer's own pending entries come first: those of a process that
//    was killed, and those whose acknowledgement was lost.
// 4. A batch that fails because of an entry is halved until that entry is alone; then it becomes a
//    dead letter. A batch that fails because of the times is held.

#include "daemon/bridge.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "daemon/bridge_parts.h"

static void on_turn(uv_timer_t *timer);

static bool is_linked(const struct bridge *bridge)
{
    return wire_connected(link_wire(bridge->link));
}

// The next step is chosen with the next turn of the loop.
void bridge_go_on(struct bridge *bridge)
{
    if (!bridge->ending) {
        uv_timer_start(&bridge->turn, on_turn, 0, 0);
    }
}

// ---- the log ----

void bridge_tell(const struct bridge *bridge, enum log_level level, const char *event,
                 const char *what, const char *why, const char *hint)
{
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("bridge", bridge->config->name),
        LOG_TEXT_FIELD("stream", bridge->config->stream),
        LOG_TEXT_FIELD("hint", hint && hint[0] ? hint : NULL),
    };

    log_put(level, event, fields, COUNT_OF(fields), "%s%s%s", what, why ? ": " : "",
            why ? why : "");
}

// Something is in the way: said once, tried again after a pause that grows.
void bridge_hold(struct bridge *bridge, const char *what, const char *why, const char *hint)
{
    char both[MR_ERROR_MESSAGE_SIZE];

    snprintf(both, sizeof(both), "%s: %s", what, why);
    str_trim_utf8(both);
    if (link_is_news(bridge->trouble, both)) {
        bridge_tell(bridge, LEVEL_WARNING, "bridge.held", what, why, hint);
    }
    bridge->figures.holds++;
    bridge->paused_until_ms = clock_ms() + bridge->pause_ms;
    bridge->pause_ms = bridge->pause_ms * 2 < PAUSE_MAX_MS ? bridge->pause_ms * 2 : PAUSE_MAX_MS;
}

void bridge_went_well(struct bridge *bridge)
{
    bridge->pause_ms = PAUSE_MIN_MS;
    if (bridge->trouble[0]) {
        bridge->trouble[0] = '\0';
        bridge_tell(bridge, LEVEL_INFO, "bridge.recovered", "goes on", NULL, NULL);
    }
}

// ---- Redis ----

static void log_connected(const struct bridge *bridge)
{
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("bridge", bridge->config->name),
        LOG_TEXT_FIELD("redis", bridge->place),
        LOG_TEXT_FIELD("stream", bridge->config->stream),
        LOG_TEXT_FIELD("group", bridge->config->group),
        LOG_TEXT_FIELD("consumer", bridge->consumer),
    };

    log_put(LEVEL_INFO, "bridge.connected", fields, COUNT_OF(fields), "connected to Redis");
}

static void check_ready(struct bridge *bridge)
{
    if (!bridge->was_ready && bridge->wired && is_linked(bridge)) {
        bridge->was_ready = true;
        bridge->hooks.connected(bridge->hooks.arg);
    }
}

static void on_redis(void *arg, enum redis_event event, const struct mr_error *err)
{
    struct bridge *bridge = arg;

    bridge->wired = event == REDIS_CONNECTED_EVENT;
    switch (event) {
    case REDIS_CONNECTED_EVENT:
        bridge->own_done = false; // an acknowledgement may have been lost
        snprintf(bridge->own_after, sizeof(bridge->own_after), "0-0");
        log_connected(bridge);
        check_ready(bridge);
        break;
    case REDIS_LOST_EVENT:
        bridge->figures.reconnects++;
        link_is_news(bridge->trouble, err->message);
        bridge_tell(bridge, LEVEL_WARNING, "bridge.disconnected", "connecting again", err->message,
                    NULL);
        break;
    case REDIS_REFUSED_EVENT:
        if (link_is_news(bridge->trouble, err->message)) {
            bridge_tell(bridge, LEVEL_WARNING, "bridge.unreachable", "still trying", err->message,
                        NULL);
        }
        break;
    }
    bridge_go_on(bridge);
}

// ---- the end ----

static void on_closed(struct bridge *bridge)
{
    if (--bridge->handles == 0) {
        bridge->hooks.ended(bridge->hooks.arg);
    }
}

static void on_part_closed(void *arg)
{
    on_closed(arg);
}

static void on_handle_closed(uv_handle_t *handle)
{
    on_closed(handle->data);
}

static void log_end(const struct bridge *bridge)
{
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("bridge", bridge->config->name),
        LOG_NUMBER_FIELD("applied", bridge->figures.applied),
        LOG_NUMBER_FIELD("repeated", bridge->figures.repeated),
        LOG_NUMBER_FIELD("dead", bridge->figures.dead),
        LOG_NUMBER_FIELD("reclaimed", bridge->figures.reclaimed),
    };

    log_put(LEVEL_INFO, "bridge.ended", fields, COUNT_OF(fields), "ended");
}

static void end(struct bridge *bridge)
{
    bridge->ending = true;
    log_end(bridge);
    bridge->handles = 4;
    uv_close((uv_handle_t *)&bridge->turn, on_handle_closed);
    uv_close((uv_handle_t *)&bridge->grace, on_handle_closed);
    redis_wire_close(bridge->redis, on_part_closed, bridge);
    link_close(bridge->link, on_part_closed, bridge);
    bridge_drop_batch(bridge);
}

// ---- the next step ----

// Behind what is in hand, in this order; the first one that is due.
static void choose(struct bridge *bridge)
{
    int64_t now_ms = clock_ms();

    if (bridge->group_missing && bridge->begin_after[0]) {
        bridge_make_group(bridge);
    } else if (bridge->group_missing) {
        bridge_find_group(bridge);
    } else if (!bridge->own_done) {
        bridge_read(bridge, STEP_OWN);
    } else if (now_ms >= bridge->look_at_ms) {
        bridge_look_now(bridge);
    } else if (now_ms >= bridge->floor_at_ms && bridge->has_look) {
        bridge_raise_floor(bridge);
    } else if (now_ms >= bridge->take_at_ms) {
        bridge_take_over(bridge);
    } else {
        bridge_read(bridge, STEP_NEW);
    }
}

// Also with a batch in hand: whoever is held is behind more and more, and is to say so.
static bool look_is_due(const struct bridge *bridge)
{
    return bridge->wired && !bridge->group_missing && !bridge->stopping &&
           clock_ms() >= bridge->look_at_ms;
}

// A batch in hand comes first: what is applied is acknowledged, then the next part is applied. The
// database is asked whether it is there or not: its wire waits.
static void next_step(struct bridge *bridge)
{
    bool applied = bridge->applied.to > bridge->applied.from;

    if (applied && bridge->wired) {
        bridge_acknowledge(bridge);
    } else if (!applied && bridge->part_count > 0 && look_is_due(bridge)) {
        bridge_look_now(bridge);
    } else if (!applied && bridge->part_count > 0) {
        bridge_apply_part(bridge);
    } else if (!applied && bridge->wired) {
        choose(bridge);
    }
}

static bool is_done(const struct bridge *bridge)
{
    bool applied = bridge->applied.to > bridge->applied.from;

    return bridge->stopping &&
           (bridge->batch.count == 0 || !(applied ? bridge->wired : is_linked(bridge)));
}

static void on_turn(uv_timer_t *timer)
{
    struct bridge *bridge = timer->data;
    int64_t wait_ms = bridge->paused_until_ms - clock_ms();

    if (bridge->ending) {
        return;
    }
    if (bridge->reset) {
        bridge->reset = false;
        redis_wire_reset(bridge->redis, "the server is not the one that is meant");
        return;
    }
    if (bridge->step != STEP_NONE) {
        return;
    }
    if (is_done(bridge)) {
        end(bridge);
    } else if (wait_ms > 0) {
        uv_timer_start(&bridge->turn, on_turn, (uint64_t)wait_ms, 0);
    } else {
        next_step(bridge);
    }
}

static void on_grace(uv_timer_t *timer)
{
    end(timer->data);
}

void bridge_stop(struct bridge *bridge)
{
    if (bridge->stopping) {
        return;
    }
    bridge->stopping = true;
    uv_timer_start(&bridge->grace, on_grace, BRIDGE_GRACE_MS, 0);
    // A step under way ends by itself: a read within `block`. Others wait for a server.
    bool waits =
        (bridge->step == STEP_APPLY || bridge->step == STEP_FLOOR || bridge->step == STEP_BEGIN)
            ? !is_linked(bridge)
            : bridge->step != STEP_NONE && !bridge->wired;
    if (waits) {
        uv_timer_start(&bridge->grace, on_grace, 0, 0);
    }
    bridge_go_on(bridge);
}

// ---- life ----

static void on_linked(void *arg)
{
    struct bridge *bridge = arg;

    check_ready(bridge);
    bridge_go_on(bridge);
}

static void choose_consumer(struct bridge *bridge)
{
    if (bridge->config->consumer) {
        snprintf(bridge->consumer, sizeof(bridge->consumer), "%s", bridge->config->consumer);
    } else if (gethostname(bridge->consumer, sizeof(bridge->consumer) - 1)) {
        snprintf(bridge->consumer, sizeof(bridge->consumer), "localhost");
    }
}

static int open_parts(struct bridge *bridge, const char *dsn, bool pooler, uv_loop_t *loop,
                      struct mr_error *err)
{
    const struct config_bridge *config = bridge->config;
    const struct redis_hooks redis_hooks = {.event = on_redis, .arg = bridge};
    const struct link_hooks link_hooks = {.connected = on_linked, .arg = bridge};
    const struct link_options options = {
        .part = "bridge",
        .dsn = config->dsn ? config->dsn : dsn,
        .pooler = config->pooler || pooler,
    };
    struct redis_url url;
    char name[REDIS_TEXT_MAX];
    int code = redis_url_parse(config->redis, &url, err);

    if (code) {
        return code;
    }
    redis_url_place(&url, bridge->place, sizeof(bridge->place));
    snprintf(name, sizeof(name), "millrace-bridge-%s", config->name);
    code = link_new(&options, &link_hooks, loop, &bridge->link, err);
    return code ? code : redis_wire_new(&url, name, &redis_hooks, loop, &bridge->redis, err);
}

static void on_nothing(void *arg)
{
    (void)arg;
}

static void set_up(struct bridge *bridge)
{
    bridge->count = bridge->config->batch < FIRST_COUNT ? bridge->config->batch : FIRST_COUNT;
    bridge->pause_ms = PAUSE_MIN_MS;
    bridge->floor_at_ms = clock_ms() + FLOOR_MS;
    bridge->figures.name = bridge->config->name;
    snprintf(bridge->take_after, sizeof(bridge->take_after), "0-0");
    choose_consumer(bridge);
}

int bridge_new(const struct config_bridge *config, const char *dsn, bool pooler,
               const struct bridge_hooks *hooks, uv_loop_t *loop, struct bridge **ret,
               struct mr_error *err)
{
    struct bridge *bridge = calloc(1, sizeof(*bridge));

    if (!bridge) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    bridge->config = config;
    bridge->hooks = *hooks;
    set_up(bridge);
    int code = open_parts(bridge, dsn, pooler, loop, err);
    if (code) {
        if (bridge->link) {
            link_close(bridge->link, on_nothing, NULL);
        }
        free(bridge);
        return code;
    }
    uv_timer_init(loop, &bridge->turn);
    uv_timer_init(loop, &bridge->grace);
    bridge->turn.data = bridge->grace.data = bridge;
    *ret = bridge;
    return 0;
}

void bridge_free(struct bridge *bridge)
{
    free(bridge);
}

bool bridge_ready(const struct bridge *bridge)
{
    return bridge->was_ready;
}

const char *bridge_trouble(const struct bridge *bridge)
{
    return bridge->trouble[0] ? bridge->trouble : NULL;
}

void bridge_figures(const struct bridge *bridge, struct http_bridge *ret)
{
    *ret = bridge->figures;
    ret->connected = bridge->wired;
    ret->known = bridge->has_look;
    ret->lag = bridge->seen.lag;
    ret->pending = bridge->seen.pending;
    ret->length = bridge->seen.length;
    ret->lag_seconds = bridge_look_age(&bridge->seen);
}
