// SPDX-License-Identifier: PostgreSQL
//
// A connection string that names several databases: addresses with a semicolon between them that
// has white space on both sides, `postgresql://a/jobs ; postgresql://b/jobs`. Inside of the single
// quotes of `keyword='value'` strings it is only a character. No address that libpq takes contains
// one elsewhere, so a string that names one database means what it always did.

#ifndef MILLRACE_CLIENT_DSN_LIST_H
#define MILLRACE_CLIENT_DSN_LIST_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

#define DSN_LIST_MAX      32 // addresses; also the most shards of a set
#define DSN_LIST_SIZE_MAX (64 * 1024)

struct dsn_list {
    int count;
    char *items[DSN_LIST_MAX];
};

// Whether a connection string names more than one. NULL does not.
bool dsn_is_list(const char *dsn);

// The addresses one by one, without the white space around them; a string that names one database,
// NULL too, is a list of that. *ret is ended with dsn_list_done(). Fails with MR_EUSAGE (an empty
// one, too many, one of Redis, one twice), MR_ENOMEM.
int dsn_list_parse(const char *dsn, struct dsn_list *ret, struct mr_error *err);
void dsn_list_done(struct dsn_list *list);

// Appends another address to a list.
void dsn_list_add(struct buf *out, const char *dsn);

#endif
