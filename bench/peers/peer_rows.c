// SPDX-License-Identifier: PostgreSQL
//
// Two queues of rows as their best friend would drive them: the textbook's of bench/TEXTBOOK.sql
// and the one of POPPED.sql read with a visibility timeout, as pgmq's read() and delete() do it.
// And Millrace's functions, MILLRACE.sql, for claims of single jobs under the same driver.
// Prepared statements; the completion of one claim and the next claim in one round trip; a claim
// does not wait for the disk (a lost claim is a redelivery), a completion does.

#include <stdio.h>
#include <stdlib.h>

#include "../db.h"
#include "base/buf.h"
#include "payload.h"
#include "peer.h"
#include "pipeline.h"

enum {
    ARG_BYTES_MAX = 1 << 20,
};

struct statements {
    const char *file; // makes the tables and prepares the rest
    const char *enqueue, *claim, *complete;
    void (*complete_arg)(const PGresult *claimed, struct buf *arg);
};

static void list_ids(const PGresult *claimed, struct buf *arg)
{
    for (int i = 0; i < PQntuples(claimed); i++) {
        buf_puts(arg, i ? "," : "{");
        buf_puts(arg, PQgetvalue(claimed, i, 0));
    }
    buf_puts(arg, "}");
}

static void take_lease(const PGresult *claimed, struct buf *arg)
{
    buf_puts(arg, PQgetvalue(claimed, 0, 0));
}

static const struct statements textbook = {
    .file = "bench/TEXTBOOK.sql",
    .enqueue = "textbook_enqueue",
    .claim = "textbook_claim",
    .complete = "textbook_complete",
    .complete_arg = list_ids,
};

static const struct statements visibility = {
    .file = "bench/peers/POPPED.sql",
    .enqueue = "popped_enqueue",
    .claim = "popped_read",
    .complete = "popped_delete",
    .complete_arg = list_ids,
};

static const struct statements millrace = {
    .file = "bench/peers/MILLRACE.sql",
    .enqueue = "millrace_enqueue",
    .claim = "millrace_claim",
    .complete = "millrace_complete",
    .complete_arg = take_lease,
};

struct session {
    const struct statements *statements;
    PGconn *conn;
    bool claiming; // a claim is under way
};

static void setup(const struct statements *statements)
{
    PGconn *conn = pipeline_open();
    db_run_file(conn, statements->file);
    db_close(conn);
}

static void textbook_setup(void)
{
    setup(&textbook);
}

static void visibility_setup(void)
{
    setup(&visibility);
}

// The schema is there already: run.py has called `millrace migrate`.
static void millrace_setup(void)
{
    PGconn *conn = pipeline_open();
    db_run(conn, "select millrace.set_queue('default', '{\"parts\": 8}')");
    db_close(conn);
}

static void *open_session(const struct statements *statements)
{
    struct session *session = calloc(1, sizeof *session);
    if (!session) {
        die("out of memory");
    }
    session->statements = statements;
    session->conn = pipeline_open();
    db_run_file(session->conn, statements->file);
    pipeline_prepare(session->conn, "async",
                     "select set_config('synchronous_commit', 'off', true)");
    pipeline_prepare(session->conn, "wake", "notify rows");
    pipeline_begin(session->conn);
    return session;
}

static void *textbook_open(void)
{
    return open_session(&textbook);
}

static void *visibility_open(void)
{
    return open_session(&visibility);
}

static void *millrace_open(void)
{
    return open_session(&millrace);
}

static void close_session(void *arg)
{
    struct session *session = arg;
    db_close(session->conn);
    free(session);
}

static void rows_enqueue(void *arg, int count, bool wake)
{
    struct session *session = arg;
    int length;
    char *array = payload_array(count, TYPE_JSONB, 1, &length);
    const struct argument arguments[] = {{"default", 0}, {array, length}};
    pipeline_send(session->conn, session->statements->enqueue, 2, arguments);
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

static void send_claim(struct session *session, int batch)
{
    char count[16];
    snprintf(count, sizeof count, "%d", batch);
    const struct argument arguments[] = {{"default", 0}, {count, 0}};
    pipeline_send(session->conn, "async", 0, NULL);
    pipeline_send(session->conn, session->statements->claim, 2, arguments);
    pipeline_commit(session->conn);
    session->claiming = true;
}

static PGresult *receive_claim(struct session *session)
{
    PQclear(pipeline_receive(session->conn));
    PGresult *claimed = pipeline_receive(session->conn);
    pipeline_receive_commit(session->conn);
    session->claiming = false;
    return claimed;
}

static void send_complete(struct session *session, const PGresult *claimed)
{
    struct buf arg = {.max = ARG_BYTES_MAX};
    session->statements->complete_arg(claimed, &arg);
    if (buf_status(&arg, NULL)) {
        die("a claim is too large");
    }
    const struct argument arguments[] = {{arg.data, 0}};
    pipeline_send(session->conn, session->statements->complete, 1, arguments);
    pipeline_commit(session->conn);
    buf_done(&arg);
}

static long rows_work(void *arg, int batch, bool more)
{
    struct session *session = arg;
    if (!session->claiming) {
        send_claim(session, batch);
    }
    PGresult *claimed = receive_claim(session);
    long count = PQntuples(claimed);
    if (count > 0) {
        peer_note_claim(count);
        send_complete(session, claimed);
        if (more) {
            send_claim(session, batch);
        }
        PQclear(pipeline_receive(session->conn));
        pipeline_receive_commit(session->conn);
    }
    PQclear(claimed);
    return count;
}

static void rows_wait_begin(void *arg)
{
    struct session *session = arg;
    pipeline_listen(session->conn, "rows");
}

static void rows_wait(void *arg, int timeout_ms)
{
    struct session *session = arg;
    pipeline_wait(session->conn, timeout_ms);
}

const struct peer peer_textbook = {
    .name = "textbook",
    .setup = textbook_setup,
    .open = textbook_open,
    .close = close_session,
    .enqueue = rows_enqueue,
    .work = rows_work,
    .wait_begin = rows_wait_begin,
    .wait = rows_wait,
};

const struct peer peer_visibility = {
    .name = "visibility",
    .setup = visibility_setup,
    .open = visibility_open,
    .close = close_session,
    .enqueue = rows_enqueue,
    .work = rows_work,
    .wait_begin = rows_wait_begin,
    .wait = rows_wait,
};

const struct peer peer_millrace = {
    .name = "millrace",
    .setup = millrace_setup,
    .open = millrace_open,
    .close = close_session,
    .enqueue = rows_enqueue,
    .work = rows_work,
    .wait_begin = rows_wait_begin,
    .wait = rows_wait,
};
