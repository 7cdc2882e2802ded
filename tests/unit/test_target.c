// SPDX-License-Identifier: PostgreSQL
//
// What a request is aimed at, and which route that is.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "http/route.h"
#include "http/target.h"

static void good(void **state)
{
    struct target target;

    (void)state;
    assert_int_equal(target_read("/", &target, NULL), 0);
    assert_int_equal(target.part_count, 0);
    target_done(&target);
    assert_int_equal(target_read("/a/%2F%41%c3%a4/c?x=1+2&y&z=%26=", &target, NULL), 0);
    assert_int_equal(target.part_count, 3);
    assert_string_equal(target.parts[1], "/A\xc3\xa4");
    assert_string_equal(target_value(&target, "x"), "1 2");
    assert_string_equal(target_value(&target, "y"), "");
    assert_string_equal(target_value(&target, "z"), "&=");
    assert_null(target_value(&target, "w"));
    target_done(&target);
}

static void refused(void **state)
{
    static const char *const wrong[] = {
        "",           "a",
        "//",         "/a//b",
        "/a/",        "/.",
        "/..",        "/%2e",
        "/%2E%2e/x",  "/%00",
        "/%",         "/%4",
        "/%4g",       "/a b",
        "/\x7f",      "/%ff",
        "/%c0%80",    "/%e0%80%80",
        "/%ed%a0%80", "/%f5%80%80%80",
        "/%c3",       "/1/2/3/4/5/6/7/8/9",
        "/?a=1&a=2",  "/?a=%",
        "/?%ff",      "http://h/",
        "*",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct target target;
        struct mr_error err = {0};
        if (target_read(wrong[i], &target, &err) == 0) {
            fail_msg("taken: %s", wrong[i]);
        }
        assert_true(err.message[0]);
    }
}

static const struct route *find(const char *method, const char *uri, const char **ret_variable,
                                char *allow)
{
    const char *variables[ROUTE_VARIABLES_MAX] = {NULL};
    static struct target target;

    target_done(&target);
    assert_int_equal(target_read(uri, &target, NULL), 0);
    const struct route *route = route_find(method, &target, variables, allow);
    *ret_variable = variables[0];
    return route;
}

static void matching(void **state)
{
    char allow[ROUTE_ALLOW_MAX];
    const char *variable = NULL;
    const struct route *route = find("GET", "/api/v1/jobs/12", &variable, allow);

    (void)state;
    assert_string_equal(route->path, "/api/v1/jobs/{id}");
    assert_string_equal(variable, "12");
    route = find("HEAD", "/", &variable, allow);
    assert_string_equal(route->path, "/");
    assert_null(find("PUT", "/api/v1/jobs", &variable, allow));
    assert_string_equal(allow, "POST, GET");
    assert_null(find("GET", "/api/v1/jobs/1/2", &variable, allow));
    assert_string_equal(allow, "");
    assert_null(find("GET", "/api/v1", &variable, allow));
    assert_non_null(find("POST", "/api/v1/queues/a%2fb/claim", &variable, allow));
    assert_string_equal(variable, "a/b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good),
        cmocka_unit_test(refused),
        cmocka_unit_test(matching),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
