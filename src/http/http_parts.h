// SPDX-License-Identifier: PostgreSQL
//
// What the files of the HTTP part share. Nobody else includes this.

#ifndef MILLRACE_HTTP_HTTP_PARTS_H
#define MILLRACE_HTTP_HTTP_PARTS_H

#include <microhttpd.h>
#include <uv.h>

#include "client/depot.h"
#include "client/shard.h"
#include "http/database.h"
#include "http/http.h"
#include "http/site.h"

struct long_poll;
struct sse;
struct metrics;

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
    uv_timer_t timer; // every second
    uv_timer_t soon;  // so that the loop does not sleep
    struct visit *visits;
    struct site *sites; // the databases: one, or each shard
    int site_count;
    struct shard_set set; // of several: which shard is where
    unsigned turn;        // of several: whose turn it is
    unsigned ticks;       // of sites_look()
    int open_parts;       // of sites that close
    bool closing_wakeups; // these are the last of them
    void (*sites_closed)(void *arg);
    void *sites_closed_arg;
    struct long_poll *long_poll;
    struct sse *sse;
    struct metrics *metrics;
    struct depot *depot; // of payload parts that are objects: see objects.h
    bool depot_known;    // it was looked for
    int trips;           // to it that are under way
    bool due;            // MHD has something to do
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
