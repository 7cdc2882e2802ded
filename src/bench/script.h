// SPDX-License-Identifier: PostgreSQL
//
// The statements of sql/bench/, run by the name of their file.

#ifndef MILLRACE_BENCH_SCRIPT_H
#define MILLRACE_BENCH_SCRIPT_H

#include <stdint.h>

#include "client/conn.h"

// Runs a file, its rows dropped. $1 and $2 in it are replaced by the texts as they are: names
// that this program has made, or NULL.
int script_run(struct conn *conn, const char *name, const char *first, const char *second,
               struct mr_error *err);

// Runs a file that returns rows, with text parameters. The caller frees *ret with PQclear().
int script_query(struct conn *conn, const char *name, int count, const char *const *values,
                 PGresult **ret, struct mr_error *err);

// The number in the first row and column.
int script_number(struct conn *conn, const char *name, int64_t *ret, struct mr_error *err);

#endif
