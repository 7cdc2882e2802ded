// SPDX-License-Identifier: PostgreSQL
//
// A connection that never blocks and mends itself: see wire.h.

#include "client/wire.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/conn.h"

#define RETRY_FIRST_MS 100
#define RETRY_MAX_MS   5000
// The size of what libpq may have buffered for sending before more is handed to it.
#define IN_FLIGHT_MAX 256

enum wire_status {
    WIRE_STATUS_IDLE,       // waits for retry_at_ms
    WIRE_STATUS_CONNECTING, // PQconnectPoll() has the say
    WIRE_STATUS_READY,
};

struct request {
    struct call *calls;
    PGresult **results; // of each of them
    size_t count;
    wire_answer_fn *answer;
    void *arg;
    struct request *next;
    // since it was sent:
    int statements;      // sent for it
    int call_prepared;   // which of them, from 1, prepares the calls; 0: none
    int good;            // of them succeeded
    struct mr_error err; // of the first that failed
};

struct request_queue {
    struct request *first, **end;
    int count;
};

struct wire {
    struct wire_options options;
    struct wire_hooks hooks;
    char *dsn, *application_name;
    int epoll_fd, timer_fd, wake_fd;
    int socket; // as it is in the epoll set; -1
    uint32_t socket_events;
    enum wire_status status;
    PGconn *pg;
    int64_t retry_at_ms, retry_pause_ms, connect_until_ms;
    int turn;            // the host that is tried first
    int64_t timer_at_ms; // of the owner; 0
    int64_t armed_at_ms; // what timer_fd is set to; 0
    int64_t answered_at_ms;
    bool prepared[CALL_KINDS];
    bool advancing, reset;
    struct request *answering;
    struct request_queue waiting, sent;
};

// ---- requests ----

static void queue_push(struct request_queue *queue, struct request *request)
{
    request->next = NULL;
    *queue->end = request;
    queue->end = &request->next;
    queue->count++;
}

static struct request *queue_pop(struct request_queue *queue)
{
    struct request *request = queue->first;

    if (request) {
        queue->first = request->next;
        queue->count--;
        if (!queue->first) {
            queue->end = &queue->first;
        }
    }
    return request;
}

static void request_free(struct request *request)
{
    for (size_t i = 0; i < request->count; i++) {
        PQclear(request->results[i]);
        call_done(&request->calls[i]);
    }
    free(request->results);
    free(request->calls);
    free(request);
}

static int copy_call(const struct call *call, struct call *ret, struct mr_error *err)
{
    *ret = *call;
    buf_init(&ret->store, CALL_SIZE_MAX);
    buf_add(&ret->store, buf_peek(&call->store), call->store.len);
    return call_status(ret, err);
}

// Copies the calls.
static int request_new(const struct call *calls, size_t count, struct request **ret,
                       struct mr_error *err)
{
    struct request *request = calloc(1, sizeof(*request));
    int code = 0;

    if (!request) {
        mr_error_set(err, MR_ENOMEM, "out of memory");
        return MR_ENOMEM;
    }
    request->calls = calloc(count, sizeof(*request->calls));
    request->results = calloc(count, sizeof(*request->results));
    if (!request->calls || !request->results) {
        request_free(request);
        mr_error_set(err, MR_ENOMEM, "out of memory");
        return MR_ENOMEM;
    }
    while (code == 0 && request->count < count) {
        code = copy_call(&calls[request->count], &request->calls[request->count], err);
        request->count++;
    }
    if (code) {
        request_free(request);
        return code;
    }
    *ret = request;
    return 0;
}

// What arguments of answers hold is freed by the answers.
static void queue_done(struct request_queue *queue)
{
    struct request *request;
    struct mr_error err;

    mr_error_set(&err, MR_ECONNECT, "the connection was closed");
    while ((request = queue_pop(queue))) {
        request->answer(request->arg, NULL, &err);
        request_free(request);
    }
}

int wire_send_all(struct wire *wire, const struct call *calls, size_t count, wire_answer_fn *answer,
                  void *arg, struct mr_error *err)
{
    struct request *request = NULL;
    int code = 0;

    if (wire_pending(wire) >= WIRE_PENDING_MAX) {
        mr_error_set(err, MR_ELIMIT, "too many requests without an answer: %d", WIRE_PENDING_MAX);
        mr_error_hint(err, "Read answers before sending more.");
        return MR_ELIMIT;
    }
    for (size_t i = 0; code == 0 && i < count; i++) {
        code = call_status(&calls[i], err);
    }
    if (code || (code = request_new(calls, count, &request, err))) {
        return code;
    }
    request->answer = answer;
    request->arg = arg;
    queue_push(&wire->waiting, request);
    // an owner that sends from outside wants it to go out now
    if (!wire->advancing) {
        wire_wake(wire);
    }
    return 0;
}

int wire_send(struct wire *wire, const struct call *call, wire_answer_fn *answer, void *arg,
              struct mr_error *err)
{
    return wire_send_all(wire, call, 1, answer, arg, err);
}

bool wire_withdraw(struct wire *wire, const void *arg)
{
    for (struct request **at = &wire->waiting.first; *at; at = &(*at)->next) {
        struct request *request = *at;
        if (request->arg == arg) {
            *at = request->next;
            wire->waiting.end = *at ? wire->waiting.end : at;
            wire->waiting.count--;
            request_free(request);
            return true;
        }
    }
    return false;
}

// ---- descriptors ----

// Until it is connected, libpq may have closed the socket and opened another one of the same number
// (the next host), which the epoll set does not know.
static void watch_socket(struct wire *wire, int socket, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = socket};

    if (wire->status == WIRE_STATUS_READY && wire->socket == socket &&
        wire->socket_events == events) {
        return;
    }
    if (wire->socket >= 0 && wire->socket != socket) {
        epoll_ctl(wire->epoll_fd, EPOLL_CTL_DEL, wire->socket, NULL);
    }
    if (socket >= 0 && epoll_ctl(wire->epoll_fd, EPOLL_CTL_MOD, socket, &event) != 0 &&
        errno == ENOENT) {
        epoll_ctl(wire->epoll_fd, EPOLL_CTL_ADD, socket, &event);
    }
    wire->socket = socket;
    wire->socket_events = events;
}

static int64_t sooner(int64_t a_ms, int64_t b_ms)
{
    if (a_ms == 0 || b_ms == 0) {
        return a_ms ? a_ms : b_ms;
    }
    return a_ms < b_ms ? a_ms : b_ms;
}

static void arm_timer(struct wire *wire)
{
    int64_t at_ms = wire->timer_at_ms;
    struct itimerspec spec = {0};

    if (wire->status == WIRE_STATUS_IDLE) {
        at_ms = sooner(at_ms, wire->retry_at_ms);
    } else if (wire->status == WIRE_STATUS_CONNECTING) {
        at_ms = sooner(at_ms, wire->connect_until_ms);
    }
    if (at_ms == wire->armed_at_ms) {
        return;
    }
    wire->armed_at_ms = at_ms;
    // a time in the past fires at once; all zero would disarm
    spec.it_value.tv_sec = at_ms / 1000;
    spec.it_value.tv_nsec = at_ms % 1000 * 1000000;
    timerfd_settime(wire->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

// Whether there was something to read.
static bool drain_fd(int fd)
{
    uint64_t ignored;

    return read(fd, &ignored, sizeof(ignored)) > 0;
}

void wire_wake(struct wire *wire)
{
    uint64_t one = 1;

    // only fails when the counter is full, and then it is readable anyway
    if (write(wire->wake_fd, &one, sizeof(one)) < 0) {
        return;
    }
}

void wire_set_timer(struct wire *wire, int64_t at_ms)
{
    wire->timer_at_ms = at_ms;
    if (!wire->advancing) {
        arm_timer(wire);
    }
}

// ---- connecting ----

static void tell(struct wire *wire, enum wire_event event, const struct mr_error *err)
{
    if (wire->hooks.event) {
        wire->hooks.event(wire->hooks.arg, event, err);
    }
}

static void close_pg(struct wire *wire)
{
    watch_socket(wire, -1, 0);
    PQfinish(wire->pg);
    wire->pg = NULL;
    memset(wire->prepared, 0, sizeof(wire->prepared));
}

// Half of the pause is chance: a fleet that lost its server does not come back in step.
static void retry_later(struct wire *wire)
{
    int64_t pause_ms = wire->retry_pause_ms;

    wire->status = WIRE_STATUS_IDLE;
    wire->retry_at_ms = clock_ms() + pause_ms / 2 + (int64_t)(random() % (pause_ms / 2 + 1));
    wire->retry_pause_ms = pause_ms * 2 < RETRY_MAX_MS ? pause_ms * 2 : RETRY_MAX_MS;
}

static void connect_failed(struct wire *wire, const struct mr_error *err)
{
    close_pg(wire);
    retry_later(wire);
    tell(wire, WIRE_REFUSED, err);
}

// What was sent has no answer any more; what waits will go out on the next connection.
static void lost(struct wire *wire, const struct mr_error *err)
{
    struct request_queue sent = {0};
    struct request *request;

    wire->reset = false;
    sent.end = &sent.first;
    while ((request = queue_pop(&wire->sent))) {
        queue_push(&sent, request);
    }
    close_pg(wire);
    retry_later(wire);
    tell(wire, WIRE_LOST, err);
    while ((request = queue_pop(&sent))) {
        request->answer(request->arg, NULL, err);
        request_free(request);
    }
}

static void connected(struct wire *wire)
{
    struct mr_error err;

    if (PQsetnonblocking(wire->pg, 1) != 0 || !PQenterPipelineMode(wire->pg)) {
        conn_error_of(wire->pg, NULL, &err);
        connect_failed(wire, &err);
        return;
    }
    conn_silence(wire->pg);
    wire->status = WIRE_STATUS_READY;
    wire->retry_pause_ms = RETRY_FIRST_MS;
    wire->answered_at_ms = clock_ms();
    tell(wire, WIRE_CONNECTED, NULL);
}

// libpq must not be asked before its socket is ready: it would take a connection that is still
// being made for one that failed.
static bool socket_ready(const struct wire *wire)
{
    struct pollfd poll_fd = {
        .fd = wire->socket,
        .events = wire->socket_events & EPOLLIN ? POLLIN : POLLOUT,
    };

    return poll(&poll_fd, 1, 0) > 0;
}

static void connect_poll(struct wire *wire)
{
    struct mr_error err;

    if (!socket_ready(wire)) {
        if (clock_ms() >= wire->connect_until_ms) {
            mr_error_set(&err, MR_ECONNECT, "cannot connect to the database: no answer within %d s",
                         CONN_TIMEOUT_S);
            wire->turn = (wire->turn + 1) % INT32_MAX;
            connect_failed(wire, &err);
        }
        return;
    }
    switch (PQconnectPoll(wire->pg)) {
    case PGRES_POLLING_READING: watch_socket(wire, PQsocket(wire->pg), EPOLLIN); return;
    case PGRES_POLLING_WRITING: watch_socket(wire, PQsocket(wire->pg), EPOLLOUT); return;
    case PGRES_POLLING_OK: connected(wire); return;
    case PGRES_POLLING_FAILED:
        conn_connect_error(wire->pg, &err);
        connect_failed(wire, &err);
        return;
    case PGRES_POLLING_ACTIVE: return;
    }
}

static void connect_start(struct wire *wire)
{
    struct mr_error err;

    wire->pg = conn_start(wire->dsn, wire->application_name, wire->turn);
    if (!wire->pg) {
        mr_error_set(&err, MR_ENOMEM, "out of memory");
        connect_failed(wire, &err);
        return;
    }
    if (PQstatus(wire->pg) == CONNECTION_BAD) {
        conn_connect_error(wire->pg, &err);
        connect_failed(wire, &err);
        return;
    }
    wire->status = WIRE_STATUS_CONNECTING;
    wire->connect_until_ms = clock_ms() + CONN_TIMEOUT_S * 1000;
    // libpq says: as if PQconnectPoll() had returned PGRES_POLLING_WRITING
    watch_socket(wire, PQsocket(wire->pg), EPOLLOUT);
}

// ---- sending ----

// Once on a connection.
static int prepare(struct wire *wire, struct request *request, enum call_kind kind)
{
    AUTO_BUF statement;

    buf_init(&statement, CALL_SIZE_MAX);
    if (wire->prepared[kind]) {
        return 1;
    }
    wire->prepared[kind] = true;
    // it goes before the one that was counted last
    request->call_prepared = request->statements++;
    call_statement(kind, &statement);
    return statement.status == 0 &&
           PQsendPrepare(wire->pg, call_infos[kind].name, buf_peek(&statement), 0, NULL);
}

static int send_statement(struct wire *wire, struct request *request, const struct call *call)
{
    const struct call_info *info = &call_infos[call->kind];
    const char *values[CALL_PARAMS_MAX];
    int lengths[CALL_PARAMS_MAX], formats[CALL_PARAMS_MAX];
    int count = call->count;
    AUTO_BUF statement;

    buf_init(&statement, CALL_SIZE_MAX);
    request->statements++;
    call_values(call, values, lengths, formats);
    if (call->kind == CALL_LISTEN || call->kind == CALL_UNLISTEN) {
        char *channel = PQescapeIdentifier(wire->pg, values[0], (size_t)lengths[0]);
        buf_printf(&statement, "%s%s", info->statement, channel ? channel : "");
        PQfreemem(channel);
        return PQsendQueryParams(wire->pg, buf_peek(&statement), 0, NULL, NULL, NULL, NULL, 0);
    }
    if (wire->options.pooler) {
        call_statement(call->kind, &statement);
        return statement.status == 0 &&
               PQsendQueryParams(wire->pg, buf_peek(&statement), count, NULL, values, lengths,
                                 formats, info->binary);
    }
    return prepare(wire, request, call->kind) &&
           PQsendQueryPrepared(wire->pg, info->name, count, values, lengths, formats, info->binary);
}

// One transaction: everything up to the sync.
static int send_request(struct wire *wire, struct request *request)
{
    for (size_t i = 0; i < request->count; i++) {
        if (!send_statement(wire, request, &request->calls[i])) {
            return 0;
        }
    }
    return PQpipelineSync(wire->pg);
}

// False when the connection is gone.
static bool send_waiting(struct wire *wire)
{
    while (wire->waiting.first && wire->sent.count < IN_FLIGHT_MAX) {
        struct request *request = queue_pop(&wire->waiting);
        queue_push(&wire->sent, request);
        if (!send_request(wire, request)) {
            return false;
        }
    }
    int left = PQflush(wire->pg);
    watch_socket(wire, PQsocket(wire->pg), left > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
    return left >= 0;
}

// ---- receiving ----

static void finish_request(struct wire *wire)
{
    struct request *request = queue_pop(&wire->sent);
    bool failed = request->err.code != 0;

    wire->answered_at_ms = clock_ms();
    if (request->good < request->call_prepared) {
        wire->prepared[request->calls[0].kind] = false;
    }
    wire->answering = request;
    request->answer(request->arg, failed ? NULL : request->results[0],
                    failed ? &request->err : NULL);
    wire->answering = NULL;
    request_free(request);
}

PGresult *wire_take_result(struct wire *wire, size_t at)
{
    PGresult *result = wire->answering->results[at];

    wire->answering->results[at] = NULL;
    return result;
}

// The calls are the last of its statements; nobody asks what became of those that come before.
static void keep_result(struct request *request, PGresult *result)
{
    int before = request->statements - (int)request->count;
    int at = request->good++ - before;

    if (at < 0 || at >= (int)request->count) {
        PQclear(result);
        return;
    }
    request->results[at] = result;
}

static void take_result(struct wire *wire, PGresult *result)
{
    struct request *request = wire->sent.first;

    if (!request) {
        PQclear(result);
        return;
    }
    switch (PQresultStatus(result)) {
    case PGRES_PIPELINE_SYNC:
        PQclear(result);
        finish_request(wire);
        return;
    case PGRES_TUPLES_OK:
    case PGRES_COMMAND_OK: keep_result(request, result); return;
    case PGRES_PIPELINE_ABORTED: break;
    case PGRES_EMPTY_QUERY:
    case PGRES_COPY_OUT:
    case PGRES_COPY_IN:
    case PGRES_COPY_BOTH:
    case PGRES_BAD_RESPONSE:
    case PGRES_NONFATAL_ERROR:
    case PGRES_FATAL_ERROR:
    case PGRES_SINGLE_TUPLE:
        if (request->err.code == 0) {
            conn_error_of(wire->pg, result, &request->err);
        }
        break;
    }
    PQclear(result);
}

static void take_notifications(struct wire *wire)
{
    PGnotify *notify;

    while (wire->pg && (notify = PQnotifies(wire->pg))) {
        if (wire->hooks.notify) {
            wire->hooks.notify(wire->hooks.arg, notify->relname);
        }
        PQfreemem(notify);
    }
}

// False when the connection is gone.
static bool receive(struct wire *wire)
{
    int nothing = 0;

    if (!PQconsumeInput(wire->pg)) {
        return false;
    }
    // Between the results of a statement and those of the next stands one NULL; two in a row
    // mean that there is nothing more for now.
    while (nothing < 2 && wire->sent.first && !PQisBusy(wire->pg)) {
        PGresult *result = PQgetResult(wire->pg);
        nothing = result ? 0 : nothing + 1;
        if (result) {
            take_result(wire, result);
        }
    }
    take_notifications(wire);
    return PQstatus(wire->pg) == CONNECTION_OK;
}

// ---- the whole ----

void wire_reset(struct wire *wire)
{
    wire->reset = true;
    wire_wake(wire);
}

static void advance_ready(struct wire *wire)
{
    bool good = receive(wire);

    if (good && wire->reset) {
        struct mr_error err;
        mr_error_set(&err, MR_ECONNECT, "the connection is made again");
        lost(wire, &err);
        return;
    }

    // answers may have been answered with new requests
    while (good && wire->waiting.first && wire->sent.count < IN_FLIGHT_MAX) {
        good = send_waiting(wire);
    }
    if (good) {
        good = send_waiting(wire);
    }
    if (!good) {
        struct mr_error err;
        conn_error_of(wire->pg, NULL, &err);
        lost(wire, &err);
    }
}

static void run_timer(struct wire *wire)
{
    if (wire->timer_at_ms && clock_ms() >= wire->timer_at_ms) {
        wire->timer_at_ms = 0;
        if (wire->hooks.timer) {
            wire->hooks.timer(wire->hooks.arg);
        }
    }
}

void wire_advance(struct wire *wire)
{
    if (wire->advancing) {
        return;
    }
    wire->advancing = true;
    drain_fd(wire->wake_fd);
    if (drain_fd(wire->timer_fd)) {
        wire->armed_at_ms = 0;
    }
    run_timer(wire);
    if (wire->status == WIRE_STATUS_IDLE && clock_ms() >= wire->retry_at_ms) {
        connect_start(wire);
    } else if (wire->status == WIRE_STATUS_CONNECTING) {
        connect_poll(wire);
    }
    if (wire->status == WIRE_STATUS_READY) {
        advance_ready(wire);
    }
    arm_timer(wire);
    wire->advancing = false;
}

int wire_fd(const struct wire *wire)
{
    return wire->epoll_fd;
}

bool wire_connected(const struct wire *wire)
{
    return wire->status == WIRE_STATUS_READY;
}

bool wire_same_host(const struct wire *wire)
{
    return wire_connected(wire) && conn_same_host(wire->pg);
}

int wire_pending(const struct wire *wire)
{
    return wire->waiting.count + wire->sent.count;
}

int64_t wire_answered_at(const struct wire *wire)
{
    return wire->answered_at_ms;
}

static int open_fds(struct wire *wire, struct mr_error *err)
{
    struct epoll_event event = {.events = EPOLLIN};

    wire->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    wire->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    wire->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (wire->epoll_fd < 0 || wire->timer_fd < 0 || wire->wake_fd < 0 ||
        epoll_ctl(wire->epoll_fd, EPOLL_CTL_ADD, wire->timer_fd, &event) != 0 ||
        epoll_ctl(wire->epoll_fd, EPOLL_CTL_ADD, wire->wake_fd, &event) != 0) {
        mr_error_set(err, MR_EIO, "cannot open a descriptor: %s", strerror(errno));
        mr_error_hint(err, "Raise the limit of open files (ulimit -n).");
        return MR_EIO;
    }
    wire_wake(wire);
    return 0;
}

static int copy_text(const char *text, char **ret, struct mr_error *err)
{
    if (text && !(*ret = strdup(text))) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    return 0;
}

int wire_new(const struct wire_options *options, const struct wire_hooks *hooks, struct wire **ret,
             struct mr_error *err)
{
    const char *dsn = NULL;
    struct wire *wire = NULL;
    int code = conn_choose_dsn(options->dsn, &dsn, err);

    if (code) {
        return code;
    }
    wire = calloc(1, sizeof(*wire));
    if (!wire) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    *wire = (struct wire){
        .options = *options,
        .hooks = *hooks,
        .epoll_fd = -1,
        .timer_fd = -1,
        .wake_fd = -1,
        .socket = -1,
        .retry_pause_ms = RETRY_FIRST_MS,
    };
    wire->waiting.end = &wire->waiting.first;
    wire->sent.end = &wire->sent.first;
    if ((code = copy_text(dsn, &wire->dsn, err)) ||
        (code = copy_text(options->application_name, &wire->application_name, err)) ||
        (code = open_fds(wire, err))) {
        wire_free(wire);
        return code;
    }
    *ret = wire;
    return 0;
}

void wire_free(struct wire *wire)
{
    if (!wire) {
        return;
    }
    if (wire->pg) {
        close_pg(wire);
    }
    queue_done(&wire->waiting);
    queue_done(&wire->sent);
    close(wire->epoll_fd);
    close(wire->timer_fd);
    close(wire->wake_fd);
    free(wire->dsn);
    free(wire->application_name);
    free(wire);
}
