// SPDX-License-Identifier: PostgreSQL
//
// Payload parts of the library's callers: see mr_parcel.h.

#include "client/mr_parcel.h"

#include <string.h>

#include "base/clock.h"
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

// By the lease, which says of which queue it is.
static int policy_of_lease(mr_conn *conn, enum parcel_wait wait, const char *lease,
                           struct policy *ret, mr_error *err)
{
    char name[POLICY_LEASE_NAME_SIZE];

    policy_lease_name(lease, name);
    return find(conn, wait, name, NULL, lease, ret, err);
}

// ---- out ----

int mr__parcel_job(mr_conn *conn, struct parcel *parcel, enum parcel_wait wait, mr_job_spec *job,
                   mr_error *err)
{
    struct policy policy = {0};
    int code = parcel_asks(job->args, job->state_size, job->blob_size)
                   ? mr__parcel_policy(conn, wait, job->queue, &policy, err)
                   : 0;

    return code ? code : parcel_pack_job(parcel, &policy, job, err);
}

int mr__parcel_state(mr_conn *conn, struct parcel *parcel, enum parcel_wait wait, const char *lease,
                     const void **state, size_t *size, mr_error *err)
{
    struct policy policy = {0};
    int code = *state && lease && parcel_asks(NULL, *size, 0)
                   ? policy_of_lease(conn, wait, lease, &policy, err)
                   : 0;

    return code ? code : parcel_pack_bytes(parcel, &policy, state, size, err);
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
    if (code || (policy.compress_above == 0 && !parcel_json_must(object))) {
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
    if (code || (policy.compress_above == 0 && !parcel_json_must(array))) {
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

// ---- jobs that cannot be decoded ----

// What is said of a job with a flaw.
static int call_flaw(struct call *call, const mr_claimed_job *job, const struct mr_error *flaw,
                     mr_error *err)
{
    return flaw->code == MR_EDAMAGED
               ? request_fail(call, job->lease, job->id, flaw->message, 0, 1, NULL, 0, err)
               : request_release(call, job->lease, &job->id, 1, err);
}

int mr__parcel_flaws(mr_conn *conn, mr_batch *batch, mr_error *err)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < mr_batch_count(batch); i++) {
        const struct mr_error *flaw = batch_flaw(batch, i);
        mr_reply *reply = NULL;
        AUTO_CALL call;
        call_init(&call, CALL_FAIL);
        if (flaw && (code = call_flaw(&call, mr_batch_job(batch, i), flaw, err)) == 0) {
            code = mr__conn_ask(conn, &call, NULL, &reply, err);
            mr_reply_free(reply);
        }
    }
    batch_drop_flaws(batch);
    return code;
}

static void flaw_was_told(mr_conn *conn, const mr_reply *reply)
{
    (void)conn;
    (void)reply; // where it failed, the job comes back when its lease ends
}

void mr__parcel_send_flaws(mr_conn *conn, mr_batch *batch)
{
    for (size_t i = 0; i < mr_batch_count(batch); i++) {
        const struct mr_error *flaw = batch_flaw(batch, i);
        AUTO_CALL call;
        call_init(&call, CALL_FAIL);
        if (flaw && call_flaw(&call, mr_batch_job(batch, i), flaw, NULL) == 0) {
            mr__conn_note(conn, &call, NULL, flaw_was_told, NULL);
        }
    }
    batch_drop_flaws(batch);
}
