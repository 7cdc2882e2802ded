// SPDX-License-Identifier: PostgreSQL
//
// The calls about jobs on several shards: each is made by queue_pg on the connection of one of
// them, which the id or the lease names. See queue_ops.h; how jobs are spread is in
// shards_enqueue.c.
//
// 1. A claim takes the shards in turn and passes over those that are down, slow or read-only: the
//    others' jobs go on. What a person has to see to is told when no other has jobs.
// 2. Calls about all shards (depth, dead letters) fail when one cannot be asked: half a number is
//    none. What was changed on the others by then stays.

#include "client/queue_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_scan.h"
#include "base/str.h"
#include "client/batch.h"
#include "client/mr_conn.h"
#include "client/request.h"
#include "client/shards.h"

#define LIST_SIZE_MAX ((size_t)1000 * 1000 * 1000)
// So much of a lease is shown, as the database does.
#define LEASE_SHOWN 80

// ---- which shard ----

struct target {
    struct shards *shards;
    int at;
    mr_conn *conn;
    const char *lease; // without the number; or NULL
};

static int target_number(mr_conn *conn, int number, struct target *ret, mr_error *err)
{
    struct target target = {.shards = mr__conn_shards(conn)};
    int code = shards_find(target.shards, number, &target.at, err);

    if (code) {
        return code;
    }
    mr_error why;
    target.conn = shards_need(target.shards, target.at, &why);
    if (!target.conn) {
        if (err) {
            *err = why;
        }
        return why.code;
    }
    *ret = target;
    return 0;
}

// `what` it is that has the id, for the message.
static int target_id(mr_conn *conn, int64_t id, const char *what, struct target *ret, mr_error *err)
{
    int number = shard_of_id(id);

    if (number < 0) {
        mr_error_set(err, MR_EUNKNOWN, "there is no %s %lld", what, (long long)id);
        mr_error_sqlstate(err, "MR003");
        mr_error_hint(err, "Its id is not one that a shard makes.");
        return MR_EUNKNOWN;
    }
    return target_number(conn, number, ret, err);
}

// A text that is no lease of these shards is a lease that is lost, as on one database.
static int lost(const char *lease, const char *why, mr_error *err)
{
    char quoted[SHARD_LEASE_SIZE * 2] = "";
    size_t used = 0;

    for (const char *c = lease; *c && c - lease < LEASE_SHOWN && used + 2 < sizeof(quoted); c++) {
        quoted[used++] = *c;
        if (*c == '\'') {
            quoted[used++] = *c;
        }
    }
    str_trim_utf8(quoted);
    mr_error_set(err, MR_ELEASE, "lease '%s' is lost", quoted);
    mr_error_sqlstate(err, "MR001");
    mr_error_detail(err, "%s", why);
    mr_error_hint(err,
                  "On several shards a lease begins with the number of its shard, as s2:...; give "
                  "it as the claim did.");
    return MR_ELEASE;
}

static int lease_number(const char *lease, const char **ret_lease, int *ret, mr_error *err)
{
    int code = request_check_lease(lease, err);

    if (code) {
        return code;
    }
    int number = shard_of_lease(lease, ret_lease);
    if (number < 0) {
        return lost(lease, "It names no shard.", err);
    }
    *ret = number;
    return 0;
}

static int target_lease(mr_conn *conn, const char *lease, struct target *ret, mr_error *err)
{
    const char *rest = NULL;
    int number = 0;
    int code = lease_number(lease, &rest, &number, err);

    if (code || (code = target_number(conn, number, ret, err))) {
        return code == MR_EUNKNOWN ? lost(lease, "Its shard is not in the set.", err) : code;
    }
    ret->lease = rest;
    return 0;
}

// The database names the lease as it knows it; the caller knows it with the number of the shard.
static void name_lease(const struct target *target, mr_error *err)
{
    static const char before[] = "lease '"; // where it is not known which of many
    char message[MR_ERROR_MESSAGE_SIZE];
    char *lease = target->lease ? strstr(err->message, target->lease) : NULL;

    if (!target->lease && (lease = strstr(err->message, before))) {
        lease += sizeof(before) - 1;
    }
    if (lease) {
        snprintf(message, sizeof(message), "%.*ss%d:%s", (int)(lease - err->message), err->message,
                 shards_set(target->shards)->entries[target->at].info.number, lease);
        memcpy(err->message, message, sizeof(message));
    }
}

// What came of a call. The error is the caller's, and may be NULL; `why` is ours.
static int ended(const struct target *target, int code, mr_error *why, mr_error *err)
{
    shards_tell(target->shards, target->at, code, why);
    if (code == MR_ELEASE || (code == MR_EUNKNOWN && target->lease)) {
        name_lease(target, why);
    }
    if (code && err) {
        *err = *why;
    }
    return code;
}

// ---- claiming ----

struct look_round {
    mr_batch *empty; // somebody has answered
    mr_error bad;    // what a person has to see to
    mr_error last;
};

static bool is_config(int code)
{
    enum mr_class class = mr_code_class(code);

    return code != MR_EREADONLY &&
           (class == MR_CLASS_CONFIG || class == MR_CLASS_REJECTED || class == MR_CLASS_INTERNAL);
}

static void note(struct look_round *round, const mr_error *why)
{
    round->last = *why;
    if (is_config(why->code) && round->bad.code == 0) {
        round->bad = *why;
    }
}

// True: *ret has jobs.
static bool claim_at(struct shards *shards, int at, const mr_claim_options *options,
                     struct look_round *round, mr_batch **ret)
{
    mr_batch *batch = NULL;
    mr_error why;
    mr_conn *conn = shards_use(shards, at, &why);

    if (!conn || shards_set(shards)->entries[at].info.read_only) {
        if (conn) {
            shards_accepts(shards, at, &why);
        }
        note(round, &why);
        return false;
    }
    int code = queue_pg.claim(conn, options, &batch, &why);
    if (code == 0) {
        code = batch_of_shard(batch, shards_set(shards)->entries[at].info.number, &why);
    }
    if (shards_tell(shards, at, code, &why)) {
        mr_batch_free(batch);
        note(round, &why);
        return false;
    }
    *(mr_batch_count(batch) > 0 ? ret : &round->empty) = batch;
    return mr_batch_count(batch) > 0;
}

static int claim(mr_conn *conn, const mr_claim_options *from, mr_batch **ret, mr_error *err)
{
    struct shards *shards = mr__conn_shards(conn);
    struct look_round round = {0};
    mr_claim_options options;
    int code = request_read_claim(from, &options, err);
    int first = code ? 0 : shards_turn(shards), count = shards_count(shards);

    for (int i = 0; code == 0 && i < count; i++) {
        mr_batch_free(round.empty);
        round.empty = NULL;
        if (claim_at(shards, (first + i) % count, &options, &round, ret)) {
            return 0;
        }
    }
    if (code == 0 && (round.bad.code || (!round.empty && round.last.code))) {
        mr_batch_free(round.empty);
        round.empty = NULL;
        round.last = round.bad.code ? round.bad : round.last;
        code = round.last.code;
        if (err) {
            *err = round.last;
        }
    }
    if (code == 0) {
        *ret = round.empty;
    }
    return code;
}

// ---- under a lease ----

static int complete(mr_conn *conn, const char *lease, const int64_t *ids, size_t count,
                    const char *result, int *ret_done, mr_error *err)
{
    struct target target = {0};
    mr_error why;
    int code = target_lease(conn, lease, &target, err);

    if (code) {
        return code;
    }
    code = queue_pg.complete(target.conn, target.lease, ids, count, result, ret_done, &why);
    return ended(&target, code, &why, err);
}

// Those of one shard. `some` has room for all of them.
static int complete_at(mr_conn *conn, int number, const char *const *leases, size_t count,
                       const char **some, int *done, mr_error *err)
{
    struct target target = {0};
    size_t found = 0;
    int n = 0;
    mr_error why;

    for (size_t i = 0; i < count; i++) {
        const char *rest = NULL;
        if (shard_of_lease(leases[i], &rest) == number) {
            some[found++] = rest;
        }
    }
    if (found == 0) {
        return 0;
    }
    int code = target_number(conn, number, &target, err);
    if (code) {
        return code;
    }
    code = queue_pg.complete_many(target.conn, some, found, &n, &why);
    *done += n;
    return ended(&target, code, &why, err);
}

// All or none of each shard's.
static int complete_many(mr_conn *conn, const char *const *leases, size_t count, int *ret_done,
                         mr_error *err)
{
    int done = 0, code = 0;
    const char **some = calloc(count + 1, sizeof(*some));

    for (size_t i = 0; some && code == 0 && i < count; i++) {
        const char *rest = NULL;
        int number = 0;
        code = lease_number(leases ? leases[i] : NULL, &rest, &number, err);
    }
    for (int number = 0; some && leases && code == 0 && number < SHARD_NUMBERS; number++) {
        code = complete_at(conn, number, leases, count, some, &done, err);
    }
    free(some);
    if (!some) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    if (code == 0 && ret_done) {
        *ret_done = done;
    }
    return code;
}

static int fail(mr_conn *conn, const char *lease, int64_t id, const char *error,
                int64_t retry_in_ms, int no_retry, const void *state, size_t state_size,
                int *ret_dead, mr_error *err)
{
    struct target target = {0};
    mr_error why;
    int code = target_lease(conn, lease, &target, err);

    if (code) {
        return code;
    }
    code = queue_pg.fail(target.conn, target.lease, id, error, retry_in_ms, no_retry, state,
                         state_size, ret_dead, &why);
    return ended(&target, code, &why, err);
}

static int finish(mr_conn *conn, const char *lease, const char *outcomes, int *ret_done,
                  mr_error *err)
{
    struct target target = {0};
    mr_error why;
    int code = target_lease(conn, lease, &target, err);

    if (code) {
        return code;
    }
    code = queue_pg.finish(target.conn, target.lease, outcomes, ret_done, &why);
    return ended(&target, code, &why, err);
}

static int requeue(mr_conn *conn, const char *lease, int64_t id, const char *changes,
                   const void *state, size_t state_size, const void *blob, size_t blob_size,
                   mr_error *err)
{
    struct target target = {0};
    mr_error why;
    int code = target_lease(conn, lease, &target, err);

    if (code) {
        return code;
    }
    code = queue_pg.requeue(target.conn, target.lease, id, changes, state, state_size, blob,
                            blob_size, &why);
    return ended(&target, code, &why, err);
}

static int release(mr_conn *conn, const char *lease, const int64_t *ids, size_t count,
                   int *ret_done, mr_error *err)
{
    struct target target = {0};
    mr_error why;
    int code = target_lease(conn, lease, &target, err);

    if (code) {
        return code;
    }
    code = queue_pg.release(target.conn, target.lease, ids, count, ret_done, &why);
    return ended(&target, code, &why, err);
}

static int heartbeat(mr_conn *conn, const char *lease, int64_t extend_ms, int64_t *ret_until_us,
                     mr_error *err)
{
    struct target target = {0};
    mr_error why;
    int code = target_lease(conn, lease, &target, err);

    if (code) {
        return code;
    }
    code = queue_pg.heartbeat(target.conn, target.lease, extend_ms, ret_until_us, &why);
    return ended(&target, code, &why, err);
}

static int heartbeat_cancelled(mr_conn *conn, const char *lease, int64_t extend_ms,
                               int64_t *ret_until_us, int64_t **ret_ids, size_t *ret_count,
                               mr_error *err)
{
    struct target target = {0};
    mr_error why;
    int code = target_lease(conn, lease, &target, err);

    if (code) {
        return code;
    }
    code = queue_pg.heartbeat_cancelled(target.conn, target.lease, extend_ms, ret_until_us, ret_ids,
                                        ret_count, &why);
    return ended(&target, code, &why, err);
}

static int progress(mr_conn *conn, const char *lease, int64_t id, double percent, const char *note_,
                    mr_error *err)
{
    struct target target = {0};
    mr_error why;
    int code = target_lease(conn, lease, &target, err);

    if (code) {
        return code;
    }
    code = queue_pg.progress(target.conn, target.lease, id, percent, note_, &why);
    return ended(&target, code, &why, err);
}

// ---- one job ----

static int job(mr_conn *conn, int64_t id, char **ret, mr_error *err)
{
    struct target target = {0};
    mr_error why;
    int code = target_id(conn, id, "job", &target, err);

    return code ? code : ended(&target, queue_pg.job(target.conn, id, ret, &why), &why, err);
}

// A job that has not ended in time says nothing about its shard.
static int wait_end(mr_conn *conn, int64_t id, int64_t timeout_ms, const char **ret_status,
                    char **ret_result, char **ret_failure, mr_error *err)
{
    struct target target = {0};
    int code = target_id(conn, id, "job", &target, err);

    return code ? code
                : queue_pg.wait(target.conn, id, timeout_ms, ret_status, ret_result, ret_failure,
                                err);
}

static int replay(mr_conn *conn, int64_t id, mr_error *err)
{
    struct target target = {0};
    mr_error why;
    int code = target_id(conn, id, "dead letter", &target, err);

    return code ? code : ended(&target, queue_pg.replay(target.conn, id, &why), &why, err);
}

// ---- all of them ----

// Calls `each` for every shard, in the order of the addresses, until one fails. A queue that only
// some of them have is known: MR_EUNKNOWN counts when all say so.
typedef int each_fn(mr_conn *conn, void *arg, mr_error *err);

static int for_each(mr_conn *conn, each_fn *each, void *arg, mr_error *err)
{
    struct shards *shards = mr__conn_shards(conn);
    int unknown = 0, count = shards_count(shards);
    mr_error why;

    for (int i = 0; i < count; i++) {
        mr_conn *one = shards_need(shards, i, &why);
        int code = one ? shards_tell(shards, i, each(one, arg, &why), &why) : why.code;
        unknown += code == MR_EUNKNOWN;
        if (code && (code != MR_EUNKNOWN || unknown == count)) {
            if (err) {
                *err = why;
            }
            return code;
        }
    }
    return 0;
}

struct sum {
    const char *queue, *kind;
    int max_jobs;
    int64_t older_than_ms;
    int64_t total;
};

static int depth_of(mr_conn *conn, void *arg, mr_error *err)
{
    struct sum *sum = arg;
    int64_t number = 0;
    int code = queue_pg.depth(conn, sum->queue, &number, err);

    sum->total += number;
    return code;
}

static int depth(mr_conn *conn, const char *queue, int64_t *ret, mr_error *err)
{
    struct sum sum = {.queue = queue};
    int code = for_each(conn, depth_of, &sum, err);

    if (code == 0 && ret) {
        *ret = sum.total;
    }
    return code;
}

static int replay_of(mr_conn *conn, void *arg, mr_error *err)
{
    struct sum *sum = arg;
    int64_t done = 0, left = sum->max_jobs ? sum->max_jobs - sum->total : 0;

    if (sum->max_jobs && left <= 0) {
        return 0;
    }
    int code = queue_pg.replay_all(conn, sum->queue, sum->kind, (int)left, &done, err);
    sum->total += done;
    return code;
}

static int replay_all(mr_conn *conn, const char *queue, const char *kind, int max_jobs,
                      int64_t *ret_done, mr_error *err)
{
    struct sum sum = {.queue = queue, .kind = kind, .max_jobs = max_jobs};
    int code = for_each(conn, replay_of, &sum, err);

    if (code == 0 && ret_done) {
        *ret_done = sum.total;
    }
    return code;
}

static int purge_of(mr_conn *conn, void *arg, mr_error *err)
{
    struct sum *sum = arg;
    int64_t done = 0;
    int code = queue_pg.purge_dead(conn, sum->queue, sum->older_than_ms, &done, err);

    sum->total += done;
    return code;
}

static int purge_dead(mr_conn *conn, const char *queue, int64_t older_than_ms, int64_t *ret_done,
                      mr_error *err)
{
    struct sum sum = {.queue = queue, .older_than_ms = older_than_ms};
    int code = for_each(conn, purge_of, &sum, err);

    if (code == 0 && ret_done) {
        *ret_done = sum.total;
    }
    return code;
}

// ---- dead letters of all, the newest first ----

struct letter {
    struct json_slice text;
    struct json_slice died_at;
};

struct letters {
    const char *queue, *kind;
    int limit;
    char *pages[SHARD_NUMBERS]; // what the shards said; letters point into them
    int page_count;
    struct letter *all;
    int count, room;
    bool complete;
};

static void on_letter_member(void *arg, struct json_slice key, struct json_slice value)
{
    struct letter *letter = arg;

    if (json_slice_is(key, "died_at")) {
        letter->died_at = value;
    }
}

static void on_letter(void *arg, struct json_slice value)
{
    struct letters *letters = arg;

    if (letters->count < letters->room) {
        struct letter *letter = &letters->all[letters->count++];
        *letter = (struct letter){.text = value};
        json_each_member(value, on_letter_member, letter, NULL);
    }
}

static void on_page_member(void *arg, struct json_slice key, struct json_slice value)
{
    struct letters *letters = arg;

    if (json_slice_is(key, "jobs")) {
        json_each_element(value, on_letter, letters, NULL);
    } else if (json_slice_is(key, "complete") && !json_slice_is(value, "true")) {
        letters->complete = false;
    }
}

static int letters_of(mr_conn *conn, void *arg, mr_error *err)
{
    struct letters *letters = arg;
    char *page = NULL;
    int code = queue_pg.list_dead(conn, letters->queue, letters->kind, letters->limit, &page, err);

    if (code == 0) {
        letters->pages[letters->page_count++] = page;
        code = json_each_member(json_slice_of(page), on_page_member, letters, err);
    }
    return code;
}

// Times of one zone, written alike, are in order as texts.
static int by_death(const void *a, const void *b)
{
    const struct letter *one = a, *other = b;
    size_t len = one->died_at.len < other->died_at.len ? one->died_at.len : other->died_at.len;
    int order = len ? memcmp(other->died_at.at, one->died_at.at, len) : 0;

    return order
               ? order
               : (other->died_at.len > one->died_at.len) - (other->died_at.len < one->died_at.len);
}

static int write_letters(const struct letters *letters, char **ret, mr_error *err)
{
    AUTO_BUF out;
    int shown = letters->count < letters->limit ? letters->count : letters->limit;

    buf_init(&out, LIST_SIZE_MAX);
    buf_puts(&out, "{\"jobs\":[");
    for (int i = 0; i < shown; i++) {
        buf_puts(&out, i ? "," : "");
        buf_add(&out, letters->all[i].text.at, letters->all[i].text.len);
    }
    buf_printf(&out, "],\"complete\":%s,\"next\":null}",
               letters->complete && shown == letters->count ? "true" : "false");
    int code = buf_status(&out, err);
    if (code == 0) {
        *ret = out.data;
        out.data = NULL;
    }
    return code;
}

static int list_dead(mr_conn *conn, const char *queue, const char *kind, int limit, char **ret,
                     mr_error *err)
{
    struct letters letters = {
        .queue = queue,
        .kind = kind,
        .limit = limit,
        .room = limit * shards_count(mr__conn_shards(conn)),
        .complete = true,
    };

    letters.all = calloc((size_t)letters.room, sizeof(*letters.all));
    int code = letters.all ? for_each(conn, letters_of, &letters, err)
                           : mr_error_set(err, MR_ENOMEM, "out of memory");
    if (code == 0 && letters.all) {
        qsort(letters.all, (size_t)letters.count, sizeof(*letters.all), by_death);
        code = write_letters(&letters, ret, err);
    }
    for (int i = 0; i < letters.page_count; i++) {
        free(letters.pages[i]);
    }
    free(letters.all);
    return code;
}

const struct queue_ops queue_shards = {
    .enqueue = shards_enqueue,
    .enqueue_many = shards_enqueue_many,
    .enqueue_jobs = shards_enqueue_jobs,
    .claim = claim,
    .complete = complete,
    .complete_many = complete_many,
    .fail = fail,
    .finish = finish,
    .requeue = requeue,
    .release = release,
    .heartbeat = heartbeat,
    .heartbeat_cancelled = heartbeat_cancelled,
    .progress = progress,
    .depth = depth,
    .job = job,
    .wait = wait_end,
    .list_dead = list_dead,
    .replay = replay,
    .replay_all = replay_all,
    .purge_dead = purge_dead,
};
