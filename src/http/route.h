// SPDX-License-Identifier: PostgreSQL
//
// The routes: one table of method, path, the right that it takes, and what is done. Everything
// that can be asked for stands in route.c.

#ifndef MILLRACE_HTTP_ROUTE_H
#define MILLRACE_HTTP_ROUTE_H

#include <stdbool.h>
#include <stddef.h>

#include "client/call.h"
#include "http/auth.h"
#include "http/target.h"

struct exchange;

// Where a parameter of a call comes from.
enum param_source {
    PARAM_END = 0,
    PARAM_PATH,   // a variable of the path
    PARAM_QUERY,  // a name of the query
    PARAM_FILTER, // the whole query, as an object
    PARAM_MEMBER, // a member of the body, which is an object
    PARAM_BODY,   // the whole body, as JSON
};

enum param_type {
    PARAM_TEXT,
    PARAM_NUMBER,  // a whole number
    PARAM_REAL,    // any number
    PARAM_SECONDS, // a number; an interval for the call
    PARAM_BOOL,
    PARAM_JSON,    // anything, passed on as it is
    PARAM_NUMBERS, // an array of whole numbers
    PARAM_TEXTS,   // an array of texts
};

struct param {
    enum param_source source;
    const char *name;
    enum param_type type;
    bool required;
};

// Which of several shards a request goes to. `shard` in the query chooses one, but for the first
// three.
enum route_place {
    PLACE_NONE = 0, // none, or the route sees to it
    PLACE_ID,       // that of the job whose id is in the path
    PLACE_LEASE,    // that of the lease in the path
    PLACE_JOB,      // that of the job in the body
    PLACE_TURN,     // one after the other
    PLACE_FIRST,    // the one with the lowest number
    PLACE_BATCH,    // that of the batch whose id is in the path
    PLACE_LABEL,    // that of the label in the body, or one after the other
    PLACE_SUM,      // all: the answers' figures are added up
    PLACE_LIST,     // all: the answers' lists are put together
    PLACE_APART,    // all: each answer beside its shard
    PLACE_EACH,     // all: it is done on each
};

typedef void route_fn(struct exchange *exchange);

#define ROUTE_PARAMS_MAX 10

struct route {
    const char *method;
    const char *path; // /api/v1/jobs/{id}
    enum right right;
    route_fn *run;
    enum call_kind call;                   // of api_call
    struct param params[ROUTE_PARAMS_MAX]; // of that call, in order
    unsigned status;                       // when it went well; 0: 200
    enum route_place place;
    bool body;   // takes one
    bool stream; // in pieces, of NDJSON
};

extern const struct route routes[];
extern const size_t route_count;

#define ROUTE_VARIABLES_MAX 2
#define ROUTE_ALLOW_MAX     64

// The route of a method and a target; NULL when there is none. Then ret_allow, of ROUTE_ALLOW_MAX
// bytes, has the methods that the path has, separated by commas, "" when it has none. HEAD is GET.
const struct route *route_find(const char *method, const struct target *target,
                               const char *ret_variables[ROUTE_VARIABLES_MAX],
                               char ret_allow[ROUTE_ALLOW_MAX]);

// Whether the body of the route has a member of this name.
bool route_takes(const struct route *route, enum param_source source, const char *name);

#endif
