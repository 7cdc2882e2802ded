// SPDX-License-Identifier: PostgreSQL
//
// A PostgreSQL server of our own: made at first, started, watched, stopped. Nothing of it is
// shared with a server of the system.
//
// 1. One program at a time has a directory (server_dir.h); what a crashed one has left is
//    cleaned up by the next.
// 2. data/ appears complete or not at all.
// 3. The server is our child. It gets a signal to shut down when we are gone, however that was.
// 4. Over the socket only the owner of its directory gets in, over loopback only the password.

#ifndef MILLRACE_DAEMON_PRIVATE_SERVER_H
#define MILLRACE_DAEMON_PRIVATE_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "daemon/sigwatch.h"
#include "http/auth.h"

struct private_server;

// The user and the database that it is made with.
#define PRIVATE_SERVER_USER     "millrace"
#define PRIVATE_SERVER_DATABASE "millrace"

struct private_server_options {
    const char *dir; // NULL: server_dir_default()
    int port;        // on 127.0.0.1; 0: the one of the last time, or any that is free
};

// A server that keeps dying is given up: more deaths than this within the time.
#define PRIVATE_SERVER_DEATHS   3
#define PRIVATE_SERVER_DEATH_MS (60 * 1000)

// The server's log is cut when it is longer; the last part of this size stays as log.1.
#define PRIVATE_SERVER_LOG_MAX (10 * 1024 * 1024)

// Makes the server where there is none, starts it and waits until it takes connections. `watch`
// has begun and outlives *ret. The caller ends it with private_server_stop(). Fails like
// server_dir_open() and pg_binaries_find(), and with MR_ETIMEOUT when a stop signal came.
int private_server_open(const struct private_server_options *options, struct sigwatch *watch,
                        struct private_server **ret, struct mr_error *err);

// How to connect: over the socket, without a password. Borrowed.
const char *private_server_dsn(const struct private_server *server);
const char *private_server_dir(const struct private_server *server);
const char *private_server_socket(const struct private_server *server);
int private_server_port(const struct private_server *server);

// Writes the dsn to the directory: from here on scripts find a server that is ready for them.
int private_server_publish(const struct private_server *server, struct mr_error *err);

// The token for the HTTP API, made when there is none yet; it stays in the directory, readable by
// its owner only.
int private_server_token(const struct private_server *server, char ret_token[AUTH_TOKEN_MAX + 1],
                         char ret_hash[AUTH_HASH_SIZE], struct mr_error *err);
// Writes the address of the dashboard, with the token, to the directory; NULL removes it. Before
// private_server_publish().
int private_server_publish_url(const struct private_server *server, const char *url,
                               struct mr_error *err);

// Its process; 0 when there is none.
pid_t private_server_pid(const struct private_server *server);

// Its process has ended with this status, which nobody asked for: starts it again, at the same
// address. Fails when that happens too often, or does not work.
int private_server_revive(struct private_server *server, int status, struct mr_error *err);

// Keeps the log short. To be called now and then.
void private_server_upkeep(struct private_server *server);

// In a forked child: lets go of the server and of the lock on its directory, which stay the
// parent's.
void private_server_leave(struct private_server *server);

// Shuts it down (fast; at once when a further stop signal comes meanwhile), unlocks the directory
// and frees the memory. NULL is fine.
void private_server_stop(struct private_server *server);

#endif
