// SPDX-License-Identifier: PostgreSQL
//
// What the files of the HTTP part share. Nobody else includes this.

#ifndef MILLRACE_HTTP_HTTP_PARTS_H
#define MILLRACE_HTTP_HTTP_PARTS_H

#include <microhttpd.h>
#include <uv.h>

#include "client/depot.h"
#include "client/policy.h"
#include "http/database.h"
#include "http/http.h"

struct enqueue_group;
struct long_poll;
struct sse;
struct metrics;
struct wakeup;

// A connection, from its beginning to its end.
struct visit {
    struct visit *next, *prev;
    int fd;
    int64_t since_ms; // it is silent, or sends the head of a request; 0: something is under way
    int64_t until_ms; // the body has to be there, or the reply taken; 0: no matter when
};

struct http {
    struct http_options options;
    struct http_hooks hooks;
    struct tally *tally;
    uv_loop_t *loop;
    struct MHD_Daemon *daemon;
    int port;
    char *tls_key, *tls_cert; // contents
    uv_poll_t poll;
    uv_prepare_t prepare;
    uv_timer_t timer;  // every second
    uv_timer_t soon;   // so that the loop does not sleep
    uv_timer_t linger; // of the group: see enqueue_group.c
    struct visit *visits;
    struct database *db;
    struct enqueue_group *group;
    struct long_poll *long_poll;
    struct wakeup *wakeup;
    struct sse *sse;
    struct metrics *metrics;
    struct policies policies; // of payloads, as the queues were asked
    struct depot *depot;      // of payload parts that are objects: see objects.h
    bool depot_known;         // it was looked for
    int trips;                // to it that are under way
    bool due;                 // MHD has something to do
    bool stopping;
    int64_t stop_at_ms;
    int exchanges; // that have not ended
    int open_handles;
    void (*ended)(void *arg);
    void *ended_arg;
};

// MHD has something to do: before the loop sleeps it is let run.
void http_kick(struct http *http);

#endif
