// SPDX-License-Identifier: PostgreSQL
//
// A connection of one thread of the sql handler: see sql_session.h.

#include "handler/sql_session.h"

#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "client/conn.h"

#define PAUSE_FIRST_MS 100
#define PAUSE_MAX_MS   2000
// How often a thread that waits looks whether it is to stop.
#define LOOK_MS 100
// Transaction control has nothing to compute.
#define CONTROL_LIMIT_MS 30000

struct sql_session {
    const char *dsn;
    PGconn *pg; // NULL: not connected
    int turn;   // the host that is tried first
    sql_stop_fn *stop;
    const void *stop_arg;
};

struct sql_session *sql_session_new(const char *dsn)
{
    struct sql_session *session = calloc(1, sizeof(*session));

    if (session) {
        session->dsn = dsn;
    }
    return session;
}

void sql_session_free(struct sql_session *session)
{
    if (session) {
        sql_session_reset(session);
        free(session);
    }
}

void sql_session_heed(struct sql_session *session, sql_stop_fn *stop, const void *arg)
{
    session->stop = stop;
    session->stop_arg = arg;
}

static bool is_stopped(const struct sql_session *session)
{
    return session->stop && session->stop(session->stop_arg);
}

void sql_session_reset(struct sql_session *session)
{
    PQfinish(session->pg);
    session->pg = NULL;
}

void sql_session_pause(struct sql_session *session, int64_t ms)
{
    int64_t end_ms = clock_ms() + ms;

    while (!is_stopped(session) && clock_ms() < end_ms) {
        int64_t left_ms = end_ms - clock_ms();
        poll(NULL, 0, left_ms < LOOK_MS ? (int)left_ms : LOOK_MS);
    }
}

// ---- connecting ----

// One turn of libpq's own: waits until its socket is ready, for a while.
static void await_socket(PGconn *pg, PostgresPollingStatusType wanted)
{
    struct pollfd fd = {
        .fd = PQsocket(pg),
        .events = wanted == PGRES_POLLING_WRITING ? POLLOUT : POLLIN,
    };

    poll(&fd, 1, LOOK_MS);
}

static int connect_once(struct sql_session *session, struct mr_error *err)
{
    int64_t end_ms = clock_ms() + (int64_t)CONN_TIMEOUT_S * 1000;
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;

    session->pg = conn_start(session->dsn, "millrace sql", session->turn);
    if (!session->pg) {
        return mr_error_set(err, MR_ECONNECT, "out of memory");
    }
    while (PQstatus(session->pg) != CONNECTION_BAD && status != PGRES_POLLING_OK &&
           status != PGRES_POLLING_FAILED && clock_ms() < end_ms && !is_stopped(session)) {
        await_socket(session->pg, status);
        status = PQconnectPoll(session->pg);
    }
    if (status == PGRES_POLLING_OK) {
        conn_silence(session->pg);
        return 0;
    }
    if (clock_ms() >= end_ms) {
        session->turn = (session->turn + 1) % INT32_MAX;
    }
    conn_connect_error(session->pg, err);
    sql_session_reset(session);
    return MR_ECONNECT;
}

int sql_session_connect(struct sql_session *session, struct mr_error *err)
{
    int64_t end_ms = clock_ms() + SQL_CONNECT_MS;
    int64_t pause_ms = PAUSE_FIRST_MS;
    int code = 0;

    if (session->pg && PQstatus(session->pg) == CONNECTION_OK) {
        return 0;
    }
    sql_session_reset(session);
    while ((code = connect_once(session, err)) && clock_ms() < end_ms && !is_stopped(session)) {
        sql_session_pause(session, pause_ms);
        pause_ms = pause_ms * 2 < PAUSE_MAX_MS ? pause_ms * 2 : PAUSE_MAX_MS;
    }
    return code;
}

// ---- waiting for results ----

struct wait {
    int64_t end_ms;       // 0: none
    int64_t cancelled_ms; // when; 0: not
};

// Asks the server to end what it does. The answer comes where the result is waited for.
static void cancel(struct sql_session *session, struct wait *wait)
{
    PGcancel *request = PQgetCancel(session->pg);
    char ignored[256];

    if (request) {
        PQcancel(request, ignored, sizeof(ignored));
        PQfreeCancel(request);
    }
    wait->cancelled_ms = clock_ms();
}

// How long to wait now; less than 0: it has been long enough.
static int patience(struct sql_session *session, struct wait *wait)
{
    int64_t now_ms = clock_ms();
    int64_t left_ms = LOOK_MS;

    if (!wait->cancelled_ms && (is_stopped(session) || (wait->end_ms && now_ms >= wait->end_ms))) {
        cancel(session, wait);
    }
    if (wait->cancelled_ms && now_ms - wait->cancelled_ms > SQL_CANCEL_MS) {
        return -1;
    }
    if (wait->end_ms && wait->end_ms > now_ms && wait->end_ms - now_ms < left_ms) {
        left_ms = wait->end_ms - now_ms;
    }
    return (int)left_ms;
}

// The next result, NULL as PQgetResult() says it, or false when the connection gave up.
static bool next_result(struct sql_session *session, struct wait *wait, PGresult **ret)
{
    while (PQisBusy(session->pg)) {
        struct pollfd fd = {.fd = PQsocket(session->pg), .events = POLLIN};
        int wait_ms = patience(session, wait);

        if (wait_ms < 0) {
            return false;
        }
        if (poll(&fd, 1, wait_ms) > 0 && !PQconsumeInput(session->pg)) {
            break; // PQgetResult() says why
        }
    }
    *ret = PQgetResult(session->pg);
    return true;
}

static struct wait wait_of(int64_t limit_ms)
{
    return (struct wait){.end_ms = limit_ms > 0 ? clock_ms() + limit_ms : 0};
}

static bool is_good(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

// What all results of a round trip come to.
struct reading {
    PGresult *last; // of the good ones
    int code;       // of the first that is not
    bool over;      // the round trip's end was seen
};

static void read_result(struct sql_session *session, PGresult *result, struct reading *reading,
                        struct mr_error *err)
{
    if (PQresultStatus(result) == PGRES_PIPELINE_SYNC) {
        reading->over = true;
        PQclear(result);
    } else if (is_good(result)) {
        PQclear(reading->last);
        reading->last = result;
    } else {
        if (reading->code == 0) {
            reading->code = conn_error_of(session->pg, result, err);
        }
        PQclear(result);
    }
}

// Reads until the end of the round trip. In a pipeline a NULL stands behind every statement.
static void read_results(struct sql_session *session, struct wait *wait, bool pipeline,
                         struct reading *reading, struct mr_error *err)
{
    int nothing = 0;

    while (!reading->over) {
        PGresult *result = NULL;
        if (!next_result(session, wait, &result) || PQstatus(session->pg) != CONNECTION_OK ||
            nothing > 1) {
            PQclear(result);
            reading->code =
                reading->code == MR_ECONNECT
                    ? MR_ECONNECT
                    : mr_error_set(err, MR_ECONNECT, "lost the connection to the database: %.500s",
                                   PQerrorMessage(session->pg));
            return;
        }
        nothing = result ? 0 : nothing + 1;
        if (result) {
            read_result(session, result, reading, err);
        } else if (!pipeline) {
            reading->over = true;
        }
    }
}

// ---- sending ----

static bool send_step(PGconn *pg, const struct sql_step *step)
{
    const char *values[CALL_PARAMS_MAX];
    int lengths[CALL_PARAMS_MAX], formats[CALL_PARAMS_MAX];
    int count = step->params ? step->params->count : 0;

    if (step->params) {
        call_values(step->params, values, lengths, formats);
    }
    return PQsendQueryParams(pg, step->statement, count, NULL, values, lengths, formats, 0) == 1;
}

static bool send_steps(PGconn *pg, const struct sql_step *steps, int count)
{
    bool good = count == 1 || PQenterPipelineMode(pg) == 1;

    for (int i = 0; good && i < count; i++) {
        good = send_step(pg, &steps[i]);
    }
    return good && (count == 1 || PQpipelineSync(pg) == 1);
}

static int check_params(const struct sql_step *steps, int count, struct mr_error *err)
{
    int code = 0;

    for (int i = 0; code == 0 && i < count; i++) {
        code = steps[i].params ? call_status(steps[i].params, err) : 0;
    }
    return code;
}

// The connection is of no use after a round trip that did not come to its end.
static int finish(struct sql_session *session, struct reading *reading, PGresult **ret)
{
    if (reading->code == 0 && ret) {
        *ret = reading->last;
        reading->last = NULL;
    }
    PQclear(reading->last);
    if (reading->code == MR_ECONNECT) {
        sql_session_reset(session);
    } else {
        PQexitPipelineMode(session->pg);
    }
    return reading->code;
}

int sql_session_run(struct sql_session *session, const struct sql_step *steps, int count,
                    int64_t limit_ms, PGresult **ret, struct mr_error *err)
{
    struct reading reading = {.code = check_params(steps, count, err)};
    struct wait wait = wait_of(limit_ms);

    if (reading.code) {
        return reading.code;
    }
    if (!session->pg) {
        return mr_error_set(err, MR_ECONNECT, "lost the connection to the database");
    }
    if (send_steps(session->pg, steps, count)) {
        read_results(session, &wait, count > 1, &reading, err);
    } else {
        reading.code = mr_error_set(err, MR_ECONNECT, "lost the connection to the database: %.500s",
                                    PQerrorMessage(session->pg));
    }
    return finish(session, &reading, ret);
}

int sql_session_check(struct sql_session *session, const char *statement, struct mr_error *err)
{
    struct reading reading = {0};
    struct wait wait = wait_of(CONTROL_LIMIT_MS);

    if (!PQsendPrepare(session->pg, "", statement, 0, NULL)) {
        reading.code = mr_error_set(err, MR_ECONNECT, "lost the connection to the database");
    } else {
        read_results(session, &wait, false, &reading, err);
    }
    return finish(session, &reading, NULL);
}

void sql_session_rollback(struct sql_session *session)
{
    const struct sql_step step = {"rollback", NULL};
    sql_stop_fn *stop = session->stop;

    if (!session->pg) {
        return;
    }
    session->stop = NULL; // a rollback is short, and is what stopping needs
    if (PQtransactionStatus(session->pg) != PQTRANS_IDLE) {
        sql_session_run(session, &step, 1, CONTROL_LIMIT_MS, NULL, NULL);
    }
    session->stop = stop;
}
