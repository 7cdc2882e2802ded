// SPDX-License-Identifier: PostgreSQL

#include "upkeep.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db.h"

enum {
    NAME_SIZE = 64,
    STATEMENT_SIZE = 1024,
};

static struct {
    pthread_t thread;
    atomic_bool stop;
    long pause_ms;
    char database[NAME_SIZE];
    struct upkeep_done done;
} upkeep;

static void count_failure(void *arg, const PGresult *result)
{
    struct upkeep_done *done = arg;
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (severity && strcmp(severity, "WARNING") == 0) {
        done->failures++;
        progress("upkeep: %s", PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY));
    }
}

static void add_round(PGresult *result, struct upkeep_done *done)
{
    for (int i = 0; i < PQntuples(result); i++) {
        long n = strtol(PQgetvalue(result, i, 1), NULL, 10);
        if (strcmp(PQgetvalue(result, i, 0), "rotate") == 0)
            done->rotations += n;
        else if (strcmp(PQgetvalue(result, i, 0), "retire") == 0)
            done->retired += n;
    }
    done->rounds++;
}

static void *upkeep_run(void *arg)
{
    (void)arg;
    PGconn *conn = db_open(upkeep.database);
    PQsetNoticeReceiver(conn, count_failure, &upkeep.done);
    while (!atomic_load(&upkeep.stop)) {
        double start = now_s();
        PGresult *result = PQexec(conn, "select duty, done from millrace.maintain()");
        if (PQresultStatus(result) != PGRES_TUPLES_OK)
            die("maintain: %s", PQresultErrorMessage(result));
        add_round(result, &upkeep.done);
        if (now_s() - start > upkeep.done.slowest_round_s)
            upkeep.done.slowest_round_s = now_s() - start;
        PQclear(result);
        double size = db_number(conn, "select bench.largest_segment()");
        if (size > upkeep.done.largest_segment)
            upkeep.done.largest_segment = size;
        pause_ms(upkeep.pause_ms);
    }
    db_close(conn);
    return NULL;
}

void upkeep_start(const char *database, long pause_ms)
{
    memset(&upkeep.done, 0, sizeof upkeep.done);
    snprintf(upkeep.database, sizeof upkeep.database, "%s", database);
    upkeep.pause_ms = pause_ms;
    atomic_store(&upkeep.stop, false);
    if (pthread_create(&upkeep.thread, NULL, upkeep_run, NULL) != 0)
        die("cannot start a thread");
}

struct upkeep_done upkeep_stop(void)
{
    atomic_store(&upkeep.stop, true);
    pthread_join(upkeep.thread, NULL);
    return upkeep.done;
}

struct job_thread {
    pthread_t thread;
    char database[NAME_SIZE];
    char statement[STATEMENT_SIZE];
};

static void *job_run(void *arg)
{
    struct job_thread *job = arg;
    PGconn *conn = db_open(job->database);
    db_run(conn, "%s", job->statement);
    db_close(conn);
    return NULL;
}

struct job_thread *job_start(const char *database, const char *statement)
{
    struct job_thread *job = calloc(1, sizeof *job);
    if (!job)
        die("out of memory");
    snprintf(job->database, sizeof job->database, "%s", database);
    snprintf(job->statement, sizeof job->statement, "%s", statement);
    if (pthread_create(&job->thread, NULL, job_run, job) != 0)
        die("cannot start a thread");
    return job;
}

void job_wait(struct job_thread *job)
{
    pthread_join(job->thread, NULL);
    free(job);
}
