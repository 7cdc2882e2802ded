// SPDX-License-Identifier: PostgreSQL
//
// From a request to the parameters of its call, as the route's table says. Bodies are not decoded:
// what is JSON for the database goes there byte by byte.

#ifndef MILLRACE_HTTP_PARAMS_H
#define MILLRACE_HTTP_PARAMS_H

#include "base/json_scan.h"
#include "client/call.h"
#include "http/route.h"

// What a body may have in it at most.
#define PARAMS_MEMBERS_MAX 32

struct params_member {
    struct json_slice key, value;
};

// The members of a body. Slices point into it.
struct params_members {
    struct params_member list[PARAMS_MEMBERS_MAX];
    size_t count;
    bool too_many;
};

// What a request gives.
struct params {
    const struct route *route;
    const char *const *variables; // of the path, in order
    const struct target *target;
    struct json_slice body; // whole; empty: none
    struct params_members members;
};

// Checks body and query against the route: unknown names, missing or double ones, types. Fills
// params->members; the other fields are the caller's. Fails with MR_EINVALID.
int params_read(struct params *params, struct mr_error *err);

// Appends the first `count` parameters of the route to a call.
int params_fill(const struct params *params, size_t count, struct call *call, struct mr_error *err);

// A number of the query or the body; `fallback` when it is not given. Fails with MR_EINVALID
// beyond the bounds.
int params_number(const struct params *params, const char *name, int64_t min, int64_t max,
                  int64_t fallback, int64_t *ret, struct mr_error *err);

// The value of a member; `at` is NULL when it is absent or null.
struct json_slice params_member(const struct params *params, const char *name);

#endif
