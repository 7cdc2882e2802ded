// SPDX-License-Identifier: PostgreSQL
//
// The relay of one queue: see relay.h.
//
// It is a worker whose handler is Redis: the worker claims, keeps the leases alive and writes the
// outcomes in batches; this puts the jobs into a stream and waits for what is said of them.
//
// 1. The log is the truth. A job whose entry Redis has lost is sent again, under the same lease; an
//    entry whose lease is void is taken out, and what is said of it has no effect.
// 2. Each life of a relay has its own epoch, and its own stream of outcomes. Entries carry it:
// after
//    a crash nobody begins what the dead one has sent, and what was said to it is written down by
//    the next one, as long as the leases last.
// 3. An outcome stays in Redis until the database has it.
// 4. Nothing is claimed while Redis does not take what was claimed, or holds as much as it may.
// 5. A worker that is silent loses its entries, and PostgreSQL counts them as lost: a poison job
//    dies the same way as without Redis.

#include "daemon/relay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "client/lease.h"
#include "daemon/relay_parts.h"
#include "store/redis_error.h"

#define HEALTH_MS 15000

// ---- the log ----

void relay_tell(const struct relay *relay, enum log_level level, const char *event,
                const char *what, const char *why, const char *hint)
{
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("relay", relay->config->name),
        LOG_TEXT_FIELD("queue", relay->options.queue),
        LOG_TEXT_FIELD("hint", hint && hint[0] ? hint : NULL),
    };

    log_put(level, event, fields, COUNT_OF(fields), "%s%s%s", what, why ? ": " : "",
            why ? why : "");
}

void relay_hold(struct relay *relay, const char *what, const char *why, const char *hint)
{
    char both[MR_ERROR_MESSAGE_SIZE];

    snprintf(both, sizeof(both), "%s: %s", what, why);
    str_trim_utf8(both);
    if (link_is_news(relay->trouble, both)) {
        relay_tell(relay, LEVEL_WARNING, "relay.held", what, why, hint);
    }
    relay->figures.holds++;
    relay->paused_until_ms = clock_ms() + relay->pause_ms;
    relay->pause_ms =
        relay->pause_ms * 2 < RELAY_PAUSE_MAX_MS ? relay->pause_ms * 2 : RELAY_PAUSE_MAX_MS;
}

void relay_went_well(struct relay *relay)
{
    relay->pause_ms = RELAY_PAUSE_MIN_MS;
    if (relay->trouble[0]) {
        relay->trouble[0] = '\0';
        relay_tell(relay, LEVEL_INFO, "relay.recovered", "goes on", NULL, NULL);
    }
}

bool relay_is_good(struct relay *relay, const redisReply *reply, const struct mr_error *err)
{
    struct mr_error refusal;

    if (err) { // on_talker() is told
        return false;
    }
    if (reply->type != REDIS_REPLY_ERROR) {
        return true;
    }
    // the next look makes the group; a server that changes its part lets go of who waits
    if (!str_starts(reply->str, "NOGROUP") && !str_starts(reply->str, "UNBLOCKED")) {
        redis_error_set(reply->str, redis_pipe_place(relay->talker), &refusal);
        relay_hold(relay, "Redis refuses", refusal.message, refusal.hint);
    }
    return false;
}

void relay_args(const struct relay *relay, struct redis_args *args)
{
    redis_args_init(args);
    redis_args_key(args, relay->jobs_key);
}

// ---- the end ----

static void on_closed(struct relay *relay)
{
    if (--relay->handles == 0) {
        relay->hooks.ended(relay->hooks.arg);
    }
}

static void on_handle_closed(uv_handle_t *handle)
{
    on_closed(handle->data);
}

static void on_link_closed(void *arg)
{
    on_closed(arg);
}

static void log_end(const struct relay *relay)
{
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("relay", relay->config->name),
        LOG_TEXT_FIELD("queue", relay->options.queue),
        LOG_NUMBER_FIELD("sent", relay->figures.sent),
        LOG_NUMBER_FIELD("finished", relay->figures.finished),
        LOG_NUMBER_FIELD("lost", relay->figures.lost),
        LOG_NUMBER_FIELD("resent", relay->figures.resent),
        LOG_NUMBER_FIELD("late", relay->figures.late),
    };

    log_put(LEVEL_INFO, "relay.ended", fields, COUNT_OF(fields), "ended");
}

// Nothing of it is left in Redis: so much is sent, whether it arrives or not.
static void leave_redis(struct relay *relay)
{
    char part[DELIVERY_EPOCH_SIZE + 16], key[DELIVERY_KEY_SIZE];
    AUTO_REDIS_ARGS args;

    relay_args(relay, &args);
    redis_args_text(&args, relay->epoch);
    redis_pipe_eval(relay->talker, "delivery/forget.lua", &args, RELAY_ANSWER_MS, NULL, NULL, NULL);
    snprintf(part, sizeof(part), "live:%s", relay->epoch);
    delivery_key(relay->options.queue, part, key);
    const char *const argv[] = {"DEL", key};
    redis_pipe_send(relay->talker, 2, argv, NULL, RELAY_ANSWER_MS, NULL, NULL, NULL);
    redis_pipe_advance(relay->talker);
}

static void end(struct relay *relay)
{
    uv_handle_t *const handles[] = {
        (uv_handle_t *)&relay->worker_poll, (uv_handle_t *)&relay->talker_poll,
        (uv_handle_t *)&relay->reader_poll, (uv_handle_t *)&relay->tick};

    relay->ending = true;
    log_end(relay);
    leave_redis(relay);
    relay->handles = COUNT_OF(handles) + 1;
    for (size_t i = 0; i < COUNT_OF(handles); i++) {
        uv_close(handles[i], on_handle_closed);
    }
    link_close(relay->link, on_link_closed, relay);
}

void relay_check_end(struct relay *relay)
{
    worker_wake(relay->worker); // on_worker() looks whether all is over
}

// ---- the worker ----

static void on_worker_event(void *arg, enum worker_event event, const struct held_job *held,
                            const struct mr_error *err)
{
    struct relay *relay = arg;

    (void)held;
    switch (event) {
    case WORKER_CONNECTED:
        relay->linked = true;
        relay_tell(relay, LEVEL_INFO, "relay.linked", "connected to the database", NULL, NULL);
        return;
    case WORKER_DISCONNECTED:
        relay->linked = false;
        relay_tell(relay, LEVEL_WARNING, "relay.unlinked", "connecting again", err->message, NULL);
        return;
    case WORKER_UNREACHABLE:
        if (link_is_news(relay->trouble, err->message)) {
            relay_tell(relay, LEVEL_WARNING, "relay.unreachable", "still trying", err->message,
                       NULL);
        }
        return;
    case WORKER_LEASE_LOST:
        relay->figures.late++;
        relay_tell(relay, LEVEL_WARNING, "relay.lease_lost", err->message, NULL, NULL);
        return;
    case WORKER_REFUSED:
    case WORKER_UNREPORTED:
        relay_tell(relay, LEVEL_WARNING, "relay.refused", "the database refuses", err->message,
                   err->hint);
        return;
    case WORKER_UNREADABLE:
        relay_tell(relay, LEVEL_ERROR, "relay.unreadable",
                   "a job is damaged and has failed for good", err->message, NULL);
        return;
    case WORKER_STORE_DOWN:
        relay_tell(relay, LEVEL_WARNING, "relay.store_down",
                   "the blob store cannot be read; jobs whose payload it has wait", err->message,
                   err->hint);
        return;
    case WORKER_FAILED:
        relay_tell(relay, LEVEL_ERROR, "relay.gave_up", "cannot go on", err->message, err->hint);
        relay_stop(relay);
        return;
    }
}

static const struct worker_ops relay_worker_ops = {
    .room = relay_room,
    .start = relay_start,
    .drop = relay_drop,
    .cancel = relay_cancel,
    .over = relay_over,
    .event = on_worker_event,
};

static void check_ready(struct relay *relay)
{
    if (!relay->was_ready && relay->open && relay->linked) {
        relay->was_ready = true;
        relay->hooks.connected(relay->hooks.arg);
    }
}

static void on_worker(uv_poll_t *poll, int status, int events)
{
    struct relay *relay = poll->data;

    (void)status;
    (void)events;
    if (relay->ending) {
        return;
    }
    worker_advance(relay->worker);
    check_ready(relay);
    if (relay->stopping && relay->held == 0 && relay->sending == 0 && worker_done(relay->worker)) {
        end(relay);
    }
}

// ---- Redis ----

static void on_talker_event(void *arg, enum redis_pipe_event event, const struct mr_error *err)
{
    struct relay *relay = arg;

    switch (event) {
    case REDIS_PIPE_CONNECTED:
        relay->scan_due = true; // what was sent last may be there or not
        relay->look_at_ms = 0;
        relay->paused_until_ms = 0;
        relay_tell(relay, LEVEL_INFO, "relay.connected", "connected to Redis",
                   redis_pipe_place(relay->talker), NULL);
        break;
    case REDIS_PIPE_LOST:
        relay->open = relay->looking = relay->scanning = relay->reclaiming = false;
        relay->figures.reconnects++;
        link_is_news(relay->trouble, err->message);
        relay_tell(relay, LEVEL_WARNING, "relay.disconnected", "connecting again", err->message,
                   NULL);
        break;
    case REDIS_PIPE_REFUSED:
        relay->open = false;
        if (link_is_news(relay->trouble, err->message)) {
            relay_tell(relay, LEVEL_WARNING, "relay.unreachable", "still trying", err->message,
                       err->hint);
        }
        break;
    }
}

static void on_reader_event(void *arg, enum redis_pipe_event event, const struct mr_error *err)
{
    (void)err;
    if (event == REDIS_PIPE_CONNECTED) {
        relay_hear(arg);
    }
}

// ---- what is due ----

static void on_setting(void *arg, PGresult *result, const struct mr_error *err)
{
    struct relay *relay = arg;

    relay->asking = false;
    if (err || relay->ending) {
        return;
    }
    bool was_wanted = relay->wanted;
    relay->wanted = str_equal(PQgetvalue(result, 0, 0), "redis");
    if (!relay->wanted && (was_wanted || !relay->asked)) {
        relay_tell(relay, LEVEL_WARNING, "relay.idle", "the queue's transport is direct", NULL,
                   "Nothing is claimed for Redis. millrace queue set QUEUE transport=redis starts "
                   "it.");
        relay_withdraw(relay, true);
    } else if (relay->wanted && !was_wanted) {
        relay_tell(relay, LEVEL_INFO, "relay.wanted", "the queue's transport is redis", NULL, NULL);
        worker_wake(relay->worker);
    }
    relay->asked = true;
}

static void ask_setting(struct relay *relay)
{
    AUTO_CALL call;

    call_init(&call, CALL_TRANSPORT);
    call_text(&call, relay->options.queue);
    relay->setting_at_ms = clock_ms() + RELAY_SETTING_MS;
    relay->asking = wire_send(link_wire(relay->link), &call, on_setting, relay, NULL) == 0;
}

static void do_due(struct relay *relay, int64_t now_ms)
{
    if (!relay->asking && now_ms >= relay->setting_at_ms) {
        ask_setting(relay);
    }
    if (!redis_pipe_connected(relay->talker)) {
        return;
    }
    if (!relay->looking && now_ms >= relay->look_at_ms) {
        relay_look(relay);
    }
    if (!relay->open) {
        return;
    }
    if (!relay->scanning && (relay->scan_due || now_ms >= relay->scan_at_ms)) {
        relay_scan(relay);
    }
    if (!relay->reclaiming && now_ms >= relay->reclaim_at_ms) {
        relay_reclaim(relay);
    }
    if (now_ms >= relay->sweep_at_ms) {
        relay_sweep(relay);
    }
}

// More often than anything is due: what is paused goes on in time.
static void on_tick(uv_timer_t *timer)
{
    struct relay *relay = timer->data;
    int64_t now_ms = clock_ms();

    if (relay->ending) {
        return;
    }
    do_due(relay, now_ms);
    if (relay->unsent > 0) {
        relay_send(relay);
    }
    relay_trim(relay);
    worker_wake(relay->worker); // it may have room again
}

static void on_redis(uv_poll_t *poll, int status, int events)
{
    struct relay *relay = poll->data;
    struct redis_pipe *pipe = poll == &relay->talker_poll ? relay->talker : relay->reader;

    (void)status;
    (void)events;
    if (!relay->ending) {
        redis_pipe_advance(pipe);
        do_due(relay, clock_ms());
    }
}

void relay_stop(struct relay *relay)
{
    if (!relay->stopping) {
        relay->stopping = true;
        relay_withdraw(relay, true);
        worker_stop(relay->worker);
        worker_wake(relay->worker);
    }
}

// ---- life ----

// Redis knows each life of a relay by a number that nobody else has.
static void choose_epoch(struct relay *relay)
{
    unsigned char bytes[12] = {0};
    size_t used = 0;

    if (getrandom(bytes, sizeof(bytes), 0) < 0) {
        int64_t now_us = clock_wall_us() ^ ((int64_t)getpid() << 40);
        memcpy(bytes, &now_us, sizeof(now_us));
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        used +=
            (size_t)snprintf(relay->epoch + used, sizeof(relay->epoch) - used, "%02x", bytes[i]);
    }
}

static void set_up(struct relay *relay)
{
    char part[DELIVERY_EPOCH_SIZE + 16];

    choose_epoch(relay);
    snprintf(part, sizeof(part), "outcomes:%s", relay->epoch);
    delivery_key(relay->options.queue, "jobs", relay->jobs_key);
    delivery_key(relay->options.queue, part, relay->outcomes_key);
    snprintf(relay->after, sizeof(relay->after), "0-0");
    snprintf(relay->reclaim_from, sizeof(relay->reclaim_from), "0-0");
    relay->pause_ms = RELAY_PAUSE_MIN_MS;
    relay->scan_at_ms = clock_ms() + RELAY_SCAN_MS;
    relay->sweep_at_ms = clock_ms() + RELAY_SWEEP_MS;
    relay->figures.name = relay->config->name;
    relay->figures.queue = relay->options.queue;
}

static int open_worker(struct relay *relay, struct mr_error *err)
{
    const struct config_relay *config = relay->config;
    const struct worker_options options = {
        .dsn = config->dsn ? config->dsn : relay->options.dsn,
        .pooler = config->pooler || relay->options.pooler,
        .queue = relay->options.queue,
        .name = relay->worker_name,
        .batch = config->batch,
        .lease_ms = config->lease_ms,
        .poll_ms = config->poll_ms,
        .grace_ms = config->grace_ms,
        .health_ms = HEALTH_MS,
        .blobs = relay->options.blobs,
    };

    config_worker_name(config->name, relay->worker_name);
    return worker_new(&options, &relay_worker_ops, relay, &relay->worker, err);
}

static int open_redis(struct relay *relay, struct mr_error *err)
{
    const struct redis_pipe_hooks talker_hooks = {.event = on_talker_event, .arg = relay};
    const struct redis_pipe_hooks reader_hooks = {.event = on_reader_event, .arg = relay};
    struct redis_url url;
    char name[REDIS_TEXT_MAX];
    int code = redis_url_parse(relay->config->redis, &url, err);

    snprintf(name, sizeof(name), "millrace-relay-%s", relay->config->name);
    if (code == 0) {
        code = redis_pipe_new(&url, name, &talker_hooks, &relay->talker, err);
    }
    return code ? code : redis_pipe_new(&url, name, &reader_hooks, &relay->reader, err);
}

static int open_parts(struct relay *relay, uv_loop_t *loop, struct mr_error *err)
{
    const struct link_hooks link_hooks = {.arg = relay};
    const struct link_options options = {
        .part = "relay",
        .dsn = relay->config->dsn ? relay->config->dsn : relay->options.dsn,
        .pooler = relay->config->pooler || relay->options.pooler,
    };
    int code = open_worker(relay, err);

    code = code ? code : open_redis(relay, err);
    return code ? code : link_new(&options, &link_hooks, loop, &relay->link, err);
}

static void watch(uv_loop_t *loop, uv_poll_t *poll, int fd, struct relay *relay, uv_poll_cb on_poll)
{
    uv_poll_init(loop, poll, fd);
    poll->data = relay;
    uv_poll_start(poll, UV_READABLE, on_poll);
}

int relay_new(const struct relay_options *options, const struct relay_hooks *hooks, uv_loop_t *loop,
              struct relay **ret, struct mr_error *err)
{
    struct relay *relay = calloc(1, sizeof(*relay));

    if (!relay) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    relay->options = *options;
    relay->config = options->config;
    relay->hooks = *hooks;
    set_up(relay);
    int code = open_parts(relay, loop, err);
    if (code) {
        relay_free(relay);
        return code;
    }
    watch(loop, &relay->worker_poll, worker_fd(relay->worker), relay, on_worker);
    watch(loop, &relay->talker_poll, redis_pipe_fd(relay->talker), relay, on_redis);
    watch(loop, &relay->reader_poll, redis_pipe_fd(relay->reader), relay, on_redis);
    uv_timer_init(loop, &relay->tick);
    relay->tick.data = relay;
    uv_timer_start(&relay->tick, on_tick, 0, RELAY_TICK_MS / 4);
    worker_wake(relay->worker);
    *ret = relay;
    return 0;
}

void relay_free(struct relay *relay)
{
    struct consignment *consignment;

    redis_pipe_free(relay->talker);
    redis_pipe_free(relay->reader);
    worker_free(relay->worker);
    relay_estate_free(relay->estate);
    while ((consignment = relay->consignments)) {
        relay->consignments = consignment->next;
        free(consignment);
    }
    free(relay);
}

bool relay_ready(const struct relay *relay)
{
    return relay->was_ready;
}

const char *relay_trouble(const struct relay *relay)
{
    return relay->trouble[0] ? relay->trouble : NULL;
}

void relay_figures(const struct relay *relay, struct http_relay *ret)
{
    *ret = relay->figures;
    ret->connected = relay->open;
    ret->in_flight = relay->held;
    ret->unsent = relay->unsent;
    ret->bytes = relay->bytes;
    ret->length = relay->length;
    ret->pending = relay->pending;
    ret->lag = relay->length > relay->pending ? relay->length - relay->pending : 0;
}
