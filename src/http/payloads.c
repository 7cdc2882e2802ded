// SPDX-License-Identifier: PostgreSQL
//
// Payload parts on their way through the API: see payloads.h.

#include "http/payloads.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "http/objects.h"

// Questions for one request at most: an array may name more queues than are remembered.
enum { QUESTIONS_MAX = 16 };

// ---- policies ----

struct question {
    struct exchange *exchange;
    route_fn *then;
    char name[];
};

static void go_on(struct question *question, const struct policy *policy)
{
    struct exchange *exchange = question->exchange;
    route_fn *then = question->then;

    policies_put(&exchange->site->policies, question->name, policy, clock_ms());
    free(question);
    then(exchange);
}

static void answered(void *arg, PGresult *result, const struct mr_error *err)
{
    struct policy policy = {0};

    if (!err && PQntuples(result) == 1) {
        policy_read(PQgetvalue(result, 0, 0), &policy, NULL);
    }
    go_on(arg, &policy);
}

// `name` is that of the answer's place.
static void ask(struct exchange *exchange, const char *name, const char *queue, const char *lease,
                route_fn *then)
{
    struct question *question = malloc(sizeof(*question) + strlen(name) + 1);
    AUTO_CALL call;

    call_init(&call, CALL_PAYLOAD_POLICY);
    call_text(&call, queue);
    call_text(&call, lease);
    exchange->questions++;
    if (!question) {
        exchange->questions = QUESTIONS_MAX;
        then(exchange);
        return;
    }
    question->exchange = exchange;
    question->then = then;
    memcpy(question->name, name, strlen(name) + 1);
    if (database_call(exchange->site->db, DATABASE_COMMON, &call, answered, question, NULL)) {
        go_on(question, &(struct policy){0});
    }
}

void payloads_ask(struct exchange *exchange, const char *queue, route_fn *then)
{
    ask(exchange, queue, queue, NULL, then);
}

// NULL: not known, and may be asked for.
static const struct policy *find(const struct exchange *exchange, const char *name)
{
    static const struct policy none = {0};
    const struct policy *known = policies_find(&exchange->site->policies, name, clock_ms());

    return known || exchange->questions < QUESTIONS_MAX ? known : &none;
}

// ---- jobs ----

static void copy_queue(struct json_slice queue, char ret[PAYLOADS_NAME_SIZE])
{
    struct json_slice from = queue.at ? queue : json_slice_of("default");
    size_t length = from.len < PAYLOADS_NAME_SIZE ? from.len : PAYLOADS_NAME_SIZE - 1;

    memcpy(ret, from.at, length);
    ret[length] = '\0';
}

bool payloads_codes(const struct exchange *exchange, const struct job_line *job,
                    char queue[PAYLOADS_NAME_SIZE], bool *ret_unknown)
{
    const struct policy *policy = NULL;

    *ret_unknown = false;
    copy_queue(job->queue, queue);
    if (parcel_json_asks(job->text)) {
        policy = find(exchange, queue);
        *ret_unknown = !policy;
    }
    return policy_codes(policy) || parcel_json_must(job->text);
}

// Not those of a stream: its next lines would wait for the store.
static void choose_store(struct exchange *exchange, const struct policy *policy)
{
    exchange->parcel.offloads = policy && policy->offload_above > 0 && !exchange->inline_only &&
                                !exchange->data && objects_depot(exchange->http);
}

int payloads_add_job(struct exchange *exchange, const struct job_line *job, const char *traceparent,
                     struct buf *out, char queue[PAYLOADS_NAME_SIZE], bool *ret_unknown,
                     struct mr_error *err)
{
    AUTO_BUF text;

    buf_init(&text, CALL_SIZE_MAX);
    if (!payloads_codes(exchange, job, queue, ret_unknown)) {
        job_line_add(job, traceparent, out);
        return buf_status(out, err);
    }
    job_line_add(job, traceparent, &text);
    int code = buf_status(&text, err);
    const struct policy *policy = find(exchange, queue);
    choose_store(exchange, policy);
    code = code ? code
                : parcel_json_pack(&exchange->parcel, policy,
                                   (struct json_slice){text.data, text.len}, out, err);
    if (exchange->parcel.object_count == 0) {
        parcel_done(&exchange->parcel);
    }
    return code;
}

// ---- objects ----

static void on_shipped(void *arg, struct parcel *parcel, bool failed)
{
    struct exchange *exchange = arg;

    (void)parcel;
    exchange->offloaded = !failed;
    if (failed) {
        exchange->inline_only = true;
        buf_done(&exchange->packed);
    }
    (failed ? exchange->unshipped : exchange->shipped)(exchange);
}

bool payloads_ships(struct exchange *exchange, struct buf *packed, route_fn *then, route_fn *again)
{
    if (exchange->parcel.object_count == 0) {
        return false;
    }
    buf_done(&exchange->packed);
    exchange->packed = *packed;
    buf_init(packed, CALL_SIZE_MAX);
    exchange->shipped = then;
    exchange->unshipped = again;
    objects_ship(exchange->http, &exchange->parcel, on_shipped, exchange);
    return true;
}

void payloads_take_packed(struct exchange *exchange)
{
    if (exchange->offloaded && sites_several(exchange->http)) {
        buf_done(&exchange->unpacked);
        exchange->unpacked = exchange->body;
    } else {
        buf_done(&exchange->body);
    }
    exchange->body = exchange->packed;
    buf_init(&exchange->packed, CALL_SIZE_MAX);
}

bool payloads_unpack(struct exchange *exchange)
{
    if (!exchange->offloaded || exchange->unpacked.len == 0) {
        return false;
    }
    buf_done(&exchange->body);
    exchange->body = exchange->unpacked;
    buf_init(&exchange->unpacked, CALL_SIZE_MAX);
    exchange->offloaded = false;
    return true;
}

// ---- bodies under a lease ----

static void code_known(struct exchange *exchange)
{
    payloads_code_body(exchange, exchange->then);
}

static void code_shipped(struct exchange *exchange)
{
    payloads_take_packed(exchange);
    exchange->then(exchange);
}

static void code_body(struct exchange *exchange, const struct policy *policy)
{
    struct json_slice body = {exchange->body.data, exchange->body.len};
    struct mr_error err = {0};
    AUTO_BUF coded;

    buf_init(&coded, CALL_SIZE_MAX);
    choose_store(exchange, policy);
    if (parcel_json_pack(&exchange->parcel, policy, body, &coded, &err)) {
        exchange_fail(exchange, &err);
    } else if (!payloads_ships(exchange, &coded, code_shipped, code_known)) {
        exchange->packed = coded;
        buf_init(&coded, CALL_SIZE_MAX);
        code_shipped(exchange);
    }
}

void payloads_code_body(struct exchange *exchange, route_fn *then)
{
    struct json_slice body = {buf_peek(&exchange->body), exchange->body.len};
    const struct policy *policy = NULL;
    const char *lease = exchange->variables[0];
    char name[POLICY_LEASE_NAME_SIZE];

    exchange->then = then;
    if (parcel_json_asks(body)) {
        policy_lease_name(lease, name);
        policy = find(exchange, name);
        if (!policy) {
            ask(exchange, name, NULL, lease, code_known);
            return;
        }
    }
    if (policy_codes(policy) || parcel_json_must(body)) {
        code_body(exchange, policy);
    } else {
        then(exchange);
    }
}
