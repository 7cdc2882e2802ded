// SPDX-License-Identifier: PostgreSQL
//
// What is installed in a database, as its catalogues and bookkeeping tables tell.

#ifndef MILLRACE_CLIENT_SCHEMA_STATE_H
#define MILLRACE_CLIENT_SCHEMA_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "client/conn.h"
#include "client/embedded.h"

struct schema_record {
    int number;
    const char *name;
    const char *checksum;
    const char *program_version;
};

// All strings belong to `results` and live until schema_state_done().
struct schema_state {
    const char *database_ident; // quoted for use in SQL
    const char *user_ident;
    const char *schema_owner; // NULL when there is no schema
    bool in_recovery;
    bool read_only;
    bool owns_schema;
    bool has_bookkeeping;
    bool has_objects;
    struct schema_record *migrations; // by number
    size_t migration_count;
    const char *functions_checksum; // NULL when they have to be installed
    const char *functions_version;
    const char **role_statements; // what the roles still need
    size_t role_statement_count;
    PGresult *results[4];
};

// Reads the state in the transaction that is open, or without one. On success the
// caller ends it with schema_state_done(); on failure nothing is left to end.
int schema_state_read(struct conn *conn, const struct embedded_set *set, struct schema_state *ret,
                      struct mr_error *err);

void schema_state_done(struct schema_state *state);

#define AUTO_SCHEMA_STATE __attribute__((cleanup(schema_state_done))) struct schema_state

#endif
