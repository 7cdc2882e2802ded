// SPDX-License-Identifier: PostgreSQL
//
// Aligned tables for people: a line of titles, a line a row, two blanks between columns.
//
// What stands in a cell comes from the database: control characters are shown as blanks, so that
// a job cannot write to somebody's terminal (see width.h).

#ifndef MILLRACE_CLI_TABLE_H
#define MILLRACE_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"

// A table ends with a column without a title. `most` is the width at which a cell is cut; 0:
// not at all.
struct table_column {
    const char *title;
    bool right; // aligned
    int most;
};

struct table {
    const struct table_column *columns;
    size_t width;      // in columns
    struct buf cells;  // one behind the other, each with its zero byte
    size_t cell_count; // without the titles
};

// The bytes of all cells.
#define TABLE_MAX (64 * 1024 * 1024)

void table_init(struct table *table, const struct table_column *columns);
void table_done(struct table *table);

// The next cell. NULL is a dash.
void table_add(struct table *table, const char *text);
void table_add_number(struct table *table, int64_t number);

// Writes the titles and rows to `out`; nothing but the titles when there is no row.
int table_print(const struct table *table, FILE *out, struct mr_error *err);

// Writes `text` with control characters as blanks.
void table_put_text(const char *text, FILE *out);

#define AUTO_TABLE __attribute__((cleanup(table_done))) struct table

#endif
