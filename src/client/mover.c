// SPDX-License-Identifier: PostgreSQL
//
// What passes from one database to the other passes as it is: the columns of move_take() in their
// binary form are the parameters of move_arrive(), and nobody here looks into them; but for payload
// parts that are in the blob store (mover_parts.h).

#include "client/mover.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "client/call.h"
#include "client/conn.h"
#include "client/mover_parts.h"

// Columns of CALL_MOVE_TAKE. From the origin on they are parameters of CALL_MOVE_ARRIVE.
enum {
    TAKE_COUNT,
    TAKE_ORIGIN,
    TAKE_BATCH,
    TAKE_JOBS,
    TAKE_ARGS,
    TAKE_META,
    TAKE_STATE,
    TAKE_BLOB,
    TAKE_STORED
};
enum { ARRIVE_AGAIN, ARRIVE_MERGED, ARRIVE_SAID };
enum { BEGIN_MOVE, BEGIN_COUNTS };
enum { TARGET_PLACE, TARGET_DEPTH };
enum { SHADOW_MOVE, SHADOW_ORIGIN, SHADOW_MIRRORED, SHADOW_MOVING, SHADOW_CUT };
enum { NAME_SIZE = 256 };

struct mover {
    struct mover_spec spec;
    struct conn *from;
    struct conn *to;
    struct depot *depot, *to_depot; // NULL: none is known
    bool begun;                     // place and move are known
    char place[NAME_SIZE];
    char move[NAME_SIZE];
    char origin[NAME_SIZE]; // of a shadow
    int64_t mirrored, cut;  // of a shadow, when it began or was checked last
    int64_t to_depth;       // when it began, or was counted last
};

// A copy is compared as it stands: it names the object that its job names.
static int open_depots(struct mover *mover, struct mr_error *err)
{
    const struct mover_spec *spec = &mover->spec;
    const struct depot_options from = {.address = spec->blobs}, to = {.address = spec->to_blobs};
    int code = spec->copy ? 0 : depot_new(&from, &mover->depot, err);

    return code || spec->copy || !spec->to_blobs ? code : depot_new(&to, &mover->to_depot, err);
}

int mover_new(const struct mover_spec *spec, struct mover **ret, struct mr_error *err)
{
    if (!spec->to || !spec->queue) {
        return mr_error_set(err, MR_EUSAGE, "a mover needs a queue and where to move it");
    }
    if (spec->batch < 1 || spec->batch > MOVER_BATCH_MAX) {
        return mr_error_set(err, MR_EUSAGE, "a batch is 1 to %d jobs, not %d", MOVER_BATCH_MAX,
                            spec->batch);
    }
    struct mover *mover = calloc(1, sizeof(*mover));
    if (!mover) {
        return mr_error_set(err, MR_ENOMEM, "no memory for a mover");
    }
    mover->spec = *spec;
    if (!mover->spec.to_queue) {
        mover->spec.to_queue = spec->queue;
    }
    int code = open_depots(mover, err);
    if (code) {
        mover_free(mover);
        return code;
    }
    *ret = mover;
    return 0;
}

void mover_free(struct mover *mover)
{
    if (mover) {
        conn_free(mover->from);
        conn_free(mover->to);
        depot_free(mover->depot);
        depot_free(mover->to_depot);
        free(mover);
    }
}

void mover_cleanup(struct mover **mover)
{
    mover_free(*mover);
}

bool mover_may_retry(int code)
{
    return code == MR_ECONNECT || code == MR_ELOCK || code == MR_ECONFLICT || code == MR_EFULL;
}

// ---- two databases ----

// An error with the side on which it happened: of two databases it is not to be guessed.
static int tell_side(const char *side, int code, struct mr_error *err)
{
    char why[MR_ERROR_MESSAGE_SIZE];

    if (err->error_class == MR_CLASS_REJECTED) {
        mr_error_detail(err, "%s", ""); // without the place in the server's code
    }
    if (code == MR_ESCHEMA) {
        mr_error_hint(err, "Install or upgrade the schema there with `millrace migrate`.");
    }
    snprintf(why, sizeof(why), "%s", err->message);
    snprintf(err->message, sizeof(err->message), "%s: %.*s", side,
             (int)(sizeof(err->message) - strlen(side) - 3), why);
    return code;
}

static const char *side_name(const struct mover *mover, struct conn *const *side)
{
    return side == &mover->to ? "the database to move to" : "the database to move from";
}

static int open_side(struct mover *mover, struct conn **side, struct mr_error *err)
{
    if (*side) {
        return 0;
    }
    const char *dsn = side == &mover->to ? mover->spec.to : mover->spec.from;
    int code = conn_open(dsn, side, err);
    return code ? tell_side(side_name(mover, side), code, err) : 0;
}

// Runs a call. A connection that did not survive it is dropped.
static int ask(struct mover *mover, struct conn **side, const struct call *call, PGresult **ret,
               struct mr_error *err)
{
    int code = call_status(call, err);

    if (code == 0 && (code = open_side(mover, side, err)) == 0) {
        code = call_exec(call, conn_pg(*side), ret, err);
        if (code) {
            tell_side(side_name(mover, side), code, err);
            if (PQstatus(conn_pg(*side)) != CONNECTION_OK) {
                conn_free(*side);
                *side = NULL;
            }
        }
    }
    return code;
}

static int64_t number(const PGresult *rows, int column)
{
    return strtoll(PQgetvalue(rows, 0, column), NULL, 10);
}

static void read_counts(const PGresult *rows, struct mover_counts *ret)
{
    int64_t *const fields[] = {
        &ret->available, &ret->scheduled, &ret->retrying, &ret->running,
        &ret->dead,      &ret->moving,    &ret->moved,    &ret->merged,
    };

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        *fields[i] = number(rows, BEGIN_COUNTS + (int)i);
    }
}

static int ask_target(struct mover *mover, struct mr_error *err)
{
    AUTO_CALL call;
    AUTO_RESULT *rows = NULL;

    call_init(&call, CALL_MOVE_TARGET);
    call_text(&call, mover->spec.to_queue);
    int code = ask(mover, &mover->to, &call, &rows, err);
    if (code == 0) {
        snprintf(mover->place, sizeof(mover->place), "%s", PQgetvalue(rows, 0, TARGET_PLACE));
        mover->to_depth = number(rows, TARGET_DEPTH);
    }
    return code;
}

// Begins, or looks again: move_begin() is both.
static int begin(struct mover *mover, struct mover_counts *ret, struct mr_error *err)
{
    AUTO_CALL call;
    AUTO_RESULT *rows = NULL;

    call_init(&call, CALL_MOVE_BEGIN);
    call_text(&call, mover->spec.queue);
    call_text(&call, mover->place);
    call_text(&call, mover->spec.to_queue);
    int code = ask(mover, &mover->from, &call, &rows, err);
    if (code) {
        return code;
    }
    snprintf(mover->move, sizeof(mover->move), "%s", PQgetvalue(rows, 0, BEGIN_MOVE));
    mover->begun = true;
    if (ret) {
        read_counts(rows, ret);
        ret->to_depth = mover->to_depth;
    }
    return 0;
}

static int begin_shadow(struct mover *mover, struct mr_error *err)
{
    AUTO_CALL call;
    AUTO_RESULT *rows = NULL;

    call_init(&call, CALL_SHADOW_BEGIN);
    call_text(&call, mover->spec.queue);
    call_text(&call, mover->place);
    call_text(&call, mover->spec.to_queue);
    call_real(&call, mover->spec.share > 0 ? mover->spec.share : 100);
    call_text(&call, mover->spec.tenant);
    int code = ask(mover, &mover->from, &call, &rows, err);
    if (code == 0) {
        snprintf(mover->move, sizeof(mover->move), "%s", PQgetvalue(rows, 0, SHADOW_MOVE));
        snprintf(mover->origin, sizeof(mover->origin), "%s", PQgetvalue(rows, 0, SHADOW_ORIGIN));
        mover->mirrored = number(rows, SHADOW_MIRRORED);
        mover->cut = number(rows, SHADOW_CUT);
        mover->begun = true;
    }
    return code;
}

int mover_count(struct mover *mover, struct mover_counts *ret, struct mr_error *err)
{
    int code = ask_target(mover, err);

    return code ? code : begin(mover, ret, err);
}

static int ensure_begun(struct mover *mover, struct mr_error *err)
{
    if (mover->begun) {
        return 0;
    }
    if (!mover->spec.copy) {
        return mover_count(mover, &(struct mover_counts){0}, err);
    }
    int code = ask_target(mover, err);
    return code ? code : begin_shadow(mover, err);
}

// ---- a step ----

static int take(struct mover *mover, PGresult **ret, struct mr_error *err)
{
    AUTO_CALL call;

    call_init(&call, CALL_MOVE_TAKE);
    call_text(&call, mover->move);
    call_number(&call, mover->spec.batch);
    call_bool(&call, mover->spec.dead);
    call_bool(&call, mover->depot != NULL);
    return ask(mover, &mover->from, &call, ret, err);
}

static int64_t binary_number(const PGresult *batch, int column)
{
    uint32_t network;

    memcpy(&network, PQgetvalue(batch, 0, column), sizeof(network));
    return ntohl(network);
}

// A column as a parameter, in the form it came in.
static void pass_on(struct call *call, const PGresult *batch, int column)
{
    call_bytes(call, PQgetvalue(batch, 0, column), (size_t)PQgetlength(batch, 0, column));
}

// What the queue there wants with parts; asked for each batch that has some.
static int ask_policy(struct mover *mover, struct policy *ret, struct mr_error *err)
{
    AUTO_CALL call;
    AUTO_RESULT *rows = NULL;

    call_init(&call, CALL_PAYLOAD_POLICY);
    call_text(&call, mover->spec.to_queue);
    call_text(&call, NULL);
    int code = ask(mover, &mover->to, &call, &rows, err);
    return code ? code : policy_read(PQgetvalue(rows, 0, 0), ret, err);
}

static int carry(struct mover *mover, const PGresult *batch, struct mover_parts *parts,
                 struct mr_error *err)
{
    struct mover_column columns[MOVER_COLUMNS];
    struct policy policy = {0};

    if (!mover->depot) {
        return 0;
    }
    for (int i = 0; i < MOVER_COLUMNS; i++) {
        int column = TAKE_STATE + i;
        columns[i] = (struct mover_column){PQgetvalue(batch, 0, column),
                                           (size_t)PQgetlength(batch, 0, column)};
    }
    int code = mover->to_depot ? ask_policy(mover, &policy, err) : 0;
    return code ? code
                : mover_parts_carry(parts, columns, mover->depot, mover->to_depot, &policy, err);
}

static int arrive(struct mover *mover, const PGresult *batch, const struct mover_parts *parts,
                  PGresult **ret, struct mr_error *err)
{
    AUTO_CALL call;

    call_init(&call, CALL_MOVE_ARRIVE);
    call_text(&call, mover->spec.to_queue);
    for (int column = TAKE_ORIGIN; column < TAKE_STATE; column++) {
        pass_on(&call, batch, column);
    }
    for (int i = 0; i < MOVER_COLUMNS; i++) {
        const struct buf *own = &parts->columns[i];
        if (own->len > 0) {
            call_bytes(&call, own->data, own->len);
        } else {
            pass_on(&call, batch, TAKE_STATE + i);
        }
    }
    return ask(mover, &mover->to, &call, ret, err);
}

static int done(struct mover *mover, const PGresult *batch, const char *said, struct mr_error *err)
{
    AUTO_CALL call;
    AUTO_RESULT *rows = NULL;

    call_init(&call, CALL_MOVE_DONE);
    call_text(&call, mover->move);
    pass_on(&call, batch, TAKE_BATCH);
    call_text(&call, said);
    return ask(mover, &mover->from, &call, &rows, err);
}

static int hand_over(struct mover *mover, const PGresult *batch, struct mover_step *step,
                     struct mr_error *err)
{
    AUTO_MOVER_PARTS parts;
    AUTO_RESULT *came = NULL;
    int code;

    mover_parts_init(&parts);
    if ((code = carry(mover, batch, &parts, err)) ||
        (code = arrive(mover, batch, &parts, &came, err)) ||
        (code = done(mover, batch, PQgetvalue(came, 0, ARRIVE_SAID), err))) {
        return code;
    }
    step->again = PQgetvalue(came, 0, ARRIVE_AGAIN)[0] == 't';
    step->merged = number(came, ARRIVE_MERGED);
    step->carried = (int64_t)parts.parcel.object_count;
    step->unreadable = parts.unreadable;
    return 0;
}

int mover_step(struct mover *mover, struct mover_step *ret, struct mr_error *err)
{
    AUTO_RESULT *batch = NULL;
    int code = ensure_begun(mover, err);

    // A database that cannot be reached has to be known before jobs leave the other one.
    if (code || (code = open_side(mover, &mover->to, err)) || (code = take(mover, &batch, err))) {
        return code;
    }
    struct mover_step step = {.jobs = binary_number(batch, TAKE_COUNT)};
    if (step.jobs == 0) {
        step.stored = binary_number(batch, TAKE_STORED);
    } else if ((code = hand_over(mover, batch, &step, err))) {
        return code;
    }
    *ret = step;
    return 0;
}

int mover_give_back(struct mover *mover, int64_t *ret, struct mr_error *err)
{
    AUTO_CALL call;
    AUTO_RESULT *rows = NULL;

    call_init(&call, CALL_MOVE_GIVE_BACK);
    call_text(&call, mover->spec.queue);
    int code = ask(mover, &mover->from, &call, &rows, err);
    if (code == 0) {
        *ret = number(rows, 0);
    }
    return code;
}

// ---- a shadow ----

static void read_findings(const PGresult *rows, struct mover_findings *ret)
{
    int64_t *const fields[] = {
        &ret->checked,      &ret->arrived, &ret->equal,   &ret->different,
        &ret->out_of_order, &ret->extra,   &ret->waiting, &ret->missing,
    };

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        *fields[i] = number(rows, (int)i);
    }
}

// Begins once more, for the counts.
static int look_again(struct mover *mover, struct mr_error *err)
{
    int code = ask_target(mover, err);

    return code ? code : begin_shadow(mover, err);
}

int mover_check(struct mover *mover, struct mover_findings *ret, struct mr_error *err)
{
    AUTO_CALL call;
    AUTO_RESULT *rows = NULL;

    call_init(&call, CALL_SHADOW_CHECK);
    int code = look_again(mover, err);
    if (code == 0) {
        call_text(&call, mover->origin);
        call_number(&call, mover->spec.batch);
        code = ask(mover, &mover->to, &call, &rows, err);
    }
    if (code == 0) {
        read_findings(rows, ret);
        ret->mirrored = mover->mirrored;
        ret->cut = mover->cut;
    }
    return code;
}
