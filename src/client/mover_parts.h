// SPDX-License-Identifier: PostgreSQL
//
// Payload parts of a move that are objects of a blob store: read from the store of the one
// database, and what was in them put into the batch instead, or written to the store of the other
// as its queue wants it. Columns are arrays of bytea in their binary form.

#ifndef MILLRACE_CLIENT_MOVER_PARTS_H
#define MILLRACE_CLIENT_MOVER_PARTS_H

#include "client/parcel.h"

enum { MOVER_STATE, MOVER_BLOB, MOVER_COLUMNS };

struct mover_parts {
    struct parcel parcel;              // what is behind the columns
    struct buf columns[MOVER_COLUMNS]; // .len 0: as it came
    int64_t unreadable;                // parts that stay references: damaged, or missing
};

#define AUTO_MOVER_PARTS __attribute__((cleanup(mover_parts_done))) struct mover_parts
void mover_parts_init(struct mover_parts *parts);
void mover_parts_done(struct mover_parts *parts);

struct mover_column {
    const char *data;
    size_t size;
};

// Reads the objects that the columns name. An object that is missing or damaged stays a reference:
// its job is told so by whoever takes it there. `to` NULL, or `policy` that offloads nothing: all
// become bytes. Fails with MR_ECONNECT (a store does not answer), MR_ECONFIG (it does not let us,
// or is not the one that the objects are in), MR_ESCHEMA, MR_ENOMEM; `err` says of which store.
int mover_parts_carry(struct mover_parts *parts, const struct mover_column columns[MOVER_COLUMNS],
                      struct depot *from, struct depot *to, const struct policy *policy,
                      struct mr_error *err);

#endif
