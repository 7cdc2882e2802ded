// SPDX-License-Identifier: PostgreSQL
//
// Targets of requests, and the routes they find.

#include <string.h>

#include "fuzz.h"
#include "http/route.h"
#include "http/target.h"

static void check_part(const char *part)
{
    MUST(part[0] && strcmp(part, ".") != 0 && strcmp(part, "..") != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const methods[] = {"GET", "POST", "PUT", "DELETE", "HEAD", "BREW"};
    const char *variables[ROUTE_VARIABLES_MAX] = {NULL};
    char allow[ROUTE_ALLOW_MAX];
    struct target target;
    char *uri = malloc(size + 1);

    memcpy(uri, data, size);
    uri[size] = '\0';
    if (target_read(uri, &target, NULL) == 0) {
        MUST(target.part_count <= TARGET_PARTS_MAX && target.query_count <= TARGET_QUERY_MAX);
        for (size_t i = 0; i < target.part_count; i++) {
            check_part(target.parts[i]);
        }
        for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
            route_find(methods[i], &target, variables, allow);
            MUST(strlen(allow) < ROUTE_ALLOW_MAX);
        }
        target_done(&target);
    }
    free(uri);
    return 0;
}
