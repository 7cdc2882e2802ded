// SPDX-License-Identifier: PostgreSQL
//
// The textbook queue of sql/bench/textbook.sql, with a driver that leaves it nothing to wish for:
// prepared statements, binary arrays, a pipeline in which the completion of one batch and the
// claim of the next share a round trip, claims that do not wait for the disk.

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/crew.h"
#include "bench/script.h"

enum {
    JSONB_OID = 3802,
    ARGS_COLUMN = 3,
    IDLE_PAUSE_US = 10000, // it has no wake-up, so it polls
};

// Of one statement's parameter, as the library's own.
#define PARAMETER_MAX ((size_t)512 * 1024 * 1024)

static int prepare(struct site *site, const struct bench_spec *spec, struct mr_error *err)
{
    (void)spec;
    return script_run(site->conn, "textbook", NULL, NULL, err);
}

static int settle(struct site *site, struct mr_error *err)
{
    return script_run(site->conn, "textbook_settle", NULL, NULL, err);
}

static int session_open(struct session *session, struct mr_error *err)
{
    int code = conn_open(buf_peek(&session->site->dsn), &session->textbook, err);

    return code ? code : script_run(session->textbook, "textbook_session", NULL, NULL, err);
}

static void session_close(struct session *session)
{
    conn_free(session->textbook);
    session->textbook = NULL;
}

// ---- enqueuing ----

static void add_int32(struct buf *out, uint32_t number)
{
    uint32_t network = htobe32(number);

    buf_add(out, (const char *)&network, sizeof(network));
}

// A jsonb[] as the server reads it in binary.
static void add_jsonb_array(struct buf *out, const char *const *args, size_t count)
{
    add_int32(out, 1); // dimension
    add_int32(out, 0); // no nulls
    add_int32(out, JSONB_OID);
    add_int32(out, (uint32_t)count);
    add_int32(out, 1); // the first index
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(args[i]);
        add_int32(out, (uint32_t)len + 1);
        buf_add(out, "\1", 1); // jsonb's version
        buf_add(out, args[i], len);
    }
}

static int enqueue_chunk(struct session *session, const char *const *args, size_t count,
                         struct mr_error *err)
{
    PGconn *pg = conn_pg(session->textbook);
    AUTO_BUF array;

    buf_init(&array, PARAMETER_MAX);
    add_jsonb_array(&array, args, count);
    int code = buf_status(&array, err);
    if (code) {
        return code;
    }
    const char *values[] = {session->site->queue, array.data};
    const int lengths[] = {0, (int)array.len};
    const int formats[] = {0, 1};
    AUTO_RESULT *result = PQexecPrepared(pg, "textbook_enqueue", 2, values, lengths, formats, 0);
    return PQresultStatus(result) == PGRES_COMMAND_OK ? 0 : conn_error_of(pg, result, err);
}

static int enqueue_one(struct session *session, const char *args, struct mr_error *err)
{
    PGconn *pg = conn_pg(session->textbook);
    const char *values[] = {session->site->queue, args};
    AUTO_RESULT *result = PQexecPrepared(pg, "textbook_enqueue_one", 2, values, NULL, NULL, 0);

    return PQresultStatus(result) == PGRES_COMMAND_OK ? 0 : conn_error_of(pg, result, err);
}

static int enqueue(struct session *session, const char *const *args, size_t count, size_t chunk,
                   struct mr_error *err)
{
    int code = 0;

    if (count == 1) {
        return enqueue_one(session, args[0], err);
    }

    for (size_t done = 0; done < count && code == 0; done += chunk) {
        size_t n = count - done < chunk ? count - done : chunk;
        code = enqueue_chunk(session, args + done, n, err);
    }
    return code;
}

// ---- the pipeline ----

static int send_claim(struct session *session, int batch, struct mr_error *err)
{
    PGconn *pg = conn_pg(session->textbook);
    char number[16];
    const char *values[] = {session->site->queue, number};

    snprintf(number, sizeof(number), "%d", batch);
    if (!PQsendQueryPrepared(pg, "textbook_async", 0, NULL, NULL, NULL, 0) ||
        !PQsendQueryPrepared(pg, "textbook_claim", 2, values, NULL, NULL, 0) ||
        !PQpipelineSync(pg)) {
        return conn_error_of(pg, NULL, err);
    }
    return 0;
}

static int send_complete(struct session *session, const PGresult *claimed, struct mr_error *err)
{
    PGconn *pg = conn_pg(session->textbook);
    AUTO_BUF ids;

    buf_init(&ids, PARAMETER_MAX);
    for (int i = 0; i < PQntuples(claimed); i++) {
        buf_puts(&ids, i ? "," : "{");
        buf_puts(&ids, PQgetvalue(claimed, i, 0));
    }
    buf_puts(&ids, "}");
    const char *values[] = {buf_peek(&ids)};
    if (!PQsendQueryPrepared(pg, "textbook_complete", 1, values, NULL, NULL, 0) ||
        !PQpipelineSync(pg)) {
        return conn_error_of(pg, NULL, err);
    }
    return buf_status(&ids, err);
}

// The result of the next statement. The NULL behind it is read too.
static int receive(struct session *session, PGresult **ret, struct mr_error *err)
{
    PGconn *pg = conn_pg(session->textbook);
    PGresult *result = PQgetResult(pg);
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        int code = conn_error_of(pg, result, err);
        PQclear(result);
        return code;
    }
    PQclear(PQgetResult(pg));
    *ret = result;
    return 0;
}

static int receive_sync(struct session *session, struct mr_error *err)
{
    PGconn *pg = conn_pg(session->textbook);
    AUTO_RESULT *result = PQgetResult(pg);

    return PQresultStatus(result) == PGRES_PIPELINE_SYNC ? 0 : conn_error_of(pg, result, err);
}

static int receive_claim(struct session *session, PGresult **ret, struct mr_error *err)
{
    AUTO_RESULT *async = NULL;
    AUTO_RESULT *claimed = NULL;
    int code;

    if ((code = receive(session, &async, err)) || (code = receive(session, &claimed, err)) ||
        (code = receive_sync(session, err))) {
        return code;
    }
    *ret = claimed;
    claimed = NULL;
    return 0;
}

static int receive_complete(struct session *session, int64_t *ret_completed, struct mr_error *err)
{
    AUTO_RESULT *completed = NULL;
    int code = receive(session, &completed, err);

    if (code == 0) {
        *ret_completed += strtoll(PQcmdTuples(completed), NULL, 10);
        code = receive_sync(session, err);
    }
    return code;
}

static int claim(struct session *session, int batch, int64_t *ret_claim_us, int64_t *ret_count,
                 struct mr_error *err)
{
    AUTO_RESULT *claimed = NULL;
    int64_t completed = 0;
    int code;

    PQenterPipelineMode(conn_pg(session->textbook));
    int64_t begun = clock_us();
    if ((code = send_claim(session, batch, err)) ||
        (code = receive_claim(session, &claimed, err))) {
        return code;
    }
    *ret_claim_us = clock_us() - begun;
    *ret_count = PQntuples(claimed);
    if (*ret_count > 0 && (code = send_complete(session, claimed, err)) == 0) {
        code = receive_complete(session, &completed, err);
    }
    PQexitPipelineMode(conn_pg(session->textbook));
    return code;
}

// ---- a worker ----

static int hand_open(struct hand *hand, struct mr_error *err)
{
    (void)hand;
    (void)err;
    return 0;
}

static void note_all(struct crew *crew, const PGresult *claimed)
{
    for (int i = 0; i < PQntuples(claimed); i++) {
        crew_note(crew, PQgetvalue(claimed, i, ARGS_COLUMN));
    }
}

// Takes in one claim and sends what follows it. *ret_more: there is another claim under way.
static int work_once(struct hand *hand, struct session *session, bool *ret_more,
                     struct mr_error *err)
{
    struct crew *crew = hand->crew;
    AUTO_RESULT *claimed = NULL;
    int code = receive_claim(session, &claimed, err);

    if (code) {
        return code;
    }
    int count = PQntuples(claimed);
    *ret_more = !atomic_load(&crew->stop) && (count > 0 || !crew->until_empty);
    note_all(crew, claimed);
    if (count == 0 && *ret_more) {
        watch_pause_us(IDLE_PAUSE_US);
    }
    if ((count > 0 && (code = send_complete(session, claimed, err))) ||
        (*ret_more && (code = send_claim(session, crew->batch, err)))) {
        return code;
    }
    return count > 0 ? receive_complete(session, &hand->completed, err) : 0;
}

static int work(struct hand *hand, struct session *session, struct mr_error *err)
{
    bool more = true;
    int code = session_open(session, err);

    if (code) {
        return code;
    }
    PQenterPipelineMode(conn_pg(session->textbook));
    code = send_claim(session, hand->crew->batch, err);
    while (code == 0 && more) {
        code = work_once(hand, session, &more, err);
    }
    return code;
}

static int hand_run(struct hand *hand, struct mr_error *err)
{
    struct session session = {.site = hand->crew->site};
    int code = work(hand, &session, err);

    session_close(&session);
    return code;
}

static void hand_stop(struct hand *hand)
{
    (void)hand; // it looks at crew->stop
}

const struct contender contender_textbook = {
    .name = "textbook",
    .schema = "textbook",
    .prepare = prepare,
    .settle = settle,
    .session_open = session_open,
    .session_close = session_close,
    .enqueue = enqueue,
    .claim = claim,
    .hand_open = hand_open,
    .hand_run = hand_run,
    .hand_stop = hand_stop,
    .hand_close = hand_stop,
};
