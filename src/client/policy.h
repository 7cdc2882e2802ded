// SPDX-License-Identifier: PostgreSQL
//
// What a queue wants done to payload parts before they are written, and how jobs may come, as
// millrace.payload_policy() says it, and the memory of a connection of what it was told.
//
// A policy is believed for POLICY_MS; one that is older is asked for again. Being late is harmless:
// every reader understands every coding at any time, and who comes in pieces where that is not
// wanted any more is refused, and asks again.

#ifndef MILLRACE_CLIENT_POLICY_H
#define MILLRACE_CLIENT_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define POLICY_MS 10000
// No queue compresses smaller parts: for them nobody asks. The schema has the same number.
#define POLICY_COMPRESS_LEAST 128

// The first part of the names of a database's objects, with its zero byte.
#define POLICY_HOME_SIZE 65

struct policy {
    bool pieces;                 // jobs that belong together may come in several calls
    size_t compress_above;       // 0: never
    size_t args_max;             // the queue's max_args; 0: not known
    size_t offload_above;        // parts of more bytes are objects of a blob store; 0: never
    char home[POLICY_HOME_SIZE]; // then: what their names begin with
};

// Whether it wants anything done to parts.
static inline bool policy_codes(const struct policy *policy)
{
    return policy && (policy->compress_above > 0 || policy->offload_above > 0);
}

// Reads what the function returns, members that it does not know left aside. Fails with MR_ESCHEMA.
int policy_read(const char *json, struct policy *ret, struct mr_error *err);

// Known policies by name. {0} is an empty one. For one thread at a time.
enum { POLICIES_MAX = 32 };

struct policies {
    struct known_policy {
        char *name;
        struct policy policy;
        int64_t until_ms; // of clock_ms()
    } known[POLICIES_MAX];
    size_t next; // to be replaced, when all places are taken
};

void policies_done(struct policies *policies);

// Borrowed until the next put. NULL: not known, or not any more.
const struct policy *policies_find(const struct policies *policies, const char *name,
                                   int64_t now_ms);

// Without memory it is not kept.
void policies_put(struct policies *policies, const char *name, const struct policy *policy,
                  int64_t now_ms);

// It is to be asked for again.
void policies_forget(struct policies *policies, const char *name);

// The name under which the policy of a lease is kept: that of its lane's queue, which is no name
// that a queue can have. A lease of another form has one, too, and the server refuses it.
enum { POLICY_LEASE_NAME_SIZE = 24 };
void policy_lease_name(const char *lease, char ret[POLICY_LEASE_NAME_SIZE]);

#endif
