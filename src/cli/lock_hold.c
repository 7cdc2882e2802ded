// SPDX-License-Identifier: PostgreSQL
//
// A lock that is held while a command runs: see lock_hold.h.
//
// A session's lock: the server waits for it on our behalf (lock()), then hears of us every BEAT_MS.
// It ends a session of which it has heard nothing for SILENCE_MS, and frees the lock; we give up
// when an answer does not come within ANSWER_MS. A beat that is answered was heard, so the command
// is told to end ANSWER_MS, and killed before SILENCE_MS, after the last one that was.
//
// A lease is renewed at a third of its time; the command is told to end when two thirds are over
// without a renewal, and killed before the end.

#include "cli/lock_hold.h"

#include <libpq-fe.h>
#include <millrace/millrace.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "client/conn.h"

#define SILENCE_MS   15000
#define SILENCE_TEXT "15 seconds"
#define BEAT_MS      5000
#define ANSWER_MS    5000
#define STOP_MS      4500 // from SIGTERM to SIGKILL, for a session

// Pauses while another has a lease: the first, and the longest.
#define PAUSE_FIRST_MS 10
#define PAUSE_MAX_MS   500
// What one request for a lease may take, at most.
#define LEASE_REQUEST_MAX_MS 2000
#define LEASE_REQUEST_MIN_MS 100

struct lock_hold {
    struct lock_hold_options options;
    enum lock_hold_status status;
    int64_t next_ms;
    int64_t end_ms;
    // of a session
    struct conn *conn;
    bool asked;       // a statement is under way
    bool refused;     // its answer was no
    int64_t asked_ms; // since when
    // of a lease
    mr_conn *lease;
    int64_t fence;
    int64_t renewed_ms;
    int64_t pause_ms;
};

static void lose(struct lock_hold *hold, int64_t end_ms)
{
    hold->status = LOCK_LOST;
    hold->end_ms = end_ms;
}

// ---- of a session ----

static int session_ask(struct lock_hold *hold, const char *sql, const char *value,
                       struct mr_error *err)
{
    if (!PQsendQueryParams(conn_pg(hold->conn), sql, 1, NULL, &value, NULL, NULL, 0)) {
        return conn_error_of(conn_pg(hold->conn), NULL, err);
    }
    hold->asked = true;
    hold->asked_ms = clock_ms();
    return 0;
}

static int session_open(struct lock_hold *hold, struct mr_error *err)
{
    static const char *const silence = SILENCE_TEXT;
    AUTO_RESULT *rows = NULL;
    int code = conn_open(hold->options.dsn, &hold->conn, err);

    if (code == 0) {
        code = conn_query_params(hold->conn, "select millrace.lock_guard($1::interval)", 1,
                                 &silence, &rows, err);
    }
    if (code) {
        return code;
    }
    return session_ask(
        hold, hold->options.once ? "select millrace.try_lock($1)" : "select millrace.lock($1)",
        hold->options.name, err);
}

// Reads what there is of the answer. *ret: it is complete.
static int session_read(struct lock_hold *hold, bool *ret, struct mr_error *err)
{
    PGconn *pg = conn_pg(hold->conn);
    PGresult *result;
    int code = 0;

    *ret = false;
    if (!PQconsumeInput(pg) || PQstatus(pg) != CONNECTION_OK) {
        return conn_error_of(pg, NULL, err);
    }
    while (hold->asked && !PQisBusy(pg)) {
        result = PQgetResult(pg);
        if (!result) {
            hold->asked = false;
            *ret = code == 0;
        } else if (PQresultStatus(result) != PGRES_TUPLES_OK && code == 0) {
            code = conn_error_of(pg, result, err);
        } else if (PQntuples(result) == 1) {
            hold->refused = str_equal(PQgetvalue(result, 0, 0), "f");
        }
        PQclear(result);
    }
    return code;
}

static int session_beat(struct lock_hold *hold, struct mr_error *err)
{
    bool complete = false;
    int code = session_read(hold, &complete, err);

    if (code && hold->status == LOCK_WAITING) {
        return code;
    }
    if (code) {
        lose(hold, clock_ms() + STOP_MS); // it is free already: be quick
        return 0;
    }
    if (complete && hold->refused) {
        return mr_error_set(err, MR_ELOCK, "the lock is held by another");
    }
    if (complete) {
        hold->status = LOCK_HELD;
        hold->next_ms = clock_ms() + BEAT_MS;
    }
    if (hold->status == LOCK_HELD && hold->asked && clock_ms() - hold->asked_ms >= ANSWER_MS) {
        lose(hold, clock_ms() + STOP_MS);
    } else if (hold->status == LOCK_HELD && !hold->asked && clock_ms() >= hold->next_ms) {
        if (session_ask(hold, "select millrace.lock_guard($1::interval)", SILENCE_TEXT, err)) {
            lose(hold, clock_ms() + STOP_MS);
        }
        hold->next_ms = clock_ms() + ANSWER_MS;
    }
    return 0;
}

// A statement that waits for the lock would go on waiting on the server.
static void session_free(struct lock_hold *hold)
{
    char text[256];
    PGcancel *cancel = hold->conn && hold->asked && hold->status == LOCK_WAITING
                           ? PQgetCancel(conn_pg(hold->conn))
                           : NULL;

    if (cancel) {
        PQcancel(cancel, text, sizeof(text));
        PQfreeCancel(cancel);
    }
    conn_free(hold->conn);
}

// ---- with a lease ----

static int lease_open(struct lock_hold *hold, struct mr_error *err)
{
    mr_conn_options options = MR_CONN_OPTIONS_INIT;
    int64_t request_ms = hold->options.ttl_ms / 6;

    options.dsn = hold->options.dsn;
    options.pooler = 1;
    if (request_ms > LEASE_REQUEST_MAX_MS) {
        request_ms = LEASE_REQUEST_MAX_MS;
    }
    options.timeout_ms = request_ms > LEASE_REQUEST_MIN_MS ? request_ms : LEASE_REQUEST_MIN_MS;
    hold->pause_ms = PAUSE_FIRST_MS;
    return mr_conn_open(&options, &hold->lease, err);
}

// The lease counts from before the request: the server's begins later.
static int lease_ask(struct lock_hold *hold, int64_t *ret_fence, struct mr_error *err)
{
    int64_t begun_ms = clock_ms();
    int code = mr_lock_lease(hold->lease, hold->options.name, hold->options.owner,
                             hold->options.ttl_ms, ret_fence, err);

    if (code == 0 && *ret_fence > 0) {
        hold->renewed_ms = begun_ms;
    }
    return code;
}

static int lease_wait(struct lock_hold *hold, struct mr_error *err)
{
    int code = lease_ask(hold, &hold->fence, err);

    if (code) {
        return code;
    }
    if (hold->fence > 0) {
        hold->status = LOCK_HELD;
        hold->next_ms = hold->renewed_ms + hold->options.ttl_ms / 3;
        return 0;
    }
    if (hold->options.once) {
        return mr_error_set(err, MR_ELOCK, "the lock is held by another");
    }
    hold->next_ms = clock_ms() + hold->pause_ms;
    hold->pause_ms = hold->pause_ms * 3 / 2 < PAUSE_MAX_MS ? hold->pause_ms * 3 / 2 : PAUSE_MAX_MS;
    return 0;
}

// A renewal that fails is tried again until two thirds of the lease are over. Another number means
// that the lease was over meanwhile.
static void lease_renew(struct lock_hold *hold)
{
    int64_t ttl_ms = hold->options.ttl_ms;
    int64_t fence = 0;
    struct mr_error err;
    int code = lease_ask(hold, &fence, &err);

    if (code == 0 && fence == hold->fence) {
        hold->next_ms = hold->renewed_ms + ttl_ms / 3;
    } else if (code == 0) {
        lose(hold, clock_ms());
    } else if (clock_ms() >= hold->renewed_ms + ttl_ms * 2 / 3) {
        lose(hold, hold->renewed_ms + ttl_ms - ttl_ms / 20);
    } else {
        hold->next_ms = clock_ms() + PAUSE_FIRST_MS;
    }
}

static int lease_beat(struct lock_hold *hold, struct mr_error *err)
{
    if (clock_ms() < hold->next_ms) {
        return 0;
    }
    switch (hold->status) {
    case LOCK_WAITING: return lease_wait(hold, err);
    case LOCK_HELD: lease_renew(hold); break;
    case LOCK_LOST: break;
    }
    return 0;
}

static void lease_free(struct lock_hold *hold)
{
    if (hold->lease && hold->status == LOCK_HELD) {
        mr_unlock_lease(hold->lease, hold->options.name, hold->options.owner, NULL, NULL);
    }
    mr_conn_free(hold->lease);
}

// ---- both ----

int lock_hold_new(const struct lock_hold_options *options, struct lock_hold **ret,
                  struct mr_error *err)
{
    struct lock_hold *hold = calloc(1, sizeof(*hold));

    if (!hold) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    hold->options = *options;
    hold->status = LOCK_WAITING;
    int code = options->ttl_ms ? lease_open(hold, err) : session_open(hold, err);
    if (code) {
        lock_hold_free(hold);
        return code;
    }
    *ret = hold;
    return 0;
}

int lock_hold_beat(struct lock_hold *hold, enum lock_hold_status *ret, struct mr_error *err)
{
    int code = 0;

    if (hold->status != LOCK_LOST) {
        code = hold->options.ttl_ms ? lease_beat(hold, err) : session_beat(hold, err);
    }
    *ret = hold->status;
    return code;
}

int lock_hold_fd(const struct lock_hold *hold)
{
    return hold->conn && hold->status != LOCK_LOST ? PQsocket(conn_pg(hold->conn)) : -1;
}

int64_t lock_hold_next_ms(const struct lock_hold *hold)
{
    bool waits = !hold->options.ttl_ms && hold->status == LOCK_WAITING;

    return waits || hold->status == LOCK_LOST ? INT64_MAX : hold->next_ms;
}

int64_t lock_hold_fence(const struct lock_hold *hold)
{
    return hold->fence;
}

int64_t lock_hold_end_ms(const struct lock_hold *hold)
{
    return hold->end_ms;
}

void lock_hold_free(struct lock_hold *hold)
{
    if (hold) {
        session_free(hold);
        lease_free(hold);
        free(hold);
    }
}
