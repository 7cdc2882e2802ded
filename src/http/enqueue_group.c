// SPDX-License-Identifier: PostgreSQL
//
// Single jobs of many clients, in one transaction: see enqueue_group.h.

#include "http/enqueue_group.h"

#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "http/exchange.h"
#include "http/job_line.h"

#define JOBS_MAX  500
#define BYTES_MAX (4 * 1024 * 1024)
// Groups under way: the next is read by the server while the last one waits for the disk.
#define FLIGHTS_MAX 2

// Jobs that go together. Their exchanges are alive until they are replied to.
struct flight {
    struct enqueue_group *group;
    struct exchange *jobs[JOBS_MAX];
    size_t count;
    size_t bytes;
};

struct enqueue_group {
    struct http *http;
    struct flight *gathering; // NULL: none
    int flying;
};

struct enqueue_group *enqueue_group_new(struct http *http)
{
    struct enqueue_group *group = calloc(1, sizeof(*group));

    if (group) {
        group->http = http;
    }
    return group;
}

void enqueue_group_free(struct enqueue_group *group)
{
    if (group) {
        free(group->gathering);
        free(group);
    }
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

static void alone_answered(void *arg, PGresult *result, const struct mr_error *err)
{
    struct exchange *exchange = arg;

    if (err) {
        exchange_fail(exchange, err);
    } else {
        reply_id(exchange, id_in(result, 0));
    }
}

static void send_alone(struct exchange *exchange, enum database_lane lane)
{
    AUTO_BUF jobs;
    AUTO_CALL call;

    buf_init(&jobs, CALL_SIZE_MAX);
    call_init(&call, CALL_ENQUEUE_JOBS);
    buf_printf(&jobs, "[%s]", buf_peek(&exchange->body));
    call_text_sized(&call, buf_peek(&jobs), jobs.len);
    exchange_call(exchange, lane, &call, alone_answered);
}

// ---- together ----

static void depart(struct enqueue_group *group);

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

    group->flying--;
    for (size_t i = 0; i < flight->count; i++) {
        if (!err) {
            reply_id(flight->jobs[i], id_in(result, (int)i));
        } else if (flight->count > 1 && is_refusal(err)) {
            send_alone(flight->jobs[i], DATABASE_ENQUEUE);
        } else {
            exchange_fail(flight->jobs[i], err);
        }
    }
    free(flight);
    depart(group);
}

static void flight_fail(struct flight *flight, const struct mr_error *err)
{
    for (size_t i = 0; i < flight->count; i++) {
        exchange_fail(flight->jobs[i], err);
    }
    free(flight);
}

static void depart(struct enqueue_group *group)
{
    struct flight *flight = group->gathering;
    struct mr_error err;
    AUTO_BUF jobs;
    AUTO_CALL call;

    buf_init(&jobs, CALL_SIZE_MAX);
    call_init(&call, CALL_ENQUEUE_JOBS);
    if (!flight || group->flying == FLIGHTS_MAX) {
        return;
    }
    group->gathering = NULL;
    for (size_t i = 0; i < flight->count; i++) {
        const struct buf *body = &flight->jobs[i]->body;
        buf_puts(&jobs, i ? "," : "[");
        buf_add(&jobs, buf_peek(body), body->len);
    }
    buf_puts(&jobs, "]");
    call_text_sized(&call, buf_peek(&jobs), jobs.len);
    int code = buf_status(&jobs, &err);
    code = code ? code
                : database_call(group->http->db, DATABASE_ENQUEUE, &call, flight_answered, flight,
                                &err);
    if (code) {
        flight_fail(flight, &err);
        return;
    }
    group->flying++;
}

// A full flight that cannot depart lets those who come alone, which is slower and no less right.
void enqueue_group_add(struct enqueue_group *group, struct exchange *exchange, bool alone)
{
    size_t size = exchange->body.len;

    if (!group->gathering) {
        group->gathering = calloc(1, sizeof(*group->gathering));
    }
    struct flight *flight = group->gathering;
    if (alone || !flight || flight->count == JOBS_MAX || flight->bytes + size > BYTES_MAX) {
        send_alone(exchange, alone ? DATABASE_COMMON : DATABASE_ENQUEUE);
        return;
    }
    flight->group = group;
    flight->jobs[flight->count++] = exchange;
    flight->bytes += size;
    depart(group);
}
