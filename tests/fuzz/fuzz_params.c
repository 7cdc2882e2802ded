// SPDX-License-Identifier: PostgreSQL
//
// Bodies of every route that takes one, up to the parameters of its call. The first byte chooses
// the route.

#include <string.h>

#include "fuzz.h"
#include "http/params.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const variables[] = {"1", "2"};
    static const struct target target;

    if (size == 0) {
        return 0;
    }
    const struct route *route = &routes[data[0] % route_count];
    struct params params = {
        .route = route,
        .variables = variables,
        .target = &target,
        .body = {(const char *)data + 1, size - 1},
    };
    struct mr_error err;
    if (params_read(&params, &err) == 0) {
        AUTO_CALL call;
        call_init(&call, route->call);
        if (params_fill(&params, ROUTE_PARAMS_MAX, &call, &err) == 0) {
            MUST(call.count <= CALL_PARAMS_MAX);
            MUST(call_status(&call, NULL) == 0);
        }
    }
    return 0;
}
