// SPDX-License-Identifier: PostgreSQL
//
// What a shard is: see shard.h.

#include "client/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

int shard_of_id(int64_t id)
{
    int64_t number = id >> SHARD_ID_BITS;

    return id > 0 && number < SHARD_NUMBERS ? (int)number : -1;
}

void shard_lease(int number, const char *lease, char ret[SHARD_LEASE_SIZE])
{
    snprintf(ret, SHARD_LEASE_SIZE, "s%d:%s", number, lease);
}

int shard_of_lease(const char *lease, const char **ret_lease)
{
    char digits[3] = "";
    int64_t number = 0;
    const char *colon = lease[0] == 's' ? strchr(lease, ':') : NULL;

    if (!colon || colon - lease < 2 || colon - lease > (long)sizeof(digits)) {
        return -1;
    }
    memcpy(digits, lease + 1, (size_t)(colon - lease) - 1);
    if (!str_parse_int(digits, 0, SHARD_NUMBERS - 1, &number)) {
        return -1;
    }
    *ret_lease = colon + 1;
    return (int)number;
}

// FNV-1a, then a finish that lets every bit of key and number reach every bit of the score: keys
// are short and alike.
uint64_t shard_score(int number, const char *key)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (const char *c = key; *c; c++) {
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    }
    hash += ((uint64_t)number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ (hash >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ (hash >> 27)) * UINT64_C(0x94d049bb133111eb);
    return hash ^ (hash >> 31);
}

const char *shard_key_of(const struct shard_keys *keys)
{
    const char *const all[] = {keys->tenant, keys->ordering_key, keys->unique_key, keys->ref};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (!str_empty(all[i])) {
            return all[i];
        }
    }
    return NULL;
}

bool shard_keys_pin(const struct shard_keys *keys)
{
    return !str_empty(keys->unique_key) || !str_empty(keys->ordering_key);
}

static const char *const status_names[] = {
    [SHARD_ACTIVE] = "active",
    [SHARD_JOINING] = "joining",
    [SHARD_DRAINING] = "draining",
};

const char *shard_status_name(enum shard_status status)
{
    return status_names[status];
}

// ---- what a database says ----

// Columns of CALL_SHARD.
enum { COLUMN_SET, COLUMN_NUMBER, COLUMN_STATUS, COLUMN_NUMBERS, COLUMN_READ_ONLY, COLUMNS };

static bool read_status(const char *text, enum shard_status *ret)
{
    for (size_t i = 0; i < sizeof(status_names) / sizeof(status_names[0]); i++) {
        if (str_equal(text, status_names[i])) {
            *ret = (enum shard_status)i;
            return true;
        }
    }
    return false;
}

// {0,1,2}
static bool read_members(const char *text, uint32_t *ret)
{
    *ret = 0;
    for (char *end; text[0] && text[1]; text = end) {
        long number = strtol(text + 1, &end, 10);
        if (end == text + 1 || number < 0 || number >= SHARD_NUMBERS) {
            return false;
        }
        *ret |= UINT32_C(1) << number;
        if (*end == '}') {
            return true;
        }
    }
    return false;
}

int shard_info_read(const PGresult *result, struct shard_info *ret, struct mr_error *err)
{
    struct shard_info info = {0};
    int64_t number = 0;
    bool good = PQntuples(result) == 1 && PQnfields(result) == COLUMNS;

    if (good) {
        info.read_only = PQgetvalue(result, 0, COLUMN_READ_ONLY)[0] == 't';
        info.enrolled = !PQgetisnull(result, 0, COLUMN_NUMBER);
    }
    if (good && info.enrolled) {
        snprintf(info.set_id, sizeof(info.set_id), "%s", PQgetvalue(result, 0, COLUMN_SET));
        good = str_parse_int(PQgetvalue(result, 0, COLUMN_NUMBER), 0, SHARD_NUMBERS - 1, &number) &&
               read_status(PQgetvalue(result, 0, COLUMN_STATUS), &info.status) &&
               read_members(PQgetvalue(result, 0, COLUMN_NUMBERS), &info.members);
        info.number = (int)number;
    }
    if (!good) {
        mr_error_set(err, MR_ESCHEMA, "the server's answer has another form than expected");
        mr_error_hint(err, "The schema and the library are of different versions; upgrade the "
                           "older one (`millrace migrate` for the schema).");
        return MR_ESCHEMA;
    }
    *ret = info;
    return 0;
}

// ---- the set ----

static int not_enrolled(struct mr_error *err)
{
    mr_error_set(err, MR_ECONFIG, "the database is not a shard");
    mr_error_hint(err, "`millrace shard add` makes it one of the set that the other addresses are "
                       "of.");
    return MR_ECONFIG;
}

static int other_set(int at, int other, struct mr_error *err)
{
    mr_error_set(err, MR_ECONFIG,
                 "the databases at addresses %d and %d are shards of different sets", other + 1,
                 at + 1);
    mr_error_hint(err, "`millrace shard list` with one address shows which set a database is of.");
    return MR_ECONFIG;
}

static int same_shard(int at, int other, int number, struct mr_error *err)
{
    mr_error_set(err, MR_ECONFIG, "the databases at addresses %d and %d are both shard %d",
                 other + 1, at + 1, number);
    mr_error_detail(err, "They are the same database, a standby and its primary, or one is a copy "
                         "of the other: jobs would run twice.");
    mr_error_hint(err, "Leave one of them out. A primary and its standbys are one address: "
                       "host=a,b target_session_attrs=read-write.");
    return MR_ECONFIG;
}

int shard_set_admit(struct shard_set *set, int at, const struct shard_info *info,
                    struct mr_error *err)
{
    set->entries[at].known = false;
    if (!info->enrolled) {
        return not_enrolled(err);
    }
    for (int i = 0; i < set->count; i++) {
        if (i == at || !set->entries[i].known) {
            continue;
        }
        if (!str_equal(set->entries[i].info.set_id, info->set_id)) {
            return other_set(at, i, err);
        }
        if (set->entries[i].info.number == info->number) {
            return same_shard(at, i, info->number, err);
        }
    }
    set->entries[at].info = *info;
    set->entries[at].known = true;
    return 0;
}

int shard_set_find(const struct shard_set *set, int number)
{
    for (int i = 0; i < set->count; i++) {
        if (set->entries[i].known && set->entries[i].info.number == number) {
            return i;
        }
    }
    return -1;
}

uint32_t shard_set_members(const struct shard_set *set)
{
    uint32_t members = 0;

    for (int i = 0; i < set->count; i++) {
        members |= set->entries[i].known ? set->entries[i].info.members : 0;
    }
    return members;
}

void shard_set_order(const struct shard_set *set, const char *key, int ret[SHARD_NUMBERS])
{
    uint64_t scores[SHARD_NUMBERS];

    for (int i = 0; i < set->count; i++) {
        uint64_t score = set->entries[i].known ? shard_score(set->entries[i].info.number, key) : 0;
        int at = i;
        for (; at > 0 && scores[at - 1] < score; at--) {
            scores[at] = scores[at - 1];
            ret[at] = ret[at - 1];
        }
        scores[at] = score;
        ret[at] = i;
    }
}

bool shard_set_complete(const struct shard_set *set)
{
    for (int i = 0; i < set->count; i++) {
        if (!set->entries[i].known) {
            return false;
        }
    }
    return true;
}

// One that is not known counts as active: it is a member, and down.
static enum shard_status status_of(const struct shard_set *set, int number)
{
    int at = shard_set_find(set, number);

    return at < 0 ? SHARD_ACTIVE : set->entries[at].info.status;
}

// The member with the highest score, without those of one status.
static int best(const struct shard_set *set, const char *key, enum shard_status without)
{
    uint32_t members = shard_set_members(set);
    uint64_t best_score = 0;
    int number = -1;

    for (int i = 0; i < SHARD_NUMBERS; i++) {
        if ((members >> i & 1) && status_of(set, i) != without) {
            uint64_t score = shard_score(i, key);
            if (number < 0 || score > best_score) {
                number = i;
                best_score = score;
            }
        }
    }
    return number;
}

struct shard_pin shard_set_pin(const struct shard_set *set, const char *key)
{
    struct shard_pin pin = {
        .number = best(set, key, SHARD_DRAINING),
        .previous = best(set, key, SHARD_JOINING),
    };

    if (pin.previous < 0) {
        pin.previous = pin.number;
    }
    return pin;
}
