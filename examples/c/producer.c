// SPDX-License-Identifier: PostgreSQL
//
// A producer: an order and the job to send its invoice, in one transaction of the program's own.
// Both are there, or neither.
//
//   cc -o producer producer.c $(pkg-config --cflags --libs millrace libpq)
//   ./producer dbname=mill 17           # an order that is there already: nothing is enqueued
//
// The table: create table orders (order_no int primary key);

#include <libpq-fe.h>
#include <millrace/millrace.h>
#include <stdio.h>

static int run(PGconn *pg, const char *statement, const char *value)
{
    PGresult *result = PQexecParams(pg, statement, value ? 1 : 0, NULL, &value, NULL, NULL, 0);
    int good = PQresultStatus(result) == PGRES_COMMAND_OK;

    if (!good) {
        fprintf(stderr, "producer: %s", PQresultErrorMessage(result));
    }
    PQclear(result);
    return good;
}

// The job belongs to whatever transaction is open on the connection.
static int enqueue(PGconn *pg, const char *order_no)
{
    mr_job_spec job = MR_JOB_SPEC_INIT;
    mr_conn *conn = NULL;
    mr_error err;
    int64_t id = 0;
    char args[64];

    snprintf(args, sizeof(args), "{\"order_no\": %s}", order_no);
    job.kind = "send_invoice";
    job.queue = "mail";
    job.args = args;
    if (mr_conn_wrap(pg, &conn, &err) != 0 || mr_enqueue(conn, &job, &id, &err) != 0) {
        fprintf(stderr, "producer: %s\nhint: %s\n", err.message, err.hint);
    } else {
        printf("job %lld\n", (long long)id);
    }
    mr_conn_free(conn); // the connection stays open
    return id > 0;
}

int main(int argc, char **argv)
{
    PGconn *pg = PQconnectdb(argc > 1 ? argv[1] : "");
    const char *order_no = argc > 2 ? argv[2] : "1";
    int good = PQstatus(pg) == CONNECTION_OK;

    if (!good) {
        fprintf(stderr, "producer: %s", PQerrorMessage(pg));
    } else {
        good = run(pg, "begin", NULL) &&
               run(pg, "insert into orders (order_no) values ($1::int)", order_no) &&
               enqueue(pg, order_no) && run(pg, "commit", NULL);
    }
    PQfinish(pg); // what was not committed is rolled back
    return good ? 0 : 1;
}
