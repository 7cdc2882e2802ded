// SPDX-License-Identifier: PostgreSQL
//
// Connections that cannot be made, break, or do not answer.
//
// MR_TEST_WRONG_DSN, MR_TEST_BARE_DSN: a server that does not let us in, a database without the
// schema. MR_TEST_STOP, MR_TEST_START: commands that stop and start the server.

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver.h"

static void refused_with(const char *dsn, int code)
{
    mr_conn_options options = MR_CONN_OPTIONS_INIT;
    mr_conn *conn = NULL;
    int64_t start_ms = now_ms();

    options.dsn = dsn;
    options.timeout_ms = 20000;
    CHECK_CODE(mr_conn_open(&options, &conn, &err), code);
    CHECK(conn == NULL);
    CHECK(err.message[0] && err.hint[0]);
    // one attempt, not twenty seconds of them
    CHECK(now_ms() - start_ms < 15000);
}

static void wrong_dsn(void)
{
    mr_conn_options options = MR_CONN_OPTIONS_INIT;
    mr_conn *conn = NULL;

    refused_with("postgresql://user:secret@[host/", MR_EUSAGE);
    CHECK(!has(err.message, "secret"));
    refused_with("host=/nowhere dbname=x", MR_ECONNECT);
    CHECK(has(err.message, "/nowhere"));
    refused_with("dbname=no_such_database", MR_ECONNECT);
    CHECK(has(err.message, "no_such_database"));
    options.timeout_ms = -1;
    CHECK_CODE(mr_conn_open(&options, &conn, &err), MR_EUSAGE);
    options.timeout_ms = 0;
    options.full_wait_ms = -1;
    CHECK_CODE(mr_conn_open(&options, &conn, &err), MR_EUSAGE);
    options.full_wait_ms = 0;
    // a host that never answers: TEST-NET-1
    options.dsn = "host=192.0.2.1";
    options.timeout_ms = 200;
    CHECK_CODE(mr_conn_open(&options, &conn, &err), MR_ECONNECT);
}

static void wrong_password(void)
{
    refused_with(getenv("MR_TEST_WRONG_DSN"), MR_ECONNECT);
    CHECK(has(err.message, "password"));
}

static void no_schema(void)
{
    mr_conn_options options = MR_CONN_OPTIONS_INIT;
    mr_conn *conn = NULL;
    mr_job_spec job = MR_JOB_SPEC_INIT;

    options.dsn = getenv("MR_TEST_BARE_DSN");
    job.kind = "k";
    CHECK_OK(mr_conn_open(&options, &conn, &err));
    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_ESCHEMA);
    CHECK(has(err.hint, "millrace migrate"));
    // the same again: a failed preparation is not taken for a prepared statement
    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_ESCHEMA);
    mr_conn_free(conn);
}

// Ends the sessions of the library, but not the pooler's.
#define TERMINATE                                                          \
    "select count(pg_terminate_backend(pid, 10000)) from pg_stat_activity" \
    " where datname = current_database() and pid <> pg_backend_pid()"      \
    " and backend_type = 'client backend'"

static void reconnects(void)
{
    mr_conn *conn = open_conn();
    PGconn *session = open_session();
    mr_job_spec job = MR_JOB_SPEC_INIT;

    job.kind = "k";
    job.queue = "reconnects";
    for (int i = 0; i < 3; i++) {
        CHECK_OK(mr_enqueue(conn, &job, NULL, &err));
        session_run(session, TERMINATE);
        // an idle connection that ended costs nothing but the time to make it again
        CHECK_OK(mr_enqueue(conn, &job, NULL, &err));
    }
    CHECK_NUMBER(depth_of(conn, "reconnects"), 6);
    PQfinish(session);
    mr_conn_free(conn);
}

// A queue that another transaction is just creating: whoever enqueues into it waits.
static PGconn *block_queue(const char *queue)
{
    PGconn *session = open_session();
    char statement[200];

    session_run(session, "begin");
    snprintf(statement, sizeof(statement), "select millrace.enqueue('k', queue => '%s')", queue);
    session_run(session, statement);
    return session;
}

#define WAITING                                                            \
    "select count(*) from pg_stat_activity where wait_event_type = 'Lock'" \
    " and datname = current_database()"

static void breaks_under_way(void)
{
    mr_conn *conn = open_conn();
    PGconn *blocker = block_queue("under way"), *session = open_session();
    mr_job_spec job = MR_JOB_SPEC_INIT;
    mr_reply *reply = NULL;

    job.kind = "k";
    job.queue = "under way";
    CHECK_OK(mr_send_enqueue(conn, &job, &err));
    CHECK_OK(mr_advance(conn, &err));
    session_await(session, WAITING, "1");
    session_run(session, "select count(pg_terminate_backend(pid, 10000)) from pg_stat_activity"
                         " where wait_event_type = 'Lock' and datname = current_database()");
    while (!(reply = mr_reply_next(conn))) {
        struct pollfd poll_fd = {.fd = mr_fd(conn), .events = POLLIN};
        CHECK(poll(&poll_fd, 1, 30000) == 1);
        CHECK_OK(mr_advance(conn, &err));
    }
    CHECK_CODE(mr_reply_code(reply, &err), MR_ECONNECT);
    mr_reply_free(reply);
    session_run(blocker, "rollback");
    CHECK_OK(mr_enqueue(conn, &job, NULL, &err));
    CHECK_NUMBER(depth_of(conn, "under way"), 1);
    PQfinish(blocker);
    PQfinish(session);
    mr_conn_free(conn);
}

static atomic_bool killing;

static void *kill_sessions(void *arg)
{
    enum { KILLS = 25 };
    PGconn *session = open_session();

    (void)arg;
    for (int i = 0; i < KILLS; i++) {
        pause_ms(100 + random() % 100);
        session_run(session, TERMINATE);
    }
    PQfinish(session);
    killing = false;
    return NULL;
}

// A chunk of several statements whose session is killed somewhere in their midst is in as a whole
// or not at all, and one that was said to be in is.
static void breaks_between_pieces(void)
{
    enum { CHUNK = 5000 };
    mr_conn *conn = open_conn();
    mr_job_spec job = MR_JOB_SPEC_INIT;
    const char **args = calloc(CHUNK, sizeof(*args));
    int64_t in = 0, unknown = 0;
    pthread_t killer;

    for (int i = 0; i < CHUNK; i++) {
        args[i] = "{\"of\": \"a chunk\"}";
    }
    job.kind = "k";
    job.queue = "pieces and kills";
    killing = true;
    CHECK(pthread_create(&killer, NULL, kill_sessions, NULL) == 0);
    while (killing) {
        size_t done = 99;
        int code = mr_enqueue_many(conn, &job, args, CHUNK, 0, NULL, &done, &err);
        CHECK_CODE(code, code == MR_OK ? MR_OK : MR_ECONNECT);
        CHECK_NUMBER((int64_t)done, code == MR_OK ? CHUNK : 0);
        in += code == MR_OK;
        unknown += code != MR_OK;
    }
    pthread_join(killer, NULL);
    CHECK(unknown > 0);

    PGconn *session = open_session();
    CHECK_TEXT(session_ask(session, "select count(*) from (select from millrace.job j"
                                    " join millrace.queue q on q.queue_id = j.lane >> 12"
                                    " where q.queue_name = 'pieces and kills' group by j.xid"
                                    " having sum(coalesce(j.pack_n, 1)) <> 5000) torn"),
               "0");
    int64_t chunks = depth_of(conn, "pieces and kills") / CHUNK;
    CHECK(chunks >= in && chunks <= in + unknown);
    printf("%lld chunks in, %lld broken off, %lld there\n", (long long)in, (long long)unknown,
           (long long)chunks);
    PQfinish(session);
    free(args);
    mr_conn_free(conn);
}

static void times_out(void)
{
    mr_conn *conn = open_conn_within(2000); // in which it also connects again, after the first one
    PGconn *blocker = block_queue("slow");
    mr_job_spec job = MR_JOB_SPEC_INIT;
    mr_reply *reply = NULL;

    job.kind = "k";
    job.queue = "slow";
    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_ETIMEOUT);
    // the same for a request that nobody waits for
    CHECK_OK(mr_send_enqueue(conn, &job, &err));
    while (!(reply = mr_reply_next(conn))) {
        struct pollfd poll_fd = {.fd = mr_fd(conn), .events = POLLIN};
        CHECK(poll(&poll_fd, 1, 30000) == 1);
        CHECK_OK(mr_advance(conn, &err));
    }
    CHECK_CODE(mr_reply_code(reply, &err), MR_ETIMEOUT);
    mr_reply_free(reply);
    session_run(blocker, "rollback");
    PQfinish(blocker);
    mr_conn_free(conn);
}

// As after a failover: the session that was refused is not kept. Through a session that looks
// for another primary with each new connection this leads to the new one.
static void read_only(void)
{
    mr_conn *conn = open_conn();
    PGconn *session = open_session();
    mr_job_spec job = MR_JOB_SPEC_INIT;
    char statement[300];

    job.kind = "k";
    job.queue = "read only";
    snprintf(statement, sizeof(statement),
             "alter database %s set default_transaction_read_only = on", PQdb(session));
    session_run(session, statement);
    session_run(session, TERMINATE);
    CHECK_CODE(mr_enqueue(conn, &job, NULL, &err), MR_EREADONLY);
    snprintf(statement, sizeof(statement), "alter database %s reset default_transaction_read_only",
             PQdb(session));
    session_run(session, statement);
    CHECK_OK(mr_enqueue(conn, &job, NULL, &err));
    PQfinish(session);
    mr_conn_free(conn);
}

static void run_command(const char *variable)
{
    CHECK(system(getenv(variable)) == 0); // NOLINT(cert-env33-c)
}

static void server_restarts(void)
{
    mr_conn *conn = open_conn(), *hasty = open_conn_within(2000);
    mr_job_spec job = MR_JOB_SPEC_INIT;

    job.kind = "k";
    job.queue = "restarts";
    CHECK_OK(mr_enqueue(conn, &job, NULL, &err));
    run_command("MR_TEST_STOP");
    CHECK_CODE(mr_enqueue(hasty, &job, NULL, &err), MR_ECONNECT);
    run_command("MR_TEST_START");
    CHECK_OK(mr_enqueue(conn, &job, NULL, &err));
    CHECK_OK(mr_enqueue(hasty, &job, NULL, &err));
    // the one that was given up has not happened after all
    CHECK_NUMBER(depth_of(conn, "restarts"), 3);
    mr_conn_free(conn);
    mr_conn_free(hasty);
}

// Without the library's blocking calls: a request waits for the connection.
static void waits_for_the_server(void)
{
    mr_conn *conn = open_conn();
    mr_job_spec job = MR_JOB_SPEC_INIT;
    mr_reply *reply = NULL;
    int fd = mr_fd(conn);

    job.kind = "k";
    job.queue = "waits";
    run_command("MR_TEST_STOP");
    // learns of the end first, or the request would go out into it
    for (int i = 0; i < 3; i++) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        poll(&poll_fd, 1, 100);
        CHECK_OK(mr_advance(conn, &err));
    }
    CHECK_OK(mr_send_enqueue(conn, &job, &err));
    CHECK_OK(mr_advance(conn, &err));
    run_command("MR_TEST_START");
    while (!(reply = mr_reply_next(conn))) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        CHECK(poll(&poll_fd, 1, 30000) == 1);
        CHECK_OK(mr_advance(conn, &err));
    }
    CHECK_OK(mr_reply_code(reply, &err));
    CHECK_NUMBER(mr_fd(conn), fd);
    mr_reply_free(reply);
    mr_conn_free(conn);
}

const struct driver_case trouble_cases[] = {
    {"wrong_dsn", wrong_dsn},
    {"wrong_password", wrong_password},
    {"no_schema", no_schema},
    {"reconnects", reconnects},
    {"breaks_under_way", breaks_under_way},
    {"breaks_between_pieces", breaks_between_pieces},
    {"times_out", times_out},
    {"read_only", read_only},
    {"server_restarts", server_restarts},
    {"waits_for_the_server", waits_for_the_server},
    {0},
};
