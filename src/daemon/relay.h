// SPDX-License-Identifier: PostgreSQL
//
// The relay of one queue on the loop: holds leases of its jobs, puts the jobs into a stream of
// Redis for workers, and writes down what these say became of them. See docs/delivery.md.

#ifndef MILLRACE_DAEMON_RELAY_H
#define MILLRACE_DAEMON_RELAY_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "daemon/config.h"
#include "http/http.h"

struct relay;

struct relay_hooks {
    void (*connected)(void *arg); // both servers are there, the first time
    void (*ended)(void *arg);     // after relay_stop(), or because it cannot go on: to be freed
    void *arg;
};

struct relay_options {
    const struct config_relay *config; // must live until relay_free(), and so must the queue
    const char *queue;
    const char *dsn; // the file's, for one that has none
    bool pooler;
    struct depot_options blobs; // copied
};

// Connects with the next turn of the loop. Fails like worker_new() and redis_url_parse().
int relay_new(const struct relay_options *options, const struct relay_hooks *hooks, uv_loop_t *loop,
              struct relay **ret, struct mr_error *err);

// Claims no more, takes back what no worker has, gives the others their grace period.
void relay_stop(struct relay *relay);

// Only after `ended`.
void relay_free(struct relay *relay);

bool relay_ready(const struct relay *relay);

// What it has done and holds; strings are borrowed.
void relay_figures(const struct relay *relay, struct http_relay *ret);

// Why it cannot do its work now; NULL: it can.
const char *relay_trouble(const struct relay *relay);

#endif
