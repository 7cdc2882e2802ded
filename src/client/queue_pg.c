// SPDX-License-Identifier: PostgreSQL
//
// The calls about jobs on PostgreSQL: each is one statement. See queue_ops.h.

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "client/batch.h"
#include "client/mr_parcel.h"
#include "client/parcel_json.h"
#include "client/queue_ops.h"
#include "client/request.h"

// For replies whose number is all that counts; ret may be NULL.
static int ask_number(mr_conn *conn, const struct call *call, int64_t *ret, mr_error *err)
{
    mr_reply *reply = NULL;
    int code = mr__conn_ask(conn, call, NULL, &reply, err);

    if (code == 0 && ret) {
        *ret = mr_reply_number(reply);
    }
    mr_reply_free(reply);
    return code;
}

// The same for numbers that are an int in SQL.
static int ask_count(mr_conn *conn, const struct call *call, int *ret, mr_error *err)
{
    int64_t number = 0;
    int code = ask_number(conn, call, &number, err);

    if (code == 0 && ret) {
        *ret = number > INT_MAX ? INT_MAX : (int)number;
    }
    return code;
}

static int enqueue(mr_conn *conn, const mr_job_spec *from, int64_t *ret_id, mr_error *err)
{
    AUTO_PARCEL parcel = {0};
    AUTO_CALL call;
    mr_reply *reply = NULL;
    mr_job_spec job;

    call_init(&call, CALL_ENQUEUE);
    do {
        int code = request_read_job(from, &job, err);
        if (code || (code = mr__parcel_job(conn, &parcel, PARCEL_WAITS, &job, err))) {
            return code;
        }
    } while (mr__parcel_ship_fails(conn, &parcel));
    request_enqueue(&call, &job);
    int code = mr__conn_ask_room(conn, &call, 1, &reply, err);
    if (code) {
        return code;
    }
    if (ret_id) {
        *ret_id = mr_reply_number(reply);
    }
    mr_reply_free(reply);
    return 0;
}

static int claim_once(mr_conn *conn, const struct call *call, const char *queue, mr_batch **ret,
                      mr_error *err)
{
    mr_reply *reply = NULL;
    int code = mr__conn_ask(conn, call, queue, &reply, err);

    if (code) {
        return code;
    }
    *ret = mr_reply_take_batch(reply);
    mr_reply_free(reply);
    return 0;
}

// Where none of the jobs can be decoded it claims again: an empty batch says that there are no
// jobs.
static int claim(mr_conn *conn, const mr_claim_options *options, mr_batch **ret, mr_error *err)
{
    AUTO_CALL call;
    const char *queue = NULL;
    mr_batch *batch = NULL;
    int code = request_claim(&call, options, &queue, err);
    bool flaws = true;

    while (code == 0 && flaws && mr_batch_count(batch) == 0) {
        mr_batch_free(batch);
        batch = NULL;
        if ((code = claim_once(conn, &call, queue, &batch, err)) == 0) {
            if (batch_away(batch) > 0) {
                mr__parcel_fetch(conn, batch);
            }
            flaws = batch_has_flaws(batch);
            code = flaws ? mr__parcel_flaws(conn, batch, err) : 0;
        }
    }
    if (code) {
        mr_batch_free(batch);
        return code;
    }
    *ret = batch;
    return 0;
}

static int complete(mr_conn *conn, const char *lease, const int64_t *ids, size_t count,
                    const char *result, int *ret_done, mr_error *err)
{
    AUTO_CALL call;
    int code = request_complete(&call, lease, ids, count, result, err);

    return code ? code : ask_count(conn, &call, ret_done, err);
}

static int complete_many(mr_conn *conn, const char *const *leases, size_t count, int *ret_done,
                         mr_error *err)
{
    AUTO_CALL call;
    int code = request_complete_many(&call, leases, count, err);

    return code ? code : ask_count(conn, &call, ret_done, err);
}

static int fail(mr_conn *conn, const char *lease, int64_t id, const char *error,
                int64_t retry_in_ms, int no_retry, const void *state, size_t state_size,
                int *ret_dead, mr_error *err)
{
    AUTO_PARCEL parcel = {0};
    AUTO_CALL call;

    const void *given = state;
    size_t given_size = state_size;
    int code;

    call_init(&call, CALL_FAIL);
    do {
        state = given;
        state_size = given_size;
        code = mr__parcel_state(conn, &parcel, PARCEL_WAITS, lease, &state, &state_size, err);
    } while (code == 0 && mr__parcel_ship_fails(conn, &parcel));
    if (code == 0) {
        code = request_fail(&call, lease, id, error, retry_in_ms, no_retry, state, state_size, err);
    }
    return code ? code : ask_count(conn, &call, ret_dead, err);
}

static int finish(mr_conn *conn, const char *lease, const char *outcomes, int *ret_done,
                  mr_error *err)
{
    AUTO_PARCEL parcel = {0};
    AUTO_CALL call;

    const char *given = outcomes;
    int code;

    call_init(&call, CALL_FINISH);
    do {
        outcomes = given;
        code = mr__parcel_outcomes(conn, &parcel, PARCEL_WAITS, lease, &outcomes, err);
    } while (code == 0 && mr__parcel_ship_fails(conn, &parcel));
    if (code == 0) {
        code = request_finish(&call, lease, outcomes, err);
    }
    return code ? code : ask_count(conn, &call, ret_done, err);
}

static int requeue(mr_conn *conn, const char *lease, int64_t id, const char *changes,
                   const void *state, size_t state_size, const void *blob, size_t blob_size,
                   mr_error *err)
{
    AUTO_PARCEL parcel = {0};
    AUTO_CALL call;
    int code;

    struct call_part parts[2];
    const char *text;

    call_init(&call, CALL_REQUEUE);
    do {
        parts[0] = (struct call_part){state, state_size};
        parts[1] = (struct call_part){blob, blob_size};
        text = changes;
        if ((code = mr__parcel_state(conn, &parcel, PARCEL_WAITS, lease, &parts[0].data,
                                     &parts[0].size, err)) ||
            (code = mr__parcel_state(conn, &parcel, PARCEL_WAITS, lease, &parts[1].data,
                                     &parts[1].size, err)) ||
            (code = mr__parcel_changes(conn, &parcel, PARCEL_WAITS, lease, &text, err))) {
            return code;
        }
    } while (mr__parcel_ship_fails(conn, &parcel));
    code = request_requeue(&call, lease, id, text, parts[0].data, parts[0].size, parts[1].data,
                           parts[1].size, err);
    return code ? code : ask_number(conn, &call, NULL, err);
}

static int release(mr_conn *conn, const char *lease, const int64_t *ids, size_t count,
                   int *ret_done, mr_error *err)
{
    AUTO_CALL call;
    int code = request_release(&call, lease, ids, count, err);

    return code ? code : ask_count(conn, &call, ret_done, err);
}

static int heartbeat(mr_conn *conn, const char *lease, int64_t extend_ms, int64_t *ret_until_us,
                     mr_error *err)
{
    AUTO_CALL call;
    int code = request_heartbeat(&call, lease, extend_ms, err);

    return code ? code : ask_number(conn, &call, ret_until_us, err);
}

static int heartbeat_cancelled(mr_conn *conn, const char *lease, int64_t extend_ms,
                               int64_t *ret_until_us, int64_t **ret_ids, size_t *ret_count,
                               mr_error *err)
{
    AUTO_CALL call;
    mr_reply *reply = NULL;

    call_init(&call, CALL_HEARTBEAT);
    int code = request_check_cancelled(ret_ids, ret_count, err);
    if (code || (code = request_heartbeat(&call, lease, extend_ms, err)) ||
        (code = mr__conn_ask(conn, &call, NULL, &reply, err))) {
        return code;
    }
    if (ret_until_us) {
        *ret_until_us = reply->state.until_us;
    }
    *ret_ids = lease_state_take(&reply->state, ret_count);
    mr_reply_free(reply);
    return 0;
}

static int progress(mr_conn *conn, const char *lease, int64_t id, double percent, const char *note,
                    mr_error *err)
{
    AUTO_CALL call;
    int code = request_progress(&call, lease, id, percent, note, err);

    return code ? code : ask_number(conn, &call, NULL, err);
}

static int depth(mr_conn *conn, const char *queue, int64_t *ret, mr_error *err)
{
    AUTO_CALL call;
    int code = request_depth(&call, queue, err);

    return code ? code : ask_number(conn, &call, ret, err);
}

// What the server tells of jobs, their parts decoded.
static int take_shown(const PGresult *result, char **ret, mr_error *err)
{
    struct buf text;

    buf_init(&text, CALL_SIZE_MAX);
    const char *told = PQntuples(result) == 1 ? PQgetvalue(result, 0, 0) : "";
    int code = parcel_json_show(json_slice_of(told), &text, err);
    if (code) {
        buf_done(&text);
        return code;
    }
    *ret = text.data ? text.data : strdup("");
    return *ret ? 0 : mr_error_set(err, MR_ENOMEM, "out of memory");
}

static int job(mr_conn *conn, int64_t id, char **ret, mr_error *err)
{
    AUTO_CALL call;
    mr_reply *reply = NULL;
    int code = request_job(&call, id, err);

    if (code || (code = mr__conn_ask(conn, &call, NULL, &reply, err))) {
        return code;
    }
    code = take_shown(reply->result, ret, err);
    mr_reply_free(reply);
    return code;
}

// ---- dead letters ----

// As list_dead() takes it.
static int write_filter(struct buf *out, const char *queue, const char *kind, int limit,
                        mr_error *err)
{
    buf_puts(out, "{\"queue\":");
    json_add_string(out, queue);
    if (kind) {
        buf_puts(out, ",\"kind\":");
        json_add_string(out, kind);
    }
    buf_printf(out, ",\"limit\":%d}", limit);
    return buf_status(out, err);
}

static int list_dead(mr_conn *conn, const char *queue, const char *kind, int limit, char **ret,
                     mr_error *err)
{
    AUTO_CALL call;
    AUTO_BUF filter;
    mr_reply *reply = NULL;

    call_init(&call, CALL_API_LIST_DEAD);
    buf_init(&filter, CALL_SIZE_MAX);
    int code = write_filter(&filter, queue, kind, limit, err);
    if (code) {
        return code;
    }
    call_text(&call, buf_peek(&filter));
    if ((code = mr__conn_ask(conn, &call, NULL, &reply, err))) {
        return code;
    }
    code = take_shown(reply->result, ret, err);
    mr_reply_free(reply);
    return code;
}

static int replay(mr_conn *conn, int64_t id, mr_error *err)
{
    AUTO_CALL call;

    call_init(&call, CALL_REPLAY);
    call_number(&call, id);
    return ask_number(conn, &call, NULL, err);
}

static int replay_all(mr_conn *conn, const char *queue, const char *kind, int max_jobs,
                      int64_t *ret_done, mr_error *err)
{
    AUTO_CALL call;

    call_init(&call, CALL_REPLAY_ALL);
    call_text(&call, queue);
    call_text(&call, kind);
    if (max_jobs) {
        call_number(&call, max_jobs);
    } else {
        call_null(&call);
    }
    return ask_number(conn, &call, ret_done, err);
}

static int purge_dead(mr_conn *conn, const char *queue, int64_t older_than_ms, int64_t *ret_done,
                      mr_error *err)
{
    AUTO_CALL call;

    call_init(&call, CALL_PURGE_DEAD);
    call_text(&call, queue);
    call_ms(&call, older_than_ms);
    return ask_number(conn, &call, ret_done, err);
}

const struct queue_ops queue_pg = {
    .enqueue = enqueue,
    .enqueue_many = bulk_enqueue_many,
    .enqueue_jobs = bulk_enqueue_jobs,
    .claim = claim,
    .complete = complete,
    .complete_many = complete_many,
    .fail = fail,
    .finish = finish,
    .requeue = requeue,
    .release = release,
    .heartbeat = heartbeat,
    .heartbeat_cancelled = heartbeat_cancelled,
    .progress = progress,
    .depth = depth,
    .job = job,
    .wait = wait_for_end,
    .list_dead = list_dead,
    .replay = replay,
    .replay_all = replay_all,
    .purge_dead = purge_dead,
};
