// SPDX-License-Identifier: PostgreSQL
//
// Single jobs of many clients, in one transaction: see enqueue_group.h.

#include "http/enqueue_group.h"

#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "http/api.h"
#include "http/exchange.h"
#include "http/job_line.h"
#include "http/payloads.h"
#include "http/place.h"

#define JOBS_MAX  500
#define BYTES_MAX (4 * 1024 * 1024)
// A second flight is read by the server while the first one waits for the disk. But they do so one
// after the other: only where jobs are plenty is half of them in each worth two waits.
#define FLIGHTS_MAX 2
#define SECOND_MIN  64
// Clients that were answered together mostly come again together: the next flight waits for as
// many, but no longer than half of what the last one took, and this.
#define LINGER_MAX_MS 5

// Jobs that go together. Their exchanges are alive until they are replied to.
struct flight {
    struct enqueue_group *group;
    struct flight *next;
    struct exchange *jobs[JOBS_MAX];
    size_t count;
    size_t bytes;
    int64_t departed_us; // clock_us()
};

struct enqueue_group {
    struct site *site;
    struct flight *first, *last; // that gather; all but the last are full
    int flying;
    size_t answered; // jobs of the last flight
    int64_t took_us; // that it did
};

struct enqueue_group *enqueue_group_new(struct site *site)
{
    struct enqueue_group *group = calloc(1, sizeof(*group));

    if (group) {
        group->site = site;
    }
    return group;
}

// By now nobody gathers.
void enqueue_group_free(struct enqueue_group *group)
{
    free(group);
}

static int64_t id_in(const PGresult *result, int row)
{
    uint64_t number;

    memcpy(&number, PQgetvalue(result, row, 0), sizeof(number));
    return (int64_t)be64toh(number);
}

static void reply_id(struct exchange *exchange, int64_t id)
{
    AUTO_BUF body;

    job_line_count(exchange->queue, exchange->kind, exchange->http->tally);
    buf_init(&body, 256);
    buf_printf(&body, "{\"id\":%" PRId64 ",\"ids\":[%" PRId64 "]}", id, id);
    exchange_reply(exchange, 201, &body);
}

// ---- one by one ----

static void send_alone(struct exchange *exchange, enum database_lane lane);

// Of several shards the next may take it; with objects of its own.
static void failed(struct exchange *exchange, const struct mr_error *err, bool sent)
{
    if (!place_again(exchange, err, sent)) {
        exchange_fail(exchange, err);
    } else if (payloads_unpack(exchange)) {
        api_enqueue(exchange);
    } else {
        send_alone(exchange, DATABASE_COMMON);
    }
}

static void alone_answered(void *arg, PGresult *result, const struct mr_error *err)
{
    struct exchange *exchange = arg;

    if (err) {
        failed(exchange, err, true);
    } else {
        reply_id(exchange, id_in(result, 0));
    }
}

static void send_alone(struct exchange *exchange, enum database_lane lane)
{
    struct mr_error err;
    AUTO_BUF jobs;
    AUTO_CALL call;

    buf_init(&jobs, CALL_SIZE_MAX);
    call_init(&call, CALL_API_ENQUEUE_JOBS);
    buf_printf(&jobs, "[%s]", buf_peek(&exchange->body));
    call_text_sized(&call, buf_peek(&jobs), jobs.len);
    if (database_call(exchange->site->db, lane, &call, alone_answered, exchange, &err)) {
        failed(exchange, &err, false);
    }
}

// ---- together ----

static void consider(struct enqueue_group *group);

// Only what the server refused for what it is: when it cannot be reached, trying again would
// enqueue twice what was done all the same.
static bool is_refusal(const struct mr_error *err)
{
    return err->sqlstate[0] && err->code != MR_ECONNECT && err->code != MR_ETIMEOUT;
}

static void flight_answered(void *arg, PGresult *result, const struct mr_error *err)
{
    struct flight *flight = arg;
    struct enqueue_group *group = flight->group;
    struct mr_error short_err;

    group->flying--;
    group->answered = flight->count;
    group->took_us = clock_us() - flight->departed_us;
    if (!err && PQntuples(result) != (int)flight->count) { // whose id is whose?
        mr_error_set(&short_err, MR_EDATABASE, "%d ids for %zu jobs", PQntuples(result),
                     flight->count);
        err = &short_err;
    }
    for (size_t i = 0; i < flight->count; i++) {
        if (!err) {
            reply_id(flight->jobs[i], id_in(result, (int)i));
        } else if (flight->count > 1 && is_refusal(err)) {
            send_alone(flight->jobs[i], DATABASE_ENQUEUE);
        } else {
            failed(flight->jobs[i], err, true);
        }
    }
    free(flight);
    consider(group);
}

static void flight_fail(struct flight *flight, const struct mr_error *err)
{
    for (size_t i = 0; i < flight->count; i++) {
        failed(flight->jobs[i], err, false);
    }
    free(flight);
}

static void depart(struct enqueue_group *group)
{
    struct flight *flight = group->first;
    struct mr_error err;
    AUTO_BUF jobs;
    AUTO_CALL call;

    buf_init(&jobs, CALL_SIZE_MAX);
    call_init(&call, CALL_API_ENQUEUE_JOBS);
    group->first = flight->next;
    group->last = group->first ? group->last : NULL;
    for (size_t i = 0; i < flight->count; i++) {
        const struct buf *body = &flight->jobs[i]->body;
        buf_puts(&jobs, i ? "," : "[");
        buf_add(&jobs, buf_peek(body), body->len);
    }
    buf_puts(&jobs, "]");
    call_text_sized(&call, buf_peek(&jobs), jobs.len);
    flight->departed_us = clock_us();
    int code = buf_status(&jobs, &err);
    code = code ? code
                : database_call(group->site->db, DATABASE_ENQUEUE, &call, flight_answered, flight,
                                &err);
    if (code) {
        flight_fail(flight, &err);
        return;
    }
    group->flying++;
}

static void on_lingered(uv_timer_t *timer)
{
    const struct site *site = timer->data;
    struct enqueue_group *group = site->group;

    if (group->first && group->flying == 0) {
        depart(group);
    }
}

// Whether the timer was set, which lets what gathers depart.
static bool linger(struct enqueue_group *group)
{
    int64_t wait_ms = group->took_us / 2000;
    uv_timer_t *timer = &group->site->linger;

    if (group->first->next || group->first->count >= group->answered || wait_ms == 0) {
        return false;
    }
    if (!uv_is_active((uv_handle_t *)timer)) {
        uv_update_time(timer->loop);
        uv_timer_start(timer, on_lingered,
                       (uint64_t)(wait_ms < LINGER_MAX_MS ? wait_ms : LINGER_MAX_MS), 0);
    }
    return true;
}

// Lets depart what should.
static void consider(struct enqueue_group *group)
{
    while (group->first && group->flying < FLIGHTS_MAX &&
           (group->flying == 0 ? !linger(group)
                               : group->first->next || group->first->count >= SECOND_MIN)) {
        uv_timer_stop(&group->site->linger);
        depart(group);
    }
}

static struct flight *gathering(struct enqueue_group *group, size_t size)
{
    struct flight *flight = group->last;

    if (flight && flight->count < JOBS_MAX && flight->bytes + size <= BYTES_MAX) {
        return flight;
    }
    flight = calloc(1, sizeof(*flight));
    if (flight) {
        flight->group = group;
        *(group->last ? &group->last->next : &group->first) = flight;
        group->last = flight;
    }
    return flight;
}

// A job without a place goes alone, which is slower and no less right.
void enqueue_group_add(struct enqueue_group *group, struct exchange *exchange, bool alone)
{
    size_t size = exchange->body.len;
    struct flight *flight = alone || size > BYTES_MAX ? NULL : gathering(group, size);

    if (!flight) {
        send_alone(exchange, alone ? DATABASE_COMMON : DATABASE_ENQUEUE);
        return;
    }
    flight->jobs[flight->count++] = exchange;
    flight->bytes += size;
    consider(group);
}
