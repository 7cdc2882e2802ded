// SPDX-License-Identifier: PostgreSQL
//
// Requests that wait: see long_poll.h.

#include "http/long_poll.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "http/api.h"
#include "http/exchange.h"
#include "http/params.h"

#define LINE_NAME_SIZE 512

// Who waits for the same thing, the first one first.
struct line {
    struct line *next;
    struct waiter *first;
    char name[];
};

struct waiter {
    struct long_poll *long_poll;
    struct exchange *exchange; // alive as long as this
    struct call call;
    bool claims;      // what it gets is a lease
    int64_t until_ms; // it waits
    bool asking;
    struct line *line; // it stands in; NULL
    struct waiter *next;
    struct buf last; // what it was told last
    char *lease;     // that it was given
};

struct long_poll {
    struct http *http;
    struct line *lines;
    uv_timer_t *timer; // NULL: nobody waits
};

// ---- lines ----

static struct line *line_find(struct long_poll *long_poll, const char *name)
{
    for (struct line *line = long_poll->lines; line; line = line->next) {
        if (str_equal(line->name, name)) {
            return line;
        }
    }
    struct line *line = calloc(1, sizeof(*line) + strlen(name) + 1);
    if (line) {
        memcpy(line->name, name, strlen(name) + 1);
        line->next = long_poll->lines;
        long_poll->lines = line;
    }
    return line;
}

static void line_join(struct line *line, struct waiter *waiter)
{
    struct waiter **end = &line->first;

    while (*end) {
        end = &(*end)->next;
    }
    *end = waiter;
    waiter->next = NULL;
    waiter->line = line;
}

static void line_leave(struct waiter *waiter)
{
    if (waiter->line) {
        struct waiter **at = &waiter->line->first;
        while (*at != waiter) {
            at = &(*at)->next;
        }
        *at = waiter->next;
        waiter->line = NULL;
    }
}

// ---- the end of waiting ----

static void dropped(void *arg, PGresult *result, const struct mr_error *err)
{
    (void)arg;
    (void)result;
    (void)err;
}

// Should it fail the lease runs out by itself.
static void release(struct http *http, const char *lease)
{
    AUTO_CALL call;

    call_init(&call, CALL_API_RELEASE);
    call_text(&call, lease);
    call_null(&call);
    database_call(http->db, DATABASE_COMMON, &call, dropped, NULL, NULL);
}

static void on_ended(struct exchange *exchange, bool delivered)
{
    struct waiter *waiter = exchange->work;

    line_leave(waiter);
    if (waiter->lease && !delivered) {
        release(exchange->http, waiter->lease);
    }
    call_done(&waiter->call);
    buf_done(&waiter->last);
    free(waiter->lease);
    free(waiter);
}

// The next one of a line need not wait for the tick when there was something for the one before.
static void ask(struct waiter *waiter);

static void finish(struct waiter *waiter, bool got)
{
    struct line *line = waiter->line;

    line_leave(waiter);
    exchange_reply(waiter->exchange, 200, &waiter->last);
    if (got && line && line->first && !line->first->asking) {
        ask(line->first);
    }
}

static void on_left(struct exchange *exchange)
{
    struct waiter *waiter = exchange->work;

    if (!waiter->asking) { // otherwise the answer is waited for
        line_leave(waiter);
        exchange_resume(exchange);
    }
}

// ---- asking ----

static bool is_over(const struct waiter *waiter, const PGresult *result)
{
    static const char *const ends[] = {"completed", "dead", "cancelled", "expired"};

    if (waiter->claims) {
        return !PQgetisnull(result, 0, 1);
    }
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (str_equal(PQgetvalue(result, 0, 1), ends[i])) {
            return true;
        }
    }
    return false;
}

static void start_ticking(struct long_poll *long_poll);

static void wait_on(struct waiter *waiter)
{
    bool waits = clock_ms() < waiter->until_ms && !waiter->long_poll->http->stopping;

    if (waiter->line && waits) {
        return;
    }
    if (!waits) {
        finish(waiter, false);
        return;
    }
    char name[LINE_NAME_SIZE];
    snprintf(name, sizeof(name), "%s %.500s", waiter->claims ? "queue" : "job",
             waiter->exchange->variables[0]);
    struct line *line = line_find(waiter->long_poll, name);
    if (!line) {
        finish(waiter, false);
        return;
    }
    line_join(line, waiter);
    start_ticking(waiter->long_poll);
}

static void answered(void *arg, PGresult *result, const struct mr_error *err)
{
    struct exchange *exchange = arg;
    struct waiter *waiter = exchange->work;

    waiter->asking = false;
    if (err) {
        line_leave(waiter);
        exchange_fail(exchange, err);
        return;
    }
    bool over = PQntuples(result) > 0 && is_over(waiter, result);
    if (over && waiter->claims) {
        waiter->lease = strdup(PQgetvalue(result, 0, 1));
    }
    if (exchange->gone) { // on_ended() releases what it was given
        line_leave(waiter);
        exchange_resume(exchange);
        return;
    }
    buf_done(&waiter->last);
    buf_add(&waiter->last, PQgetvalue(result, 0, 0), (size_t)PQgetlength(result, 0, 0));
    if (over) {
        finish(waiter, true);
    } else {
        wait_on(waiter);
    }
}

static void ask(struct waiter *waiter)
{
    struct mr_error err;

    waiter->asking = true;
    if (database_call(waiter->long_poll->http->db, DATABASE_CLAIM, &waiter->call, answered,
                      waiter->exchange, &err)) {
        waiter->asking = false;
        line_leave(waiter);
        exchange_fail(waiter->exchange, &err);
    }
}

// ---- the tick ----

static void free_timer(uv_handle_t *handle)
{
    free(handle);
}

// Those whose time is over get what they were told last.
static void line_tick(struct line *line)
{
    int64_t now_ms = clock_ms();

    for (struct waiter *waiter = line->first, *next; waiter; waiter = next) {
        next = waiter->next;
        if (!waiter->asking && now_ms >= waiter->until_ms) {
            finish(waiter, false);
        }
    }
    if (line->first && !line->first->asking) {
        ask(line->first);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct long_poll *long_poll = timer->data;

    for (struct line **at = &long_poll->lines; *at;) {
        struct line *line = *at;
        if (line->first) {
            line_tick(line);
            at = &line->next;
        } else {
            *at = line->next;
            free(line);
        }
    }
    if (!long_poll->lines) {
        uv_close((uv_handle_t *)timer, free_timer);
        long_poll->timer = NULL;
    }
}

static void start_ticking(struct long_poll *long_poll)
{
    if (!long_poll->timer && (long_poll->timer = calloc(1, sizeof(uv_timer_t)))) {
        uv_timer_init(long_poll->http->loop, long_poll->timer);
        long_poll->timer->data = long_poll;
        uv_timer_start(long_poll->timer, on_tick, LONG_POLL_MS, LONG_POLL_MS);
    }
}

struct long_poll *long_poll_new(struct http *http)
{
    struct long_poll *long_poll = calloc(1, sizeof(*long_poll));

    if (long_poll) {
        long_poll->http = http;
    }
    return long_poll;
}

// By now nobody waits.
void long_poll_free(struct long_poll *long_poll)
{
    for (struct line *line = long_poll ? long_poll->lines : NULL, *next; line; line = next) {
        next = line->next;
        free(line);
    }
    free(long_poll);
}

void long_poll_stop(struct long_poll *long_poll)
{
    for (struct line *line = long_poll->lines; line; line = line->next) {
        for (struct waiter *waiter = line->first; waiter; waiter = waiter->next) {
            waiter->until_ms = 0;
        }
        for (struct waiter *waiter = line->first, *next; waiter; waiter = next) {
            next = waiter->next;
            if (!waiter->asking) {
                finish(waiter, false);
            }
        }
    }
    if (long_poll->timer) {
        uv_close((uv_handle_t *)long_poll->timer, free_timer);
        long_poll->timer = NULL;
    }
}

// ---- the routes ----

static void begin(struct exchange *exchange, bool claims, size_t params_count)
{
    struct waiter *waiter = calloc(1, sizeof(*waiter));
    struct params params;
    struct mr_error err;
    int64_t wait_ms = 0;

    if (!waiter) {
        exchange_refuse(exchange, 503, "out of memory", NULL);
        return;
    }
    waiter->long_poll = exchange->http->long_poll;
    waiter->exchange = exchange;
    waiter->claims = claims;
    call_init(&waiter->call, exchange->route->call);
    buf_init(&waiter->last, CALL_SIZE_MAX);
    exchange->work = waiter;
    exchange->ended = on_ended;
    if (!api_params(exchange, &params)) {
        return;
    }
    if (params_number(&params, "wait_ms", 0, LONG_POLL_WAIT_MS, 0, &wait_ms, &err) ||
        params_fill(&params, params_count, &waiter->call, &err)) {
        exchange_fail(exchange, &err);
        return;
    }
    waiter->until_ms = clock_ms() + wait_ms;
    exchange_watch(exchange, on_left);
    ask(waiter);
}

void api_claim(struct exchange *exchange)
{
    begin(exchange, true, 5);
}

void api_outcome(struct exchange *exchange)
{
    begin(exchange, false, 1);
}
