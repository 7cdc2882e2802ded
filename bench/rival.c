// SPDX-License-Identifier: PostgreSQL

#include "rival.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "db.h"

enum {
    ARG_BYTES_MAX = 1 << 20,
};

static void prepare(PGconn *conn, const char *name, const char *statement)
{
    PGresult *result = PQprepare(conn, name, statement, 0, NULL);
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        die("%s: %s", name, PQresultErrorMessage(result));
    PQclear(result);
}

static void prepare_async(PGconn *conn)
{
    prepare(conn, "async", "select set_config('synchronous_commit', 'off', true)");
}

static void millrace_prepare(PGconn *conn)
{
    prepare_async(conn);
    prepare(conn, "millrace_claim", "select * from millrace.claim($1, 'bench', $2, '10 minutes')");
    prepare(conn, "millrace_complete", "select millrace.complete($1)");
}

static char *millrace_complete_arg(const PGresult *claimed)
{
    struct buf lease = {.max = ARG_BYTES_MAX};
    buf_puts(&lease, PQgetvalue(claimed, 0, 0));
    return lease.data;
}

static void textbook_prepare(PGconn *conn)
{
    prepare_async(conn);
    db_run_file(conn, "bench/TEXTBOOK.sql");
}

static char *textbook_complete_arg(const PGresult *claimed)
{
    struct buf ids = {.max = ARG_BYTES_MAX};
    for (int i = 0; i < PQntuples(claimed); i++) {
        buf_puts(&ids, i ? "," : "{");
        buf_puts(&ids, PQgetvalue(claimed, i, 0));
    }
    buf_puts(&ids, "}");
    return ids.data;
}

const struct rival rival_millrace = {
    .name = "millrace",
    .prepare = millrace_prepare,
    .claim = "millrace_claim",
    .complete = "millrace_complete",
    .complete_arg = millrace_complete_arg,
};

const struct rival rival_textbook = {
    .name = "textbook",
    .prepare = textbook_prepare,
    .claim = "textbook_claim",
    .complete = "textbook_complete",
    .complete_arg = textbook_complete_arg,
};

static void must(PGconn *conn, int sent)
{
    if (!sent)
        die("%s", PQerrorMessage(conn));
}

static void send_claim(PGconn *conn, const struct rival *rival, const char *queue, const char *n)
{
    const char *values[] = {queue, n};
    must(conn, PQsendQueryPrepared(conn, "async", 0, NULL, NULL, NULL, 0));
    must(conn, PQsendQueryPrepared(conn, rival->claim, 2, values, NULL, NULL, 0));
    must(conn, PQpipelineSync(conn));
}

static void send_complete(PGconn *conn, const struct rival *rival, const char *arg)
{
    const char *values[] = {arg};
    must(conn, PQsendQueryPrepared(conn, rival->complete, 1, values, NULL, NULL, 0));
    must(conn, PQpipelineSync(conn));
}

// The next result of a statement, and the NULL that ends it.
static PGresult *receive(PGconn *conn)
{
    PGresult *result = PQgetResult(conn);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        die("%s", PQresultErrorMessage(result));
    PGresult *end = PQgetResult(conn);
    if (end)
        die("more results than statements");
    return result;
}

static void receive_sync(PGconn *conn)
{
    PGresult *result = PQgetResult(conn);
    if (PQresultStatus(result) != PGRES_PIPELINE_SYNC)
        die("the pipeline lost step");
    PQclear(result);
}

static PGresult *receive_claim(PGconn *conn)
{
    PQclear(receive(conn));
    PGresult *claimed = receive(conn);
    receive_sync(conn);
    return claimed;
}

static void receive_complete(PGconn *conn)
{
    PQclear(receive(conn));
    receive_sync(conn);
}

// What a claim brought, as the argument that completes it. Ends the program when it is empty.
static char *take(const struct rival *rival, PGresult *claimed, long *done)
{
    if (PQntuples(claimed) == 0)
        die("%s ran out of jobs", rival->name);
    char *arg = rival->complete_arg(claimed);
    if (!arg)
        die("out of memory");
    *done += PQntuples(claimed);
    PQclear(claimed);
    return arg;
}

// Seconds on a processor that the session's server process has had; 0 where the kernel does
// not tell.
static double cpu_s(PGconn *conn)
{
    char path[64];
    double ns = 0;
    snprintf(path, sizeof path, "/proc/%d/schedstat", PQbackendPID(conn));
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    if (fscanf(file, "%lf", &ns) != 1)
        ns = 0;
    fclose(file);
    return ns / 1e9;
}

struct drained drain(PGconn *conn, const struct rival *rival, const char *queue, long jobs)
{
    return drain_batch(conn, rival, queue, jobs, BATCH);
}

struct drained drain_batch(PGconn *conn, const struct rival *rival, const char *queue, long jobs,
                           int batch)
{
    struct drained drained = {.jobs = 0};
    char n[16];
    snprintf(n, sizeof n, "%d", batch);
    PQenterPipelineMode(conn);
    double start = now_s();
    double start_cpu = cpu_s(conn);
    send_claim(conn, rival, queue, n);
    while (drained.jobs < jobs) {
        char *arg = take(rival, receive_claim(conn), &drained.jobs);
        bool more = drained.jobs < jobs;
        send_complete(conn, rival, arg);
        if (more)
            send_claim(conn, rival, queue, n);
        free(arg);
        receive_complete(conn);
    }
    drained.seconds = now_s() - start;
    drained.cpu_us = (cpu_s(conn) - start_cpu) / (double)drained.jobs * 1e6;
    PQexitPipelineMode(conn);
    return drained;
}

struct drained drain_apart(PGconn *conn, const struct rival *rival, const char *queue, long jobs,
                           const struct between *between)
{
    struct drained drained = {.jobs = 0};
    char n[16];
    snprintf(n, sizeof n, "%d", BATCH);
    PQenterPipelineMode(conn);
    double start = now_s();
    double start_cpu = cpu_s(conn);
    while (drained.jobs < jobs) {
        if (between)
            db_run(between->conn, "%s", between->statement);
        double before = now_s();
        send_claim(conn, rival, queue, n);
        PGresult *claimed = receive_claim(conn);
        drained.claim_seconds += now_s() - before;
        char *arg = take(rival, claimed, &drained.jobs);
        send_complete(conn, rival, arg);
        free(arg);
        receive_complete(conn);
    }
    drained.seconds = now_s() - start;
    drained.cpu_us = (cpu_s(conn) - start_cpu) / (double)drained.jobs * 1e6;
    PQexitPipelineMode(conn);
    return drained;
}
