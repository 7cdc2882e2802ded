// SPDX-License-Identifier: PostgreSQL
//
// Reads that delete, POPPED.sql: one durable statement a batch, two of them under way,
// so that the server never waits for the driver.

#include <stdio.h>
#include <stdlib.h>

#include "../db.h"
#include "payload.h"
#include "peer.h"
#include "pipeline.h"

enum {
    AHEAD = 2,
};

struct session {
    PGconn *conn;
    int under_way;
};

#define SQL_FILE "bench/peers/POPPED.sql"

static void popped_setup(void)
{
    PGconn *conn = pipeline_open();
    db_run_file(conn, SQL_FILE);
    db_close(conn);
}

static void *popped_open(void)
{
    struct session *session = calloc(1, sizeof *session);
    if (!session) {
        die("out of memory");
    }
    session->conn = pipeline_open();
    db_run_file(session->conn, SQL_FILE);
    pipeline_prepare(session->conn, "wake", "notify popped");
    pipeline_begin(session->conn);
    return session;
}

static void popped_close(void *arg)
{
    struct session *session = arg;
    db_close(session->conn);
    free(session);
}

static void popped_enqueue(void *arg, int count, bool wake)
{
    struct session *session = arg;
    int length;
    char *array = payload_array(count, TYPE_JSONB, 1, &length);
    const struct argument arguments[] = {{"default", 0}, {array, length}};
    pipeline_send(session->conn, "popped_enqueue", 2, arguments);
    if (wake) {
        pipeline_send(session->conn, "wake", 0, NULL);
    }
    pipeline_commit(session->conn);
    free(array);
    PQclear(pipeline_receive(session->conn));
    if (wake) {
        PQclear(pipeline_receive(session->conn));
    }
    pipeline_receive_commit(session->conn);
}

static void send_take(struct session *session, int batch)
{
    char count[16];
    snprintf(count, sizeof count, "%d", batch);
    const struct argument arguments[] = {{count, 0}};
    pipeline_send(session->conn, "popped_take", 1, arguments);
    pipeline_commit(session->conn);
    session->under_way++;
}

static long popped_work(void *arg, int batch, bool more)
{
    struct session *session = arg;
    while (session->under_way < (more ? AHEAD : 1)) {
        send_take(session, batch);
    }
    PGresult *taken = pipeline_receive(session->conn);
    pipeline_receive_commit(session->conn);
    session->under_way--;
    long count = PQntuples(taken);
    if (count > 0) {
        peer_note_claim(count);
    }
    PQclear(taken);
    return count;
}

static void popped_wait_begin(void *arg)
{
    struct session *session = arg;
    pipeline_listen(session->conn, "popped");
}

static void popped_wait(void *arg, int timeout_ms)
{
    struct session *session = arg;
    pipeline_wait(session->conn, timeout_ms);
}

const struct peer peer_delete_returning = {
    .name = "delete-returning",
    .setup = popped_setup,
    .open = popped_open,
    .close = popped_close,
    .enqueue = popped_enqueue,
    .work = popped_work,
    .wait_begin = popped_wait_begin,
    .wait = popped_wait,
};
