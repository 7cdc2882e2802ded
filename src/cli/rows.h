// SPDX-License-Identifier: PostgreSQL
//
// Rows of a result as JSON, by the names and types of their columns.

#ifndef MILLRACE_CLI_ROWS_H
#define MILLRACE_CLI_ROWS_H

#include <libpq-fe.h>

#include "base/buf.h"

// The largest row: args and meta may have 256 MiB each.
#define ROWS_OBJECT_MAX (600 * 1024 * 1024)

// NULL for null.
const char *rows_value(const PGresult *rows, int row, int column);

// Decodes coded args, in columns of that name. What cannot be decoded stays as it is.
void rows_decode(PGresult *rows);

// Appends {"column":value,...}: numbers, booleans and JSON as they are, all else as strings.
void rows_add_object(struct buf *out, const PGresult *rows, int row);

// Write to stdout: one row as a document; all rows as {"NAME":[...]}. A row at a time: the
// memory does not depend on their number.
int rows_print_object(const PGresult *rows, int row, struct mr_error *err);
int rows_print_list(const char *name, const PGresult *rows, struct mr_error *err);

#endif
