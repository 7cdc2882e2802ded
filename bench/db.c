// SPDX-License-Identifier: PostgreSQL

#include "db.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    STATEMENT_SIZE = 4096,
    FILE_SIZE_MAX = 65536,
};

static double started_s;

void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    exit(2);
}

void progress(const char *format, ...)
{
    va_list args;
    if (started_s == 0)
        started_s = now_s();
    va_start(args, format);
    fprintf(stderr, "# %6.1f s  ", now_s() - started_s);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
}

double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double process_cpu_s(long pid)
{
    char path[64], text[1024];
    unsigned long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[length] = '\0';
    const char *rest = strrchr(text, ')'); // the name before it may hold anything
    if (!rest ||
        sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
        return 0;
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

void pause_ms(long ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static void ignore_notice(void *arg, const PGresult *result)
{
    (void)arg;
    (void)result;
}

PGconn *db_open(const char *database)
{
    const char *names[] = {"dbname", "application_name", "options", NULL};
    const char *values[] = {database, "millrace-bench", "-c client_min_messages=warning", NULL};
    PGconn *conn = PQconnectdbParams(names, values, 0);
    if (PQstatus(conn) != CONNECTION_OK)
        die("%s", PQerrorMessage(conn));
    PQsetNoticeReceiver(conn, ignore_notice, NULL);
    return conn;
}

void db_close(PGconn *conn)
{
    PQfinish(conn);
}

static PGresult *run(PGconn *conn, const char *statement)
{
    PGresult *result = PQexec(conn, statement);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        die("%.200s: %s", statement, PQresultErrorMessage(result));
    return result;
}

__attribute__((format(printf, 2, 0))) static void compose(char *statement, const char *format,
                                                          va_list args)
{
    int length = vsnprintf(statement, STATEMENT_SIZE, format, args);
    if (length < 0 || length >= STATEMENT_SIZE)
        die("statement too long: %.100s", format);
}

void db_run(PGconn *conn, const char *format, ...)
{
    char statement[STATEMENT_SIZE];
    va_list args;
    va_start(args, format);
    compose(statement, format, args);
    va_end(args);
    PQclear(run(conn, statement));
}

double db_number(PGconn *conn, const char *format, ...)
{
    char statement[STATEMENT_SIZE];
    va_list args;
    va_start(args, format);
    compose(statement, format, args);
    va_end(args);
    PGresult *result = run(conn, statement);
    double value = PQntuples(result) > 0 ? strtod(PQgetvalue(result, 0, 0), NULL) : 0;
    PQclear(result);
    return value;
}

void db_drop(const char *database)
{
    PGconn *conn = db_open("postgres");
    db_run(conn, "drop database if exists %s with (force)", database);
    db_close(conn);
}

void db_create(const char *database)
{
    PGconn *conn = db_open("postgres");
    db_run(conn, "drop database if exists %s with (force)", database);
    db_run(conn, "create database %s template bench_template", database);
    db_close(conn);
}

void db_run_file(PGconn *conn, const char *path)
{
    static char text[FILE_SIZE_MAX];
    FILE *file = fopen(path, "r");
    if (!file)
        die("cannot open %s", path);
    size_t length = fread(text, 1, sizeof text, file);
    fclose(file);
    if (length == sizeof text)
        die("%s is too large", path);
    text[length] = '\0';
    PQclear(run(conn, text));
}

void db_set(const char *name, const char *value)
{
    PGconn *conn = db_open("postgres");
    if (value)
        db_run(conn, "alter system set %s = '%s'", name, value);
    else
        db_run(conn, "alter system reset %s", name);
    db_run(conn, "select pg_reload_conf()");
    for (int i = 0; value && i < 500; i++) {
        PGconn *fresh = db_open("postgres");
        int seen = (int)db_number(fresh, "select (current_setting('%s') = '%s')::int", name, value);
        db_close(fresh);
        if (seen)
            break;
        pause_ms(20);
    }
    db_close(conn);
}
