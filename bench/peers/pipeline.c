// SPDX-License-Identifier: PostgreSQL

#include "pipeline.h"

#include <poll.h>
#include <stdlib.h>

#include "../db.h"

enum {
    ARGUMENTS_MAX = 4,
};

PGconn *pipeline_open(void)
{
    const char *database = getenv("PGDATABASE");
    return db_open(database ? database : "postgres");
}

void pipeline_begin(PGconn *conn)
{
    if (!PQenterPipelineMode(conn)) {
        die("cannot enter pipeline mode");
    }
}

void pipeline_prepare(PGconn *conn, const char *name, const char *statement)
{
    PGresult *result = PQprepare(conn, name, statement, 0, NULL);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) {
        die("%s: %s", name, PQresultErrorMessage(result));
    }
    PQclear(result);
}

static void must(PGconn *conn, int sent)
{
    if (!sent) {
        die("%s", PQerrorMessage(conn));
    }
}

void pipeline_send(PGconn *conn, const char *name, int count, const struct argument *arguments)
{
    const char *values[ARGUMENTS_MAX];
    int lengths[ARGUMENTS_MAX], formats[ARGUMENTS_MAX];
    for (int i = 0; i < count && i < ARGUMENTS_MAX; i++) {
        values[i] = arguments[i].value;
        lengths[i] = arguments[i].length;
        formats[i] = arguments[i].length > 0;
    }
    must(conn, PQsendQueryPrepared(conn, name, count, values, lengths, formats, 0));
}

void pipeline_commit(PGconn *conn)
{
    must(conn, PQpipelineSync(conn));
}

PGresult *pipeline_receive(PGconn *conn)
{
    PGresult *result = PQgetResult(conn);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        die("%s", result ? PQresultErrorMessage(result) : PQerrorMessage(conn));
    }
    if (PQgetResult(conn)) {
        die("more results than statements");
    }
    return result;
}

void pipeline_receive_commit(PGconn *conn)
{
    PGresult *result = PQgetResult(conn);
    if (PQresultStatus(result) != PGRES_PIPELINE_SYNC) {
        die("the pipeline lost step");
    }
    PQclear(result);
}

void pipeline_run(PGconn *conn, const char *name, int count, const struct argument *arguments)
{
    pipeline_send(conn, name, count, arguments);
    pipeline_commit(conn);
    PQclear(pipeline_receive(conn));
    pipeline_receive_commit(conn);
}

static int take_notifications(PGconn *conn)
{
    int count = 0;
    PGnotify *notification;
    while ((notification = PQnotifies(conn))) {
        PQfreemem(notification);
        count++;
    }
    return count;
}

void pipeline_listen(PGconn *conn, const char *channel)
{
    if (!PQexitPipelineMode(conn)) {
        die("cannot leave pipeline mode");
    }
    db_run(conn, "listen %s", channel);
    pipeline_begin(conn);
}

void pipeline_wait(PGconn *conn, int timeout_ms)
{
    struct pollfd poller = {.fd = PQsocket(conn), .events = POLLIN};
    if (take_notifications(conn)) {
        return;
    }
    if (poll(&poller, 1, timeout_ms) > 0 && !PQconsumeInput(conn)) {
        die("%s", PQerrorMessage(conn));
    }
    take_notifications(conn);
}
