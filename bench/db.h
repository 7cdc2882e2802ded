// SPDX-License-Identifier: PostgreSQL
//
// Sessions of the benchmark driver. It is a program for one purpose: whatever fails ends it
// with a message, so nothing here returns an error.

#ifndef MILLRACE_BENCH_DB_H
#define MILLRACE_BENCH_DB_H

#include <libpq-fe.h>

// Prints "PROGRAM: ..." to stderr and ends the program with status 2.
void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

// Prints what is going on to stderr.
void progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Seconds on a clock that only goes forward.
double now_s(void);

// Seconds on a processor that a process has had; 0 where it has ended.
double process_cpu_s(long pid);

// Sleeps, for measurements at fixed times.
void pause_ms(long ms);

// A session on a database of the server that the PG* variables name. db_close() ends it.
PGconn *db_open(const char *database);
void db_close(PGconn *conn);

// Runs statements; what they return is thrown away.
void db_run(PGconn *conn, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The first value of a query as a number; 0 for null.
double db_number(PGconn *conn, const char *format, ...) __attribute__((format(printf, 2, 3)));

// A new database from the template that bench/run made, replacing one of that name.
void db_create(const char *database);
void db_drop(const char *database);

// Runs a file of SQL.
void db_run_file(PGconn *conn, const char *path);

// A server setting, for all new and idle sessions; NULL resets it. Returns when this
// session sees it.
void db_set(const char *name, const char *value);

#endif
