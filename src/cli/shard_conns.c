// SPDX-License-Identifier: PostgreSQL
//
// A connection to each shard: see shard_conns.h.

#include "cli/shard_conns.h"

#include <stdio.h>

#include "client/call.h"

static int ask(struct conn *conn, struct shard_info *ret, struct mr_error *err)
{
    AUTO_CALL call;
    AUTO_RESULT *result = NULL;

    call_init(&call, CALL_SHARD);
    int code = call_exec(&call, conn_pg(conn), &result, err);
    return code ? code : shard_info_read(result, ret, err);
}

// A database that is no shard is not refused here.
static int look_at(struct shard_conns *conns, int at, struct mr_error *err)
{
    struct mr_error *why = &conns->errs[at];
    struct shard_info info;

    if (conn_open(conns->list.items[at], &conns->conns[at], why) ||
        ask(conns->conns[at], &info, why)) {
        return 0;
    }
    int code = shard_set_admit(&conns->set, at, &info, info.enrolled ? err : why);
    return info.enrolled ? code : 0;
}

int shard_conns_open(const char *dsn, struct shard_conns *ret, struct mr_error *err)
{
    *ret = (struct shard_conns){0};
    const char *several = conn_shards_dsn(dsn);
    int code = dsn_list_parse(several ? several : dsn, &ret->list, err);

    ret->set.count = ret->list.count;
    for (int i = 0; code == 0 && i < ret->list.count; i++) {
        code = look_at(ret, i, err);
    }
    if (code) {
        shard_conns_done(ret);
    }
    return code;
}

void shard_conns_done(struct shard_conns *conns)
{
    for (int i = 0; i < conns->list.count; i++) {
        conn_free(conns->conns[i]);
    }
    dsn_list_done(&conns->list);
}

const char *shard_conns_label(const struct shard_conns *conns, int at, char ret[SHARD_LABEL_SIZE])
{
    bool known = conns->set.entries[at].known;

    snprintf(ret, SHARD_LABEL_SIZE, "%s %d", known ? "shard" : "address",
             known ? conns->set.entries[at].info.number : at + 1);
    return ret;
}

int shard_conns_missing(const struct shard_conns *conns, struct mr_error *err)
{
    for (int i = 0; i < conns->list.count; i++) {
        if (!conns->set.entries[i].known) {
            *err = conns->errs[i];
            mr_error_prefix(err, "address %d", i + 1);
            return i;
        }
    }
    return -1;
}

int shard_conns_find(const struct shard_conns *conns, int number, int *ret, struct mr_error *err)
{
    int at = shard_set_find(&conns->set, number);

    if (at >= 0) {
        *ret = at;
        return 0;
    }
    if (shard_conns_missing(conns, err) >= 0) {
        return err->code;
    }
    mr_error_set(err, MR_EUNKNOWN, "none of the addresses is shard %d", number);
    mr_error_hint(err, "`millrace shard list` shows which there are.");
    return MR_EUNKNOWN;
}

int shard_conns_first(const struct shard_conns *conns, int *ret, struct mr_error *err)
{
    uint32_t members = shard_set_members(&conns->set);

    if (!members) {
        shard_conns_missing(conns, err);
        return err->code;
    }
    return shard_conns_find(conns, __builtin_ctz(members), ret, err);
}
