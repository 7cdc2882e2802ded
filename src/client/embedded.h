// SPDX-License-Identifier: PostgreSQL
//
// The .sql files of the project, compiled in. tools/embed writes the C file behind
// this header; everything in it is constant and lives as long as the program.

#ifndef MILLRACE_CLIENT_EMBEDDED_H
#define MILLRACE_CLIENT_EMBEDDED_H

#include <stddef.h>

enum embedded_kind {
    EMBEDDED_SCHEMA,    // statements of the migration program itself, with $n to fill in
    EMBEDDED_BENCH,     // statements of `millrace bench`, never part of the schema
    EMBEDDED_MIGRATION, // numbered, applied once
    EMBEDDED_INTERNAL,  // this and the following: replaceable, applied whenever they change
    EMBEDDED_API,
    EMBEDDED_VIEW,
    EMBEDDED_GRANTS,
};

struct embedded_file {
    enum embedded_kind kind;
    int number;           // of a migration, from 1; else 0
    const char *name;     // `core` of sql/migrations/0001_core.sql
    const char *path;     // as in the repository
    const char *checksum; // SHA-256 in hex
    const char *sql;
};

// Files in the order in which they are applied: by kind, within a kind by name.
struct embedded_set {
    const struct embedded_file *files;
    size_t count;
    const char *functions_checksum; // of all replaceable files together
};

extern const struct embedded_set embedded;

#endif
