// SPDX-License-Identifier: PostgreSQL
//
// Decides what is left to do: compares what a database has with what this program
// carries. Talks to nobody.

#ifndef MILLRACE_CLIENT_SCHEMA_PLAN_H
#define MILLRACE_CLIENT_SCHEMA_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "client/embedded.h"
#include "client/schema_state.h"

struct schema_plan {
    bool roles;
    bool bootstrap;
    const struct embedded_file *migration; // the first that is missing; NULL for none
    bool last;                             // no other one is
    bool functions;
};

// Fails with MR_EFOREIGN, MR_ENEWER or MR_EALTERED when the database is one that this
// program must not touch.
int schema_plan_make(const struct embedded_set *set, const struct schema_state *state,
                     const char *program_version, struct schema_plan *ret, struct mr_error *err);

// Whether nothing is left to do.
bool schema_plan_empty(const struct schema_plan *plan);

// Fails with MR_EREADONLY or MR_EPRIVILEGE when it is clear beforehand that this
// session cannot do what is left.
int schema_plan_permit(const struct schema_state *state, struct mr_error *err);

// Whether the file is a migration that the database has not.
bool schema_plan_pending(const struct schema_state *state, const struct embedded_file *file);

#endif
