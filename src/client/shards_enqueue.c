// SPDX-License-Identifier: PostgreSQL
//
// How jobs are spread over shards.
//
// 1. A job goes by its tenant, else its ordering_key, its unique_key, its ref: the shard with the
//    highest score for it. Without any of them, in turn.
// 2. Where that shard is down, full, read-only or draining, the next in the order of scores has it.
// 3. Not so a job with a unique_key or an ordering_key: elsewhere it would be a second one, or out
// of
//    order. It is refused with what keeps its shard from taking it. While a shard joins or drains,
//    the one where the key was before is asked first whether it holds it still.
// 4. A call whose answer was lost is not made again on another shard: it may have happened.

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "client/mr_conn.h"
#include "client/request.h"
#include "client/room.h"
#include "client/shards.h"

#define CHUNK_USUAL 10000
#define CHUNK_MAX   1000000

// ---- what decides ----

static struct shard_keys keys_of(const mr_job_spec *job)
{
    return (struct shard_keys){
        .tenant = job->tenant,
        .ordering_key = job->ordering_key,
        .unique_key = job->unique_key,
        .ref = job->ref,
    };
}

static const char *key_of(const mr_job_spec *job)
{
    struct shard_keys keys = keys_of(job);

    return shard_key_of(&keys);
}

static bool is_pinned(const mr_job_spec *job)
{
    struct shard_keys keys = keys_of(job);

    return shard_keys_pin(&keys);
}

static void order_of(struct shards *shards, const char *key, int *ret)
{
    int count = shards_count(shards);

    if (key) {
        shard_set_order(shards_set(shards), key, ret);
        return;
    }
    int first = shards_turn(shards);
    for (int i = 0; i < count; i++) {
        ret[i] = (first + i) % count;
    }
}

// The connection of a shard that takes jobs now.
static mr_conn *open_shard(struct shards *shards, int at, mr_error *err)
{
    mr_conn *conn = shards_use(shards, at, err);

    return conn && shards_accepts(shards, at, err) ? conn : NULL;
}

// ---- pinned jobs ----

static int refuse_pinned(int number, mr_error *err)
{
    mr_error_prefix(err, "the job's key belongs to shard %d", number);
    mr_error_hint(err,
                  "A job with a unique_key or an ordering_key is not put elsewhere, where it would "
                  "be a second one, or out of order. Try again when the shard takes jobs.");
    return err->code;
}

static int ask_holds(mr_conn *conn, const mr_job_spec *job, bool *ret, mr_error *err)
{
    AUTO_CALL call;
    mr_reply *reply = NULL;

    call_init(&call, CALL_SHARD_HOLDS);
    call_text(&call, job->queue);
    call_text(&call, job->unique_key);
    call_text(&call, job->ordering_key);
    int code = mr__conn_ask(conn, &call, NULL, &reply, err);
    if (code == 0) {
        *ret = PQntuples(reply->result) == 1 && PQgetvalue(reply->result, 0, 0)[0] == 't';
        mr_reply_free(reply);
    }
    return code;
}

// Whether the shard where the key was before the set began to change has it still.
static int is_held(struct shards *shards, int number, const mr_job_spec *job, bool *ret,
                   mr_error *err)
{
    int at = 0;
    int code = shards_find(shards, number, &at, err);
    mr_conn *conn = code ? NULL : shards_use(shards, at, err);

    if (!conn) {
        return refuse_pinned(number, err);
    }
    return shards_tell(shards, at, ask_holds(conn, job, ret, err), err);
}

// The address that a pinned job goes to. *ret_conn: its connection.
static int find_pinned(struct shards *shards, const mr_job_spec *job, int *ret_at,
                       mr_conn **ret_conn, mr_error *err)
{
    struct shard_pin pin = shard_set_pin(shards_set(shards), key_of(job));
    int number = pin.number, at = 0, code = 0;
    bool held = false;

    if (pin.previous != pin.number && pin.previous >= 0 &&
        (code = is_held(shards, pin.previous, job, &held, err))) {
        return code;
    }
    number = held || number < 0 ? pin.previous : number;
    if (shards_find(shards, number, &at, err)) {
        return refuse_pinned(number, err);
    }
    mr_conn *conn = held ? shards_use(shards, at, err) : open_shard(shards, at, err);
    if (!conn) {
        return refuse_pinned(number, err);
    }
    *ret_at = at;
    *ret_conn = conn;
    return 0;
}

// ---- placing ----

typedef int place_fn(mr_conn *conn, void *arg, mr_error *err);

// A full queue is what a caller can wait for; else the shard that was wanted most says why.
static void note(mr_error *noted, const mr_error *why)
{
    if (noted->code == 0 || (why->code == MR_EFULL && noted->code != MR_EFULL)) {
        *noted = *why;
    }
}

static int place_by_key(struct shards *shards, const char *key, place_fn *place, void *arg,
                        mr_error *err)
{
    int order[SHARD_NUMBERS] = {0};
    mr_error noted = {0}, why = {0};

    order_of(shards, key, order);
    for (int i = 0; i < shards_count(shards); i++) {
        mr_conn *conn = open_shard(shards, order[i], &why);
        int code = conn ? shards_tell(shards, order[i], place(conn, arg, &why), &why) : why.code;
        if (code == 0 || (conn && !shards_passable(code))) {
            if (code) {
                *err = why;
            }
            return code;
        }
        note(&noted, &why);
    }
    *err = noted;
    return noted.code;
}

static int place_pinned(struct shards *shards, const mr_job_spec *job, place_fn *place, void *arg,
                        mr_error *err)
{
    mr_conn *conn = NULL;
    int at = 0;
    int code = find_pinned(shards, job, &at, &conn, err);

    return code ? code : shards_tell(shards, at, place(conn, arg, err), err);
}

// With the time that the caller gives a full queue.
static int place_job(mr_conn *conn, const mr_job_spec *job, place_fn *place, void *arg,
                     mr_error *err)
{
    struct shards *shards = mr__conn_shards(conn);
    struct room_wait wait;
    int64_t pause_ms = 0;
    mr_error why;
    int code;

    shards_look_around(shards);
    room_wait_begin(&wait, clock_ms(), mr__conn_full_wait_ms(conn));
    while ((code = is_pinned(job) ? place_pinned(shards, job, place, arg, &why)
                                  : place_by_key(shards, key_of(job), place, arg, &why)) &&
           room_wait_again(&wait, clock_ms(), code, &pause_ms, &why)) {
        poll(NULL, 0, (int)pause_ms);
    }
    if (code && err) {
        *err = why;
    }
    return code;
}

// ---- one ----

struct one {
    const mr_job_spec *job;
    int64_t *ret_id;
};

static int place_one(mr_conn *conn, void *arg, mr_error *err)
{
    const struct one *one = arg;

    return queue_pg.enqueue(conn, one->job, one->ret_id, err);
}

// NOLINTNEXTLINE(readability-non-const-parameter): place_one() has it written
int shards_enqueue(mr_conn *conn, const mr_job_spec *from, int64_t *ret_id, mr_error *err)
{
    mr_job_spec job;
    struct one one = {.job = &job, .ret_id = ret_id};
    int code = request_read_job(from, &job, err);

    return code ? code : place_job(conn, &job, place_one, &one, err);
}

// ---- many that are alike ----

struct many {
    const mr_job_spec *job;
    const char *const *args;
    size_t count, chunk, done;
    int64_t *ret_ids;
};

// What is left; a shard that is full in the middle of it leaves the rest to the next.
static int place_many(mr_conn *conn, void *arg, mr_error *err)
{
    struct many *many = arg;
    size_t done = 0;
    int code = queue_pg.enqueue_many(conn, many->job, many->args + many->done,
                                     many->count - many->done, many->chunk,
                                     many->ret_ids ? many->ret_ids + many->done : NULL, &done, err);

    many->done += done;
    return code;
}

// Without a key each chunk goes to the next shard.
static int place_chunks(mr_conn *conn, const struct many *all, size_t *done, mr_error *err)
{
    int code = 0;

    while (code == 0 && *done < all->count) {
        struct many many = *all;
        many.args += *done;
        many.ret_ids = all->ret_ids ? all->ret_ids + *done : NULL;
        many.count = all->count - *done < all->chunk ? all->count - *done : all->chunk;
        code = place_job(conn, all->job, place_many, &many, err);
        *done += many.done;
    }
    return code;
}

static int check_chunk(size_t chunk, mr_error *err)
{
    if (chunk > CHUNK_MAX) {
        mr_error_set(err, MR_EUSAGE, "a chunk of %zu jobs is too large", chunk);
        mr_error_hint(err, "Give at most %d, or 0 for %d.", CHUNK_MAX, CHUNK_USUAL);
        return MR_EUSAGE;
    }
    return 0;
}

// NOLINTBEGIN(readability-non-const-parameter): written piece by piece
int shards_enqueue_many(mr_conn *conn, const mr_job_spec *from, const char *const *args,
                        size_t count, size_t chunk, int64_t *ret_ids, size_t *ret_done,
                        mr_error *err)
// NOLINTEND(readability-non-const-parameter)
{
    mr_job_spec job;
    struct many many = {.job = &job, .args = args, .count = count, .ret_ids = ret_ids};
    size_t done = 0;
    int code;

    if ((code = request_read_job(from, &job, err)) == 0 && (code = check_chunk(chunk, err)) == 0 &&
        count > 0) {
        many.chunk = chunk ? chunk : CHUNK_USUAL;
        if (!args) {
            code = queue_pg.enqueue_many(shards_conn(mr__conn_shards(conn), 0), &job, args, count,
                                         0, NULL, NULL, err); // it says what is wrong
        } else if (key_of(&job)) {
            code = place_job(conn, &job, place_many, &many, err);
            done = many.done;
        } else {
            code = place_chunks(conn, &many, &done, err);
        }
    }
    if (ret_done) {
        *ret_done = done;
    }
    return code;
}

// ---- many that differ ----

enum { PENDING = -1, PLACED = -2 };

// The jobs of a chunk and where each goes.
struct spread {
    struct shards *shards;
    mr_job_spec *jobs; // read and checked
    mr_job_spec *some; // those of one shard
    int64_t *some_ids;
    int *places;  // an address, PENDING or PLACED
    int64_t *ids; // 0: not in
    size_t count;
    bool asked[SHARD_NUMBERS];     // whether it can be used was asked in this round
    mr_conn *conns[SHARD_NUMBERS]; // NULL: it cannot be used
    uint32_t passed;               // those that refused in this chunk
    mr_error noted;
};

// Asked once a round, not for every job.
static mr_conn *spread_conn(struct spread *spread, int at)
{
    mr_error why;

    if (!spread->asked[at]) {
        spread->asked[at] = true;
        spread->conns[at] = open_shard(spread->shards, at, &why);
        if (!spread->conns[at]) {
            note(&spread->noted, &why);
        }
    }
    return spread->passed >> at & 1 ? NULL : spread->conns[at];
}

static int spread_one(struct spread *spread, const mr_job_spec *job, int *ret, mr_error *err)
{
    int order[SHARD_NUMBERS];
    mr_conn *conn = NULL;

    if (is_pinned(job)) {
        int code = find_pinned(spread->shards, job, ret, &conn, err);
        if (code == 0) {
            spread->asked[*ret] = true;
            spread->conns[*ret] = conn; // one that drains may hold it
        }
        return code;
    }
    order_of(spread->shards, key_of(job), order);
    for (int i = 0; i < shards_count(spread->shards); i++) {
        if (spread_conn(spread, order[i])) {
            *ret = order[i];
            return 0;
        }
    }
    *err = spread->noted;
    return spread->noted.code;
}

static bool has_pinned(const struct spread *spread, int at)
{
    for (size_t i = 0; i < spread->count; i++) {
        if (spread->places[i] == at && is_pinned(&spread->jobs[i])) {
            return true;
        }
    }
    return false;
}

static void take_ids(struct spread *spread, int at)
{
    for (size_t i = 0, n = 0; i < spread->count; i++) {
        if (spread->places[i] == at) {
            spread->ids[i] = spread->some_ids[n++];
            spread->places[i] = PLACED;
        }
    }
}

// Jobs that a shard did not take wait for the next round.
static int put_back(struct spread *spread, int at, const mr_error *why, mr_error *err)
{
    note(&spread->noted, why);
    if (!shards_passable(why->code) || has_pinned(spread, at)) {
        *err = *why;
        return why->code;
    }
    spread->passed |= UINT32_C(1) << at;
    for (size_t i = 0; i < spread->count; i++) {
        if (spread->places[i] == at) {
            spread->places[i] = PENDING;
        }
    }
    return 0;
}

static int send_to(struct spread *spread, int at, mr_error *err)
{
    size_t found = 0, done = 0;
    mr_error why;

    for (size_t i = 0; i < spread->count; i++) {
        if (spread->places[i] == at) {
            spread->some[found++] = spread->jobs[i];
        }
    }
    if (found == 0) {
        return 0;
    }
    int code = queue_pg.enqueue_jobs(spread->conns[at], spread->some, found, found,
                                     spread->some_ids, &done, &why);
    if (shards_tell(spread->shards, at, code, &why) == 0) {
        take_ids(spread, at);
        return 0;
    }
    return put_back(spread, at, &why, err);
}

// One round: finds a place for what is pending, and sends. *ret_left: whether some are pending
// again.
static int spread_round(struct spread *spread, bool *ret_left, mr_error *err)
{
    int code = 0;

    shards_look_around(spread->shards);
    memset(spread->asked, 0, sizeof(spread->asked));
    *ret_left = false;
    for (size_t i = 0; code == 0 && i < spread->count; i++) {
        if (spread->places[i] == PENDING) {
            code = spread_one(spread, &spread->jobs[i], &spread->places[i], err);
        }
    }
    for (int at = 0; code == 0 && at < shards_count(spread->shards); at++) {
        code = send_to(spread, at, err);
    }
    for (size_t i = 0; code == 0 && i < spread->count; i++) {
        *ret_left = *ret_left || spread->places[i] == PENDING;
    }
    return code;
}

static void forget_places(struct spread *spread)
{
    spread->passed = 0;
    spread->noted.code = 0;
    for (size_t i = 0; i < spread->count; i++) {
        spread->places[i] = spread->places[i] == PLACED ? PLACED : PENDING;
    }
}

static int spread_all(mr_conn *conn, struct spread *spread, mr_error *err)
{
    struct room_wait wait;
    int64_t pause_ms = 0;
    bool left = true;
    int code = 0;

    room_wait_begin(&wait, clock_ms(), mr__conn_full_wait_ms(conn));
    while (left) {
        if ((code = spread_round(spread, &left, err)) == 0) {
            continue;
        }
        if (!room_wait_again(&wait, clock_ms(), code, &pause_ms, err)) {
            return code;
        }
        poll(NULL, 0, (int)pause_ms);
        forget_places(spread);
    }
    return 0;
}

static void spread_done(struct spread *spread)
{
    free(spread->jobs);
    free(spread->some);
    free(spread->some_ids);
    free(spread->places);
    free(spread->ids);
}

static int spread_init(struct spread *spread, struct shards *shards, size_t room, mr_error *err)
{
    *spread = (struct spread){
        .shards = shards,
        .jobs = calloc(room, sizeof(*spread->jobs)),
        .some = calloc(room, sizeof(*spread->some)),
        .some_ids = calloc(room, sizeof(*spread->some_ids)),
        .places = calloc(room, sizeof(*spread->places)),
        .ids = calloc(room, sizeof(*spread->ids)),
    };
    if (spread->jobs && spread->some && spread->some_ids && spread->places && spread->ids) {
        return 0;
    }
    spread_done(spread);
    return mr_error_set(err, MR_ENOMEM, "out of memory");
}

// The structs lie as far apart as the caller's header made them large.
static int read_chunk(struct spread *spread, const mr_job_spec *jobs, size_t from, size_t count,
                      mr_error *err)
{
    const char *bytes = (const char *)jobs;

    spread->count = count;
    for (size_t i = 0; i < count; i++) {
        const void *job = bytes + (from + i) * jobs->size;
        int code = request_read_job(job, &spread->jobs[i], err);
        if (code) {
            mr_error_prefix(err, "job %zu", from + i);
            return code;
        }
        spread->places[i] = PENDING;
        spread->ids[i] = 0;
    }
    forget_places(spread);
    return 0;
}

static int send_chunks(mr_conn *conn, struct spread *spread, const mr_job_spec *jobs, size_t count,
                       size_t chunk, int64_t *ret_ids, size_t *done, mr_error *err)
{
    while (*done < count) {
        size_t next = count - *done < chunk ? count - *done : chunk;
        mr_error why;
        int code = read_chunk(spread, jobs, *done, next, &why);
        if (code == 0) {
            code = spread_all(conn, spread, &why);
        }
        if (ret_ids) {
            memcpy(ret_ids + *done, spread->ids, next * sizeof(*ret_ids));
        }
        if (code) {
            if (err) {
                *err = why;
            }
            return code;
        }
        *done += next;
    }
    return 0;
}

int shards_enqueue_jobs(mr_conn *conn, const mr_job_spec *jobs, size_t count, size_t chunk,
                        int64_t *ret_ids, size_t *ret_done, mr_error *err)
{
    mr_job_spec first;
    struct spread spread;
    size_t done = 0;
    int code = check_chunk(chunk, err);

    chunk = chunk ? chunk : CHUNK_USUAL;
    if (code == 0 && count > 0 && (code = request_read_job(jobs, &first, err)) == 0 &&
        (code = spread_init(&spread, mr__conn_shards(conn), count < chunk ? count : chunk, err)) ==
            0) {
        code = send_chunks(conn, &spread, jobs, count, chunk, ret_ids, &done, err);
        spread_done(&spread);
    }
    if (ret_done) {
        *ret_done = done;
    }
    return code;
}
