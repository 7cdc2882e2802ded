// SPDX-License-Identifier: PostgreSQL
//
// Wake-ups for those who wait for jobs of a queue: see wakeup.h.

#include "http/wakeup.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "client/wire.h"

// A registration holds for five seconds: renewed a second before.
#define REGISTERED_MS 4000
// After a refusal of the server (a role that may not wait, a restored schema).
#define REFUSED_MS 5000
// The name under which it registers.
#define WAITER_NAME  "millrace http"
#define CHANNEL_SIZE 64

struct wakeup_queue {
    struct wakeup *wakeup;
    struct wakeup_queue *next, *prev;
    void (*woken)(void *arg);
    void *arg;
    int pending;                // calls without an answer
    int64_t registered_at_ms;   // 0: it does not stand
    int64_t retry_at_ms;        // after a refusal; 0
    char channel[CHANNEL_SIZE]; // that is listened to; "": none
    char name[];
};

struct wakeup {
    char *dsn; // or NULL
    bool pooler;
    uv_loop_t *loop;
    struct wire *wire; // NULL: nobody has waited yet
    uv_poll_t poll;
    struct wakeup_queue *queues;
    int64_t reconnects;
    void (*closed)(void *arg);
    void *closed_arg;
};

// ---- registering ----

static void registered(void *arg, PGresult *result, const struct mr_error *err);

static void refused(struct wakeup_queue *queue, const struct mr_error *err)
{
    if (err->code != MR_ECONNECT) {
        queue->retry_at_ms = clock_ms() + REFUSED_MS;
    }
}

static void send_registration(struct wakeup_queue *queue)
{
    AUTO_CALL call;

    call_init(&call, CALL_WAIT_CHANNEL);
    call_text(&call, queue->name);
    call_text(&call, WAITER_NAME);
    queue->pending += wire_send(queue->wakeup->wire, &call, registered, queue, NULL) == 0;
}

static void listening(void *arg, PGresult *result, const struct mr_error *err)
{
    struct wakeup_queue *queue = arg;

    (void)result;
    queue->pending--;
    if (err) {
        queue->channel[0] = '\0';
        refused(queue, err);
    }
}

static void send_listen(struct wakeup_queue *queue, const char *channel)
{
    AUTO_CALL call;

    call_init(&call, CALL_LISTEN);
    call_text(&call, channel);
    if (wire_send(queue->wakeup->wire, &call, listening, queue, NULL) == 0) {
        queue->pending++;
        memcpy(queue->channel, channel, strlen(channel) + 1);
    }
}

static void ignored(void *arg, PGresult *result, const struct mr_error *err)
{
    (void)arg;
    (void)result;
    (void)err;
}

static void send_unlisten(struct wakeup_queue *queue)
{
    AUTO_CALL call;

    call_init(&call, CALL_UNLISTEN);
    call_text(&call, queue->channel);
    if (queue->channel[0] && wire_connected(queue->wakeup->wire)) {
        wire_send(queue->wakeup->wire, &call, ignored, NULL, NULL);
    }
    queue->channel[0] = '\0';
}

// The first answer names the channel, and so does the first after the queue was dropped and made
// again: it is listened to, and only what is registered after that wakes.
static void registered(void *arg, PGresult *result, const struct mr_error *err)
{
    struct wakeup_queue *queue = arg;

    queue->pending--;
    if (err) {
        refused(queue, err);
        return;
    }
    const char *channel = PQgetvalue(result, 0, 0);
    if (clock_ms() < queue->retry_at_ms) { // it may register, but not listen
        return;
    }
    if (strlen(channel) >= CHANNEL_SIZE) {
        queue->retry_at_ms = INT64_MAX;
    } else if (!str_equal(queue->channel, channel)) {
        send_unlisten(queue);
        send_listen(queue, channel);
        send_registration(queue);
    } else {
        queue->registered_at_ms = clock_ms();
        queue->woken(queue->arg);
    }
}

static bool is_fresh(const struct wakeup_queue *queue)
{
    return queue->registered_at_ms && clock_ms() - queue->registered_at_ms < REGISTERED_MS;
}

void wakeup_renew(struct wakeup_queue *queue)
{
    if (queue && !queue->pending && !is_fresh(queue) && clock_ms() >= queue->retry_at_ms &&
        wire_connected(queue->wakeup->wire)) {
        queue->registered_at_ms = 0;
        send_registration(queue);
    }
}

// A registration that is a little too old still holds while the next is under way.
bool wakeup_stands(const struct wakeup_queue *queue)
{
    return queue && queue->registered_at_ms;
}

// ---- the connection ----

static void on_notify(void *arg, const char *channel)
{
    const struct wakeup *wakeup = arg;

    for (struct wakeup_queue *queue = wakeup->queues; queue; queue = queue->next) {
        if (str_equal(queue->channel, channel)) {
            queue->registered_at_ms = 0;
            queue->woken(queue->arg);
            return;
        }
    }
}

// A lost connection listens to nothing; the next may be to another server.
static void on_event(void *arg, enum wire_event event, const struct mr_error *err)
{
    struct wakeup *wakeup = arg;

    (void)err;
    wakeup->reconnects += event == WIRE_LOST;
    for (struct wakeup_queue *queue = wakeup->queues; queue; queue = queue->next) {
        if (event == WIRE_LOST) {
            queue->channel[0] = '\0';
            queue->registered_at_ms = queue->retry_at_ms = 0;
        } else if (event == WIRE_CONNECTED) {
            wakeup_renew(queue);
        }
    }
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct wakeup *wakeup = poll->data;

    (void)status;
    (void)events;
    wire_advance(wakeup->wire);
}

static bool open_wire(struct wakeup *wakeup)
{
    const struct wire_options options = {
        .dsn = wakeup->dsn,
        .application_name = "millrace http",
    };
    const struct wire_hooks hooks = {.event = on_event, .notify = on_notify, .arg = wakeup};

    if (wakeup->wire || wakeup->pooler || wakeup->closed) {
        return wakeup->wire && !wakeup->closed;
    }
    if (wire_new(&options, &hooks, &wakeup->wire, NULL)) {
        return false;
    }
    uv_poll_init(wakeup->loop, &wakeup->poll, wire_fd(wakeup->wire));
    wakeup->poll.data = wakeup;
    uv_poll_start(&wakeup->poll, UV_READABLE, on_readable);
    return true;
}

int64_t wakeup_reconnects(const struct wakeup *wakeup)
{
    return wakeup->reconnects;
}

// ---- queues ----

struct wakeup_queue *wakeup_add(struct wakeup *wakeup, const char *name, void (*woken)(void *arg),
                                void *arg)
{
    size_t size = strlen(name) + 1;
    struct wakeup_queue *queue = open_wire(wakeup) ? calloc(1, sizeof(*queue) + size) : NULL;

    if (!queue) {
        return NULL;
    }
    queue->wakeup = wakeup;
    queue->woken = woken;
    queue->arg = arg;
    memcpy(queue->name, name, size);
    queue->next = wakeup->queues;
    if (wakeup->queues) {
        wakeup->queues->prev = queue;
    }
    wakeup->queues = queue;
    return queue;
}

bool wakeup_remove(struct wakeup_queue *queue)
{
    if (!queue) {
        return true;
    }
    if (queue->pending) {
        return false;
    }
    send_unlisten(queue);
    *(queue->prev ? &queue->prev->next : &queue->wakeup->queues) = queue->next;
    if (queue->next) {
        queue->next->prev = queue->prev;
    }
    free(queue);
    return true;
}

// ---- beginning and end ----

struct wakeup *wakeup_new(const char *dsn, bool pooler, uv_loop_t *loop)
{
    struct wakeup *wakeup = calloc(1, sizeof(*wakeup));

    if (!wakeup || (dsn && !(wakeup->dsn = strdup(dsn)))) {
        free(wakeup);
        return NULL;
    }
    wakeup->pooler = pooler;
    wakeup->loop = loop;
    return wakeup;
}

static void finish(struct wakeup *wakeup)
{
    void (*closed)(void *arg) = wakeup->closed;
    void *arg = wakeup->closed_arg;

    for (struct wakeup_queue *queue = wakeup->queues, *next; queue; queue = next) {
        next = queue->next;
        free(queue);
    }
    free(wakeup->dsn);
    free(wakeup);
    closed(arg);
}

static void on_poll_closed(uv_handle_t *handle)
{
    finish(handle->data);
}

void wakeup_close(struct wakeup *wakeup, void (*closed)(void *arg), void *arg)
{
    wakeup->closed = closed;
    wakeup->closed_arg = arg;
    if (!wakeup->wire) {
        finish(wakeup);
        return;
    }
    uv_poll_stop(&wakeup->poll);
    wire_free(wakeup->wire);
    uv_close((uv_handle_t *)&wakeup->poll, on_poll_closed);
}
