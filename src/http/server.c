// SPDX-License-Identifier: PostgreSQL
//
// libmicrohttpd on the loop: see http.h.
//
// MHD has an epoll descriptor of its own, which the loop polls, and tells by MHD_get_timeout()
// when it has something to do all the same: before the loop sleeps it is asked. A second's timer
// is for what ends by time.

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "http/admit.h"
#include "http/disk.h"
#include "http/exchange.h"
#include "http/http_parts.h"
#include "http/listen.h"
#include "http/long_poll.h"
#include "http/metrics.h"
#include "http/objects.h"
#include "http/place.h"
#include "http/reply.h"
#include "http/route.h"
#include "http/sse.h"

#define TICK_MS 1000
// What MHD keeps for a connection: the head of a request has to fit.
#define CONNECTION_MEMORY (16 * 1024)
#define TURNS_MAX         64

// ---- MHD's callbacks ----

static void *on_uri(void *arg, const char *uri, struct MHD_Connection *connection)
{
    (void)connection;
    return exchange_new(arg, uri);
}

static size_t no_unescape(void *arg, struct MHD_Connection *connection, char *text)
{
    (void)arg;
    (void)connection;
    return strlen(text);
}

static void on_connection(void *arg, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http *http = arg;
    struct visit *visit = *context;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        visit = calloc(1, sizeof(*visit));
        *context = visit;
        if (visit) {
            visit->fd =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
            visit->since_ms = clock_ms();
            visit->next = http->visits;
            if (http->visits) {
                http->visits->prev = visit;
            }
            http->visits = visit;
        }
    } else if (visit) {
        *(visit->prev ? &visit->prev->next : &http->visits) = visit->next;
        if (visit->next) {
            visit->next->prev = visit->prev;
        }
        free(visit);
        *context = NULL;
    }
}

static void on_completed(void *arg, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode code)
{
    struct exchange *exchange = *context;

    (void)arg;
    (void)connection;
    if (exchange) {
        if (exchange->visit) {
            exchange->visit->since_ms = clock_ms();
            exchange->visit->until_ms = 0;
        }
        exchange_free(exchange, code == MHD_REQUEST_TERMINATED_COMPLETED_OK);
        *context = NULL;
    }
}

// The reply that is there goes out. MHD_NO closes the connection.
static enum MHD_Result send_reply(struct exchange *exchange)
{
    if (exchange->gone || !exchange->response) {
        return MHD_NO;
    }
    exchange->sent = true;
    if (!exchange->endless) { // a client that takes it byte by byte would hold it for ever
        exchange->visit->until_ms = clock_ms() + exchange->http->options.idle_ms;
    }
    return MHD_queue_response(exchange->connection, exchange->status, exchange->response);
}

// The head of a request is there.
static enum MHD_Result begin(struct exchange *exchange, struct MHD_Connection *connection,
                             const char *method)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    exchange->begun = true;
    exchange->connection = connection;
    exchange->visit = info ? info->socket_context : NULL;
    if (!exchange->visit) {
        return MHD_NO;
    }
    exchange->visit->since_ms = 0;
    exchange->visit->until_ms = clock_ms() + exchange->http->options.idle_ms;
    switch (admit(exchange, method)) {
    case ADMIT_CLOSE:
        if (exchange->response) {
            MHD_add_response_header(exchange->response, "Connection", "close");
        }
        return send_reply(exchange);
    case ADMIT_REPLIED: return MHD_YES; // after its body
    case ADMIT_STREAM: exchange->visit->until_ms = 0; return MHD_YES;
    case ADMIT_RUN: return MHD_YES;
    }
    return MHD_NO;
}

// MHD sends no reply before the end of a body. Who goes on and on with one that is too large is
// told at the socket before it is closed, as far as that has room; not with TLS.
static void tell_too_large(struct exchange *exchange)
{
    AUTO_BUF body;
    AUTO_BUF reply;

    buf_init(&body, 1024);
    buf_init(&reply, 2048);
    reply_error_body(&body, reply_code(413), ADMIT_TOO_LARGE, ADMIT_TOO_LARGE_HINT, NULL);
    buf_printf(&reply,
               "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\n"
               "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
               body.len, body.data);
    if (buf_status(&reply, NULL) == 0 && !exchange->http->tls_key) {
        (void)!send(exchange->visit->fd, reply.data, reply.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

static void take_data(struct exchange *exchange, const char *data, size_t *size)
{
    if (exchange_replied(exchange)) { // nobody wants it any more, and not for ever
        exchange->discarded += *size;
        // who sends a stream is to learn how far it went, however much is on the way
        exchange->gone =
            !exchange->data &&
            exchange->discarded > (size_t)exchange->http->options.max_body + ADMIT_DISCARD_MAX;
        if (exchange->gone) {
            tell_too_large(exchange);
        }
        *size = 0;
        if (!exchange->visit->until_ms) {
            exchange->visit->until_ms = clock_ms() + exchange->http->options.idle_ms;
        }
        return;
    }
    if (exchange->data) {
        *size -= exchange->data(exchange, data, *size);
        if ((*size > 0 || exchange->busy) && !exchange_replied(exchange)) {
            exchange_suspend(exchange);
        }
        return;
    }
    buf_add(&exchange->body, data, *size);
    *size = 0;
    if (exchange->body.status) {
        exchange_refuse(exchange, 413, ADMIT_TOO_LARGE, ADMIT_TOO_LARGE_HINT);
    }
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *data_size, void **context)
{
    struct exchange *exchange = *context;

    (void)arg;
    (void)url;
    (void)version;
    if (!exchange) {
        return MHD_NO;
    }
    if (!exchange->begun) {
        return begin(exchange, connection, method);
    }
    if (*data_size > 0) {
        take_data(exchange, data, data_size);
        return exchange->gone ? MHD_NO : MHD_YES;
    }
    exchange->visit->until_ms = 0;
    if (!exchange_replied(exchange) && !exchange->gone) {
        place_and_run(exchange);
    }
    if (exchange_replied(exchange) || exchange->gone) {
        return send_reply(exchange);
    }
    exchange_suspend(exchange);
    return MHD_YES;
}

// ---- the loop ----

static void run_daemon(struct http *http)
{
    MHD_UNSIGNED_LONG_LONG wait_ms = 0;

    for (int turn = 0; turn < TURNS_MAX; turn++) {
        http->due = false;
        MHD_run(http->daemon);
        bool waits = MHD_get_timeout(http->daemon, &wait_ms) == MHD_NO || wait_ms > 0;
        if (waits && !http->due) {
            return;
        }
    }
    http->due = true;
}

static void on_nothing(uv_timer_t *timer)
{
    (void)timer;
}

// What is left to do after many turns must not wait for the next event.
static void on_prepare(uv_prepare_t *prepare)
{
    struct http *http = prepare->data;

    if (http->due && http->daemon) {
        run_daemon(http);
        if (http->due) {
            uv_timer_start(&http->soon, on_nothing, 0, 0);
        }
    }
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct http *http = poll->data;

    (void)status;
    (void)events;
    http->due = true;
}

void http_kick(struct http *http)
{
    http->due = true;
}

static void end_overdue(struct http *http)
{
    int64_t now_ms = clock_ms();

    for (struct visit *visit = http->visits; visit; visit = visit->next) {
        if ((visit->since_ms && now_ms - visit->since_ms > http->options.idle_ms) ||
            (visit->until_ms && now_ms > visit->until_ms)) {
            shutdown(visit->fd, SHUT_RDWR);
        }
    }
}

static void check_stopped(struct http *http);

static void on_tick(uv_timer_t *timer)
{
    struct http *http = timer->data;

    end_overdue(http);
    sites_look(http);
    http->due = true;
    if (http->stopping) {
        check_stopped(http);
    }
}

// ---- the end ----

static void on_all_closed(void *arg)
{
    struct http *http = arg;
    void (*ended)(void *arg) = http->ended;
    void *ended_arg = http->ended_arg;

    free(http->tls_key);
    free(http->tls_cert);
    long_poll_free(http->long_poll);
    sse_free(http->sse);
    metrics_free(http->metrics);
    sites_free(http);
    depot_free(http->depot);
    free(http);
    if (ended) {
        ended(ended_arg);
    }
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct http *http = handle->data;

    if (--http->open_handles == 0) {
        sites_close(http, on_all_closed, http);
    }
}

// Whoever is suspended now waits for the database alone; what it says later finds nobody.
static void close_all(struct http *http)
{
    uv_handle_t *handles[] = {
        (uv_handle_t *)&http->poll,
        (uv_handle_t *)&http->prepare,
        (uv_handle_t *)&http->timer,
        (uv_handle_t *)&http->soon,
    };

    uv_poll_stop(&http->poll);
    MHD_stop_daemon(http->daemon);
    http->daemon = NULL;
    http->open_handles = sizeof(handles) / sizeof(handles[0]);
    for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
        uv_close(handles[i], on_handle_closed);
    }
}

// Open connections without a request do not count.
static void check_stopped(struct http *http)
{
    if (http->daemon && http->exchanges == 0) {
        close_all(http);
    } else if (http->daemon && clock_ms() >= http->stop_at_ms) {
        // calls that are not answered yet are, with MR_ECONNECT, and their exchanges resumed
        sites_abandon(http);
        objects_stop(http);
        for (struct visit *visit = http->visits; visit; visit = visit->next) {
            shutdown(visit->fd, SHUT_RDWR);
        }
        run_daemon(http);
    }
}

void http_stop(struct http *http, void (*ended)(void *arg), void *arg)
{
    http->ended = ended;
    http->ended_arg = arg;
    http->stopping = true;
    http->stop_at_ms = clock_ms() + HTTP_STOP_MS;
    int fd = MHD_quiesce_daemon(http->daemon);
    if (fd != MHD_INVALID_SOCKET) {
        close(fd);
    }
    long_poll_stop(http->long_poll);
    sse_stop(http->sse);
    run_daemon(http);
    uv_timer_start(&http->timer, on_tick, 10, 100);
}

// ---- the beginning ----

static void on_mhd_log(void *arg, const char *format, va_list args)
{
    char text[512];

    (void)arg;
    vsnprintf(text, sizeof(text), format, args);
    text[strcspn(text, "\n")] = '\0';
    log_put(LEVEL_DEBUG, "http.library", NULL, 0, "%s", text);
}

// As many as the system lets us have, beside what the rest of the daemon needs.
static int64_t raise_limit(int64_t wanted)
{
    struct rlimit limit;
    rlim_t need = (rlim_t)wanted + 512;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < need) {
        limit.rlim_cur =
            limit.rlim_max == RLIM_INFINITY || limit.rlim_max > need ? need : limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
        wanted =
            limit.rlim_cur < need && limit.rlim_cur > 1024 ? (int64_t)limit.rlim_cur - 512 : wanted;
    }
    return wanted;
}

static int start_daemon(struct http *http, int fd, struct mr_error *err)
{
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
                     (http->tls_key ? MHD_USE_TLS : 0);
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_KEY, 0, http->tls_key},
        {MHD_OPTION_HTTPS_MEM_CERT, 0, http->tls_cert},
        {MHD_OPTION_END, 0, NULL},
    };

    http->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, http, MHD_OPTION_EXTERNAL_LOGGER, on_mhd_log, NULL,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_URI_LOG_CALLBACK, on_uri, http,
        MHD_OPTION_UNESCAPE_CALLBACK, no_unescape, NULL, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        http, MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)raise_limit(http->options.max_connections), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)(http->options.idle_ms / 1000), MHD_OPTION_STRICT_FOR_CLIENT, 0, MHD_OPTION_ARRAY,
        http->tls_key ? tls : &tls[2], MHD_OPTION_END);
    if (!http->daemon) {
        mr_error_set(err, MR_ECONFIG, "the HTTP server cannot be started");
        mr_error_hint(err, "%s", http->tls_key ? "Check tls_cert and tls_key." : "See the log.");
        close(fd);
        return MR_ECONFIG;
    }
    return 0;
}

static void join_loop(struct http *http)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);

    uv_poll_init(http->loop, &http->poll, info->epoll_fd);
    uv_prepare_init(http->loop, &http->prepare);
    uv_timer_init(http->loop, &http->timer);
    uv_timer_init(http->loop, &http->soon);
    http->poll.data = http->prepare.data = http->timer.data = http->soon.data = http;
    uv_poll_start(&http->poll, UV_READABLE, on_readable);
    uv_prepare_start(&http->prepare, on_prepare);
    uv_timer_start(&http->timer, on_tick, TICK_MS, TICK_MS);
}

static int open_parts(struct http *http, struct mr_error *err)
{
    http->long_poll = long_poll_new(http);
    http->sse = sse_new(http);
    http->metrics = metrics_new(http);
    if (!http->long_poll || !http->sse || !http->metrics) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    return sites_open(http, err);
}

static void log_listening(const struct http *http)
{
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("listen", http->options.listen),
        LOG_NUMBER_FIELD("port", http->port),
        LOG_TEXT_FIELD("tls", http->tls_key ? "on" : NULL),
    };

    log_put(LEVEL_INFO, "http.listening", fields, 3, "listening on port %d", http->port);
}

static int open_socket(struct http *http, int *ret_fd, struct mr_error *err)
{
    if (http->options.listen_fd == 0) {
        return listen_open(http->options.listen, ret_fd, &http->port, err);
    }
    *ret_fd = http->options.listen_fd;
    http->port = listen_port(*ret_fd);
    return 0;
}

int http_new(const struct http_options *options, const struct http_hooks *hooks,
             struct tally *tally, uv_loop_t *loop, struct http **ret, struct mr_error *err)
{
    struct http *http = calloc(1, sizeof(*http));
    int fd = -1;

    if (!http) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    http->options = *options;
    http->hooks = *hooks;
    http->tally = tally;
    http->loop = loop;
    int code = listen_read_tls(options, &http->tls_key, &http->tls_cert, err);
    code = code ? code : open_socket(http, &fd, err);
    code = code ? code : start_daemon(http, fd, err);
    if (code == 0) {
        join_loop(http);
        code = open_parts(http, err);
        if (code) {
            close_all(http);
            return code;
        }
    }
    if (code) {
        free(http->tls_key);
        free(http->tls_cert);
        free(http);
        return code;
    }
    log_listening(http);
    disk_check_path(http);
    *ret = http;
    return 0;
}

int http_port(const struct http *http)
{
    return http->port;
}

bool http_connected(const struct http *http)
{
    return sites_connected(http);
}

static bool same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool http_apply(struct http *http, const struct http_options *options)
{
    const struct http_options *old = &http->options;
    bool all = same(old->listen, options->listen) && same(old->tls_cert, options->tls_cert) &&
               same(old->tls_key, options->tls_key) && same(old->dsn, options->dsn) &&
               old->pooler == options->pooler && old->max_connections == options->max_connections &&
               old->idle_ms == options->idle_ms;

    http->options = *options;
    disk_check_path(http);
    return all;
}
