// SPDX-License-Identifier: PostgreSQL
//
// HTTP transfers on the libuv loop: see http_multi.h.
//
// 1. Ended transfers are collected after curl_multi_socket_action() has returned, never inside of
//    it: libcurl refuses to be called from its own callbacks.
// 2. libcurl takes its hand from a socket before it closes it, and the poll ends then and there:
//    the descriptor's number may be in use again in the same turn of the loop.

#include "handler/http_multi.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>

// What the rest of the program may have open.
#define OTHER_FILES 256

struct http_multi {
    CURLM *curl;
    uv_loop_t *loop;
    uv_timer_t timer;
    int handles; // of libuv that are not closed yet
    http_multi_ended_fn *ended;
    void *arg;
    void (*closed)(void *arg);
    void *closed_arg;
};

// A socket that libcurl waits for.
struct watch {
    uv_poll_t poll;
    struct http_multi *multi;
    curl_socket_t fd;
};

static void collect(struct http_multi *multi)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(multi->curl, &left))) {
        if (message->msg == CURLMSG_DONE) {
            CURL *easy = message->easy_handle;
            CURLcode code = message->data.result;
            // the message is gone with this
            curl_multi_remove_handle(multi->curl, easy);
            multi->ended(multi->arg, easy, code);
        }
    }
}

// ---- sockets ----

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct watch *watch = poll->data;
    struct http_multi *multi = watch->multi;
    int flags = status < 0 ? CURL_CSELECT_ERR : 0;
    int running;

    flags |= events & UV_READABLE ? CURL_CSELECT_IN : 0;
    flags |= events & UV_WRITABLE ? CURL_CSELECT_OUT : 0;
    curl_multi_socket_action(multi->curl, watch->fd, flags, &running);
    collect(multi); // the watch may be gone by now
}

// With the last handle the multi itself goes.
static void handle_closed(struct http_multi *multi)
{
    if (--multi->handles == 0) {
        void (*closed)(void *) = multi->closed;
        void *arg = multi->closed_arg;

        free(multi);
        curl_global_cleanup();
        closed(arg);
    }
}

static void on_watch_closed(uv_handle_t *handle)
{
    struct watch *watch = handle->data;
    struct http_multi *multi = watch->multi;

    free(watch);
    handle_closed(multi);
}

static struct watch *watch_new(struct http_multi *multi, curl_socket_t fd)
{
    struct watch *watch = calloc(1, sizeof(*watch));

    if (!watch) {
        return NULL;
    }
    watch->multi = multi;
    watch->fd = fd;
    if (uv_poll_init_socket(multi->loop, &watch->poll, fd)) {
        free(watch);
        return NULL;
    }
    watch->poll.data = watch;
    multi->handles++;
    return watch;
}

static void watch_end(struct watch *watch)
{
    uv_poll_stop(&watch->poll);
    uv_close((uv_handle_t *)&watch->poll, on_watch_closed);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
    struct http_multi *multi = arg;
    struct watch *watch = socket_arg;

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (watch) {
            curl_multi_assign(multi->curl, fd, NULL);
            watch_end(watch);
        }
        return 0;
    }
    if (!watch) {
        watch = watch_new(multi, fd);
        if (!watch) {
            return -1;
        }
        curl_multi_assign(multi->curl, fd, watch);
    }
    int events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
    return uv_poll_start(&watch->poll, events, on_poll);
}

// ---- time ----

static void on_timer(uv_timer_t *timer)
{
    struct http_multi *multi = timer->data;
    int running;

    curl_multi_socket_action(multi->curl, CURL_SOCKET_TIMEOUT, 0, &running);
    collect(multi);
}

static int on_timeout(CURLM *curl, long timeout_ms, void *arg)
{
    struct http_multi *multi = arg;

    (void)curl;
    if (timeout_ms < 0) {
        uv_timer_stop(&multi->timer);
    } else {
        uv_timer_start(&multi->timer, on_timer, (uint64_t)timeout_ms, 0);
    }
    return 0;
}

// ---- life ----

// Each connection is a file, and many systems allow 1,024 unless asked for more.
static void allow_files(int connections)
{
    rlim_t wanted = (rlim_t)connections + OTHER_FILES;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < wanted) {
        limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit); // if not, connections fail, and say why
    }
}

static void set_options(struct http_multi *multi, int connections)
{
    curl_multi_setopt(multi->curl, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi->curl, CURLMOPT_SOCKETDATA, multi);
    curl_multi_setopt(multi->curl, CURLMOPT_TIMERFUNCTION, on_timeout);
    curl_multi_setopt(multi->curl, CURLMOPT_TIMERDATA, multi);
    curl_multi_setopt(multi->curl, CURLMOPT_MAXCONNECTS, (long)connections);
    curl_multi_setopt(multi->curl, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
}

int http_multi_new(uv_loop_t *loop, int connections, http_multi_ended_fn *ended, void *arg,
                   struct http_multi **ret, struct mr_error *err)
{
    struct http_multi *multi = calloc(1, sizeof(*multi));

    if (!multi) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    if (curl_global_init(CURL_GLOBAL_DEFAULT)) {
        free(multi);
        return mr_error_set(err, MR_EIO, "libcurl cannot be started");
    }
    multi->curl = curl_multi_init();
    if (!multi->curl) {
        curl_global_cleanup();
        free(multi);
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    multi->loop = loop;
    multi->ended = ended;
    multi->arg = arg;
    uv_timer_init(loop, &multi->timer);
    multi->timer.data = multi;
    multi->handles = 1;
    set_options(multi, connections);
    allow_files(connections);
    *ret = multi;
    return 0;
}

int http_multi_add(struct http_multi *multi, CURL *easy, struct mr_error *err)
{
    CURLMcode code = curl_multi_add_handle(multi->curl, easy);

    if (code) {
        return mr_error_set(err, MR_ENOMEM, "cannot start a request: %s",
                            curl_multi_strerror(code));
    }
    return 0;
}

void http_multi_remove(struct http_multi *multi, CURL *easy)
{
    curl_multi_remove_handle(multi->curl, easy);
}

static void on_timer_closed(uv_handle_t *handle)
{
    handle_closed(handle->data);
}

void http_multi_close(struct http_multi *multi, void (*closed)(void *arg), void *arg)
{
    multi->closed = closed;
    multi->closed_arg = arg;
    curl_multi_cleanup(multi->curl); // may still speak of sockets
    uv_close((uv_handle_t *)&multi->timer, on_timer_closed);
}
