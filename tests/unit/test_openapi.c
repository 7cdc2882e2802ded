// SPDX-License-Identifier: PostgreSQL
//
// web/openapi.json and the table of routes say the same: paths, methods, roles, names in queries
// and bodies.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/str.h"
#include "http/files.h"
#include "http/route.h"

static json_t *description;

static json_t *operation_of(const char *path, const char *method)
{
    char lower[16];
    size_t i = 0;

    for (; i < sizeof(lower) - 1 && method[i]; i++) {
        lower[i] = (char)(method[i] | 0x20);
    }
    lower[i] = '\0';
    return json_object_get(json_object_get(json_object_get(description, "paths"), path), lower);
}

static const struct route *find_route(const char *path, const char *method)
{
    for (size_t i = 0; i < route_count; i++) {
        if (str_equal(routes[i].path, path) && strcasecmp(routes[i].method, method) == 0) {
            return &routes[i];
        }
    }
    return NULL;
}

static const char *role_of(enum right right)
{
    return right == RIGHT_NONE ? "open" : auth_role_of(right);
}

static void routes_are_described(void **state)
{
    (void)state;
    for (size_t i = 0; i < route_count; i++) {
        json_t *operation = operation_of(routes[i].path, routes[i].method);
        if (!operation) {
            fail_msg("not described: %s %s", routes[i].method, routes[i].path);
        }
        assert_string_equal(json_string_value(json_object_get(operation, "x-role")),
                            role_of(routes[i].right));
    }
}

static void what_is_described_exists(void **state)
{
    const char *path = NULL, *method = NULL;
    json_t *methods = NULL, *operation = NULL;

    (void)state;
    json_object_foreach(json_object_get(description, "paths"), path, methods)
    {
        json_object_foreach(methods, method, operation)
        {
            if (!find_route(path, method)) {
                fail_msg("no route: %s %s", method, path);
            }
        }
    }
}

// The members of a body that is an object; NULL when the route passes it on whole.
static json_t *members_of(json_t *operation)
{
    json_t *content = json_object_get(json_object_get(operation, "requestBody"), "content");
    json_t *schema = json_object_get(json_object_get(content, "application/json"), "schema");

    return json_object_get(schema, "properties");
}

static bool has_query(json_t *operation, const char *name)
{
    size_t i = 0;
    json_t *parameter = NULL;

    json_array_foreach(json_object_get(operation, "parameters"), i, parameter)
    {
        if (str_equal(json_string_value(json_object_get(parameter, "in")), "query") &&
            str_equal(json_string_value(json_object_get(parameter, "name")), name)) {
            return true;
        }
    }
    return false;
}

static void check_params(const struct route *route, json_t *operation)
{
    json_t *members = members_of(operation);
    const char *name = NULL;
    json_t *schema = NULL;

    for (const struct param *param = route->params; param->source != PARAM_END; param++) {
        bool good = param->source == PARAM_MEMBER  ? json_object_get(members, param->name) != NULL
                    : param->source == PARAM_QUERY ? has_query(operation, param->name)
                                                   : true;
        if (!good) {
            fail_msg("%s %s: \"%s\" is not described", route->method, route->path, param->name);
        }
    }
    json_object_foreach(members, name, schema)
    {
        if (!route_takes(route, PARAM_MEMBER, name)) {
            fail_msg("%s %s does not take \"%s\"", route->method, route->path, name);
        }
    }
}

static bool takes_shard(const struct route *route)
{
    return route->place != PLACE_NONE && route->place != PLACE_ID && route->place != PLACE_LEASE;
}

// Of several shards one can be chosen where neither an id nor a lease names it.
static void shards_agree(void **state)
{
    (void)state;
    for (size_t i = 0; i < route_count; i++) {
        json_t *operation = operation_of(routes[i].path, routes[i].method), *parameter = NULL;
        bool described = false;
        size_t j = 0;
        json_array_foreach(json_object_get(operation, "parameters"), j, parameter)
        {
            const char *ref = json_string_value(json_object_get(parameter, "$ref"));
            described = described || (ref && str_equal(ref, "#/components/parameters/shard"));
        }
        if (described != takes_shard(&routes[i])) {
            fail_msg("%s %s: \"shard\"", routes[i].method, routes[i].path);
        }
    }
}

static void names_agree(void **state)
{
    (void)state;
    for (size_t i = 0; i < route_count; i++) {
        check_params(&routes[i], operation_of(routes[i].path, routes[i].method));
    }
}

static int load(void **state)
{
    (void)state;
    for (const struct embedded_file *file = embedded_files; file->name; file++) {
        if (str_equal(file->name, "openapi.json")) {
            description = json_loadb((const char *)file->data, file->size, 0, NULL);
        }
    }
    return description ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    json_decref(description);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routes_are_described),
        cmocka_unit_test(what_is_described_exists),
        cmocka_unit_test(names_agree),
        cmocka_unit_test(shards_agree),
    };

    return cmocka_run_group_tests(tests, load, unload);
}
