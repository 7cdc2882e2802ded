// SPDX-License-Identifier: PostgreSQL
//
// Connections to several shards: see shards.h.

#include "client/shards.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/mr_conn.h"

// Once one shard has answered, how long the others are waited for when a connection is opened.
#define LATE_MS 2000
// How often those that nobody asked for are looked after.
#define AROUND_MS 100

struct shard {
    mr_conn *conn;
    int connects; // of the connection, when it was looked at last
    int64_t looked_at_ms;
    int64_t rest_ms, rest_until_ms; // 0: it does not rest
    mr_error why;                   // it rests, or was refused; code 0: neither
};

struct shards {
    struct shard_set set;
    struct shard all[SHARD_NUMBERS];
    int64_t timeout_ms;
    int64_t around_at_ms; // when to look around next
    unsigned turn;
};

int shards_count(const struct shards *shards)
{
    return shards->set.count;
}

const struct shard_set *shards_set(const struct shards *shards)
{
    return &shards->set;
}

int shards_turn(struct shards *shards)
{
    return (int)(shards->turn++ % (unsigned)shards->set.count);
}

mr_conn *shards_conn(const struct shards *shards, int at)
{
    return shards->all[at].conn;
}

static void name_shard(const struct shards *shards, int at, mr_error *err)
{
    if (shards->set.entries[at].known) {
        mr_error_prefix(err, "shard %d", shards->set.entries[at].info.number);
    } else {
        mr_error_prefix(err, "address %d", at + 1);
    }
}

static mr_conn *refuse(const struct shards *shards, int at, const mr_error *why, mr_error *err)
{
    if (err) {
        *err = *why;
        name_shard(shards, at, err);
    }
    return NULL;
}

// ---- how it does ----

bool shards_passable(int code)
{
    return code == MR_EFULL || code == MR_EREADONLY || code == MR_EFULLDISK;
}

static bool is_trouble(int code)
{
    return code == MR_ECONNECT || code == MR_ETIMEOUT || code == MR_EREADONLY ||
           code == MR_EFULLDISK;
}

static void rest(struct shard *shard, const mr_error *why)
{
    shard->rest_ms = shard->rest_ms ? shard->rest_ms * 2 : SHARD_REST_MS;
    if (shard->rest_ms > SHARD_REST_MAX_MS) {
        shard->rest_ms = SHARD_REST_MAX_MS;
    }
    shard->rest_until_ms = clock_ms() + shard->rest_ms;
    shard->why = *why;
}

static void do_well(struct shard *shard)
{
    shard->rest_ms = 0;
    shard->rest_until_ms = 0;
    shard->why.code = 0;
}

// What is wrong with the input, or with a lease, is so on any shard.
static bool is_about_shard(int code)
{
    enum mr_class class = mr_code_class(code);

    return code != MR_EUSAGE &&
           (class == MR_CLASS_TRANSIENT || class == MR_CLASS_CONFIG || class == MR_CLASS_INTERNAL);
}

int shards_tell(struct shards *shards, int at, int code, mr_error *err)
{
    struct shard *shard = &shards->all[at];

    if (code == MR_EREADONLY) {
        shards->set.entries[at].info.read_only = true;
    }
    if (is_trouble(code)) {
        rest(shard, err);
    } else {
        do_well(shard);
    }
    if (is_about_shard(code)) {
        name_shard(shards, at, err);
    }
    return code;
}

// ---- looking ----

static int ask(mr_conn *conn, struct shard_info *ret, mr_error *err)
{
    AUTO_CALL call;
    mr_reply *reply = NULL;

    call_init(&call, CALL_SHARD);
    int code = mr__conn_ask(conn, &call, NULL, &reply, err);
    if (code == 0) {
        code = shard_info_read(reply->result, ret, err);
        mr_reply_free(reply);
    }
    return code;
}

static int look(struct shards *shards, int at, mr_error *err)
{
    struct shard *shard = &shards->all[at];
    struct shard_info info;
    int code = ask(shard->conn, &info, err);

    if (code == 0) {
        code = shard_set_admit(&shards->set, at, &info, err);
    }
    shard->connects = mr__conn_connects(shard->conn);
    shard->looked_at_ms = clock_ms();
    if (code) {
        rest(shard, err);
    }
    return code;
}

static bool is_due(const struct shards *shards, int at)
{
    const struct shard *shard = &shards->all[at];

    return !shards->set.entries[at].known || shard->connects != mr__conn_connects(shard->conn) ||
           clock_ms() - shard->looked_at_ms >= SHARD_LOOK_MS;
}

mr_conn *shards_use(struct shards *shards, int at, mr_error *err)
{
    struct shard *shard = &shards->all[at];
    mr_error why;

    if (!mr__conn_up(shard->conn, &why)) {
        return refuse(shards, at, &why, err);
    }
    if (shard->rest_until_ms > clock_ms()) {
        return refuse(shards, at, &shard->why, err);
    }
    if (is_due(shards, at) && look(shards, at, &why)) {
        return refuse(shards, at, &why, err);
    }
    return shard->conn;
}

mr_conn *shards_need(struct shards *shards, int at, mr_error *err)
{
    struct shard *shard = &shards->all[at];
    mr_error why;

    if (!mr__conn_wait_up(shard->conn, clock_ms() + shards->timeout_ms, &why)) {
        return refuse(shards, at, &why, err);
    }
    if (is_due(shards, at) && look(shards, at, &why)) {
        return refuse(shards, at, &why, err);
    }
    return shard->conn;
}

void shards_look_around(struct shards *shards)
{
    int64_t now_ms = clock_ms();

    if (now_ms >= shards->around_at_ms) {
        shards->around_at_ms = now_ms + AROUND_MS;
        for (int i = 0; i < shards->set.count; i++) {
            shards_use(shards, i, NULL);
        }
    }
}

bool shards_accepts(const struct shards *shards, int at, mr_error *err)
{
    const struct shard_info *info = &shards->set.entries[at].info;

    if (info->status == SHARD_DRAINING) {
        mr_error_set(err, MR_EREADONLY, "shard %d is draining", info->number);
        mr_error_hint(err, "`millrace shard resume %d` lets it take jobs again.", info->number);
        return false;
    }
    if (info->read_only) {
        mr_error_set(err, MR_EREADONLY, "shard %d is read-only", info->number);
        mr_error_hint(err, "It is a standby, or its transactions are read-only by default.");
        return false;
    }
    return true;
}

// ---- finding ----

// Addresses of which nothing is known yet may have come up.
static void look_at_unknown(struct shards *shards)
{
    for (int i = 0; i < shards->set.count; i++) {
        if (!shards->set.entries[i].known) {
            shards_use(shards, i, NULL);
        }
    }
}

static int cannot_find(const struct shards *shards, int number, mr_error *err)
{
    if (number >= 0 &&
        (!shard_set_complete(&shards->set) || (shard_set_members(&shards->set) >> number & 1))) {
        mr_error_set(err, MR_ECONNECT, "shard %d cannot be reached", number);
        mr_error_hint(err, "Either none of the addresses leads to it, or it is down; "
                           "`millrace shard list` tells.");
        return MR_ECONNECT;
    }
    mr_error_set(err, MR_EUNKNOWN, "the set has no shard %d", number);
    mr_error_hint(err, "The id or lease is of another set, or of no shard.");
    return MR_EUNKNOWN;
}

int shards_find(struct shards *shards, int number, int *ret, mr_error *err)
{
    int at = number < 0 ? -1 : shard_set_find(&shards->set, number);

    if (at < 0 && number >= 0) {
        look_at_unknown(shards);
        at = shard_set_find(&shards->set, number);
    }
    if (at < 0) {
        return cannot_find(shards, number, err);
    }
    *ret = at;
    return 0;
}

// Where the lowest is down since the beginning it is one of the unknown: calls there say why.
mr_conn *shards_toolbox(struct shards *shards)
{
    uint32_t members = shard_set_members(&shards->set);
    int lowest = members ? __builtin_ctz(members) : 0;
    int at = shard_set_find(&shards->set, lowest);

    for (int i = 0; at < 0 && i < shards->set.count; i++) {
        at = shards->set.entries[i].known ? -1 : i;
    }
    return shards->all[at < 0 ? 0 : at].conn;
}

// ---- opening ----

static bool any_up(const struct shards *shards)
{
    for (int i = 0; i < shards->set.count; i++) {
        if (mr__conn_up(shards->all[i].conn, NULL)) {
            return true;
        }
    }
    return false;
}

// Waits for something to happen on those that are neither up nor refused. False: there is none.
static bool wait_for_some(const struct shards *shards, int wait_ms)
{
    struct pollfd fds[SHARD_NUMBERS];
    nfds_t count = 0;

    for (int i = 0; i < shards->set.count; i++) {
        mr_error why;
        if (!mr__conn_up(shards->all[i].conn, &why) && !mr__conn_refused(shards->all[i].conn)) {
            fds[count++] = (struct pollfd){.fd = mr_fd(shards->all[i].conn), .events = POLLIN};
        }
    }
    if (count > 0) {
        poll(fds, count, wait_ms);
    }
    return count > 0;
}

static void connect_all(const struct shards *shards)
{
    int64_t begun_ms = clock_ms(), end_ms = begun_ms + shards->timeout_ms;
    bool up = false;

    while (clock_ms() < end_ms) {
        if (!up && (up = any_up(shards)) && clock_ms() + LATE_MS < end_ms) {
            end_ms = clock_ms() + LATE_MS;
        }
        if (!wait_for_some(shards, 100)) {
            return;
        }
    }
}

static bool is_fatal(int code)
{
    return mr_code_class(code) == MR_CLASS_CONFIG && code != MR_EREADONLY;
}

// The first look at each: what is wrong with the set is told now.
static int look_at_all(struct shards *shards, mr_error *err)
{
    mr_error why = {0}, first = {0};
    int usable = 0;

    for (int i = 0; i < shards->set.count; i++) {
        if (shards_use(shards, i, &why)) {
            usable++;
        } else if (is_fatal(why.code)) {
            *err = why;
            return why.code;
        } else if (first.code == 0) {
            first = why;
        }
    }
    if (usable == 0) {
        *err = first;
        return first.code;
    }
    return 0;
}

static int open_each(struct shards *shards, const mr_conn_options *options,
                     const struct dsn_list *list, mr_error *err)
{
    mr_conn_options each = *options;
    int code = 0;

    each.full_wait_ms = 0;
    for (int i = 0; code == 0 && i < list->count; i++) {
        each.dsn = list->items[i];
        code = mr__conn_new(&each, &shards->all[i].conn, err);
        shards->set.count = i + (code == 0);
        if (code) {
            mr_error_prefix(err, "address %d", i + 1);
        }
    }
    return code;
}

int shards_open(const mr_conn_options *options, const char *dsn, struct shards **ret, mr_error *err)
{
    struct dsn_list list;
    mr_error why;
    int code = dsn_list_parse(dsn, &list, err);

    if (code) {
        return code;
    }
    struct shards *shards = calloc(1, sizeof(*shards));
    if (!shards) {
        dsn_list_done(&list);
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    shards->timeout_ms = options->timeout_ms;
    shards->turn = (unsigned)clock_us(); // not all clients begin with the same one
    code = open_each(shards, options, &list, &why);
    dsn_list_done(&list);
    if (code == 0) {
        connect_all(shards);
        code = look_at_all(shards, &why);
    }
    if (code) {
        shards_free(shards);
        if (err) {
            *err = why;
        }
        return code;
    }
    *ret = shards;
    return 0;
}

void shards_free(struct shards *shards)
{
    if (shards) {
        for (int i = 0; i < shards->set.count; i++) {
            mr_conn_free(shards->all[i].conn);
        }
        free(shards);
    }
}
