// SPDX-License-Identifier: PostgreSQL
//
// Payload parts of the library's callers: see mr_parcel.h.

#include "client/mr_parcel.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "client/batch.h"
#include "client/request.h"

// ---- policies ----

static void call_policy(struct call *call, const char *queue, const char *lease)
{
    call_init(call, CALL_PAYLOAD_POLICY);
    call_text(call, queue);
    call_text(call, lease);
}

static int read_policy(const mr_reply *reply, struct policy *ret, mr_error *err)
{
    bool there = PQntuples(reply->result) == 1 && !PQgetisnull(reply->result, 0, 0);

    return policy_read(there ? PQgetvalue(reply->result, 0, 0) : "", ret, err);
}

static void policy_came(mr_conn *conn, const mr_reply *reply)
{
    struct policy policy;

    if (reply->code == 0 && read_policy(reply, &policy, NULL) == 0) {
        policies_put(mr__conn_policies(conn), reply->queue, &policy, clock_ms());
    }
}

// Until the answer is there nothing is coded, and nobody asks again.
static void send_question(mr_conn *conn, const char *name, const char *queue, const char *lease)
{
    AUTO_CALL call;

    call_policy(&call, queue, lease);
    if (mr__conn_note(conn, &call, name, policy_came, NULL) == 0) {
        policies_put(mr__conn_policies(conn), name, &(struct policy){0}, clock_ms());
    }
}

// A schema from before there were policies has none. On a wrapped connection the failure is one of
// the caller's transaction, and has to be told.
static bool is_older_schema(const mr_conn *conn, int code)
{
    return code == MR_ESCHEMA && !mr__conn_is_wrapped(conn);
}

static int ask(mr_conn *conn, const char *name, const char *queue, const char *lease,
               struct policy *ret, mr_error *err)
{
    AUTO_CALL call;
    mr_reply *reply = NULL;
    struct policy policy = {0};

    call_policy(&call, queue, lease);
    int code = mr__conn_ask(conn, &call, NULL, &reply, err);
    if (code == 0) {
        code = read_policy(reply, &policy, err);
        mr_reply_free(reply);
    }
    if (code && !is_older_schema(conn, code)) {
        return code;
    }
    policies_put(mr__conn_policies(conn), name, &policy, clock_ms());
    *ret = policy;
    return 0;
}

static int find(mr_conn *conn, enum parcel_wait wait, const char *name, const char *queue,
                const char *lease, struct policy *ret, mr_error *err)
{
    const struct policy *known = policies_find(mr__conn_policies(conn), name, clock_ms());

    if (known) {
        *ret = *known;
        return 0;
    }
    if (wait == PARCEL_WAITS) {
        return ask(conn, name, queue, lease, ret, err);
    }
    send_question(conn, name, queue, lease);
    *ret = (struct policy){0};
    return 0;
}

int mr__parcel_policy(mr_conn *conn, enum parcel_wait wait, const char *queue, struct policy *ret,
                      mr_error *err)
{
    queue = queue ? queue : "default";
    return find(conn, wait, queue, queue, NULL, ret, err);
}

void mr__parcel_forget(mr_conn *conn, const char *queue)
{
    policies_forget(mr__conn_policies(conn), queue ? queue : "default");
}

// By the lease, which says of which queue it is.
static int policy_of_lease(mr_conn *conn, enum parcel_wait wait, const char *lease,
                           struct policy *ret, mr_error *err)
{
    char name[POLICY_LEASE_NAME_SIZE];

    policy_lease_name(lease, name);
    return find(conn, wait, name, NULL, lease, ret, err);
}

// ---- out ----

// Whether parts may become objects: the queue wants it, there is a store, and the call may wait.
static int choose_store(mr_conn *conn, struct parcel *parcel, enum parcel_wait wait,
                        const struct policy *policy, mr_error *err)
{
    struct depot *depot = NULL;

    if (policy->offload_above == 0 || wait == PARCEL_WAITS_NOT || parcel->inline_only ||
        !mr__conn_offloads(conn)) {
        return 0;
    }
    int code = mr__conn_depot(conn, &depot, err);
    parcel->offloads = depot != NULL;
    return code;
}

bool mr__parcel_ship_fails(mr_conn *conn, struct parcel *parcel)
{
    struct depot *depot = NULL;

    if (parcel->object_count == 0) {
        return false;
    }
    if (mr__conn_depot(conn, &depot, NULL) == 0 && parcel_ship(parcel, depot, NULL) == 0) {
        return false;
    }
    parcel_pack_again(parcel);
    return true;
}

int mr__parcel_job(mr_conn *conn, struct parcel *parcel, enum parcel_wait wait, mr_job_spec *job,
                   mr_error *err)
{
    struct policy policy = {0};
    int code = parcel_asks(job->args, job->state_size, job->blob_size)
                   ? mr__parcel_policy(conn, wait, job->queue, &policy, err)
                   : 0;

    if (code || (code = choose_store(conn, parcel, wait, &policy, err))) {
        return code;
    }
    return parcel_pack_job(parcel, &policy, job, err);
}

int mr__parcel_state(mr_conn *conn, struct parcel *parcel, enum parcel_wait wait, const char *lease,
                     const void **state, size_t *size, mr_error *err)
{
    struct policy policy = {0};
    int code = *state && lease && parcel_asks(NULL, *size, 0)
                   ? policy_of_lease(conn, wait, lease, &policy, err)
                   : 0;

    if (code || (code = choose_store(conn, parcel, wait, &policy, err))) {
        return code;
    }
    return parcel_pack_bytes(parcel, &policy, state, size, err);
}

static int policy_for_text(mr_conn *conn, enum parcel_wait wait, const char *lease,
                           struct json_slice text, struct policy *ret, mr_error *err)
{
    return lease && parcel_json_asks(text) ? policy_of_lease(conn, wait, lease, ret, err) : 0;
}

// As one with nothing but changes in it.
int mr__parcel_changes(mr_conn *conn, struct parcel *parcel, enum parcel_wait wait,
                       const char *lease, const char **changes, mr_error *err)
{
    struct policy policy = {0};
    struct buf text;

    if (!*changes) {
        return 0;
    }
    struct json_slice object = json_slice_of(*changes);
    int code = policy_for_text(conn, wait, lease, object, &policy, err);
    code = code ? code : choose_store(conn, parcel, wait, &policy, err);
    if (code || (!policy_codes(&policy) && !parcel_json_must(object))) {
        return code;
    }
    buf_init(&text, CALL_SIZE_MAX);
    code = parcel_json_pack(parcel, &policy, object, &text, err);
    if (code) {
        buf_done(&text);
        return code;
    }
    *changes = text.data;
    return parcel_keep(parcel, &text, err);
}

// The longest name of a queue, with its zero byte.
#define QUEUE_NAME_SIZE 201

static void on_queue(void *arg, struct json_slice key, struct json_slice value)
{
    char *name = arg;

    if (json_slice_is(key, "queue") && value.len >= 2 && value.at[0] == '"' &&
        value.len - 2 < QUEUE_NAME_SIZE && !memchr(value.at, '\\', value.len)) {
        memcpy(name, value.at + 1, value.len - 2);
        name[value.len - 2] = '\0';
    }
}

int mr__parcel_text(mr_conn *conn, struct parcel *parcel, enum parcel_wait wait,
                    struct json_slice job, struct buf *out, mr_error *err)
{
    char queue[QUEUE_NAME_SIZE] = "default";
    struct policy policy = {0};
    int code = 0;

    if (parcel_json_asks(job)) {
        json_each_member(job, on_queue, queue, NULL);
        code = mr__parcel_policy(conn, wait, queue, &policy, err);
        code = code ? code : choose_store(conn, parcel, wait, &policy, err);
    }
    return code ? code : parcel_json_pack(parcel, &policy, job, out, err);
}

struct outcomes {
    struct parcel *parcel;
    const struct policy *policy;
    struct buf *out;
    size_t count;
    int code;
    mr_error *err;
};

static void on_outcome(void *arg, struct json_slice value)
{
    struct outcomes *outcomes = arg;

    buf_puts(outcomes->out, outcomes->count++ ? "," : "");
    if (outcomes->code == 0) {
        outcomes->code = parcel_json_pack(outcomes->parcel, outcomes->policy, value, outcomes->out,
                                          outcomes->err);
    }
}

// What is no array is left to the server to refuse.
int mr__parcel_outcomes(mr_conn *conn, struct parcel *parcel, enum parcel_wait wait,
                        const char *lease, const char **text, mr_error *err)
{
    struct policy policy = {0};
    struct buf out;

    if (!*text) {
        return 0;
    }
    struct json_slice array = json_slice_of(*text);
    int code = policy_for_text(conn, wait, lease, array, &policy, err);
    code = code ? code : choose_store(conn, parcel, wait, &policy, err);
    if (code || (!policy_codes(&policy) && !parcel_json_must(array))) {
        return code;
    }
    buf_init(&out, CALL_SIZE_MAX);
    struct outcomes outcomes = {parcel, &policy, &out, 0, 0, err};
    buf_puts(&out, "[");
    bool is_array = json_each_element(array, on_outcome, &outcomes, NULL) == 0;
    buf_puts(&out, "]");
    if (!is_array || outcomes.code) {
        buf_done(&out);
        return is_array ? outcomes.code : 0;
    }
    *text = out.data;
    return parcel_keep(parcel, &out, err);
}

// ---- in: objects ----

void mr__parcel_fetch(mr_conn *conn, mr_batch *batch)
{
    struct depot *depot = NULL;

    if (mr__conn_depot(conn, &depot, NULL)) {
        depot = NULL;
    }
    batch_fetch(batch, depot);
    batch_open_away(batch, NULL); // without memory: its jobs come back when the lease ends
}

// ---- jobs that cannot be decoded ----

static int64_t pause_of(mr_conn *conn)
{
    struct depot *depot = NULL;

    return mr__conn_depot(conn, &depot, NULL) == 0 && depot ? depot_pause_ms(depot)
                                                            : DEPOT_NONE_PAUSE_MS;
}

// An object that is missing or damaged: so is the job, and nobody has tried it.
static int call_damaged(struct call *call, const mr_claimed_job *job, const struct mr_error *flaw,
                        mr_error *err)
{
    AUTO_BUF entry;

    buf_init(&entry, CALL_SIZE_MAX);
    buf_printf(&entry,
               "[{\"id\":%lld,\"outcome\":\"failed\",\"retry\":false,\"damaged\":true,"
               "\"error\":",
               (long long)job->id);
    json_add_string(&entry, flaw->message);
    buf_puts(&entry, "}]");
    int code = buf_status(&entry, err);
    return code ? code : request_finish(call, job->lease, buf_peek(&entry), err);
}

// The attempt is not counted.
static int call_later(struct call *call, const mr_claimed_job *job, int64_t pause_ms, mr_error *err)
{
    char changes[64];

    snprintf(changes, sizeof(changes), "{\"delay\":\"%lld ms\"}", (long long)pause_ms);
    return request_requeue(call, job->lease, job->id, changes, NULL, 0, NULL, 0, err);
}

// What is said of a job with a flaw.
static int call_flaw(struct call *call, mr_conn *conn, const mr_batch *batch, size_t at,
                     mr_error *err)
{
    const struct mr_error *flaw = batch_flaw(batch, at);
    const mr_claimed_job *job = mr_batch_job(batch, at);

    if (flaw->code == MR_EDAMAGED) {
        return batch_flaw_is_object(batch, at)
                   ? call_damaged(call, job, flaw, err)
                   : request_fail(call, job->lease, job->id, flaw->message, 0, 1, NULL, 0, err);
    }
    if (flaw->code == MR_ECONNECT || flaw->code == MR_ECONFIG) {
        return call_later(call, job, pause_of(conn), err);
    }
    return request_release(call, job->lease, &job->id, 1, err);
}

// A claim that nothing is left of because there is no store to read from says so: the caller would
// wait for ever.
static int missing_store(const mr_batch *batch, mr_error *err)
{
    const struct mr_error *why = NULL;

    for (size_t i = 0; i < mr_batch_count(batch); i++) {
        const struct mr_error *flaw = batch_flaw(batch, i);
        if (!flaw) {
            return 0;
        }
        why = flaw->code == MR_ECONFIG ? flaw : why;
    }
    if (why && err) {
        *err = *why;
    }
    return why ? MR_ECONFIG : 0;
}

int mr__parcel_flaws(mr_conn *conn, mr_batch *batch, mr_error *err)
{
    struct mr_error later;
    int missing = missing_store(batch, &later);
    int code = 0;

    for (size_t i = 0; code == 0 && i < mr_batch_count(batch); i++) {
        mr_reply *reply = NULL;
        AUTO_CALL call;
        call_init(&call, CALL_FAIL);
        if (batch_flaw(batch, i) && (code = call_flaw(&call, conn, batch, i, err)) == 0) {
            code = mr__conn_ask(conn, &call, NULL, &reply, err);
            mr_reply_free(reply);
        }
    }
    batch_drop_flaws(batch);
    if (code == 0 && missing && err) {
        *err = later;
    }
    return code ? code : missing;
}

static void flaw_was_told(mr_conn *conn, const mr_reply *reply)
{
    (void)conn;
    (void)reply; // where it failed, the job comes back when its lease ends
}

void mr__parcel_send_flaws(mr_conn *conn, mr_batch *batch)
{
    for (size_t i = 0; i < mr_batch_count(batch); i++) {
        AUTO_CALL call;
        call_init(&call, CALL_FAIL);
        if (batch_flaw(batch, i) && call_flaw(&call, conn, batch, i, NULL) == 0) {
            mr__conn_note(conn, &call, NULL, flaw_was_told, NULL);
        }
    }
    batch_drop_flaws(batch);
}
