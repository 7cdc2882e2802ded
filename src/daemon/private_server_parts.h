// SPDX-License-Identifier: PostgreSQL
//
// What the files behind private_server.h share.

#ifndef MILLRACE_DAEMON_PRIVATE_SERVER_PARTS_H
#define MILLRACE_DAEMON_PRIVATE_SERVER_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/pg_binaries.h"
#include "daemon/private_server.h"
#include "daemon/server_dir.h"

#define PRIVATE_SERVER_DSN_SIZE 512

struct private_server {
    struct sigwatch *watch;
    struct server_dir dir;
    struct pg_binaries binaries;
    int port;
    int log_fd;
    off_t log_mark; // where the last start began in it
    pid_t pid;      // 0: does not run
    int64_t deaths_ms[PRIVATE_SERVER_DEATHS];
    int deaths;
    char dsn[PRIVATE_SERVER_DSN_SIZE];
};

// ---- private_server_make.c: a new cluster ----

// Makes data/ with a user, a password and a database of its own.
int private_server_make(struct private_server *server, struct mr_error *err);

// ---- private_server_port.c: its address ----

// Sets server->port: the wanted one, else the last one, else any that is free. Fails with
// MR_ECONFLICT when the wanted one is in use.
int private_server_choose_port(struct private_server *server, int wanted, struct mr_error *err);
bool private_server_port_is_free(int port);

// The server runs: remembers its port, and what to connect with.
int private_server_settle(struct private_server *server, struct mr_error *err);

// ---- private_server_log.c: what it says ----

// What comes from here on belongs to the next program that is started.
void private_server_mark_log(struct private_server *server);

// Fails with `what: the last complaint in the log since the mark`, and a hint.
int private_server_log_reason(const struct private_server *server, struct mr_error *err,
                              const char *what);

#endif
