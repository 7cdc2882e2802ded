// SPDX-License-Identifier: PostgreSQL
//
// Where jobs are measured: scratch databases, each a copy of one that was migrated once, or
// (here) queues of a database that is in use.
//
// Whatever was made is removed by place_close(), on any way out of the program that is not
// SIGKILL.

#ifndef MILLRACE_BENCH_PLACE_H
#define MILLRACE_BENCH_PLACE_H

#include <stdbool.h>

#include "base/buf.h"
#include "client/conn.h"

enum { PLACE_NAME_SIZE = 64, PLACE_SITES_MAX = 8 };

// One database, or with `here` one queue, for one run of one contender.
struct site {
    bool open;
    char database[PLACE_NAME_SIZE]; // "" with here
    char queue[PLACE_NAME_SIZE];
    struct buf dsn;
    struct conn *conn; // for the bench's own questions
};

struct place {
    const char *dsn; // borrowed
    bool here;
    struct conn *conn;              // to the database that the dsn names
    char database[PLACE_NAME_SIZE]; // the migrated one; "" while there is none
    unsigned serial;
    struct site sites[PLACE_SITES_MAX];
};

// Connects; without `here` makes the scratch database and migrates it. On failure nothing is left
// behind. Fails with MR_EPRIVILEGE when databases may not be made.
int place_open(struct place *place, const char *dsn, bool here, struct mr_error *err);

// A fresh site; *ret is the place's. place_leave() removes it.
int place_enter(struct place *place, struct site **ret, struct mr_error *err);
int place_leave(struct place *place, struct site *site, struct mr_error *err);

// Removes everything, with a new connection where the old one is lost. Fails, and names what is
// left, when that cannot be done.
int place_close(struct place *place, struct mr_error *err);

// Appends the dsn with another database; NULL is libpq's environment.
int place_dsn(struct buf *out, const char *dsn, const char *database, struct mr_error *err);

#endif
