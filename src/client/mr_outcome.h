// SPDX-License-Identifier: PostgreSQL
//
// What a C handler says about its job, until it returns.

#ifndef MILLRACE_CLIENT_MR_OUTCOME_H
#define MILLRACE_CLIENT_MR_OUTCOME_H

#include <millrace/millrace.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "client/outcome.h"
#include "client/worker.h"

struct mr_outcome {
    struct outcome outcome;
    bool told;        // by one of the handler's calls
    struct buf state; // beside it
    bool has_state;
    const atomic_bool *cancelled; // whether its job was, as the worker knows; NULL: nobody knows
    report_fn *report;            // where mr_outcome_progress() goes; NULL: nowhere
    void *report_arg;
    struct held_job *held;
};

// Whoever runs the handler sets `cancelled` and what belongs to `report` afterwards.
void mr__outcome_init(mr_outcome *outcome);
void mr__outcome_done(mr_outcome *outcome);

// The handler has returned `status`: the rest of the outcome is made up from that, and moved to
// *ret, which is initialized.
void mr__outcome_end(mr_outcome *outcome, int status, struct outcome *ret);

#endif
