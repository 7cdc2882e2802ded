// SPDX-License-Identifier: PostgreSQL
//
// Server-sent events: see sse.h.
//
// A listener's connection is suspended while it has nothing to send. One that does not read as fast
// as events come misses some: an overview is only worth something while it is new.

#include "http/sse.h"

#include <stdlib.h>
#include <string.h>

#include "http/api.h"
#include "http/exchange.h"
#include "http/reply.h"

// What MHD gives each listener and fills only for HTTP/1.0: chunks are written where the request
// was.
#define BLOCK_SIZE 1024
#define EVENT_MAX  (16 * 1024 * 1024)
// How long a page waits before it listens again.
#define FIRST_EVENT "retry: 2000\n\n"

// One text for all who listen: ten thousand copies of a long one would be too much.
struct event {
    int holders;
    size_t size;
    char data[];
};

struct listener {
    struct sse *sse;
    struct exchange *exchange;
    struct event *event; // what is to be sent; NULL: nothing
    size_t sent;         // of it
    bool idle;           // suspended: everything was sent
    struct listener *next, *prev;
};

struct sse {
    struct http *http;
    struct listener *listeners;
    int count;
    uv_timer_t *timer; // NULL: nobody listens
    bool asking;
    bool stopping;
};

// ---- events that are held ----

// Held by whoever makes it. NULL without memory.
static struct event *event_new(const char *data, size_t size)
{
    struct event *event = malloc(sizeof(*event) + size);

    if (event) {
        event->holders = 1;
        event->size = size;
        memcpy(event->data, data, size);
    }
    return event;
}

static void event_drop(struct event *event)
{
    if (event && --event->holders == 0) {
        free(event);
    }
}

// ---- listeners ----

static void wake(struct listener *listener)
{
    if (listener->idle) {
        listener->idle = false;
        exchange_resume(listener->exchange);
    }
}

// MHD asks for more. Suspended inside of this, it asks again when resumed.
static ssize_t on_read(void *arg, uint64_t position, char *data, size_t max)
{
    struct listener *listener = arg;
    size_t left = listener->event ? listener->event->size - listener->sent : 0;
    size_t size = left < max ? left : max;

    (void)position;
    if (listener->exchange->gone) {
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    if (size == 0 && listener->sse->stopping) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    if (size == 0) {
        listener->idle = true;
        exchange_suspend(listener->exchange);
        exchange_watch(listener->exchange, listener->exchange->left);
        return 0;
    }
    memcpy(data, listener->event->data + listener->sent, size);
    listener->sent += size;
    if (size == left) {
        event_drop(listener->event);
        listener->event = NULL;
    }
    return (ssize_t)size;
}

static void on_left(struct exchange *exchange)
{
    wake(exchange->work);
}

static void on_ended(struct exchange *exchange, bool delivered)
{
    struct listener *listener = exchange->work;
    struct sse *sse = listener->sse;

    (void)delivered;
    *(listener->prev ? &listener->prev->next : &sse->listeners) = listener->next;
    if (listener->next) {
        listener->next->prev = listener->prev;
    }
    sse->count--;
    event_drop(listener->event);
    free(listener);
}

// ---- events ----

static void listener_give(struct listener *listener, struct event *event)
{
    event->holders++;
    listener->event = event;
    listener->sent = 0;
}

static void send_event(struct sse *sse, const char *data, size_t size)
{
    struct event *event = event_new(data, size);

    for (struct listener *listener = event ? sse->listeners : NULL, *next; listener;
         listener = next) {
        next = listener->next;
        if (!listener->event) {
            listener_give(listener, event);
            wake(listener);
        }
    }
    event_drop(event);
}

// The text of jsonb has no line breaks: it is one line of data.
static void answered(void *arg, PGresult *result, const struct mr_error *err)
{
    struct sse *sse = arg;
    AUTO_BUF event;

    buf_init(&event, EVENT_MAX);
    sse->asking = false;
    if (err) {
        buf_puts(&event, "event: trouble\ndata: ");
        reply_error_body(&event, "unavailable", err->message, err->hint, NULL);
        buf_puts(&event, "\n\n");
    } else {
        buf_printf(&event, "event: overview\ndata: %s\n\n", PQgetvalue(result, 0, 0));
    }
    if (buf_status(&event, NULL) == 0) {
        send_event(sse, event.data, event.len);
    }
}

static void free_timer(uv_handle_t *handle)
{
    free(handle);
}

static void on_tick(uv_timer_t *timer)
{
    struct sse *sse = timer->data;
    struct mr_error err;
    AUTO_CALL call;

    call_init(&call, CALL_API_OVERVIEW);
    if (sse->count == 0) {
        uv_close((uv_handle_t *)timer, free_timer);
        sse->timer = NULL;
        return;
    }
    if (sse->asking) {
        send_event(sse, ": waiting\n\n", strlen(": waiting\n\n"));
        return;
    }
    sse->asking = true;
    if (database_call(sse->http->db, DATABASE_COMMON, &call, answered, sse, &err)) {
        answered(sse, NULL, &err);
    }
}

static void start_ticking(struct sse *sse)
{
    if (!sse->timer && (sse->timer = calloc(1, sizeof(uv_timer_t)))) {
        uv_timer_init(sse->http->loop, sse->timer);
        sse->timer->data = sse;
        uv_timer_start(sse->timer, on_tick, 0, SSE_EVERY_MS);
    }
}

// ---- beginning and end ----

struct sse *sse_new(struct http *http)
{
    struct sse *sse = calloc(1, sizeof(*sse));

    if (sse) {
        sse->http = http;
    }
    return sse;
}

void sse_free(struct sse *sse)
{
    free(sse);
}

void sse_stop(struct sse *sse)
{
    sse->stopping = true;
    if (sse->timer) {
        uv_close((uv_handle_t *)sse->timer, free_timer);
        sse->timer = NULL;
    }
    for (struct listener *listener = sse->listeners, *next; listener; listener = next) {
        next = listener->next;
        wake(listener);
    }
}

static struct listener *listener_new(struct exchange *exchange)
{
    struct sse *sse = exchange->http->sse;
    struct listener *listener =
        sse->count < SSE_LISTENERS_MAX ? calloc(1, sizeof(*listener)) : NULL;

    if (!listener) {
        return NULL;
    }
    listener->sse = sse;
    listener->exchange = exchange;
    listener->event = event_new(FIRST_EVENT, strlen(FIRST_EVENT));
    listener->next = sse->listeners;
    if (sse->listeners) {
        sse->listeners->prev = listener;
    }
    sse->listeners = listener;
    sse->count++;
    return listener;
}

void api_events(struct exchange *exchange)
{
    struct listener *listener = listener_new(exchange);

    if (!listener) {
        exchange_refuse(exchange, 503, "too many listen already", NULL);
        return;
    }
    exchange->work = listener;
    exchange->ended = on_ended;
    exchange->left = on_left;
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_SIZE, on_read, listener, NULL);
    if (response) {
        reply_headers(response, "text/event-stream", NULL);
    }
    exchange->gone = !response;
    exchange->endless = true;
    start_ticking(exchange->http->sse);
    exchange_reply_with(exchange, 200, response);
}
