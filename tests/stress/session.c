/* SPDX-License-Identifier: PostgreSQL */
/* A session of a role. With faults expected it connects again for as long as the run lasts. */
#include "stress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void connect_again(struct session *session)
{
    double deadline = now_s() + 60;

    if (session->db)
        PQfinish(session->db);
    for (;;) {
        session->db = PQconnectdb(course.opt.dsn);
        if (PQstatus(session->db) == CONNECTION_OK)
            break;
        if (!course.opt.faults || now_s() > deadline)
            fatal("cannot connect: %s", PQerrorMessage(session->db));
        PQfinish(session->db);
        session_pause(20);
    }
    PQclear(PQexec(session->db, "set client_min_messages = error"));
}

void session_open(struct session *session, int index)
{
    memset(session, 0, sizeof(*session));
    session->index = index;
    session->seed = (unsigned)index * 7919 + 17;
    connect_again(session);
}

void session_close(struct session *session)
{
    PQfinish(session->db);
}

int session_random(struct session *session, int below)
{
    return rand_r(&session->seed) % below;
}

void session_pause(int ms)
{
    usleep((useconds_t)ms * 1000);
}

/* Between two transactions: stands still while the checks of quiet.c look at the database. */
void session_safe_point(struct session *session)
{
    (void)session;
    if (!atomic_load(&course.hold))
        return;
    atomic_fetch_add(&course.standing, 1);
    while (atomic_load(&course.hold))
        session_pause(2);
    atomic_fetch_sub(&course.standing, 1);
}

static enum answer classify(struct session *session, PGresult *result, const char *sql)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

    if (PQstatus(session->db) != CONNECTION_OK || !state || strncmp(state, "57P", 3) == 0) {
        if (!course.opt.faults)
            fatal("connection lost at \"%s\": %s", sql, PQerrorMessage(session->db));
        atomic_fetch_add(&course.reconnects, 1);
        connect_again(session);
        return ANSWER_GONE;
    }
    if (strcmp(state, "MR001") == 0) {
        atomic_fetch_add(&course.void_writes, 1);
        return ANSWER_VOID;
    }
    if (strcmp(state, "40P01") == 0)
        atomic_fetch_add(&course.deadlocks, 1);
    else if (strcmp(state, "57014") == 0)
        atomic_fetch_add(&course.other_retries, 1);
    else
        fatal("\"%s\" failed: %s", sql, PQresultErrorMessage(result));
    return ANSWER_AGAIN;
}

enum answer session_ask(struct session *session, PGresult **result, const char *sql, int n,
                        const char *const *values)
{
    PGresult *got = PQexecParams(session->db, sql, n, NULL, values, NULL, NULL, 0);
    ExecStatusType status = PQresultStatus(got);
    enum answer answer = ANSWER_OK;

    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        answer = classify(session, got, sql);
    else if (strcmp(sql, "commit") == 0 && strcmp(PQcmdStatus(got), "COMMIT") != 0)
        fatal("commit answered %s", PQcmdStatus(got));
    if (answer == ANSWER_OK && result)
        *result = got;
    else
        PQclear(got);
    return answer;
}

enum answer session_do(struct session *session, const char *sql)
{
    return session_ask(session, NULL, sql, 0, NULL);
}

void session_roll_back(struct session *session)
{
    if (PQtransactionStatus(session->db) != PQTRANS_IDLE)
        session_do(session, "rollback");
}
