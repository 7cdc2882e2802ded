// SPDX-License-Identifier: PostgreSQL
//
// The relays that a configuration names. A new configuration changes them while they work: one
// that is unchanged is left alone.

#ifndef MILLRACE_DAEMON_RELAYS_H
#define MILLRACE_DAEMON_RELAYS_H

#include <stdbool.h>
#include <uv.h>

#include "base/buf.h"
#include "base/err.h"
#include "daemon/config.h"
#include "http/http.h"

struct relays;

struct relays_hooks {
    void (*connected)(void *arg); // one of them, the first time
    void (*ended)(void *arg);     // after relays_stop(): none is left
    void *arg;
};

// None yet. Fails with MR_ENOMEM.
int relays_new(uv_loop_t *loop, const struct relays_hooks *hooks, struct relays **ret,
               struct mr_error *err);
// None may be left.
void relays_free(struct relays *relays);

// Makes them what `config` says. All or nothing: on failure (as of relay_new()) they are as they
// were. `config` may be freed afterwards.
int relays_apply(struct relays *relays, const struct config *config, struct mr_error *err);

// All of them stop gracefully. Returns how long that may take, 0 when there are none: then `ended`
// is not called.
int64_t relays_stop(struct relays *relays);

// Whether all of them have been connected to both servers.
bool relays_ready(const struct relays *relays);
void relays_each(const struct relays *relays,
                 void (*each)(void *arg, const struct http_relay *relay), void *arg);
// Appends, as texts of JSON with commas between, why relays cannot do their work.
void relays_reasons(const struct relays *relays, struct buf *out);

#endif
