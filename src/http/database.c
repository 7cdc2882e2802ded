// SPDX-License-Identifier: PostgreSQL
//
// The database as the HTTP part sees it: see database.h.

#include "http/database.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "client/wire.h"

#define SWEEP_MS        1000
#define CONNECTIONS_MAX 16

// A call that has no answer yet, in the list of its database, the oldest first.
struct ask {
    struct database *db;
    database_answer_fn *answer; // NULL: answered with MR_ETIMEOUT
    void *arg;
    int64_t until_ms; // clock_ms()
    struct ask *next, *prev;
};

struct line {
    struct database *db;
    struct wire *wire;
    uv_poll_t poll;
};

struct database {
    struct database_options options;
    struct line lines[CONNECTIONS_MAX];
    int line_count;
    uv_timer_t sweep;
    int open_handles;
    struct ask *first, *last;
    int64_t reconnects;
    bool told; // the log knows of the trouble
    bool closing;
    void (*closed)(void *arg);
    void *closed_arg;
};

// ---- the list ----

static void ask_link(struct database *db, struct ask *ask)
{
    ask->prev = db->last;
    *(db->last ? &db->last->next : &db->first) = ask;
    db->last = ask;
}

static void ask_unlink(struct database *db, struct ask *ask)
{
    *(ask->prev ? &ask->prev->next : &db->first) = ask->next;
    *(ask->next ? &ask->next->prev : &db->last) = ask->prev;
}

// ---- connections ----

bool database_connected(const struct database *db)
{
    for (int i = 0; i < db->line_count; i++) {
        if (!wire_connected(db->lines[i].wire)) {
            return false;
        }
    }
    return true;
}

static void tell(const struct database *db, enum log_level level, const char *event,
                 const char *what, const struct mr_error *err)
{
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("part", "http"),
        LOG_TEXT_FIELD("shard", db->options.name),
        LOG_TEXT_FIELD("hint", err && err->hint[0] ? err->hint : NULL),
    };

    log_put(level, event, fields, 3, "%s%s%s", what, err ? ": " : "", err ? err->message : "");
}

static void on_event(void *arg, enum wire_event event, const struct mr_error *err)
{
    struct line *line = arg;
    struct database *db = line->db;

    switch (event) {
    case WIRE_CONNECTED:
        if (database_connected(db)) {
            db->told = false;
            tell(db, LEVEL_INFO, "http.connected", "connected", NULL);
            db->options.connected(db->options.arg);
        }
        return;
    case WIRE_LOST: db->reconnects++; break;
    case WIRE_REFUSED: break;
    }
    if (!db->told) {
        db->told = true;
        tell(db, LEVEL_WARNING, "http.disconnected", "no database, still trying", err);
    }
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct line *line = poll->data;

    (void)status;
    (void)events;
    wire_advance(line->wire);
}

static int open_line(struct database *db, uv_loop_t *loop, struct mr_error *err)
{
    struct line *line = &db->lines[db->line_count];
    const struct wire_options options = {
        .dsn = db->options.dsn,
        .application_name = "millrace http",
        .pooler = db->options.pooler,
    };
    const struct wire_hooks hooks = {.event = on_event, .arg = line};
    int code = wire_new(&options, &hooks, &line->wire, err);

    if (code) {
        return code;
    }
    line->db = db;
    uv_poll_init(loop, &line->poll, wire_fd(line->wire));
    line->poll.data = line;
    uv_poll_start(&line->poll, UV_READABLE, on_readable);
    db->line_count++;
    db->open_handles++;
    return 0;
}

// ---- calls ----

static void answered(void *arg, PGresult *result, const struct mr_error *err)
{
    struct ask *ask = arg;

    ask_unlink(ask->db, ask);
    if (ask->answer) {
        ask->answer(ask->arg, result, err);
    }
    free(ask);
}

static struct line *choose(struct database *db, enum database_lane lane)
{
    struct line *best = &db->lines[lane == DATABASE_ENQUEUE ? 0 : 1];

    for (int i = 2; lane != DATABASE_ENQUEUE && i < db->line_count; i++) {
        if (wire_pending(db->lines[i].wire) < wire_pending(best->wire)) {
            best = &db->lines[i];
        }
    }
    return best;
}

int database_call(struct database *db, enum database_lane lane, const struct call *call,
                  database_answer_fn *answer, void *arg, struct mr_error *err)
{
    struct line *line = db->closing ? NULL : choose(db, lane);

    bool connected = line && wire_connected(line->wire);
    if (!connected || wire_pending(line->wire) >= WIRE_PENDING_MAX) {
        mr_error_set(err, MR_ECONNECT,
                     connected ? "too many requests wait for the database"
                               : "the database cannot be reached");
        mr_error_hint(err, "Nothing was done. Try again.");
        return MR_ECONNECT;
    }
    struct ask *ask = calloc(1, sizeof(*ask));
    if (!ask) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    ask->db = db;
    ask->answer = answer;
    ask->arg = arg;
    ask->until_ms = lane == DATABASE_CLAIM ? INT64_MAX : clock_ms() + DATABASE_ANSWER_MS;
    int code = wire_send(line->wire, call, answered, ask, err);
    if (code) {
        free(ask);
        return code;
    }
    ask_link(db, ask);
    return 0;
}

// Answers what was to be answered before `until_ms`.
static void give_up(struct database *db, int64_t until_ms, const struct mr_error *err)
{
    for (struct ask *ask = db->first, *next; ask; ask = next) {
        next = ask->next;
        if (ask->until_ms <= until_ms && ask->answer) {
            database_answer_fn *answer = ask->answer;
            ask->answer = NULL;
            answer(ask->arg, NULL, err);
        }
    }
}

static void on_sweep(uv_timer_t *timer)
{
    struct mr_error err;

    mr_error_set(&err, MR_ETIMEOUT, "the database did not answer within %d s",
                 DATABASE_ANSWER_MS / 1000);
    mr_error_hint(&err, "It may be done all the same.");
    give_up(timer->data, clock_ms(), &err);
}

void database_abandon(struct database *db)
{
    struct mr_error err;

    mr_error_set(&err, MR_ECONNECT, "the daemon ends before the database has answered");
    mr_error_hint(&err, "It may be done all the same.");
    db->closing = true;
    give_up(db, INT64_MAX, &err);
}

bool database_same_host(const struct database *db)
{
    return wire_same_host(db->lines[0].wire);
}

int64_t database_reconnects(const struct database *db)
{
    return db->reconnects;
}

int database_pending(const struct database *db)
{
    int pending = 0;

    for (int i = 0; i < db->line_count; i++) {
        pending += wire_pending(db->lines[i].wire);
    }
    return pending;
}

// ---- beginning and end ----

static void on_handle_closed(uv_handle_t *handle)
{
    struct database *db = handle->type == UV_POLL ? ((struct line *)handle->data)->db
                                                  : (struct database *)handle->data;

    if (--db->open_handles == 0) {
        void (*closed)(void *arg) = db->closed;
        void *arg = db->closed_arg;
        free(db);
        closed(arg);
    }
}

void database_close(struct database *db, void (*closed)(void *arg), void *arg)
{
    db->closed = closed;
    db->closed_arg = arg;
    db->closing = true;
    for (int i = 0; i < db->line_count; i++) {
        uv_poll_stop(&db->lines[i].poll);
        wire_free(db->lines[i].wire);
        uv_close((uv_handle_t *)&db->lines[i].poll, on_handle_closed);
    }
    uv_close((uv_handle_t *)&db->sweep, on_handle_closed);
}

int database_new(const struct database_options *options, uv_loop_t *loop, struct database **ret,
                 struct mr_error *err)
{
    struct database *db = calloc(1, sizeof(*db));
    int code = 0;

    if (!db) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    db->options = *options;
    uv_timer_init(loop, &db->sweep);
    db->sweep.data = db;
    db->open_handles = 1;
    uv_timer_start(&db->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
    *ret = db;
    for (int i = 0; code == 0 && i < options->connections && i < CONNECTIONS_MAX; i++) {
        code = open_line(db, loop, err);
    }
    return code;
}
