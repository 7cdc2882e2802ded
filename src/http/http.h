// SPDX-License-Identifier: PostgreSQL
//
// The HTTP part of the daemon: the API, the dashboard's files, metrics. It lives on the daemon's
// loop and talks to the database over connections of its own.

#ifndef MILLRACE_HTTP_HTTP_H
#define MILLRACE_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "base/err.h"
#include "client/depot.h"
#include "http/auth.h"
#include "http/tally.h"

struct http;

#define HTTP_DEFAULT_LISTEN      "127.0.0.1:7070"
#define HTTP_DEFAULT_CONNECTIONS 10000
#define HTTP_DEFAULT_MAX_BODY    (INT64_C(16) * 1024 * 1024)
#define HTTP_DEFAULT_IDLE_MS     60000

// A name of one's own for a figure of one queue.
struct http_alias {
    const char *name;
    const char *metric;
    const char *queue;
};

// What a bridge has done and how far it is behind. Strings are borrowed.
struct http_bridge {
    const char *name;
    bool connected; // to Redis
    bool known;     // the next four are, as of the last look
    int64_t lag;    // entries that no consumer has read; -1: Redis cannot tell
    int64_t pending;
    int64_t length;
    double lag_seconds; // age of the oldest entry that has not been acknowledged
    int64_t applied, repeated, dead;
    int64_t reclaimed;
    int64_t reconnects;
    int64_t holds;
};

// What a relay has done and holds. Strings are borrowed.
struct http_relay {
    const char *name, *queue;
    bool connected;    // Redis takes its jobs
    int64_t in_flight; // jobs that it holds the leases of
    int64_t unsent;    // of these: not in Redis
    int64_t bytes;     // of them, about
    int64_t length;    // of the stream, as of the last look
    int64_t pending;   // of these: with workers
    int64_t lag;       // of these: that no worker has taken
    int64_t sent, resent, finished, lost, late, inherited;
    int64_t reconnects;
    int64_t holds;
};

// Strings are borrowed until http_apply() with others, or the end.
struct http_options {
    const char *dsn;
    bool pooler;
    const char *version;
    const char *listen;       // ADDRESS:PORT; port 0: any that is free
    int listen_fd;            // a socket that listens already, which is taken over; 0: none
    const char *const *hosts; // names by which it may be asked for; ends with NULL, may be NULL
    const char *tls_cert;     // files; both or none
    const char *tls_key;
    const struct auth_token *tokens;
    size_t token_count;
    const struct http_alias *aliases;
    size_t alias_count;
    const char *disk_path; // on the disk of the database; NULL: the server is asked
    int64_t max_connections;
    int64_t max_body; // bytes of a JSON body, and of a line of NDJSON
    int64_t idle_ms;  // how long a connection may be silent, and the head of a request, its body
                      // (but for a stream) and the reply may take each
    struct depot_options blobs; // where payload parts are that are objects
};

// What the rest of the daemon tells and is told.
struct http_hooks {
    void (*connected)(void *arg); // the database is there
    // Appends texts of JSON, each after a comma unless it is the first: why the daemon is not
    // ready.
    void (*reasons)(void *arg, struct buf *out);
    // Calls `each` for every worker: whether its breaker is open.
    void (*breakers)(void *arg, void (*each)(void *each_arg, const char *worker, bool open),
                     void *each_arg);
    // The same for every bridge.
    void (*bridges)(void *arg, void (*each)(void *each_arg, const struct http_bridge *bridge),
                    void *each_arg);
    // The same for every relay.
    void (*relays)(void *arg, void (*each)(void *each_arg, const struct http_relay *relay),
                   void *each_arg);
    int64_t (*reconnects)(void *arg); // of all other parts
    void *arg;
};

// Listens when this returns. Fails with MR_ECONFIG (address, certificate), MR_EIO (the address is
// taken), MR_ENOMEM, and as wire_new(). `tally` has what workers have done; it must outlive it.
int http_new(const struct http_options *options, const struct http_hooks *hooks,
             struct tally *tally, uv_loop_t *loop, struct http **ret, struct mr_error *err);

// The port it listens on.
int http_port(const struct http *http);
bool http_connected(const struct http *http);

// Takes tokens, hosts and aliases from now on. False when something else differs, too, which holds
// only after a restart.
bool http_apply(struct http *http, const struct http_options *options);

// Takes no more requests, ends those that wait, gives the others HTTP_STOP_MS; then `ended` is
// called on the loop and the memory is gone.
#define HTTP_STOP_MS 5000
void http_stop(struct http *http, void (*ended)(void *arg), void *arg);

#endif
