// SPDX-License-Identifier: PostgreSQL
//
// The migration program's own statements, from sql/schema/, with their $n filled in.
// The same text is run by schema_migrate() and written by schema_print().

#ifndef MILLRACE_CLIENT_SCHEMA_SCRIPT_H
#define MILLRACE_CLIENT_SCHEMA_SCRIPT_H

#include "base/buf.h"
#include "base/err.h"
#include "client/embedded.h"
#include "client/schema.h"

// The file sql/schema/<name>.sql. Fails with MR_EINTERNAL.
int schema_script_find(const struct embedded_set *set, const char *name,
                       const struct embedded_file **ret, struct mr_error *err);

// Each appends its statements to `out` and fails like schema_script_find(); whether all
// of it fitted is the buffer's status.
int schema_script_begin(const struct embedded_set *set, const struct schema_options *options,
                        struct buf *out, struct mr_error *err);
int schema_script_roles(const struct embedded_set *set, struct buf *out, struct mr_error *err);
int schema_script_bootstrap(const struct embedded_set *set, struct buf *out, struct mr_error *err);
int schema_script_guard(const struct embedded_set *set, int from, struct buf *out,
                        struct mr_error *err);
int schema_script_record_migration(const struct embedded_set *set,
                                   const struct schema_options *options,
                                   const struct embedded_file *migration, struct buf *out,
                                   struct mr_error *err);
int schema_script_record_functions(const struct embedded_set *set,
                                   const struct schema_options *options, struct buf *out,
                                   struct mr_error *err);
int schema_script_after(const struct embedded_set *set, struct buf *out, struct mr_error *err);

#endif
