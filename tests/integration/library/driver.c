// SPDX-License-Identifier: PostgreSQL
//
// The driver's main program, and what its cases share: see driver.h.

#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEADLINE_MS 30000

mr_error err;

static const struct driver_case *const tables[] = {
    produce_cases, unique_cases,   work_cases,    nowait_cases, trouble_cases,
    worker_cases,  progress_cases, toolbox_cases, coded_cases,
};

void driver_fail(const char *file, int line, const char *what, const char *why)
{
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, why);
    if (err.code) {
        fprintf(stderr, "last error: %d %s\n%s\n%s\n", err.code, err.message, err.detail, err.hint);
    }
    exit(1);
}

void driver_check_code(const char *file, int line, const char *what, int code, int expected)
{
    if (code != expected) {
        fprintf(stderr, "code %d instead of %d\n", code, expected);
        driver_fail(file, line, what, "another code");
    }
    if (code != 0 &&
        (err.code != code || err.message[0] == '\0' || err.error_class != mr_code_class(code) ||
         (code == MR_EUSAGE && err.hint[0] == '\0'))) {
        driver_fail(file, line, what, "the error does not say enough");
    }
    if (code == 0 && err.code != 0) {
        driver_fail(file, line, what, "an error was written without a failure");
    }
    err.code = 0;
}

void driver_check_text(const char *file, int line, const char *what, const char *text,
                       const char *expected)
{
    bool same = text && expected ? strcmp(text, expected) == 0 : text == expected;

    if (!same) {
        fprintf(stderr, "got: %s\nexpected: %s\n", text ? text : "NULL",
                expected ? expected : "NULL");
        driver_fail(file, line, what, "another text");
    }
}

void driver_check_number(const char *file, int line, const char *what, int64_t number,
                         int64_t expected)
{
    if (number != expected) {
        fprintf(stderr, "got: %lld\nexpected: %lld\n", (long long)number, (long long)expected);
        driver_fail(file, line, what, "another number");
    }
}

mr_conn *open_conn_within(int64_t timeout_ms)
{
    mr_conn_options options = MR_CONN_OPTIONS_INIT;
    mr_conn *conn = NULL;

    options.application_name = "library driver";
    options.pooler = getenv("MR_TEST_POOLER") != NULL;
    options.timeout_ms = timeout_ms;
    CHECK_OK(mr_conn_open(&options, &conn, &err));
    return conn;
}

mr_conn *open_conn(void)
{
    return open_conn_within(0);
}

PGconn *open_session(void)
{
    const char *direct = getenv("MR_TEST_DIRECT_DSN");
    PGconn *session = PQconnectdb(direct ? direct : getenv("MILLRACE_DSN"));

    if (PQstatus(session) != CONNECTION_OK) {
        driver_fail(__FILE__, __LINE__, "session", PQerrorMessage(session));
    }
    return session;
}

void session_run(PGconn *session, const char *statement)
{
    session_ask(session, statement);
}

const char *session_ask(PGconn *session, const char *statement)
{
    static char value[4096];
    PGresult *result = PQexec(session, statement);

    if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK) {
        driver_fail(__FILE__, __LINE__, statement, PQerrorMessage(session));
    }
    snprintf(value, sizeof(value), "%s", PQntuples(result) ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    return value;
}

void session_await(PGconn *session, const char *statement, const char *expected)
{
    int64_t deadline_ms = now_ms() + DEADLINE_MS;

    while (strcmp(session_ask(session, statement), expected) != 0) {
        if (now_ms() > deadline_ms) {
            driver_fail(__FILE__, __LINE__, statement, "did not come true");
        }
        pause_ms(10);
    }
}

int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void pause_ms(int64_t ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&pause, NULL);
}

bool has(const char *text, const char *found)
{
    return strstr(text, found) != NULL;
}

void enqueue_plain(mr_conn *conn, const char *queue, int count)
{
    mr_job_spec job = MR_JOB_SPEC_INIT;
    const char **args = calloc((size_t)count + 1, sizeof(*args));

    job.kind = "plain";
    job.queue = queue;
    for (int i = 0; i < count; i++) {
        args[i] = "{\"n\": 1}";
    }
    CHECK_OK(mr_enqueue_many(conn, &job, args, (size_t)count, 0, NULL, NULL, &err));
    free(args);
}

mr_batch *claim_some(mr_conn *conn, const char *queue, int max_jobs)
{
    mr_claim_options options = MR_CLAIM_OPTIONS_INIT;
    int64_t deadline_ms = now_ms() + DEADLINE_MS;
    mr_batch *batch = NULL;

    options.queue = queue;
    options.max_jobs = max_jobs;
    for (;;) {
        CHECK_OK(mr_claim(conn, &options, &batch, &err));
        if (mr_batch_count(batch) > 0) {
            return batch;
        }
        mr_batch_free(batch);
        CHECK(now_ms() < deadline_ms);
        pause_ms(10);
    }
}

int64_t depth_of(mr_conn *conn, const char *queue)
{
    int64_t depth = -1;

    CHECK_OK(mr_depth(conn, queue, &depth, &err));
    return depth;
}

static const struct driver_case *find_case(const char *name)
{
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        for (const struct driver_case *row = tables[i]; row->name; row++) {
            if (strcmp(row->name, name) == 0) {
                return row;
            }
        }
    }
    return NULL;
}

static int list_cases(void)
{
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        for (const struct driver_case *row = tables[i]; row->name; row++) {
            puts(row->name);
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        return list_cases();
    }
    for (int i = 1; i < argc; i++) {
        const struct driver_case *row = find_case(argv[i]);
        if (!row) {
            fprintf(stderr, "driver: no case %s\n", argv[i]);
            return 2;
        }
        row->run();
    }
    return 0;
}
