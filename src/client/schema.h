// SPDX-License-Identifier: PostgreSQL
//
// Installs and upgrades the schema `millrace` in a database.
//
// 1. A migration is one transaction with its row in millrace.schema_migration. The last one that is
//    missing shares it with the functions: those of before may not fit a type that it changes, and
//    until they are replaced nobody could claim.
// 2. Functions, views and grants are one transaction with their checksum in
//    millrace.schema_functions; each migration and each new role deletes that row, so
//    that they are installed again even if the program ends in between.
// 3. Every transaction first takes the migration lock and then looks at what is left
//    to do: any number of programs may migrate at once.
// 4. What was committed stays; a failure changes nothing else.

#ifndef MILLRACE_CLIENT_SCHEMA_H
#define MILLRACE_CLIENT_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "client/conn.h"
#include "client/embedded.h"

enum schema_step_kind {
    SCHEMA_STEP_ROLE,      // a role statement
    SCHEMA_STEP_SCHEMA,    // the schema and its bookkeeping
    SCHEMA_STEP_MIGRATION, // one migration
    SCHEMA_STEP_FUNCTIONS, // all functions, views and grants
};

struct schema_step {
    enum schema_step_kind kind;
    const char *statement;                 // of SCHEMA_STEP_ROLE, else NULL
    const struct embedded_file *migration; // of SCHEMA_STEP_MIGRATION, else NULL
};

// Called for each step; pointers in `step` are borrowed until it returns.
typedef void schema_step_fn(void *arg, const struct schema_step *step);

struct schema_options {
    const char *program_version; // recorded with what is installed
    int64_t lock_timeout_ms;     // how long a statement waits for a lock
    int64_t wait_timeout_ms;     // how long to wait for another migration
    bool again;                  // install functions, views and grants though they are up to date
    schema_step_fn *on_step;     // may be NULL
    void *on_step_arg;
};

// The oldest PostgreSQL that is supported, as server_version_num.
#define SCHEMA_SERVER_VERSION_MIN 130000

// The size of a text that schema_print() makes, at most.
#define SCHEMA_PRINT_MAX (64 * 1024 * 1024)

// Fails with MR_ESERVER when server_version_num is below the minimum.
int schema_check_server(int server_version, struct mr_error *err);

// Calls on_step for each step that schema_migrate() would take, in order, and changes
// nothing. Sets *ret_steps to their number: 0 when the database is up to date. Fails
// with MR_ESERVER, MR_EFOREIGN, MR_ENEWER, MR_EALTERED, or what conn_query() says.
int schema_check(struct conn *conn, const struct embedded_set *set,
                 const struct schema_options *options, size_t *ret_steps, struct mr_error *err);

// Brings the database up to date; calls on_step for each step once it is committed and
// sets *ret_steps to their number, on failure too. Fails like schema_check(), and with
// MR_EROLES, MR_EPRIVILEGE, MR_EREADONLY, MR_ELOCK, or what a file's statement says.
// Leaves no transaction open.
int schema_migrate(struct conn *conn, const struct embedded_set *set,
                   const struct schema_options *options, size_t *ret_steps, struct mr_error *err);

// Appends plain SQL to `out` that does for a database at migration `from` (0: an empty
// one) what schema_migrate() does. Fails with MR_EUSAGE when there is no migration
// `from`, MR_ENOMEM, MR_ELIMIT.
int schema_print(const struct embedded_set *set, const struct schema_options *options, int from,
                 struct buf *out, struct mr_error *err);

#endif
