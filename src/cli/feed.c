// SPDX-License-Identifier: PostgreSQL
//
// A connection that nobody waits for: see feed.h.

#include "cli/feed.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "client/conn.h"

struct feed {
    const char *dsn;
    const char *application_name;
    enum feed_status status;
    PGconn *pg;
    PostgresPollingStatusType polling; // while connecting
    int64_t due_ms;                    // the end of a wait, or of patience
    int turn;                          // attempts that failed in a row
    PGresult *answer;
    bool failed; // `error` is the answer
    struct mr_error error;
    char trouble[MR_ERROR_MESSAGE_SIZE];
};

int feed_new(const char *dsn, const char *application_name, struct feed **ret, struct mr_error *err)
{
    const char *chosen = NULL;
    int code = conn_choose_dsn(dsn, &chosen, err);
    struct feed *feed = code ? NULL : calloc(1, sizeof(*feed));

    if (code) {
        return code;
    }
    if (!feed) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    feed->dsn = chosen;
    feed->application_name = application_name;
    *ret = feed;
    return 0;
}

static void drop(struct feed *feed)
{
    PQfinish(feed->pg);
    PQclear(feed->answer);
    feed->pg = NULL;
    feed->answer = NULL;
}

void feed_free(struct feed *feed)
{
    if (feed) {
        drop(feed);
        free(feed);
    }
}

enum feed_status feed_status(const struct feed *feed)
{
    return feed->status;
}

const char *feed_trouble(const struct feed *feed)
{
    return feed->trouble;
}

const PGconn *feed_pg(const struct feed *feed)
{
    return feed->pg;
}

int feed_fd(const struct feed *feed)
{
    return feed->pg ? PQsocket(feed->pg) : -1;
}

short feed_events(const struct feed *feed)
{
    bool writes = feed->status == FEED_CONNECTING ? feed->polling == PGRES_POLLING_WRITING
                                                  : feed->pg && PQflush(feed->pg) > 0;
    return (short)(writes ? POLLOUT | POLLIN : POLLIN);
}

int64_t feed_due_ms(const struct feed *feed)
{
    return feed->status == FEED_READY ? INT64_MAX : feed->due_ms;
}

// The connection is gone, or was never made.
static void fall(struct feed *feed)
{
    snprintf(feed->trouble, sizeof(feed->trouble), "%s", feed->error.message);
    drop(feed);
    feed->status = FEED_DOWN;
    feed->turn++;
    feed->due_ms = clock_ms() + FEED_RETRY_MS;
}

static void begin_connect(struct feed *feed)
{
    feed->pg = conn_start(feed->dsn, feed->application_name, feed->turn);
    feed->polling = PGRES_POLLING_WRITING;
    feed->status = FEED_CONNECTING;
    feed->due_ms = clock_ms() + FEED_CONNECT_MS;
    if (!feed->pg) {
        mr_error_set(&feed->error, MR_ENOMEM, "out of memory");
        fall(feed);
    } else if (PQstatus(feed->pg) == CONNECTION_BAD) {
        conn_connect_error(feed->pg, &feed->error);
        fall(feed);
    }
}

// PQconnectPoll() reads or writes at once: only when the socket is ready for it.
static bool go_on_connecting(struct feed *feed)
{
    struct pollfd wait = {.fd = feed_fd(feed), .events = feed_events(feed)};

    if (poll(&wait, 1, 0) <= 0) {
        if (clock_ms() < feed->due_ms) {
            return false;
        }
        mr_error_set(&feed->error, MR_ECONNECT, "cannot connect to the database: no answer");
        fall(feed);
        return true;
    }
    feed->polling = PQconnectPoll(feed->pg);
    if (feed->polling == PGRES_POLLING_FAILED) {
        conn_connect_error(feed->pg, &feed->error);
        fall(feed);
        return true;
    }
    if (feed->polling == PGRES_POLLING_OK) {
        conn_silence(feed->pg);
        PQsetnonblocking(feed->pg, 1);
        feed->status = FEED_READY;
        feed->turn = 0;
        feed->trouble[0] = '\0';
        return true;
    }
    return false;
}

// What a question has brought; the last result counts, and there is one.
static void settle(struct feed *feed, PGresult *result)
{
    if (PQresultStatus(result) == PGRES_TUPLES_OK) {
        feed->answer = result;
        return;
    }
    conn_error_of(feed->pg, result, &feed->error);
    feed->failed = true;
    PQclear(result);
}

static bool lost(struct feed *feed)
{
    conn_error_of(feed->pg, NULL, &feed->error);
    fall(feed);
    return true;
}

static bool read_answer(struct feed *feed)
{
    PGresult *result = NULL;

    if (!PQconsumeInput(feed->pg) || PQflush(feed->pg) < 0) {
        return lost(feed);
    }
    while (!PQisBusy(feed->pg) && (result = PQgetResult(feed->pg))) {
        PQclear(feed->answer);
        feed->answer = NULL;
        settle(feed, result);
    }
    if (PQstatus(feed->pg) == CONNECTION_BAD) {
        return lost(feed);
    }
    if (!PQisBusy(feed->pg) && (feed->answer || feed->failed)) {
        feed->status = FEED_READY;
        return true;
    }
    if (clock_ms() >= feed->due_ms) {
        mr_error_set(&feed->error, MR_ECONNECT, "the database has not answered for %d s",
                     FEED_ANSWER_MS / 1000);
        fall(feed);
        return true;
    }
    return false;
}

// A server that goes away says so also to those who ask nothing.
static bool listen_idle(struct feed *feed)
{
    if (!PQconsumeInput(feed->pg) || PQstatus(feed->pg) == CONNECTION_BAD) {
        return lost(feed);
    }
    return false;
}

bool feed_advance(struct feed *feed)
{
    switch (feed->status) {
    case FEED_DOWN:
        if (clock_ms() < feed->due_ms) {
            return false;
        }
        begin_connect(feed);
        return true;
    case FEED_CONNECTING: return go_on_connecting(feed);
    case FEED_BUSY: return read_answer(feed);
    case FEED_READY: return listen_idle(feed);
    }
    return false;
}

void feed_ask(struct feed *feed, const char *sql, int count, const char *const *values)
{
    if (feed->status != FEED_READY) {
        return;
    }
    PQclear(feed->answer);
    feed->answer = NULL;
    feed->failed = false;
    if (!PQsendQueryParams(feed->pg, sql, count, NULL, values, NULL, NULL, 0)) {
        lost(feed);
        return;
    }
    feed->status = FEED_BUSY;
    feed->due_ms = clock_ms() + FEED_ANSWER_MS;
}

int feed_answer(struct feed *feed, PGresult **ret, struct mr_error *err)
{
    *ret = NULL;
    if (feed->status != FEED_READY) {
        return 0;
    }
    if (feed->failed) {
        feed->failed = false;
        if (err) {
            *err = feed->error;
        }
        return feed->error.code;
    }
    *ret = feed->answer;
    feed->answer = NULL;
    return 0;
}
