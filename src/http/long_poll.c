// SPDX-License-Identifier: PostgreSQL
//
// Requests that wait: see long_poll.h.

#include "http/long_poll.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "http/api.h"
#include "http/exchange.h"
#include "http/objects.h"
#include "http/params.h"
#include "http/payloads.h"
#include "http/wakeup.h"

#define LINE_NAME_SIZE 512
// A line of a queue stays this long after the last has left: most come again at once, and find it
// registered.
#define LINGER_MS 20000
// Whoever has waited for the end of a job asks again after this share of that time.
#define PATIENCE 16

// Who waits for the same thing, the first one first.
struct line {
    struct long_poll *long_poll;
    struct line *next;
    struct waiter *first, *last;
    struct wakeup_queue *queues[SHARD_NUMBERS]; // that it waits for, at each site; NULL: for a job,
                                                // or nobody would wake it
    int64_t since_ms;                           // it is there
    int64_t ask_at_ms;                          // the first asks again
    int64_t left_at_ms;                         // when the last has left
    bool woken;                                 // while nobody could ask
    bool limited;                               // a limit of the queue left nothing
    char name[];
};

struct waiter {
    struct long_poll *long_poll;
    struct exchange *exchange; // alive as long as this
    struct call call;
    bool claims;       // what it gets is a lease
    struct site *site; // that is asked, or was last
    unsigned first;    // of several sites, the one that a round began with
    int asked;         // of them, in this round
    bool empty;        // one of them had nothing, in this round
    int64_t until_ms;  // it waits
    bool asking;
    struct line *line; // it stands in; NULL
    struct waiter *next, *prev;
    struct buf last;  // what it was told last
    struct buf coded; // the same, while objects of its jobs are read
    char *lease;      // that it was given
};

struct long_poll {
    struct http *http;
    struct line *lines;
    uv_timer_t *timer; // NULL: there are no lines
};

static void ask(struct waiter *waiter);
static void start_ticking(struct long_poll *long_poll);

// ---- lines ----

// The first of the line asks, or, when nobody can now, whoever can next.
static void line_wake(struct line *line)
{
    line->woken = !line->first || line->first->asking;
    if (!line->woken) {
        ask(line->first);
    }
}

static void on_woken(void *arg)
{
    line_wake(arg);
}

static struct line *line_find(const struct long_poll *long_poll, const char *name)
{
    struct line *line = long_poll->lines;

    while (line && !str_equal(line->name, name)) {
        line = line->next;
    }
    return line;
}

static struct line *line_new(struct long_poll *long_poll, const char *name, const char *queue)
{
    struct line *line = calloc(1, sizeof(*line) + strlen(name) + 1);

    if (line) {
        memcpy(line->name, name, strlen(name) + 1);
        line->long_poll = long_poll;
        line->since_ms = clock_ms();
        for (int i = 0; queue && i < long_poll->http->site_count; i++) {
            line->queues[i] = wakeup_add(long_poll->http->sites[i].wakeup, queue, on_woken, line);
        }
        line->next = long_poll->lines;
        long_poll->lines = line;
        start_ticking(long_poll);
    }
    return line;
}

static void line_join(struct line *line, struct waiter *waiter)
{
    waiter->prev = line->last;
    waiter->next = NULL;
    *(line->last ? &line->last->next : &line->first) = waiter;
    line->last = waiter;
    waiter->line = line;
}

static void line_leave(struct waiter *waiter)
{
    struct line *line = waiter->line;

    if (line) {
        *(waiter->prev ? &waiter->prev->next : &line->first) = waiter->next;
        *(waiter->next ? &waiter->next->prev : &line->last) = waiter->prev;
        waiter->line = NULL;
        line->left_at_ms = clock_ms();
    }
}

// Whether a producer would notify, on whatever shard that can be asked.
static bool line_stands(const struct line *line)
{
    const struct http *http = line->long_poll->http;
    struct mr_error err;

    for (int i = 0; i < http->site_count; i++) {
        if (!wakeup_stands(line->queues[i]) && site_check(&http->sites[i], &err) == 0) {
            return false;
        }
    }
    return true;
}

static int64_t line_pause_ms(const struct line *line)
{
    int64_t waited_ms = clock_ms() - line->since_ms;
    int64_t pause_ms = waited_ms / PATIENCE;

    if (str_starts(line->name, "queue ")) {
        pause_ms = line->limited || !line_stands(line) ? 0 : LONG_POLL_IDLE_MS;
    }
    return pause_ms < LONG_POLL_MS        ? LONG_POLL_MS
           : pause_ms > LONG_POLL_IDLE_MS ? LONG_POLL_IDLE_MS
                                          : pause_ms;
}

// Somebody has asked in vain: when the next time is.
static void line_go_on(struct line *line)
{
    line->ask_at_ms = clock_ms() + line_pause_ms(line);
    for (int i = 0; i < line->long_poll->http->site_count; i++) {
        wakeup_renew(line->queues[i]);
    }
    if (line->woken) {
        line_wake(line);
    }
}

// ---- leases that nobody has got ----

struct returned {
    struct long_poll *long_poll;
    char line[LINE_NAME_SIZE];
};

// Those who still wait would have got it.
static void on_returned(void *arg, PGresult *result, const struct mr_error *err)
{
    struct returned *returned = arg;
    struct line *line = err ? NULL : line_find(returned->long_poll, returned->line);

    (void)result;
    if (line) {
        line_wake(line);
    }
    free(returned);
}

static void waiter_name(const struct waiter *waiter, char ret[LINE_NAME_SIZE])
{
    snprintf(ret, LINE_NAME_SIZE, "%s %.500s", waiter->claims ? "queue" : "job",
             waiter->exchange->variables[0]);
}

// Should it fail the lease runs out by itself.
static void release(const struct waiter *waiter)
{
    struct returned *returned = malloc(sizeof(*returned));
    AUTO_CALL call;

    call_init(&call, CALL_API_RELEASE);
    call_text(&call, waiter->lease);
    call_null(&call);
    if (returned) {
        returned->long_poll = waiter->long_poll;
        waiter_name(waiter, returned->line);
    }
    if (!returned ||
        database_call(waiter->site->db, DATABASE_COMMON, &call, on_returned, returned, NULL)) {
        free(returned);
    }
}

// ---- the end of waiting ----

static void on_ended(struct exchange *exchange, bool delivered)
{
    struct waiter *waiter = exchange->work;

    line_leave(waiter);
    if (waiter->lease && !delivered) {
        release(waiter);
    }
    call_done(&waiter->call);
    buf_done(&waiter->last);
    buf_done(&waiter->coded);
    free(waiter->lease);
    free(waiter);
}

// The next one of a line need not wait when there was something for the one before.
static void finish(struct waiter *waiter, bool got)
{
    struct line *line = waiter->line;

    line_leave(waiter);
    exchange_reply(waiter->exchange, 200, &waiter->last);
    if (got && line) {
        line_wake(line);
    }
}

// What is wrong with one call is its own matter; what is wrong with the database is everybody's.
static void fail(struct waiter *waiter, const struct mr_error *err)
{
    struct line *line = waiter->line;

    line_leave(waiter);
    exchange_fail(waiter->exchange, err);
    while (line && err->code == MR_ECONNECT && line->first && !line->first->asking) {
        struct waiter *next = line->first;
        line_leave(next);
        exchange_fail(next->exchange, err);
    }
    if (line) {
        line_go_on(line);
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

// An answer without jobs has no text of a user's in it.
static bool is_limited(const struct waiter *waiter)
{
    return waiter->claims && strstr(buf_peek(&waiter->last), "\"limited\"");
}

// The line to stand in; NULL without memory.
static struct line *line_of(const struct waiter *waiter)
{
    char name[LINE_NAME_SIZE];

    waiter_name(waiter, name);
    struct line *line = line_find(waiter->long_poll, name);
    return line ? line
                : line_new(waiter->long_poll, name,
                           waiter->claims ? waiter->exchange->variables[0] : NULL);
}

static void wait_on(struct waiter *waiter)
{
    struct line *line = waiter->line;
    bool limited = is_limited(waiter);
    bool waits = clock_ms() < waiter->until_ms && !waiter->long_poll->http->stopping;

    if (waits && !line) {
        line = line_of(waiter);
        waits = line;
        if (line) {
            line_join(line, waiter);
        }
    }
    if (!waits) {
        finish(waiter, false);
    }
    if (line) {
        line->limited = limited;
        line_go_on(line);
    }
}

// Should it fail the lease runs out by itself.
static void flaw_was_told(void *arg, PGresult *result, const struct mr_error *err)
{
    (void)arg;
    (void)result;
    (void)err;
}

static void call_damaged(struct call *call, const char *lease, int64_t id,
                         const struct mr_error *flaw)
{
    AUTO_BUF entry;

    buf_init(&entry, CALL_SIZE_MAX);
    buf_printf(&entry,
               "[{\"id\":%lld,\"outcome\":\"failed\",\"retry\":false,\"damaged\":true,\"error\":",
               (long long)id);
    json_add_string(&entry, flaw->message);
    buf_puts(&entry, "}]");
    call_init(call, CALL_FINISH);
    call_text(call, lease);
    call_text(call, buf_peek(&entry));
}

static void call_later(struct call *call, const struct waiter *waiter, int64_t id)
{
    struct depot *depot = objects_depot(waiter->long_poll->http);
    char entry[128];

    snprintf(entry, sizeof(entry), "[{\"id\":%lld,\"outcome\":\"snoozed\",\"delay\":\"%lld ms\"}]",
             (long long)id, (long long)(depot ? depot_pause_ms(depot) : DEPOT_NONE_PAUSE_MS));
    call_init(call, CALL_FINISH);
    call_text(call, waiter->lease);
    call_text(call, entry);
}

// A job that cannot be decoded fails for good; one whose blob store does not answer waits for a
// while; one that cannot be here and now goes back.
static void on_flaw(void *arg, int64_t id, const struct mr_error *flaw, bool object)
{
    const struct waiter *waiter = arg;
    AUTO_CALL call;

    if (flaw->code == MR_EDAMAGED && object) {
        call_damaged(&call, waiter->lease, id, flaw);
    } else if (flaw->code == MR_EDAMAGED) {
        call_init(&call, CALL_FAIL);
        call_text(&call, waiter->lease);
        call_number(&call, id);
        call_text(&call, flaw->message);
        call_null(&call);
        call_bool(&call, false);
        call_null(&call);
    } else if (flaw->code == MR_ECONNECT || flaw->code == MR_ECONFIG) {
        const struct log_field fields[] = {LOG_TEXT_FIELD("hint", flaw->hint)};
        log_put(LEVEL_WARNING, "http.unreadable", fields, 1, "a job waits for its payload: %s",
                flaw->message);
        call_later(&call, waiter, id);
    } else {
        call_init(&call, CALL_RELEASE);
        call_text(&call, waiter->lease);
        call_numbers(&call, &id, 1);
    }
    database_call(waiter->site->db, DATABASE_COMMON, &call, flaw_was_told, NULL, NULL);
}

static void on_lease(void *arg, struct json_slice key, struct json_slice value)
{
    struct json_slice *lease = arg;

    if (json_slice_is(key, "lease") && value.at[0] == '"') {
        *lease = value;
    }
}

// Of several shards: the lease in what it was told begins with its shard.
static int name_shard(struct waiter *waiter, struct mr_error *err)
{
    struct json_slice lease = {0};
    struct buf named;

    int code = json_each_member((struct json_slice){buf_peek(&waiter->last), waiter->last.len},
                                on_lease, &lease, err);
    if (code || !lease.at) {
        return code;
    }
    size_t before = (size_t)(lease.at + 1 - waiter->last.data);
    buf_init(&named, CALL_SIZE_MAX);
    buf_add(&named, waiter->last.data, before);
    buf_printf(&named, "s%d:", site_number(waiter->site));
    buf_add(&named, waiter->last.data + before, waiter->last.len - before);
    buf_done(&waiter->last);
    waiter->last = named;
    return buf_status(&waiter->last, err);
}

static void ask_on(struct waiter *waiter, const struct mr_error *err);

// Troubles of one shard that are none of the others'.
static bool is_passed(int code)
{
    return code == MR_ECONNECT || code == MR_ETIMEOUT || code == MR_EREADONLY;
}

// `jobs`: how many are left of those that are to be decoded.
static void go_on(struct waiter *waiter, bool over, size_t jobs)
{
    struct mr_error err;

    if (jobs == 0) { // none of them can be run: there may be others
        free(waiter->lease);
        waiter->lease = NULL;
        ask(waiter);
    } else if (over && waiter->lease && sites_several(waiter->long_poll->http) &&
               name_shard(waiter, &err)) {
        fail(waiter, &err);
    } else if (over) {
        finish(waiter, true);
    } else {
        waiter->empty = true;
        ask_on(waiter, NULL);
    }
}

// Its client has left: on_ended() releases what it was given.
static void leave(struct waiter *waiter)
{
    struct line *line = waiter->line;

    line_leave(waiter);
    exchange_resume(waiter->exchange);
    if (line) {
        line_go_on(line);
    }
}

// The objects of its jobs are there, or not.
static void on_fetched(void *arg, struct parcel *parcel, bool failed)
{
    struct waiter *waiter = arg;
    struct json_slice text = {waiter->coded.data, waiter->coded.len};
    struct mr_error err = {0};
    size_t jobs = 0;

    (void)failed; // each job says so
    waiter->asking = false;
    if (waiter->exchange->gone) {
        leave(waiter);
        return;
    }
    buf_done(&waiter->last);
    int code = parcel_json_open_claim(parcel, text, on_flaw, waiter, &waiter->last, &jobs, &err);
    buf_done(&waiter->coded);
    if (code) {
        fail(waiter, &err);
    } else {
        go_on(waiter, true, jobs);
    }
}

// What it was told has coded parts in it: some may have to be read from a blob store before.
static void open_coded(struct waiter *waiter, struct json_slice text)
{
    AUTO_PARCEL parcel = {0};
    struct mr_error err;

    buf_done(&waiter->coded);
    buf_add(&waiter->coded, text.at, text.len);
    if (buf_status(&waiter->coded, &err) || parcel_json_want_claim(&parcel, text, &err)) {
        fail(waiter, &err);
    } else if (parcel.object_count > 0) {
        waiter->asking = true;
        objects_fetch(waiter->long_poll->http, &parcel, on_fetched, waiter);
    } else {
        on_fetched(waiter, &parcel, false);
    }
}

static void answered(void *arg, PGresult *result, const struct mr_error *err)
{
    struct exchange *exchange = arg;
    struct waiter *waiter = exchange->work;
    struct mr_error told_err;

    waiter->asking = false;
    if (err && exchange->gone) { // no other shard is asked for a client that left
        fail(waiter, err);
        return;
    }
    if (err) {
        ask_on(waiter, err);
        return;
    }
    bool over = PQntuples(result) > 0 && is_over(waiter, result);
    if (over && waiter->claims) {
        waiter->lease = strdup(PQgetvalue(result, 0, 1));
    }
    if (exchange->gone) {
        leave(waiter);
        return;
    }
    struct json_slice text = {PQgetvalue(result, 0, 0), (size_t)PQgetlength(result, 0, 0)};
    if (waiter->lease && parcel_json_is_coded(text)) {
        open_coded(waiter, text);
        return;
    }
    buf_done(&waiter->last);
    buf_add(&waiter->last, text.at, text.len);
    if (buf_status(&waiter->last, &told_err)) {
        fail(waiter, &told_err);
    } else {
        go_on(waiter, over, SIZE_MAX);
    }
}

// The one it is about, or the next in turn.
static int ask_site(struct waiter *waiter, struct mr_error *err)
{
    struct http *http = waiter->long_poll->http;

    waiter->site = waiter->exchange->site;
    if (!waiter->site) {
        unsigned turn = waiter->first + (unsigned)waiter->asked;
        waiter->site = &http->sites[turn % (unsigned)http->site_count];
    }
    waiter->asked++;
    int code = site_check(waiter->site, err);
    return code ? code
                : database_call(waiter->site->db, DATABASE_CLAIM, &waiter->call, answered,
                                waiter->exchange, err);
}

// Of several shards, those that fail are passed over as long as another can be asked. `err`: of the
// one before, or NULL.
static void ask_on(struct waiter *waiter, const struct mr_error *err)
{
    int all = waiter->exchange->site ? 1 : waiter->long_poll->http->site_count;
    struct mr_error why = {0};

    if (err) {
        why = *err;
    }
    if (waiter->asked > 0 && waiter->long_poll->http->stopping) {
        all = 0;
    }
    while (waiter->asked < all && (!why.code || is_passed(why.code))) {
        struct mr_error next = {0};
        waiter->asking = true;
        if (ask_site(waiter, &next) == 0) {
            return;
        }
        waiter->asking = false;
        why = next;
    }
    if (why.code && (!waiter->empty || !is_passed(why.code))) {
        fail(waiter, &why);
    } else {
        wait_on(waiter);
    }
}

static void ask(struct waiter *waiter)
{
    waiter->first = waiter->long_poll->http->turn++;
    waiter->asked = 0;
    waiter->empty = false;
    ask_on(waiter, NULL);
}

// ---- the tick ----

static void free_timer(uv_handle_t *handle)
{
    free(handle);
}

// Those whose time is over get what they were told last.
static void line_tick(struct line *line, int64_t now_ms)
{
    for (struct waiter *waiter = line->first, *next; waiter; waiter = next) {
        next = waiter->next;
        if (!waiter->asking && now_ms >= waiter->until_ms) {
            finish(waiter, false);
        }
    }
    if (line->first && !line->first->asking && now_ms >= line->ask_at_ms) {
        ask(line->first);
    }
}

static bool line_is_woken(const struct line *line)
{
    for (int i = 0; i < line->long_poll->http->site_count; i++) {
        if (line->queues[i]) {
            return true;
        }
    }
    return false;
}

static bool line_is_over(const struct line *line, int64_t now_ms)
{
    return !line->first && (!line_is_woken(line) || now_ms - line->left_at_ms >= LINGER_MS);
}

// False while one of them cannot be.
static bool line_remove_queues(struct line *line)
{
    bool all = true;

    for (int i = 0; i < line->long_poll->http->site_count; i++) {
        if (wakeup_remove(line->queues[i])) {
            line->queues[i] = NULL;
        } else {
            all = false;
        }
    }
    return all;
}

static void on_tick(uv_timer_t *timer)
{
    struct long_poll *long_poll = timer->data;
    int64_t now_ms = clock_ms();

    for (struct line **at = &long_poll->lines; *at;) {
        struct line *line = *at;
        line_tick(line, now_ms);
        if (line_is_over(line, now_ms) && line_remove_queues(line)) {
            *at = line->next;
            free(line);
        } else {
            at = &line->next;
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

// By now nobody waits, and the wake-ups have gone.
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
    buf_init(&waiter->coded, CALL_SIZE_MAX);
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
