// SPDX-License-Identifier: PostgreSQL
//
// The daemon: the workers, bridges and relays of a configuration file and upkeep on one loop,
// until a signal ends it.

#ifndef MILLRACE_DAEMON_SERVE_H
#define MILLRACE_DAEMON_SERVE_H

#include <stdbool.h>

#include "base/err.h"
#include "daemon/config.h"

// What a daemon does, as bits.
enum serve_role {
    SERVE_WORK = 1,
    SERVE_MAINTAIN = 2,
    SERVE_HTTP = 4,
    SERVE_BRIDGE = 8,
    SERVE_RELAY = 16,
};

struct serve_options {
    const char *config_path; // NULL: no file, hence no workers
    const char *dsn;         // instead of the file's; NULL
    const char *pid_file;    // NULL: none
    unsigned roles;
    const char *version; // for the log
    // of `millrace up`: HTTP also without a section in the file, and with this token
    const char *http_listen; // instead of the default; NULL
    int http_fd;             // that listens there; 0: none
    const char *http_hash;   // of a token for an admin; NULL: none
};

// Reads a list of roles, `work,maintain`. Fails with MR_EUSAGE.
int serve_parse_roles(const char *text, unsigned *ret, struct mr_error *err);

// Reads the file that the options name, with everything that can be wrong about it. *ret is the
// caller's.
int serve_load(const struct serve_options *options, struct config **ret, struct mr_error *err);

// Runs until a signal ends it; then 0. SIGTERM, SIGINT: stop gracefully, the second time at once
// with status 1. SIGHUP: read the file again. Fails before anything is claimed: a broken
// configuration, a handler that cannot be opened, a pid file that another daemon holds.
int serve_run(const struct serve_options *options, struct mr_error *err);

#endif
