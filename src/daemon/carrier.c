// SPDX-License-Identifier: PostgreSQL
//
// The carrier: its thread, its connection, its breaker. See carrier.h.

#include "daemon/carrier_parts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "daemon/link.h"

// Between two rounds; where it is another's turn; after a failure of the database.
#define ROUND_MS  1000
#define IDLE_MS   5000
#define FAILED_MS 5000
// Transfers are tried again by the store within a call, and by the next round: what is due must not
// wait for the last word on something else.
#define STORE_ATTEMPTS   3
#define STORE_CALL_MS    30000
#define BREAKER_FAILURES 3
#define BREAKER_OPEN_MS  5000
#define BREAKER_MAX_MS   60000

// ---- what happens between rounds ----

static bool stopping(struct carrier *carrier)
{
    uv_mutex_lock(&carrier->lock);
    bool yes = carrier->stopping;
    uv_mutex_unlock(&carrier->lock);
    return yes;
}

static void wait_for(struct carrier *carrier, int64_t ms)
{
    int64_t until_ms = clock_ms() + ms;

    uv_mutex_lock(&carrier->lock);
    for (int64_t left_ms = ms; !carrier->stopping && left_ms > 0; left_ms = until_ms - clock_ms()) {
        uv_cond_timedwait(&carrier->wake, &carrier->lock, (uint64_t)left_ms * 1000000);
    }
    uv_mutex_unlock(&carrier->lock);
}

static void log_trouble(struct carrier *carrier, const struct mr_error *err)
{
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("sqlstate", err->sqlstate[0] ? err->sqlstate : NULL),
        LOG_TEXT_FIELD("detail", err->detail[0] ? err->detail : NULL),
        LOG_TEXT_FIELD("hint", err->hint[0] ? err->hint : NULL),
    };

    if (link_is_news(carrier->trouble, err->message)) {
        log_put(LEVEL_WARNING, "blobs.failed", fields, 3,
                "payloads cannot be carried, trying again: %s", err->message);
    }
}

static void log_recovered(struct carrier *carrier)
{
    if (carrier->trouble[0]) {
        log_put(LEVEL_INFO, "blobs.recovered", NULL, 0, "payloads are carried again");
        carrier->trouble[0] = '\0';
    }
}

// ---- the database ----

int carrier_call(struct carrier *carrier, const struct call *call, PGresult **ret,
                 struct mr_error *err)
{
    int code = call_exec(call, conn_pg(carrier->conn), ret, err);

    if (PQstatus(conn_pg(carrier->conn)) != CONNECTION_OK) {
        conn_free(carrier->conn);
        carrier->conn = NULL;
        return code ? code : mr_error_set(err, MR_ECONNECT, "the connection was lost");
    }
    return code;
}

// Whether it is this daemon's turn.
static int ask_turn(struct carrier *carrier, struct mr_error *err)
{
    AUTO_RESULT *answer = NULL;
    AUTO_CALL call;

    call_init(&call, CALL_OFFLOAD_TURN);
    call_text(&call, carrier->name);
    call_bool(&call, false);
    int code = carrier_call(carrier, &call, &answer, err);
    if (code == 0) {
        carrier->mine = !PQgetisnull(answer, 0, 0);
        snprintf(carrier->home, sizeof(carrier->home), "%s", PQgetvalue(answer, 0, 0));
    }
    return code;
}

// Another daemon need not wait until the turn is over by itself.
static void give_turn_back(struct carrier *carrier)
{
    AUTO_RESULT *answer = NULL;
    struct mr_error err;
    AUTO_CALL call;

    call_init(&call, CALL_OFFLOAD_TURN);
    if (carrier->conn && carrier->mine) {
        call_text(&call, carrier->name);
        call_bool(&call, true);
        carrier_call(carrier, &call, &answer, &err);
    }
}

// ---- the store ----

static void note_breaker(struct carrier *carrier)
{
    atomic_store(&carrier->open, carrier->breaker.status != BREAKER_CLOSED);
}

static void store_good(struct carrier *carrier)
{
    breaker_started(&carrier->breaker, 1);
    if (breaker_good(&carrier->breaker)) {
        carrier->down = false;
        log_put(LEVEL_INFO, "blobs.up", NULL, 0, "the blob store answers again: %s",
                blob_place(carrier->store));
    }
    note_breaker(carrier);
}

static void store_bad(struct carrier *carrier, const char *text, const char *hint)
{
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("store", blob_place(carrier->store)),
        LOG_TEXT_FIELD("hint", hint),
    };

    breaker_started(&carrier->breaker, 1);
    if (breaker_failed(&carrier->breaker, clock_ms()) && !carrier->down) {
        carrier->down = true;
        log_put(LEVEL_ERROR, "blobs.down", fields, 2,
                "the blob store does not serve, jobs whose payload it has wait: %s", text);
    }
    note_breaker(carrier);
}

bool carrier_store_failed(struct carrier *carrier, const struct blob_item *items, size_t count)
{
    const struct blob_item *bad = NULL;
    bool served = false;

    for (size_t i = 0; i < count; i++) {
        if (!blob_result_is_of_store(items[i].result)) {
            served = true;
        } else if (!bad) {
            bad = &items[i];
        }
    }
    if (served || !bad) { // one object in trouble is not the store in trouble
        store_good(carrier);
    } else if (bad->result != BLOB_STOPPED) {
        store_bad(carrier, bad->text, bad->hint);
    }
    return !served && bad;
}

bool carrier_list_failed(struct carrier *carrier, int code, const struct mr_error *err)
{
    if (code && !stopping(carrier)) {
        store_bad(carrier, err->message, err->hint[0] ? err->hint : NULL);
    } else if (code == 0) {
        store_good(carrier);
    }
    return code != 0;
}

// ---- rounds ----

// What is due comes first, and everything else only once that is done. A store that failed ends the
// round.
static int carry(struct carrier *carrier, bool *ret_more, struct mr_error *err)
{
    int (*const steps[])(struct carrier *, bool *, struct mr_error *) = {
        carrier_back,
        carrier_out,
        carrier_remove_doomed,
        carrier_sweep,
    };
    int code = 0;

    for (size_t i = 0; code == 0 && i < sizeof(steps) / sizeof(steps[0]) && !stopping(carrier);
         i++) {
        if (breaker_allows(&carrier->breaker, 1, clock_ms()) == 0) {
            return 0;
        }
        code = steps[i](carrier, ret_more, err);
    }
    return code;
}

// One round. Returns for how long to wait.
static int64_t round_ms(struct carrier *carrier)
{
    struct mr_error err;
    bool more = false;
    int code = 0;

    if (breaker_allows(&carrier->breaker, 1, clock_ms()) == 0) {
        return ROUND_MS; // and lets the turn go: another's way to the store may be better
    }
    if (!carrier->conn) {
        code = conn_open(carrier->dsn, &carrier->conn, &err);
    }
    if (code == 0) {
        code = ask_turn(carrier, &err);
    }
    if (code == 0 && carrier->mine) {
        code = carry(carrier, &more, &err);
    }
    if (code && !stopping(carrier)) {
        log_trouble(carrier, &err);
        return FAILED_MS;
    }
    log_recovered(carrier);
    return !carrier->mine ? IDLE_MS : more ? 0 : ROUND_MS;
}

static void run(void *arg)
{
    struct carrier *carrier = arg;

    while (!stopping(carrier)) {
        wait_for(carrier, round_ms(carrier));
    }
    give_turn_back(carrier);
    conn_free(carrier->conn);
    carrier->conn = NULL;
    uv_async_send(&carrier->done);
}

// ---- begin and end ----

static void name_it(struct carrier *carrier)
{
    char host[128] = "";

    gethostname(host, sizeof(host) - 1);
    snprintf(carrier->name, sizeof(carrier->name), "%s:%d", host, (int)getpid());
}

static void carrier_free(struct carrier *carrier)
{
    blob_free(carrier->store);
    uv_cond_destroy(&carrier->wake);
    uv_mutex_destroy(&carrier->lock);
    free(carrier->dsn);
    free(carrier);
}

static void on_closed(uv_handle_t *handle)
{
    struct carrier *carrier = handle->data;
    void (*ended)(void *arg) = carrier->ended;
    void *ended_arg = carrier->ended_arg;

    carrier_free(carrier);
    if (ended) {
        ended(ended_arg);
    }
}

static void on_done(uv_async_t *async)
{
    struct carrier *carrier = async->data;

    uv_thread_join(&carrier->thread);
    uv_close((uv_handle_t *)async, on_closed);
}

static int open_store(struct carrier *carrier, const struct carrier_options *options,
                      struct mr_error *err)
{
    const struct blob_options store_options = {
        .attempts = STORE_ATTEMPTS,
        .call_timeout_ms = STORE_CALL_MS,
    };

    return blob_open(options->address, &options->credentials, &store_options, &carrier->store, err);
}

static struct carrier *carrier_make(const struct carrier_options *options)
{
    struct carrier *carrier = calloc(1, sizeof(*carrier));

    if (!carrier) {
        return NULL;
    }
    if (options->dsn && !(carrier->dsn = strdup(options->dsn))) {
        free(carrier);
        return NULL;
    }
    carrier->sweep_ms = options->sweep_ms > 0 ? options->sweep_ms : CARRIER_SWEEP_MS;
    carrier->orphan_ms = options->orphan_ms > 0 ? options->orphan_ms : CARRIER_ORPHAN_MS;
    carrier->sweep_at_ms = clock_ms() + carrier->sweep_ms;
    breaker_init(&carrier->breaker, (struct breaker_options){
                                        .failures = BREAKER_FAILURES,
                                        .open_ms = BREAKER_OPEN_MS,
                                        .open_max_ms = BREAKER_MAX_MS,
                                    });
    name_it(carrier);
    uv_mutex_init(&carrier->lock);
    uv_cond_init(&carrier->wake);
    return carrier;
}

int carrier_new(const struct carrier_options *options, uv_loop_t *loop, struct carrier **ret,
                struct mr_error *err)
{
    struct carrier *carrier = carrier_make(options);

    if (!carrier) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    int code = open_store(carrier, options, err);
    if (code) {
        carrier_free(carrier);
        return code;
    }
    uv_async_init(loop, &carrier->done, on_done);
    carrier->done.data = carrier;
    if (uv_thread_create(&carrier->thread, run, carrier)) {
        uv_close((uv_handle_t *)&carrier->done, on_closed);
        return mr_error_set(err, MR_EIO, "cannot start a thread for the blob store");
    }
    log_put(LEVEL_INFO, "blobs.start", NULL, 0, "payloads are carried to %s",
            blob_place(carrier->store));
    *ret = carrier;
    return 0;
}

void carrier_stop(struct carrier *carrier, void (*ended)(void *arg), void *arg)
{
    carrier->ended = ended;
    carrier->ended_arg = arg;
    uv_mutex_lock(&carrier->lock);
    carrier->stopping = true;
    uv_cond_signal(&carrier->wake);
    uv_mutex_unlock(&carrier->lock);
    blob_stop(carrier->store);
}

bool carrier_breaker_open(const struct carrier *carrier)
{
    return atomic_load(&carrier->open);
}
