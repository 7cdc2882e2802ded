// SPDX-License-Identifier: PostgreSQL
//
// A connection to each address of a list, and which shard is there: for commands that see to all of
// them.

#ifndef MILLRACE_CLI_SHARD_CONNS_H
#define MILLRACE_CLI_SHARD_CONNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "client/conn.h"
#include "client/dsn_list.h"
#include "client/shard.h"

struct shard_conns {
    struct dsn_list list;
    struct shard_set set;             // those that answered and are enrolled
    struct conn *conns[DSN_LIST_MAX]; // NULL: it cannot be reached
    struct mr_error
        errs[DSN_LIST_MAX]; // why it cannot be reached, or says nothing of a shard; code 0: fine
};

// A dsn that names one database is a list of one. Those that cannot be reached are for the caller
// to tell. Fails with MR_EUSAGE, and MR_ECONFIG where two are the same shard or of different sets.
// *ret is ended with shard_conns_done().
int shard_conns_open(const char *dsn, struct shard_conns *ret, struct mr_error *err);
void shard_conns_done(struct shard_conns *conns);

// What to call an address: "shard 2", or "address 3" where that is not known.
#define SHARD_LABEL_SIZE 32
const char *shard_conns_label(const struct shard_conns *conns, int at, char ret[SHARD_LABEL_SIZE]);

// The address of a number, of the lowest of the set. Fail with the reason.
int shard_conns_find(const struct shard_conns *conns, int number, int *ret, struct mr_error *err);
int shard_conns_first(const struct shard_conns *conns, int *ret, struct mr_error *err);

// The first address that cannot be reached; -1: all can. *err says why.
int shard_conns_missing(const struct shard_conns *conns, struct mr_error *err);

#define AUTO_SHARD_CONNS __attribute__((cleanup(shard_conns_done))) struct shard_conns

#endif
