// SPDX-License-Identifier: PostgreSQL
//
// The configuration of a private server: settings fit for queues, and who may connect. Written
// at each start; what its owner wants otherwise stands in local.conf.

#ifndef MILLRACE_DAEMON_SERVER_CONF_H
#define MILLRACE_DAEMON_SERVER_CONF_H

#include <stdint.h>

#include "base/err.h"
#include "daemon/server_dir.h"

// Writes postgresql.conf, pg_hba.conf and pg_ident.conf. Who owns the server in the system is
// `database_user` in it.
int server_conf_write(const struct server_dir *dir, int port, const char *database_user,
                      struct mr_error *err);

// Memory for shared buffers of a machine with so much, in MiB.
int64_t server_conf_buffers_mib(int64_t memory_mib);

#endif
