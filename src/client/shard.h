// SPDX-License-Identifier: PostgreSQL
//
// What a shard is: its number, which ids and leases carry, what its database says of it, and which
// shard a key belongs to. Talks to nobody.
//
// 1. The number is stored in the database, not taken from the order of addresses.
// 2. id = number << SHARD_ID_BITS | count: the database makes them so. Number 0 leaves ids as they
// were.
// 3. In a set a number is there once: two databases with the same one are the same, or a copy.
// 4. A key belongs to the shard with the highest score for it. A shard that comes or goes takes or
//    leaves its own keys only.

#ifndef MILLRACE_CLIENT_SHARD_H
#define MILLRACE_CLIENT_SHARD_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "client/dsn_list.h"

enum { SHARD_ID_BITS = 48, SHARD_NUMBERS = DSN_LIST_MAX };

// The number in an id; -1 for one that no shard makes.
int shard_of_id(int64_t id);

// "s3:" before a lease, in a buffer of SHARD_LEASE_SIZE; a lease that is longer is cut, and lost.
#define SHARD_LEASE_SIZE 96
void shard_lease(int number, const char *lease, char ret[SHARD_LEASE_SIZE]);

// The number before a lease, -1 where there is none; *ret_lease is what follows, borrowed.
int shard_of_lease(const char *lease, const char **ret_lease);

// How much a shard wants a key: the highest has it.
uint64_t shard_score(int number, const char *key);

// What a job may have that says where it goes; NULL and "" are none.
struct shard_keys {
    const char *tenant, *ordering_key, *unique_key, *ref;
};
// The one that counts; NULL: it goes anywhere, in turn.
const char *shard_key_of(const struct shard_keys *keys);
// Whether it must not go elsewhere, where it would be a second one, or out of order.
bool shard_keys_pin(const struct shard_keys *keys);

enum shard_status {
    SHARD_ACTIVE,
    SHARD_JOINING, // keys of its jobs may still be held where they were before it came
    SHARD_DRAINING // gets no new jobs
};

const char *shard_status_name(enum shard_status status);

// What CALL_SHARD says.
struct shard_info {
    bool enrolled; // else only read_only counts
    char set_id[40];
    int number;
    enum shard_status status;
    uint32_t members; // a bit for each number of the set
    bool read_only;
};

// Fails with MR_ESCHEMA: an answer of another form.
int shard_info_read(const PGresult *result, struct shard_info *ret, struct mr_error *err);

// The addresses of one client and what is known of each.
struct shard_set {
    int count;
    struct {
        bool known;
        struct shard_info info;
    } entries[SHARD_NUMBERS];
};

// Takes in what the database at an address says. Fails with MR_ECONFIG, and the address stays
// unknown: it is no shard, of another set, or the same one as at another address.
int shard_set_admit(struct shard_set *set, int at, const struct shard_info *info,
                    struct mr_error *err);

// The address of a number, -1 where it is not known.
int shard_set_find(const struct shard_set *set, int number);

// All numbers of the set, as far as any address says; a bit for each.
uint32_t shard_set_members(const struct shard_set *set);

// The addresses in the order in which a key wants them; those of which nothing is known come last.
void shard_set_order(const struct shard_set *set, const char *key, int ret[SHARD_NUMBERS]);

// Whether everything is known.
bool shard_set_complete(const struct shard_set *set);

// Where a job has to go that has a key which is to be unique or in order: no other place will do.
struct shard_pin {
    int number;   // where it belongs now; -1: nowhere, all are draining
    int previous; // where it belonged before the set began to change; the same when it has not
};
struct shard_pin shard_set_pin(const struct shard_set *set, const char *key);

#endif
