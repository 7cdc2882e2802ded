// SPDX-License-Identifier: PostgreSQL
//
// Server-sent events: see sse.h.
//
// A listener's connection is suspended while it has nothing to send. One that does not read as fast
// as events come misses some: an overview is only worth something while it is new.

#include "http/sse.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "http/api.h"
#include "http/exchange.h"
#include "http/merge.h"
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
    const struct site *site; // it is about; NULL: about all
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
    int asking;        // sites that have not answered
    struct said *said; // by each site, this time
    bool stopping;
};

// What a site has said.
struct said {
    struct sse *sse;
    const struct site *site;
    bool asked;
    struct buf text;
    struct mr_error err; // code 0: there is a text
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

// To all who listen to a site, or, NULL, to all sites.
static void send_event(struct sse *sse, const struct site *site, const char *data, size_t size)
{
    struct event *event = event_new(data, size);

    for (struct listener *listener = event ? sse->listeners : NULL, *next; listener;
         listener = next) {
        next = listener->next;
        if (listener->site == site && !listener->event) {
            listener_give(listener, event);
            wake(listener);
        }
    }
    event_drop(event);
}

static bool is_heard(const struct sse *sse, const struct site *site)
{
    const struct listener *listener = sse->listeners;

    while (listener && listener->site != site) {
        listener = listener->next;
    }
    return listener;
}

// How all shards do, where there are several: before the end of an object.
static void add_shards(const struct sse *sse, struct buf *out)
{
    if (sites_several(sse->http)) {
        out->len--;
        buf_puts(out, ",\"shards\":");
        sites_describe(sse->http, out);
        buf_puts(out, "}");
    }
}

static void send_trouble(struct sse *sse, const struct site *site, const struct mr_error *err)
{
    AUTO_BUF event;

    buf_init(&event, EVENT_MAX);
    buf_puts(&event, "event: trouble\ndata: ");
    reply_error_body(&event, "unavailable", err->message, err->hint, NULL);
    add_shards(sse, &event);
    buf_puts(&event, "\n\n");
    if (buf_status(&event, NULL) == 0) {
        send_event(sse, site, event.data, event.len);
    }
}

// The text of jsonb has no line breaks: it is one line of data.
static void send_overview(struct sse *sse, const struct site *site, const char *text)
{
    AUTO_BUF event;

    buf_init(&event, EVENT_MAX);
    buf_printf(&event, "event: overview\ndata: %s", text);
    add_shards(sse, &event);
    buf_puts(&event, "\n\n");
    if (buf_status(&event, NULL) == 0) {
        send_event(sse, site, event.data, event.len);
    }
}

static void send_one(struct sse *sse, const struct said *said)
{
    if (said->err.code) {
        send_trouble(sse, said->site, &said->err);
    } else {
        send_overview(sse, said->site, buf_peek(&said->text));
    }
}

// Of all shards together.
static void send_all(struct sse *sse)
{
    const struct mr_error *why = NULL;
    json_t *all = NULL;

    for (int i = 0; i < sse->http->site_count; i++) {
        const struct said *said = &sse->said[i];
        json_t *one =
            said->err.code ? NULL : json_loadb(buf_peek(&said->text), said->text.len, 0, NULL);
        why = said->err.code && !why ? &said->err : why;
        merge_mark(one, site_number(said->site));
        if (all && one) {
            merge_figures(all, one);
            json_decref(one);
        } else if (one) {
            all = one;
        }
    }
    char *text = all ? json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
    if (text) {
        send_overview(sse, NULL, text);
    } else if (why) {
        send_trouble(sse, NULL, why);
    }
    free(text);
    json_decref(all);
}

static void publish(struct sse *sse)
{
    const struct http *http = sse->http;

    for (int i = 0; i < http->site_count; i++) {
        if (sse->said[i].asked) {
            send_one(sse, &sse->said[i]);
        }
    }
    if (sites_several(http) && is_heard(sse, NULL)) {
        send_all(sse);
    }
}

static void take(struct said *said, const PGresult *result, const struct mr_error *err)
{
    buf_done(&said->text);
    said->err = err ? *err : (struct mr_error){0};
    if (!err) {
        buf_add(&said->text, PQgetvalue(result, 0, 0), (size_t)PQgetlength(result, 0, 0));
    }
}

static void answered(void *arg, PGresult *result, const struct mr_error *err)
{
    struct said *said = arg;
    struct sse *sse = said->sse;

    take(said, result, err);
    if (--sse->asking == 0) {
        publish(sse);
    }
}

static void ask(struct sse *sse, struct said *said)
{
    struct mr_error err;
    AUTO_CALL call;

    call_init(&call, CALL_API_OVERVIEW);
    said->asked = is_heard(sse, said->site) || (sites_several(sse->http) && is_heard(sse, NULL));
    if (!said->asked) {
        return;
    }
    if (site_check(said->site, &err) ||
        database_call(said->site->db, DATABASE_COMMON, &call, answered, said, &err)) {
        take(said, NULL, &err);
    } else {
        sse->asking++;
    }
}

static void free_timer(uv_handle_t *handle)
{
    free(handle);
}

static void say_waiting(struct sse *sse)
{
    static const char waiting[] = ": waiting\n\n";

    for (int i = 0; i < sse->http->site_count; i++) {
        send_event(sse, sse->said[i].site, waiting, strlen(waiting));
    }
    send_event(sse, NULL, waiting, strlen(waiting));
}

static void on_tick(uv_timer_t *timer)
{
    struct sse *sse = timer->data;

    if (sse->count == 0) {
        uv_close((uv_handle_t *)timer, free_timer);
        sse->timer = NULL;
        return;
    }
    if (sse->asking) {
        say_waiting(sse);
        return;
    }
    sse->asking = 1; // this
    for (int i = 0; i < sse->http->site_count; i++) {
        ask(sse, &sse->said[i]);
    }
    if (--sse->asking == 0) {
        publish(sse);
    }
}

// What is said by sites that are opened after this.
static bool make_said(struct sse *sse)
{
    const struct http *http = sse->http;

    if (!sse->said && (sse->said = calloc((size_t)http->site_count, sizeof(*sse->said)))) {
        for (int i = 0; i < http->site_count; i++) {
            sse->said[i].sse = sse;
            sse->said[i].site = &http->sites[i];
            buf_init(&sse->said[i].text, EVENT_MAX);
        }
    }
    return sse->said;
}

static void start_ticking(struct sse *sse)
{
    if (!sse->timer && make_said(sse) && (sse->timer = calloc(1, sizeof(uv_timer_t)))) {
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
    for (int i = 0; sse && sse->said && i < sse->http->site_count; i++) {
        buf_done(&sse->said[i].text);
    }
    if (sse) {
        free(sse->said);
    }
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
    listener->site = exchange->site;
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
