// SPDX-License-Identifier: PostgreSQL
//
// One bridge on the loop: reads a stream of Redis as a consumer of a group, has the database apply
// its entries in batches, and acknowledges what is committed. See docs/bridge.md.

#ifndef MILLRACE_DAEMON_BRIDGE_H
#define MILLRACE_DAEMON_BRIDGE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "daemon/config.h"
#include "http/http.h"

struct bridge;

struct bridge_hooks {
    void (*connected)(void *arg); // both servers are there, the first time
    void (*ended)(void *arg);     // after bridge_stop(): it can be freed
    void *arg;
};

// `config` must live until bridge_free(); `dsn` and `pooler` are the file's, for one that has none.
// Connects with the next turn of the loop. Fails like link_new() and redis_url_parse().
int bridge_new(const struct config_bridge *config, const char *dsn, bool pooler,
               const struct bridge_hooks *hooks, uv_loop_t *loop, struct bridge **ret,
               struct mr_error *err);

// Reads no more, finishes the batch in hand within BRIDGE_GRACE_MS.
#define BRIDGE_GRACE_MS 10000
void bridge_stop(struct bridge *bridge);

// Only after `ended`.
void bridge_free(struct bridge *bridge);

bool bridge_ready(const struct bridge *bridge);

// What it has done and how far it is behind; strings are borrowed.
void bridge_figures(const struct bridge *bridge, struct http_bridge *ret);

// Why it cannot do its work now; NULL: it can.
const char *bridge_trouble(const struct bridge *bridge);

#endif
