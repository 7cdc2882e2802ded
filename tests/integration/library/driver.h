// SPDX-License-Identifier: PostgreSQL
//
// A program that uses libmillrace as anybody would: by its header, linked to the shared library.
// `driver CASE` runs one case against the database of MILLRACE_DSN and ends with 0, or says which
// check failed and ends with 1. Each case has queues of its own.
//
// MR_TEST_POOLER: the connections of the library go through a pooler. MR_TEST_DIRECT_DSN: for the
// driver's own sessions, where MILLRACE_DSN leads to the pooler.

#ifndef LIBRARY_DRIVER_H
#define LIBRARY_DRIVER_H

#include <libpq-fe.h>
#include <millrace/millrace.h>
#include <stdbool.h>
#include <stdint.h>

#define CHECK(condition) \
    ((condition) ? (void)0 : driver_fail(__FILE__, __LINE__, #condition, "false"))
// A call of the library that has to return `code`.
#define CHECK_CODE(call, code)     driver_check_code(__FILE__, __LINE__, #call, (call), (code))
#define CHECK_OK(call)             CHECK_CODE(call, MR_OK)
#define CHECK_TEXT(text, expected) driver_check_text(__FILE__, __LINE__, #text, (text), (expected))
#define CHECK_NUMBER(number, expected) \
    driver_check_number(__FILE__, __LINE__, #number, (number), (expected))

void driver_fail(const char *file, int line, const char *what, const char *why)
    __attribute__((noreturn));
// Fails also when a failure has no message, a wrong class, or none of a hint where `err` is
// MR_EUSAGE.
void driver_check_code(const char *file, int line, const char *what, int code, int expected);
void driver_check_text(const char *file, int line, const char *what, const char *text,
                       const char *expected);
void driver_check_number(const char *file, int line, const char *what, int64_t number,
                         int64_t expected);

// What the calls of the cases fill; cleared by CHECK_CODE.
extern mr_error err;

// A connection of the library's, with the default timeout or another.
mr_conn *open_conn(void);
mr_conn *open_conn_within(int64_t timeout_ms);

// A session of the driver's own, and its statements.
PGconn *open_session(void);
void session_run(PGconn *session, const char *statement);
// The first value of the first row; valid until the next call.
const char *session_ask(PGconn *session, const char *statement);
// Waits until the value is as expected.
void session_await(PGconn *session, const char *statement, const char *expected);

int64_t now_ms(void);
void pause_ms(int64_t ms);
// Whether `found` stands in `text`.
bool has(const char *text, const char *found);

void enqueue_plain(mr_conn *conn, const char *queue, int count);
// A batch with at least one job, waited for.
mr_batch *claim_some(mr_conn *conn, const char *queue, int max_jobs);
int64_t depth_of(mr_conn *conn, const char *queue);

struct driver_case {
    const char *name;
    void (*run)(void);
};

// Ended by a row without a name.
extern const struct driver_case produce_cases[];
extern const struct driver_case unique_cases[];
extern const struct driver_case work_cases[];
extern const struct driver_case nowait_cases[];
extern const struct driver_case trouble_cases[];
extern const struct driver_case worker_cases[];
extern const struct driver_case progress_cases[];
extern const struct driver_case toolbox_cases[];
extern const struct driver_case coded_cases[];

#endif
