// SPDX-License-Identifier: PostgreSQL
//
// A connection to Redis: see redis_wire.h.
//
// hiredis frees its context by itself when a connection ends, after it has answered what was sent
// (with NULL) and told the disconnect callback. `context` is NULL from then on. The poll handle
// is a block of its own, because libuv frees it a turn later.

#include "store/redis_wire.h"

#include <hiredis/async.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"

#define CONNECT_MS   10000
#define RETRY_MIN_MS 100
#define RETRY_MAX_MS 5000
// AUTH, SELECT, CLIENT SETNAME.
#define LOGIN_MS 10000

enum wire_status {
    WIRE_WAITING,    // for the time to connect
    WIRE_CONNECTING, // and logging in
    WIRE_OPEN,
    WIRE_CLOSED,
};

struct redis_wire {
    struct redis_url url;
    char name[REDIS_TEXT_MAX];
    struct redis_hooks hooks;
    uv_loop_t *loop;
    redisAsyncContext *context; // NULL: none
    enum wire_status status;
    uv_timer_t timer;    // the next attempt, or the end of patience
    int64_t deadline_ms; // of the command that may take longest; 0: none is under way
    int64_t retry_ms;
    int under_way;
    int logging_in;          // commands of the login without an answer
    struct mr_error trouble; // why the connection ends
    void (*closed)(void *arg);
    void *closed_arg;
};

struct request {
    struct redis_wire *wire;
    redis_answer_fn *answer;
    void *arg;
};

static void on_timer(uv_timer_t *timer);

// ---- hiredis on libuv ----

struct watch {
    uv_poll_t poll;
    redisAsyncContext *context; // NULL: closing
    int events;
};

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct watch *watch = poll->data;
    int seen = status < 0 ? UV_READABLE | UV_WRITABLE : events;

    if (watch->context && (seen & UV_READABLE)) {
        redisAsyncHandleRead(watch->context);
    }
    if (watch->context && (seen & UV_WRITABLE)) {
        redisAsyncHandleWrite(watch->context);
    }
}

static void watch_for(struct watch *watch, int events)
{
    watch->events = events;
    if (events) {
        uv_poll_start(&watch->poll, events, on_poll);
    } else {
        uv_poll_stop(&watch->poll);
    }
}

static void add_read(void *arg)
{
    struct watch *watch = arg;

    watch_for(watch, watch->events | UV_READABLE);
}

static void stop_read(void *arg)
{
    struct watch *watch = arg;

    watch_for(watch, watch->events & ~UV_READABLE);
}

static void add_write(void *arg)
{
    struct watch *watch = arg;

    watch_for(watch, watch->events | UV_WRITABLE);
}

static void stop_write(void *arg)
{
    struct watch *watch = arg;

    watch_for(watch, watch->events & ~UV_WRITABLE);
}

static void on_watch_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void end_watch(void *arg)
{
    struct watch *watch = arg;

    watch->context = NULL;
    uv_close((uv_handle_t *)&watch->poll, on_watch_closed);
}

static bool attach(redisAsyncContext *context, uv_loop_t *loop)
{
    struct watch *watch = calloc(1, sizeof(*watch));

    if (!watch || uv_poll_init(loop, &watch->poll, context->c.fd)) {
        free(watch);
        return false;
    }
    watch->poll.data = watch;
    watch->context = context;
    context->ev.data = watch;
    context->ev.addRead = add_read;
    context->ev.delRead = stop_read;
    context->ev.addWrite = add_write;
    context->ev.delWrite = stop_write;
    context->ev.cleanup = end_watch;
    return true;
}

// ---- the end of a connection ----

static void patience(struct redis_wire *wire, int64_t ms)
{
    uv_timer_start(&wire->timer, on_timer, (uint64_t)ms, 0);
}

static void retry_later(struct redis_wire *wire)
{
    int64_t wait_ms = wire->retry_ms;

    wire->status = WIRE_WAITING;
    wire->deadline_ms = 0;
    wire->logging_in = 0;
    wire->retry_ms = wait_ms * 2 < RETRY_MAX_MS ? wait_ms * 2 : RETRY_MAX_MS;
    patience(wire, wait_ms - wait_ms / 4 + random() % (wait_ms / 2 + 1));
}

// The connection is over, or was none.
static void lost(struct redis_wire *wire)
{
    bool was_open = wire->status == WIRE_OPEN;

    wire->context = NULL;
    if (wire->status == WIRE_CLOSED) {
        return;
    }
    retry_later(wire);
    wire->hooks.event(wire->hooks.arg, was_open ? REDIS_LOST_EVENT : REDIS_REFUSED_EVENT,
                      &wire->trouble);
}

// Says why, unless it was said before.
static void blame(struct redis_wire *wire, const char *why)
{
    char place[REDIS_TEXT_MAX + 16];

    if (wire->trouble.code == 0) {
        redis_url_place(&wire->url, place, sizeof(place));
        mr_error_set(&wire->trouble, MR_ECONNECT, "Redis at %s: %s", place, why);
    }
}

static void on_disconnected(const redisAsyncContext *context, int status)
{
    struct redis_wire *wire = context->data;

    blame(wire, status == REDIS_OK ? "disconnected" : context->errstr);
    lost(wire);
}

static void on_connected(const redisAsyncContext *context, int status)
{
    struct redis_wire *wire = context->data;

    if (status != REDIS_OK) { // hiredis frees it, without a word to on_disconnected()
        blame(wire, context->errstr);
        lost(wire);
    }
}

static void break_off(struct redis_wire *wire, const char *why)
{
    blame(wire, why);
    if (wire->context) {
        redisAsyncContext *context = wire->context;
        bool told = context->c.flags & REDIS_CONNECTED;
        redisAsyncFree(context);
        if (!told) {
            lost(wire);
        }
    }
}

// ---- answers ----

static void on_reply(redisAsyncContext *context, void *data, void *arg)
{
    struct request request = *(struct request *)arg;
    struct redis_wire *wire = request.wire;

    free(arg);
    wire->under_way--;
    if (data) {
        wire->deadline_ms = wire->under_way ? wire->deadline_ms : 0;
        request.answer(request.arg, data, NULL);
    } else {
        blame(wire, context->err ? context->errstr : "the connection was closed");
        request.answer(request.arg, NULL, &wire->trouble);
    }
}

static int send_command(struct redis_wire *wire, int argc, const char **argv, const size_t *sizes,
                        int64_t timeout_ms, redis_answer_fn *answer, void *arg,
                        struct mr_error *err)
{
    struct request *request = malloc(sizeof(*request));
    int64_t deadline_ms = clock_ms() + timeout_ms;

    if (!request) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    *request = (struct request){wire, answer, arg};
    if (redisAsyncCommandArgv(wire->context, on_reply, request, argc, argv, sizes)) {
        free(request);
        return mr_error_set(err, MR_ECONNECT, "Redis: the connection is being closed");
    }
    wire->under_way++;
    if (deadline_ms > wire->deadline_ms) {
        wire->deadline_ms = deadline_ms;
        patience(wire, timeout_ms);
    }
    return 0;
}

// ---- connecting ----

static void on_login(void *arg, const redisReply *reply, const struct mr_error *err)
{
    struct redis_wire *wire = arg;

    if (err) {
        return;
    }
    // a name is a courtesy: a user of Redis's may be forbidden to give itself one
    bool courtesy = wire->logging_in == 1;
    wire->logging_in--;
    if (reply->type == REDIS_REPLY_ERROR && !courtesy) {
        blame(wire, reply->str);
        redisAsyncDisconnect(wire->context);
        return;
    }
    if (wire->logging_in == 0 && wire->status == WIRE_CONNECTING && wire->trouble.code == 0) {
        wire->status = WIRE_OPEN;
        wire->retry_ms = RETRY_MIN_MS;
        wire->hooks.event(wire->hooks.arg, REDIS_CONNECTED_EVENT, NULL);
    }
}

// hiredis keeps what is sent until the connection stands.
static void login_with(struct redis_wire *wire, int argc, const char **argv)
{
    if (send_command(wire, argc, argv, NULL, LOGIN_MS, on_login, wire, NULL) == 0) {
        wire->logging_in++;
    }
}

static void login(struct redis_wire *wire)
{
    const struct redis_url *url = &wire->url;
    char database[16];

    if (url->password[0] && url->user[0]) {
        login_with(wire, 3, (const char *[]){"AUTH", url->user, url->password});
    } else if (url->password[0]) {
        login_with(wire, 2, (const char *[]){"AUTH", url->password});
    }
    snprintf(database, sizeof(database), "%d", url->database);
    login_with(wire, 2, (const char *[]){"SELECT", database});
    login_with(wire, 3, (const char *[]){"CLIENT", "SETNAME", wire->name});
}

static void dial(struct redis_wire *wire)
{
    const struct redis_url *url = &wire->url;
    redisAsyncContext *context =
        url->path[0] ? redisAsyncConnectUnix(url->path) : redisAsyncConnect(url->host, url->port);

    wire->trouble = (struct mr_error){0};
    if (!context || context->err || !attach(context, wire->loop)) {
        blame(wire, context && context->err ? context->errstr : "out of memory");
        if (context) {
            redisAsyncFree(context);
        }
        lost(wire);
        return;
    }
    context->data = wire;
    wire->context = context;
    wire->status = WIRE_CONNECTING;
    redisAsyncSetConnectCallback(context, on_connected);
    redisAsyncSetDisconnectCallback(context, on_disconnected);
    if (!url->path[0]) {
        redisEnableKeepAlive(&context->c);
    }
    patience(wire, CONNECT_MS);
    login(wire);
}

static void on_timer(uv_timer_t *timer)
{
    struct redis_wire *wire = timer->data;

    switch (wire->status) {
    case WIRE_WAITING: dial(wire); return;
    case WIRE_CONNECTING: break_off(wire, "no answer"); return;
    case WIRE_OPEN:
        if (wire->deadline_ms == 0) {
            return;
        }
        if (clock_ms() < wire->deadline_ms) {
            patience(wire, wire->deadline_ms - clock_ms());
            return;
        }
        break_off(wire, "no answer in time");
        return;
    case WIRE_CLOSED: return;
    }
}

// ---- life ----

int redis_wire_new(const struct redis_url *url, const char *name, const struct redis_hooks *hooks,
                   uv_loop_t *loop, struct redis_wire **ret, struct mr_error *err)
{
    struct redis_wire *wire = calloc(1, sizeof(*wire));

    if (!wire) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    wire->url = *url;
    wire->hooks = *hooks;
    wire->loop = loop;
    wire->retry_ms = RETRY_MIN_MS;
    snprintf(wire->name, sizeof(wire->name), "%s", name);
    for (char *c = wire->name; *c; c++) { // as CLIENT SETNAME wants it
        *c = *c > ' ' && *c < 127 ? *c : '_';
    }
    uv_timer_init(loop, &wire->timer);
    wire->timer.data = wire;
    patience(wire, 0);
    *ret = wire;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct redis_wire *wire = handle->data;
    void (*closed)(void *arg) = wire->closed;
    void *arg = wire->closed_arg;

    free(wire);
    closed(arg);
}

void redis_wire_close(struct redis_wire *wire, void (*closed)(void *arg), void *arg)
{
    wire->closed = closed;
    wire->closed_arg = arg;
    wire->status = WIRE_CLOSED;
    break_off(wire, "closed");
    uv_close((uv_handle_t *)&wire->timer, on_closed);
}

bool redis_wire_connected(const struct redis_wire *wire)
{
    return wire->status == WIRE_OPEN;
}

int redis_wire_send(struct redis_wire *wire, int argc, const char **argv, const size_t *sizes,
                    int64_t timeout_ms, redis_answer_fn *answer, void *arg, struct mr_error *err)
{
    if (wire->status != WIRE_OPEN) {
        return mr_error_set(err, MR_ECONNECT, "Redis: not connected");
    }
    return send_command(wire, argc, argv, sizes, timeout_ms, answer, arg, err);
}

void redis_wire_reset(struct redis_wire *wire, const char *why)
{
    break_off(wire, why);
}

bool redis_reply_is(const redisReply *reply, const char *word)
{
    return reply->type == REDIS_REPLY_ERROR && str_starts(reply->str, word);
}
