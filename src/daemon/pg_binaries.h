// SPDX-License-Identifier: PostgreSQL
//
// Finds the programs of a PostgreSQL server on this machine.

#ifndef MILLRACE_DAEMON_PG_BINARIES_H
#define MILLRACE_DAEMON_PG_BINARIES_H

#include "base/err.h"
#include "daemon/sigwatch.h"

// The oldest major version that will do.
#define PG_BINARIES_MAJOR_MIN 13

// A directory's name, at most, with its zero.
#define PG_BINARIES_DIR_SIZE 1024

struct pg_binaries {
    char dir[PG_BINARIES_DIR_SIZE]; // holds postgres and initdb
    int major;
};

// The programs of version `major`, or with 0 the newest: in $MILLRACE_PGBIN and nowhere else if
// that is set, otherwise where distributions put them, where pg_config says, and on the PATH.
// Fails with MR_ECONFIG, and the hint says what to install.
int pg_binaries_find(int major, struct sigwatch *watch, struct pg_binaries *ret,
                     struct mr_error *err);

// `postgres (PostgreSQL) 15.4 (Debian ...)`: 15. 0 for what is no such line.
int pg_binaries_parse_version(const char *line);

#endif
