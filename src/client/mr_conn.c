// SPDX-License-Identifier: PostgreSQL
//
// The library's connection: see mr_conn.h.
//
// Blocking calls are made of the others: send, poll the wire's descriptor, advance, until the
// reply is there. The wire's timer sees to it that a reply comes by its deadline.

#include "client/mr_conn.h"

#include <libpq-fe.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "client/batch.h"
#include "client/conn.h"
#include "client/mr_parcel.h"
#include "client/room.h"
#include "client/shards.h"
#include "client/sized.h"
#include "client/wire.h"
#include "config.h"
#include "store/redis_link.h"

#define TIMEOUT_DEFAULT_MS 30000
// Half of the age at which an object that no row names is removed, unless a daemon says otherwise.
#define OFFLOAD_WAIT_MAX_MS (INT64_C(30) * 60 * 1000)
// A wait ends by the wire's timer; this is only so that none is without an end of its own.
#define POLL_MAX_MS 1000
// What may have come on an idle connection: a notice, the reason for its end, its end.
#define IDLE_ROUNDS_MAX 4

struct reply_list {
    mr_reply *first, **end;
    int count;
};

// What answers the calls, chosen by the DSN.
struct backend {
    const struct toolbox_ops *toolbox;
    const struct queue_ops *queue;
};

static const struct backend backend_pg = {&toolbox_pg, &queue_pg};
static const struct backend backend_redis = {&toolbox_redis, &queue_redis};
// the toolbox is on one of them: see mr_toolbox.c
static const struct backend backend_shards = {&toolbox_pg, &queue_shards};

struct mr_conn {
    struct wire *wire;        // or
    PGconn *wrapped;          // the caller's, or
    struct redis_link *redis; // with backend_redis, or
    struct shards *shards;    // with backend_shards
    const struct backend *backend;
    bool pooler;
    int64_t timeout_ms;
    int64_t full_wait_ms;
    struct reply_list pending;  // in the order of sending, which is that of answering
    struct reply_list answered; // for mr_reply_next()
    bool timer_set, closing;
    struct policies policies;
    char *blobs; // the address of the store; NULL: of the environment
    struct depot *depot;
    bool depot_known;    // it was looked for
    bool let_offload;    // though it is wrapped
    int connects;        // so many times
    struct mr_error why; // there is no connection; code 0: not known, or there is one
};

static void list_push(struct reply_list *list, mr_reply *reply)
{
    reply->next = NULL;
    *list->end = reply;
    list->end = &reply->next;
    list->count++;
}

static mr_reply *list_pop(struct reply_list *list)
{
    mr_reply *reply = list->first;

    if (reply) {
        list->first = reply->next;
        list->count--;
        if (!list->first) {
            list->end = &list->first;
        }
    }
    return reply;
}

// ---- the wire's side ----

// Set once for the oldest request, and again when it has fired: a request costs no system call.
// Takes effect at the end of wire_advance().
static void set_timer(mr_conn *conn)
{
    if (!conn->timer_set && conn->pending.first) {
        conn->timer_set = true;
        wire_set_timer(conn->wire, conn->pending.first->deadline_ms);
    }
}

// The reply is the first that is pending, and has its answer.
static void deliver(mr_conn *conn, mr_reply *reply)
{
    list_pop(&conn->pending);
    set_timer(conn);
    if (reply->note) {
        reply->note(conn, reply);
        mr_reply_free(reply);
    } else if (!reply->awaited) {
        if (reply->batch && batch_away(reply->batch) > 0) {
            mr__parcel_fetch(conn, reply->batch);
        }
        if (reply->batch && batch_has_flaws(reply->batch)) {
            mr__parcel_send_flaws(conn, reply->batch);
        }
        list_push(&conn->answered, reply);
    }
}

static void timeout_error(const mr_conn *conn, struct mr_error *err)
{
    mr_error_set(err, MR_ETIMEOUT, "no answer from the database within %lld ms",
                 (long long)conn->timeout_ms);
    mr_error_hint(err, "It may have happened. Raise timeout_ms, send less in one call, or look for "
                       "a lock that it waits for.");
}

static void take_results(mr_reply *reply)
{
    reply_succeed(reply, wire_take_result(reply->conn->wire, 0));
    for (size_t i = 0; i < reply->more_count; i++) {
        reply->more[i] = wire_take_result(reply->conn->wire, i + 1);
    }
}

static void on_answer(void *arg, PGresult *result, const struct mr_error *err)
{
    mr_reply *reply = arg;
    struct mr_error expired;

    (void)result;
    if (reply->conn->closing) {
        mr_reply_free(reply);
        return;
    }
    if (!err) {
        take_results(reply);
    } else if (reply->expired && err->code == MR_ECONNECT) {
        timeout_error(reply->conn, &expired);
        reply_fail(reply, &expired);
    } else {
        reply_fail(reply, err);
    }
    if (reply->code == MR_EREADONLY) {
        // a standby: the primary may be at another address of the dsn by now
        wire_reset(reply->conn->wire);
    }
    deliver(reply->conn, reply);
}

static void on_event(void *arg, enum wire_event event, const struct mr_error *err)
{
    mr_conn *conn = arg;

    switch (event) {
    case WIRE_CONNECTED:
        conn->why.code = 0;
        conn->connects++;
        return;
    case WIRE_LOST:
    case WIRE_REFUSED: conn->why = *err; return;
    }
}

// It was never sent, so it has not happened.
static void expire_unsent(mr_conn *conn, mr_reply *reply)
{
    struct mr_error err = conn->why;

    if (err.code == 0) {
        mr_error_set(&err, wire_connected(conn->wire) ? MR_ETIMEOUT : MR_ECONNECT,
                     "no connection to the database within %lld ms", (long long)conn->timeout_ms);
    }
    mr_error_detail(&err, "Nothing was sent within %lld ms; the call has not happened.",
                    (long long)conn->timeout_ms);
    reply_fail(reply, &err);
    deliver(conn, reply);
}

// The deadlines of pending requests are in their order.
static void on_timer(void *arg)
{
    mr_conn *conn = arg;
    mr_reply *reply;

    conn->timer_set = false;
    while ((reply = conn->pending.first) && clock_ms() >= reply->deadline_ms) {
        if (!wire_withdraw(conn->wire, reply)) {
            reply->expired = true;
            wire_reset(conn->wire);
            return; // the answers to all that were sent set the timer again
        }
        expire_unsent(conn, reply);
    }
    set_timer(conn);
}

static void advance(mr_conn *conn)
{
    set_timer(conn);
    wire_advance(conn->wire);
}

static void wait_until(mr_conn *conn, int64_t deadline_ms)
{
    struct pollfd poll_fd = {.fd = wire_fd(conn->wire), .events = POLLIN};
    int64_t left_ms = deadline_ms - clock_ms();

    if (left_ms > POLL_MAX_MS) {
        left_ms = POLL_MAX_MS;
    }
    poll(&poll_fd, 1, left_ms > 0 ? (int)left_ms : 1);
}

static bool is_readable(const mr_conn *conn)
{
    struct pollfd poll_fd = {.fd = wire_fd(conn->wire), .events = POLLIN};

    return poll(&poll_fd, 1, 0) > 0;
}

// Learns that an idle connection has ended before a request is sent into it and lost.
static void listen_first(mr_conn *conn)
{
    for (int i = 0; i < IDLE_ROUNDS_MAX && wire_pending(conn->wire) == 0 && is_readable(conn);
         i++) {
        advance(conn);
    }
}

// ---- asking ----

static int check_conn(const mr_conn *conn, mr_error *err)
{
    if (!conn) {
        mr_error_set(err, MR_EUSAGE, "no connection was given");
        mr_error_hint(err, "Make one with mr_conn_open() or mr_conn_wrap().");
        return MR_EUSAGE;
    }
    return 0;
}

int mr__conn_needs_pg(const char *what, mr_error *err)
{
    mr_error_set(err, MR_EUSAGE, "%s needs PostgreSQL; this connection is to Redis", what);
    mr_error_hint(err, "Open a connection to PostgreSQL for it. docs/redis.md lists what works "
                       "where.");
    return MR_EUSAGE;
}

int mr__conn_check_wire(const mr_conn *conn, mr_error *err)
{
    int code = check_conn(conn, err);

    if (!code && conn->redis) {
        return mr__conn_needs_pg("a call without waiting", err);
    }
    if (!code && conn->shards) {
        mr_error_set(err, MR_EUSAGE, "a connection to several shards has no calls without waiting");
        mr_error_hint(err, "Use the blocking call, or a connection to one of them.");
        return MR_EUSAGE;
    }
    if (!code && conn->wrapped) {
        mr_error_set(err, MR_EUSAGE, "a wrapped connection has no calls without waiting");
        mr_error_hint(err, "Use the blocking call, or a connection of mr_conn_open().");
        return MR_EUSAGE;
    }
    return code;
}

static int send_calls(mr_conn *conn, const struct call *calls, size_t count, mr_reply *reply,
                      mr_error *err)
{
    int code = reply_expect(reply, count, err);

    if (code == 0) {
        code = wire_send_all(conn->wire, calls, count, on_answer, reply, err);
    }

    if (code == 0) {
        reply->conn = conn;
        reply->deadline_ms = clock_ms() + conn->timeout_ms;
        list_push(&conn->pending, reply);
    }
    return code;
}

static int send_reply(mr_conn *conn, const struct call *call, const char *queue,
                      reply_note_fn *note, mr_error *err)
{
    int code = mr__conn_check_wire(conn, err);

    if (code) {
        return code;
    }
    if (conn->pending.count + conn->answered.count >= WIRE_PENDING_MAX) {
        mr_error_set(err, MR_ELIMIT, "too many requests in flight: %d", WIRE_PENDING_MAX);
        mr_error_hint(err, "Take replies with mr_reply_next() before sending more.");
        return MR_ELIMIT;
    }
    mr_reply *reply = reply_new(call->kind, queue);
    if (!reply) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    reply->note = note;
    if ((code = send_calls(conn, call, 1, reply, err))) {
        mr_reply_free(reply);
    }
    return code;
}

int mr__conn_send(mr_conn *conn, const struct call *call, const char *queue, mr_error *err)
{
    return send_reply(conn, call, queue, NULL, err);
}

int mr__conn_note(mr_conn *conn, const struct call *call, const char *name, reply_note_fn *note,
                  mr_error *err)
{
    return send_reply(conn, call, name, note, err);
}

struct policies *mr__conn_policies(mr_conn *conn)
{
    return &conn->policies;
}

int mr__conn_depot(mr_conn *conn, struct depot **ret, mr_error *err)
{
    struct depot_options options = {.address = conn->blobs};
    int code = conn->depot_known ? 0 : depot_new(&options, &conn->depot, err);

    if (code) {
        return code;
    }
    conn->depot_known = true;
    *ret = conn->depot;
    return 0;
}

bool mr__conn_offloads(const mr_conn *conn)
{
    return (!conn->wrapped || conn->let_offload) && conn->full_wait_ms <= OFFLOAD_WAIT_MAX_MS &&
           conn->timeout_ms <= OFFLOAD_WAIT_MAX_MS;
}

void mr__conn_let_offload(mr_conn *conn)
{
    conn->let_offload = true;
}

static int ask_wrapped(mr_conn *conn, const struct call *calls, size_t count, mr_reply *reply,
                       mr_error *err)
{
    PGresult *result = NULL;
    int code = call_status(calls, err);

    if (code) {
        return code;
    }
    if (count > 1) { // whether they were one transaction would be the caller's to say
        return mr_error_set(err, MR_EINTERNAL, "a call in pieces on a wrapped connection");
    }
    if (PQpipelineStatus(conn->wrapped) != PQ_PIPELINE_OFF ||
        PQtransactionStatus(conn->wrapped) == PQTRANS_ACTIVE) {
        mr_error_set(err, MR_EUSAGE, "the wrapped connection is busy");
        mr_error_hint(err, "Read all results of it, and leave pipeline mode, before the call.");
        return MR_EUSAGE;
    }
    if ((code = call_exec(calls, conn->wrapped, &result, err))) {
        return code;
    }
    reply_succeed(reply, result);
    return mr_reply_code(reply, err);
}

static int ask_wire(mr_conn *conn, const struct call *calls, size_t count, mr_reply *reply,
                    mr_error *err)
{
    listen_first(conn);
    reply->awaited = true;
    int code = send_calls(conn, calls, count, reply, err);
    if (code) {
        return code;
    }
    advance(conn);
    while (!reply->answered) {
        wait_until(conn, reply->deadline_ms);
        advance(conn);
    }
    return mr_reply_code(reply, err);
}

static int ask(mr_conn *conn, const struct call *calls, size_t count, const char *queue,
               mr_reply **ret, mr_error *err)
{
    int code = check_conn(conn, err);

    if (code || conn->redis) { // the members of backend_redis do not come here
        return code ? code : mr__conn_needs_pg("this call", err);
    }
    if (conn->shards) { // nor those of backend_shards
        return mr_error_set(err, MR_EINTERNAL, "a call without a shard");
    }
    mr_reply *reply = reply_new(calls->kind, queue);
    if (!reply) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    code = (conn->wrapped ? ask_wrapped : ask_wire)(conn, calls, count, reply, err);
    if (code) {
        mr_reply_free(reply);
        return code;
    }
    *ret = reply;
    return 0;
}

int mr__conn_ask(mr_conn *conn, const struct call *call, const char *queue, mr_reply **ret,
                 mr_error *err)
{
    return ask(conn, call, 1, queue, ret, err);
}

int mr__conn_ask_all(mr_conn *conn, const struct call *calls, size_t count, mr_reply **ret,
                     mr_error *err)
{
    return ask(conn, calls, count, NULL, ret, err);
}

// The connection is looked after meanwhile.
static void pause_for(mr_conn *conn, int64_t pause_ms)
{
    int64_t end_ms = clock_ms() + pause_ms;

    while (clock_ms() < end_ms) {
        wait_until(conn, end_ms);
        advance(conn);
    }
}

int mr__conn_ask_room(mr_conn *conn, const struct call *calls, size_t count, mr_reply **ret,
                      mr_error *err)
{
    struct room_wait wait;
    int64_t pause_ms = 0;
    mr_error last; // the caller's is not for failures that are got over
    int code = check_conn(conn, err);

    if (code) {
        return code;
    }
    room_wait_begin(&wait, clock_ms(), conn->full_wait_ms);
    while ((code = ask(conn, calls, count, NULL, ret, &last)) &&
           room_wait_again(&wait, clock_ms(), code, &pause_ms, &last)) {
        pause_for(conn, pause_ms);
    }
    if (code && err) {
        *err = last;
    }
    return code;
}

bool mr__conn_is_wrapped(const mr_conn *conn)
{
    return conn->wrapped != NULL;
}

bool mr__conn_has_session(const mr_conn *conn)
{
    return !conn->pooler;
}

const struct toolbox_ops *mr__conn_toolbox(const mr_conn *conn)
{
    return conn->backend->toolbox;
}

const struct queue_ops *mr__conn_queue(const mr_conn *conn)
{
    return conn->backend->queue;
}

struct redis_link *mr__conn_redis(const mr_conn *conn)
{
    return conn->redis;
}

struct shards *mr__conn_shards(const mr_conn *conn)
{
    return conn->shards;
}

int64_t mr__conn_full_wait_ms(const mr_conn *conn)
{
    return conn->full_wait_ms;
}

// ---- without waiting ----

int mr_fd(const mr_conn *conn)
{
    return conn && conn->wire ? wire_fd(conn->wire) : -1;
}

int mr_advance(mr_conn *conn, mr_error *err)
{
    int code = mr__conn_check_wire(conn, err);

    if (code == 0) {
        advance(conn);
    }
    return code;
}

mr_reply *mr_reply_next(mr_conn *conn)
{
    return conn ? list_pop(&conn->answered) : NULL;
}

// ---- opening and closing ----

static mr_conn *conn_new(void)
{
    mr_conn *conn = calloc(1, sizeof(*conn));

    if (conn) {
        conn->backend = &backend_pg;
        conn->timeout_ms = TIMEOUT_DEFAULT_MS;
        conn->pending.end = &conn->pending.first;
        conn->answered.end = &conn->answered.first;
    }
    return conn;
}

// One attempt: whoever opens a connection wants to know what is wrong with it.
static int connect_now(mr_conn *conn, mr_error *err)
{
    int64_t deadline_ms = clock_ms() + conn->timeout_ms;

    wire_advance(conn->wire);
    while (!wire_connected(conn->wire) && conn->why.code == 0 && clock_ms() < deadline_ms) {
        wait_until(conn, deadline_ms);
        wire_advance(conn->wire);
    }
    if (wire_connected(conn->wire)) {
        return 0;
    }
    if (conn->why.code == 0) {
        mr_error_set(&conn->why, MR_ECONNECT,
                     "cannot connect to the database: no answer within %lld ms",
                     (long long)conn->timeout_ms);
        mr_error_hint(&conn->why, "Is the server running there, and does the network let the "
                                  "connection through? timeout_ms says how long to wait.");
    }
    if (err) {
        *err = conn->why;
    }
    return conn->why.code;
}

static int make_wire(mr_conn *conn, const mr_conn_options *options, mr_error *err)
{
    struct wire_options wire_options = {
        .dsn = options->dsn,
        .application_name = options->application_name,
        .pooler = options->pooler != 0,
    };
    struct wire_hooks hooks = {.event = on_event, .timer = on_timer, .arg = conn};

    return wire_new(&wire_options, &hooks, &conn->wire, err);
}

static int open_wire(mr_conn *conn, const mr_conn_options *options, mr_error *err)
{
    int code = make_wire(conn, options, err);

    return code ? code : connect_now(conn, err);
}

static int open_shards(mr_conn *conn, const mr_conn_options *options, mr_error *err)
{
    mr_conn_options complete = *options;

    conn->backend = &backend_shards;
    complete.timeout_ms = conn->timeout_ms;
    return shards_open(&complete, conn_shards_dsn(options->dsn), &conn->shards, err);
}

// Why there is no connection.
static void down_error(const mr_conn *conn, mr_error *err)
{
    if (err && conn->why.code) {
        *err = conn->why;
    } else {
        mr_error_set(err, MR_ECONNECT, "cannot connect to the database: no answer yet");
        mr_error_hint(err, "Is the server running there, and does the network let the connection "
                           "through?");
    }
}

bool mr__conn_up(mr_conn *conn, mr_error *err)
{
    for (int i = 0;
         i < IDLE_ROUNDS_MAX && wire_pending(conn->wire) == 0 && (i == 0 || is_readable(conn));
         i++) {
        advance(conn);
    }
    if (wire_connected(conn->wire)) {
        return true;
    }
    down_error(conn, err);
    return false;
}

bool mr__conn_wait_up(mr_conn *conn, int64_t deadline_ms, mr_error *err)
{
    while (!mr__conn_up(conn, err) && clock_ms() < deadline_ms) {
        wait_until(conn, deadline_ms);
    }
    return wire_connected(conn->wire);
}

bool mr__conn_refused(const mr_conn *conn)
{
    return conn->why.code != 0;
}

int mr__conn_connects(const mr_conn *conn)
{
    return conn->connects;
}

static int open_redis(mr_conn *conn, const mr_conn_options *options, mr_error *err)
{
    struct redis_url url;
    const char *name =
        str_empty(options->application_name) ? "millrace" : options->application_name;
    int code = redis_url_parse(conn_redis_dsn(options->dsn), &url, err);

    conn->backend = &backend_redis;
    if (code == MR_ECONFIG) {
        // as for an address of PostgreSQL that cannot be read
        return mr_error_recode(err, MR_EUSAGE);
    }
    return code ? code : redis_link_open(&url, name, conn->timeout_ms, &conn->redis, err);
}

static int take_options(mr_conn *conn, const mr_conn_options *options, mr_error *err)
{
    if (options->timeout_ms) {
        conn->timeout_ms = options->timeout_ms;
    }
    conn->full_wait_ms = options->full_wait_ms;
    conn->pooler = options->pooler != 0;
    if (options->blobs && !(conn->blobs = strdup(options->blobs))) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    return str_empty(options->blobs) ? 0 : blob_check_address(options->blobs, err);
}

int mr__conn_new(const mr_conn_options *options, mr_conn **ret, mr_error *err)
{
    mr_conn *conn = conn_new();

    if (!conn) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    int code = take_options(conn, options, err);
    if (code || (code = make_wire(conn, options, err))) {
        mr_conn_free(conn);
        return code;
    }
    *ret = conn;
    return 0;
}

static int open_chosen(mr_conn *conn, const mr_conn_options *options, mr_error *err)
{
    if (conn_redis_dsn(options->dsn)) {
        return open_redis(conn, options, err);
    }
    return (conn_shards_dsn(options->dsn) ? open_shards : open_wire)(conn, options, err);
}

int mr_conn_open(const mr_conn_options *from, mr_conn **ret, mr_error *err)
{
    mr_conn_options options = MR_CONN_OPTIONS_INIT;
    int code;

    if (from && (code = sized_read(&options, sizeof(options), from, "MR_CONN_OPTIONS_INIT", err))) {
        return code;
    }
    if (options.timeout_ms < 0) {
        mr_error_set(err, MR_EUSAGE, "timeout_ms is negative");
        mr_error_hint(err, "Give milliseconds, or 0 for %d.", TIMEOUT_DEFAULT_MS);
        return MR_EUSAGE;
    }
    if (options.full_wait_ms < 0) {
        mr_error_set(err, MR_EUSAGE, "full_wait_ms is negative");
        mr_error_hint(err, "Give milliseconds, or 0 for no wait.");
        return MR_EUSAGE;
    }
    mr_conn *conn = conn_new();
    if (!conn) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    if ((code = take_options(conn, &options, err)) || (code = open_chosen(conn, &options, err))) {
        mr_conn_free(conn);
        return code;
    }
    *ret = conn;
    return 0;
}

// libpq takes the address of a Redis for a broken one of its own, and keeps nothing of it but the
// words of its complaint.
static bool was_for_redis(const PGconn *pg)
{
    static const char *const schemes[] = {"\"redis://", "\"rediss://", "\"unix://"};

    for (size_t i = 0; pg && i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        if (strstr(PQerrorMessage(pg), schemes[i])) {
            return true;
        }
    }
    return false;
}

static int refuse_closed(const PGconn *pg, mr_error *err)
{
    if (was_for_redis(pg)) {
        return mr__conn_needs_pg("mr_conn_wrap", err);
    }
    mr_error_set(err, MR_EUSAGE, "the connection to wrap is not open");
    mr_error_hint(err, "Connect with libpq first and see that PQstatus() is CONNECTION_OK.");
    return MR_EUSAGE;
}

int mr_conn_wrap(PGconn *pg, mr_conn **ret, mr_error *err)
{
    if (!pg || PQstatus(pg) != CONNECTION_OK) {
        return refuse_closed(pg, err);
    }
    const char *encoding = PQparameterStatus(pg, "client_encoding");
    if (encoding && !str_equal(encoding, "UTF8") && !str_equal(encoding, "SQL_ASCII")) {
        mr_error_set(err, MR_EUSAGE, "the connection to wrap speaks %s, not UTF-8", encoding);
        mr_error_hint(err, "Call PQsetClientEncoding(pg, \"UTF8\") before.");
        return MR_EUSAGE;
    }
    mr_conn *conn = conn_new();
    if (!conn) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    conn->wrapped = pg;
    *ret = conn;
    return 0;
}

void mr_conn_free(mr_conn *conn)
{
    mr_reply *reply;

    if (!conn) {
        return;
    }
    conn->closing = true;
    redis_link_free(conn->redis);
    shards_free(conn->shards);
    wire_free(conn->wire); // answers what is pending, in any order
    while ((reply = list_pop(&conn->answered))) {
        mr_reply_free(reply);
    }
    policies_done(&conn->policies);
    depot_free(conn->depot);
    free(conn->blobs);
    free(conn);
}

const char *mr_version(void)
{
    return MILLRACE_VERSION;
}

void mr_free(void *memory)
{
    free(memory);
}
