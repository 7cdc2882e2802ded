// SPDX-License-Identifier: PostgreSQL
//
// The bridges that a configuration names. A new configuration changes them while they work: one
// that is unchanged is left alone.

#ifndef MILLRACE_DAEMON_BRIDGES_H
#define MILLRACE_DAEMON_BRIDGES_H

#include <stdbool.h>
#include <uv.h>

#include "base/buf.h"
#include "base/err.h"
#include "daemon/config.h"
#include "http/http.h"

struct bridges;

struct bridges_hooks {
    void (*connected)(void *arg); // one of them, the first time
    void (*ended)(void *arg);     // after bridges_stop(): none is left
    void *arg;
};

// None yet. Fails with MR_ENOMEM.
int bridges_new(uv_loop_t *loop, const struct bridges_hooks *hooks, struct bridges **ret,
                struct mr_error *err);
// None may be left.
void bridges_free(struct bridges *bridges);

// Makes them what `config` says. All or nothing: on failure (as of bridge_new()) they are as they
// were. `config` may be freed afterwards.
int bridges_apply(struct bridges *bridges, const struct config *config, struct mr_error *err);

// All of them stop gracefully. Returns how long that may take, 0 when there are none: then `ended`
// is not called.
int64_t bridges_stop(struct bridges *bridges);

// Whether all of them have been connected to both servers.
bool bridges_ready(const struct bridges *bridges);
void bridges_each(const struct bridges *bridges,
                  void (*each)(void *arg, const struct http_bridge *bridge), void *arg);
// Appends, as texts of JSON with commas between, why bridges cannot do their work.
void bridges_reasons(const struct bridges *bridges, struct buf *out);

#endif
