// SPDX-License-Identifier: PostgreSQL
//
// One connection to PostgreSQL, with failures as mr_error values.
//
// A connection belongs to one thread at a time. Notices of the server are dropped:
// a library does not print.

#ifndef MILLRACE_CLIENT_CONN_H
#define MILLRACE_CLIENT_CONN_H

#include <libpq-fe.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

struct conn;

// Connects with `dsn`, else $MILLRACE_DSN, else $DATABASE_URL, else libpq's own
// environment; NULL and "" count as absent. Gives up after CONN_TIMEOUT_S seconds
// unless the dsn or $PGCONNECT_TIMEOUT say otherwise. On success the caller owns
// *ret and frees it with conn_free(). Fails with MR_EUSAGE for a dsn that cannot be
// parsed, MR_ECONNECT, MR_ENOMEM. No error contains any part of the dsn.
int conn_open(const char *dsn, struct conn **ret, struct mr_error *err);

#define CONN_TIMEOUT_S 10

// Closes the connection; an open transaction is rolled back by the server. NULL is
// fine.
void conn_free(struct conn *conn);

// Runs one or more statements as one simple query and drops their rows. A failure
// says on which line, or in which statement, and leaves an open transaction aborted.
int conn_run(struct conn *conn, const char *script, struct mr_error *err);

// Runs one statement that returns rows. On success the caller owns *ret and frees it
// with PQclear().
int conn_query(struct conn *conn, const char *sql, PGresult **ret, struct mr_error *err);

// The same with text parameters $1... (NULL is null), without a named statement.
int conn_query_params(struct conn *conn, const char *sql, int count, const char *const *values,
                      PGresult **ret, struct mr_error *err);

// Rolls back whatever is open; a failure to do so is not reported, the connection is
// broken then and the next call says so.
void conn_rollback(struct conn *conn);

// Whether a transaction is open and not aborted.
bool conn_in_transaction(const struct conn *conn);

// libpq's connection, borrowed, for call_exec().
PGconn *conn_pg(const struct conn *conn);

// As server_version_num: 150004.
int conn_server_version(const struct conn *conn);

// The code for an SQLSTATE; MR_EDATABASE when it is none of the known ones.
int conn_code_of_sqlstate(const char *sqlstate);

// ---- for connections that are driven by hand ----

// The dsn that counts, as in conn_open(): borrowed from the argument or the environment, NULL for
// libpq's own environment. Fails with MR_EUSAGE when it cannot be parsed.
int conn_choose_dsn(const char *dsn, const char **ret, struct mr_error *err);

// The dsn that counts where it is the address of a Redis server, else NULL. Everything else of this
// file refuses it with MR_EUSAGE.
const char *conn_redis_dsn(const char *dsn);

// The dsn that counts where it names several databases, else NULL. conn_choose_dsn(), and with it
// everything that needs one, refuses it with MR_EUSAGE.
const char *conn_shards_dsn(const char *dsn);

// Begins to connect without waiting, with conn_open()'s settings; NULL without memory. libpq stays
// with a host that does not answer for as long as the caller waits: after that, `turn` is one more,
// and the hosts of the dsn are tried from the next one on.
PGconn *conn_start(const char *dsn, const char *application_name, int turn);

// Appends the items of a list, separated by commas, beginning with the one after `turn` others.
void conn_rotate(const char *list, int turn, struct buf *out);

// Whether the server is a process of this host, where that can be told for certain: over a unix
// socket, or over the loopback when this host knows the backend as one. A server in a container or
// behind a forwarded port is not: its paths are not ours.
bool conn_same_host(const PGconn *pg);

// Drops the server's notices from now on.
void conn_silence(PGconn *pg);

// Why a connection could not be made. Returns MR_ECONNECT.
int conn_connect_error(const PGconn *pg, struct mr_error *err);

// Why a statement failed, or with a result of NULL why the connection did. Returns the code.
int conn_error_of(const PGconn *pg, const PGresult *result, struct mr_error *err);

#define AUTO_CONN __attribute__((cleanup(conn_cleanup))) struct conn
void conn_cleanup(struct conn **conn);

#define AUTO_RESULT __attribute__((cleanup(conn_result_cleanup))) PGresult
void conn_result_cleanup(PGresult **result);

#endif
