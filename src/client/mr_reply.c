// SPDX-License-Identifier: PostgreSQL
//
// Requests without waiting, and what their answers say: see mr_reply.h.

#include "client/mr_reply.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "client/batch.h"
#include "client/mr_parcel.h"
#include "client/request.h"

// ---- reading answers ----

// Each takes over the result. The number, the batch or the result itself is what is kept.
typedef int read_fn(mr_reply *reply, PGresult *result, struct mr_error *err);

static int strange_answer(PGresult *result, struct mr_error *err)
{
    PQclear(result);
    mr_error_set(err, MR_ESCHEMA, "the server's answer has another form than expected");
    mr_error_hint(err, "The schema and the library are of different versions; upgrade the older "
                       "one (`millrace migrate` for the schema).");
    return MR_ESCHEMA;
}

static int read_number(mr_reply *reply, PGresult *result, struct mr_error *err)
{
    if (PQntuples(result) != 1 ||
        !str_parse_int(PQgetvalue(result, 0, 0), INT64_MIN, INT64_MAX, &reply->number)) {
        return strange_answer(result, err);
    }
    PQclear(result);
    return 0;
}

static int read_failure(mr_reply *reply, PGresult *result, struct mr_error *err)
{
    if (PQntuples(result) != 1) {
        return strange_answer(result, err);
    }
    reply->number = str_equal(PQgetvalue(result, 0, 0), "dead");
    PQclear(result);
    return 0;
}

static int read_state(mr_reply *reply, PGresult *result, struct mr_error *err)
{
    int code = lease_state_read(result, &reply->state, err);

    reply->number = reply->state.until_us;
    PQclear(result);
    return code;
}

// That there is an answer is all it says.
static int read_nothing(mr_reply *reply, PGresult *result, struct mr_error *err)
{
    (void)reply;
    if (PQntuples(result) != 1) {
        return strange_answer(result, err);
    }
    PQclear(result);
    return 0;
}

static int read_batch(mr_reply *reply, PGresult *result, struct mr_error *err)
{
    return batch_take(result, reply->queue, &reply->batch, err);
}

static int read_rows(mr_reply *reply, PGresult *result, struct mr_error *err)
{
    (void)err;
    reply->result = result;
    return 0;
}

static const struct {
    read_fn *read; // NULL: the library does not make this call
    enum mr_call call;
} kinds[CALL_KINDS] = {
    [CALL_ENQUEUE] = {read_number, MR_CALL_ENQUEUE},
    [CALL_ENQUEUE_MANY] = {read_rows, MR_CALL_ENQUEUE},
    [CALL_ENQUEUE_HEAVY] = {read_rows, MR_CALL_ENQUEUE},
    [CALL_ENQUEUE_JOBS] = {read_rows, MR_CALL_ENQUEUE},
    [CALL_CLAIM] = {read_batch, MR_CALL_CLAIM},
    [CALL_COMPLETE] = {read_number, MR_CALL_COMPLETE},
    [CALL_COMPLETE_MANY] = {read_number, MR_CALL_COMPLETE},
    [CALL_FAIL] = {read_failure, MR_CALL_FAIL},
    [CALL_FINISH] = {read_number, MR_CALL_FINISH},
    [CALL_REQUEUE] = {read_number, MR_CALL_REQUEUE},
    [CALL_RELEASE] = {read_number, MR_CALL_RELEASE},
    [CALL_HEARTBEAT] = {read_state, MR_CALL_HEARTBEAT},
    [CALL_PROGRESS] = {read_nothing, MR_CALL_PROGRESS},
    [CALL_PAYLOAD_POLICY] = {.read = read_rows},
    [CALL_SHARD] = {.read = read_rows},
    [CALL_SHARD_HOLDS] = {.read = read_rows},
    [CALL_DEPTH] = {.read = read_number},
    [CALL_JOB] = {.read = read_rows},
    [CALL_OUTCOME] = {.read = read_rows},
    [CALL_REPLAY] = {.read = read_number},
    [CALL_REPLAY_ALL] = {.read = read_number},
    [CALL_PURGE_DEAD] = {.read = read_number},
    [CALL_API_LIST_DEAD] = {.read = read_rows},
    [CALL_CACHE_SET] = {.read = read_rows},
    [CALL_CACHE_GET] = {.read = read_rows},
    [CALL_CACHE_GET_MANY] = {.read = read_rows},
    [CALL_CACHE_DELETE] = {.read = read_rows},
    [CALL_CACHE_DELETE_LIKE] = {.read = read_rows},
    [CALL_CACHE_STATS] = {.read = read_rows},
    [CALL_RATE_LIMIT] = {.read = read_rows},
    [CALL_TRY_LOCK] = {.read = read_rows},
    [CALL_UNLOCK] = {.read = read_rows},
    [CALL_LOCK_GUARD] = {.read = read_rows},
    [CALL_LOCK_LEASE] = {.read = read_rows},
    [CALL_UNLOCK_LEASE] = {.read = read_rows},
};

// ---- the object ----

mr_reply *reply_new(enum call_kind kind, const char *queue)
{
    mr_reply *reply = calloc(1, sizeof(*reply));

    if (!reply || (queue && !(reply->queue = strdup(queue)))) {
        free(reply);
        return NULL;
    }
    reply->kind = kind;
    return reply;
}

int reply_expect(mr_reply *reply, size_t count, struct mr_error *err)
{
    if (count == 1) {
        return 0;
    }
    reply->more = calloc(count - 1, sizeof(*reply->more));
    if (!reply->more) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    reply->more_count = count - 1;
    return 0;
}

void reply_fail(mr_reply *reply, const struct mr_error *err)
{
    reply->answered = true;
    reply->code = err->code;
    reply->err = malloc(sizeof(*reply->err));
    if (reply->err) {
        *reply->err = *err;
    }
}

void reply_succeed(mr_reply *reply, PGresult *result)
{
    struct mr_error err;

    if (kinds[reply->kind].read(reply, result, &err)) {
        reply_fail(reply, &err);
    }
    reply->answered = true;
}

enum mr_call mr_reply_call(const mr_reply *reply)
{
    return kinds[reply->kind].call;
}

int mr_reply_code(const mr_reply *reply, mr_error *err)
{
    if (reply->code && reply->err && err) {
        *err = *reply->err;
    } else if (reply->code) {
        mr_error_set(err, reply->code, "the call failed, and there was no memory to say why");
    }
    return reply->code;
}

int64_t mr_reply_number(const mr_reply *reply)
{
    return reply->number;
}

size_t mr_reply_cancelled(const mr_reply *reply, const int64_t **ret_ids)
{
    if (ret_ids) {
        *ret_ids = reply->state.cancelled;
    }
    return reply->state.count;
}

mr_batch *mr_reply_take_batch(mr_reply *reply)
{
    mr_batch *batch = reply->batch;

    reply->batch = NULL;
    return batch;
}

void mr_reply_free(mr_reply *reply)
{
    if (reply) {
        mr_batch_free(reply->batch);
        lease_state_done(&reply->state);
        PQclear(reply->result);
        for (size_t i = 0; i < reply->more_count; i++) {
            PQclear(reply->more[i]);
        }
        free(reply->more);
        free(reply->err);
        free(reply->queue);
        free(reply);
    }
}

// ---- sending ----

int mr_send_enqueue(mr_conn *conn, const mr_job_spec *from, mr_error *err)
{
    AUTO_PARCEL parcel = {0};
    AUTO_CALL call;
    mr_job_spec job;

    call_init(&call, CALL_ENQUEUE);
    int code = mr__conn_check_wire(conn, err);
    if (code || (code = request_read_job(from, &job, err)) ||
        (code = mr__parcel_job(conn, &parcel, PARCEL_WAITS_NOT, &job, err))) {
        return code;
    }
    request_enqueue(&call, &job);
    return mr__conn_send(conn, &call, NULL, err);
}

int mr_send_claim(mr_conn *conn, const mr_claim_options *options, mr_error *err)
{
    AUTO_CALL call;
    const char *queue = NULL;
    int code = request_claim(&call, options, &queue, err);

    return code ? code : mr__conn_send(conn, &call, queue, err);
}

int mr_send_complete(mr_conn *conn, const char *lease, const int64_t *ids, size_t count,
                     const char *result, mr_error *err)
{
    AUTO_CALL call;
    int code = request_complete(&call, lease, ids, count, result, err);

    return code ? code : mr__conn_send(conn, &call, NULL, err);
}

int mr_send_fail(mr_conn *conn, const char *lease, int64_t id, const char *error,
                 int64_t retry_in_ms, int no_retry, const void *state, size_t state_size,
                 mr_error *err)
{
    AUTO_PARCEL parcel = {0};
    AUTO_CALL call;

    call_init(&call, CALL_FAIL);
    int code = mr__conn_check_wire(conn, err);
    if (code || (code = mr__parcel_state(conn, &parcel, PARCEL_WAITS_NOT, lease, &state,
                                         &state_size, err))) {
        return code;
    }
    code = request_fail(&call, lease, id, error, retry_in_ms, no_retry, state, state_size, err);
    return code ? code : mr__conn_send(conn, &call, NULL, err);
}

int mr_send_finish(mr_conn *conn, const char *lease, const char *outcomes, mr_error *err)
{
    AUTO_PARCEL parcel = {0};
    AUTO_CALL call;

    call_init(&call, CALL_FINISH);
    int code = mr__conn_check_wire(conn, err);
    if (code ||
        (code = mr__parcel_outcomes(conn, &parcel, PARCEL_WAITS_NOT, lease, &outcomes, err))) {
        return code;
    }
    code = request_finish(&call, lease, outcomes, err);
    return code ? code : mr__conn_send(conn, &call, NULL, err);
}

int mr_send_requeue(mr_conn *conn, const char *lease, int64_t id, const char *changes,
                    const void *state, size_t state_size, const void *blob, size_t blob_size,
                    mr_error *err)
{
    AUTO_PARCEL parcel = {0};
    AUTO_CALL call;

    call_init(&call, CALL_REQUEUE);
    int code = mr__conn_check_wire(conn, err);
    if (code ||
        (code =
             mr__parcel_state(conn, &parcel, PARCEL_WAITS_NOT, lease, &state, &state_size, err)) ||
        (code = mr__parcel_state(conn, &parcel, PARCEL_WAITS_NOT, lease, &blob, &blob_size, err)) ||
        (code = mr__parcel_changes(conn, &parcel, PARCEL_WAITS_NOT, lease, &changes, err))) {
        return code;
    }
    code = request_requeue(&call, lease, id, changes, state, state_size, blob, blob_size, err);
    return code ? code : mr__conn_send(conn, &call, NULL, err);
}

int mr_send_release(mr_conn *conn, const char *lease, const int64_t *ids, size_t count,
                    mr_error *err)
{
    AUTO_CALL call;
    int code = request_release(&call, lease, ids, count, err);

    return code ? code : mr__conn_send(conn, &call, NULL, err);
}

int mr_send_heartbeat(mr_conn *conn, const char *lease, int64_t extend_ms, mr_error *err)
{
    AUTO_CALL call;
    int code = request_heartbeat(&call, lease, extend_ms, err);

    return code ? code : mr__conn_send(conn, &call, NULL, err);
}

int mr_send_progress(mr_conn *conn, const char *lease, int64_t id, double percent, const char *note,
                     mr_error *err)
{
    AUTO_CALL call;
    int code = request_progress(&call, lease, id, percent, note, err);

    return code ? code : mr__conn_send(conn, &call, NULL, err);
}
