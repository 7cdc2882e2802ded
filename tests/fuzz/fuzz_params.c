// SPDX-License-Identifier: PostgreSQL
//
// What a request gives, up to the parameters of its call. The first byte chooses the route; then
// comes the target without its first slash, whose parts are the variables of the path, up to the
// end of the line; then the body.

#include <string.h>

#include "fuzz.h"
#include "http/params.h"

static void read_all(const struct route *route, const struct target *target, struct json_slice body)
{
    const char *const variables[] = {
        target->part_count > 0 ? target->parts[0] : "1",
        target->part_count > 1 ? target->parts[1] : "2",
    };
    struct params params = {.route = route, .variables = variables, .target = target, .body = body};
    int64_t number = 0;
    struct mr_error err;

    if (params_read(&params, &err)) {
        return;
    }
    AUTO_CALL call;
    call_init(&call, route->call);
    if (params_fill(&params, ROUTE_PARAMS_MAX, &call, &err) == 0) {
        MUST(call.count <= CALL_PARAMS_MAX);
        MUST(call_status(&call, NULL) == 0);
    }
    if (params_number(&params, "wait_ms", 0, 60000, 7, &number, &err) == 0) {
        MUST(number >= 0 && number <= 60000);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data + 1, '\n', size - 1) : NULL;
    struct target target;

    if (!end) {
        return 0;
    }
    size_t length = (size_t)(end - data);
    char *uri = malloc(length + 1);
    MUST(uri);
    memcpy(uri, data, length);
    uri[0] = '/';
    uri[length] = '\0';
    if (target_read(uri, &target, NULL) == 0) {
        read_all(&routes[data[0] % route_count], &target,
                 (struct json_slice){(const char *)end + 1, size - length - 1});
        target_done(&target);
    }
    free(uri);
    return 0;
}
