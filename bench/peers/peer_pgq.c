// SPDX-License-Identifier: PostgreSQL
//
// PgQ, the event log of Skytools: no job has a state of its own there. Written with COPY into the
// table that pgq.current_event_table() names, as PgQ's reference proposes for bulk; read by
// one consumer with next_batch, get_batch_events, finish_batch on a pipelined session. A batch is
// what lies between two ticks; the driver calls pgq.ticker() in place of the daemon.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../db.h"
#include "base/buf.h"
#include "payload.h"
#include "peer.h"
#include "pipeline.h"

enum {
    TABLE_NAME_MAX = 128,
    COPY_BYTES_MAX = 64 << 20,
    NUMBER_MAX = 24,
};

struct session {
    PGconn *conn;
    char copy[TABLE_NAME_MAX + 80];
    char next[NUMBER_MAX]; // the batch that the last call opened; "" for none
};

// A tick whenever the driver asks for one and anything has come since the last.
static void pgq_setup(void)
{
    PGconn *conn = pipeline_open();
    db_run(conn, "create extension pgq");
    db_run(conn, "select pgq.create_queue('bench')");
    db_run(conn, "select pgq.set_queue_config('bench', 'ticker_max_count', '1')");
    db_run(conn, "select pgq.set_queue_config('bench', 'ticker_max_lag', '1 millisecond')");
    db_run(conn, "select pgq.set_queue_config('bench', 'ticker_idle_period', '1 hour')");
    db_run(conn, "select pgq.ticker('bench')");
    db_run(conn, "select pgq.register_consumer('bench', 'bench')");
    db_close(conn);
}

static void *pgq_open(void)
{
    struct session *session = calloc(1, sizeof *session);
    if (!session) {
        die("out of memory");
    }
    session->conn = pipeline_open();
    PGresult *table = PQexec(session->conn, "select pgq.current_event_table('bench')");
    if (PQresultStatus(table) != PGRES_TUPLES_OK) {
        die("%s", PQresultErrorMessage(table));
    }
    snprintf(session->copy, sizeof session->copy,
             "copy %.*s (ev_time, ev_type, ev_data) from stdin", TABLE_NAME_MAX,
             PQgetvalue(table, 0, 0));
    PQclear(table);
    pipeline_prepare(session->conn, "next", "select pgq.next_batch('bench', 'bench')");
    pipeline_prepare(
        session->conn, "events",
        "select ev_id, ev_time, ev_retry, ev_type, ev_data from pgq.get_batch_events($1)");
    pipeline_prepare(session->conn, "finish", "select pgq.finish_batch($1)");
    return session;
}

static void pgq_close(void *arg)
{
    struct session *session = arg;
    db_close(session->conn);
    free(session);
}

static void copy_rows(PGconn *conn, int count)
{
    struct buf rows = {.max = COPY_BYTES_MAX};
    for (int i = 0; i < count; i++) {
        buf_puts(&rows, "now\tbench\t");
        buf_add(&rows, payload_next(), PAYLOAD_BYTES);
        buf_puts(&rows, "\n");
    }
    if (buf_status(&rows, NULL) || PQputCopyData(conn, rows.data, (int)rows.len) != 1 ||
        PQputCopyEnd(conn, NULL) != 1) {
        die("copy: %s", PQerrorMessage(conn));
    }
    buf_done(&rows);
}

static void pgq_enqueue(void *arg, int count, bool wake)
{
    struct session *session = arg;
    (void)wake;
    PGresult *result = PQexec(session->conn, session->copy);
    if (PQresultStatus(result) != PGRES_COPY_IN) {
        die("copy: %s", PQresultErrorMessage(result));
    }
    PQclear(result);
    copy_rows(session->conn, count);
    while ((result = PQgetResult(session->conn))) {
        if (PQresultStatus(result) != PGRES_COMMAND_OK) {
            die("copy: %s", PQresultErrorMessage(result));
        }
        PQclear(result);
    }
}

static void pgq_tick(void *arg)
{
    struct session *session = arg;
    db_run(session->conn, "select pgq.ticker('bench')");
}

static void take_next(struct session *session)
{
    PGresult *result = pipeline_receive(session->conn);
    snprintf(session->next, sizeof session->next, "%s", PQgetvalue(result, 0, 0));
    PQclear(result);
    pipeline_receive_commit(session->conn);
}

// Finishes the batch and opens the next one in the same round trip.
static void finish(struct session *session)
{
    const struct argument batch = {session->next, 0};
    pipeline_send(session->conn, "finish", 1, &batch);
    pipeline_commit(session->conn);
    pipeline_send(session->conn, "next", 0, NULL);
    pipeline_commit(session->conn);
    PQclear(pipeline_receive(session->conn));
    pipeline_receive_commit(session->conn);
    take_next(session);
}

static long read_batch(struct session *session)
{
    const struct argument batch = {session->next, 0};
    pipeline_send(session->conn, "events", 1, &batch);
    pipeline_commit(session->conn);
    PGresult *events = pipeline_receive(session->conn);
    pipeline_receive_commit(session->conn);
    long count = PQntuples(events);
    PQclear(events);
    return count;
}

// Empty batches are passed over: ticks may lie close together.
static long work(struct session *session)
{
    if (!session->next[0]) {
        pipeline_send(session->conn, "next", 0, NULL);
        pipeline_commit(session->conn);
        take_next(session);
    }
    while (session->next[0]) {
        long count = read_batch(session);
        if (count > 0) {
            peer_note_claim(count);
        }
        finish(session);
        if (count > 0) {
            return count;
        }
    }
    return 0;
}

static long pgq_work(void *arg, int batch, bool more)
{
    struct session *session = arg;
    (void)batch;
    (void)more;
    if (PQpipelineStatus(session->conn) == PQ_PIPELINE_OFF) {
        pipeline_begin(session->conn);
    }
    return work(session);
}

static void pgq_wait_begin(void *arg)
{
    (void)arg;
}

// A consumer polls.
static void pgq_wait(void *arg, int timeout_ms)
{
    (void)arg;
    (void)timeout_ms;
    pause_ms(1);
}

const struct peer peer_pgq = {
    .name = "pgq",
    .setup = pgq_setup,
    .open = pgq_open,
    .close = pgq_close,
    .enqueue = pgq_enqueue,
    .work = pgq_work,
    .wait_begin = pgq_wait_begin,
    .wait = pgq_wait,
    .tick = pgq_tick,
};
