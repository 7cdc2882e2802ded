// SPDX-License-Identifier: PostgreSQL
//
// Tokens, roles, hosts and origins.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "http/auth.h"

static void tokens(void **state)
{
    char token[AUTH_TOKEN_SIZE], other[AUTH_TOKEN_SIZE], hash[AUTH_HASH_SIZE];
    struct auth_token known[2] = {{.name = "a", .rights = RIGHT_READ}, {.name = "b"}};

    (void)state;
    assert_int_equal(auth_make_token(other, hash, NULL), 0);
    assert_true(auth_parse_hash(hash, known[0].hash));
    assert_int_equal(auth_make_token(token, hash, NULL), 0);
    assert_true(auth_parse_hash(hash, known[1].hash));
    assert_string_not_equal(token, other);
    assert_int_equal(strlen(token), AUTH_TOKEN_SIZE - 1);
    assert_string_equal(auth_find(known, 2, token)->name, "b");
    assert_string_equal(auth_find(known, 2, other)->name, "a");
    token[5] = token[5] == 'x' ? 'y' : 'x';
    assert_null(auth_find(known, 2, token));
    assert_null(auth_find(known, 0, other));
}

static void hashes(void **state)
{
    unsigned char hash[SHA256_SIZE];
    char text[AUTH_HASH_SIZE];

    (void)state;
    auth_hash_token("abc", text);
    assert_string_equal(text,
                        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_true(auth_parse_hash(text, hash));
    assert_int_equal(hash[0], 0xba);
    text[10] = 'G';
    assert_false(auth_parse_hash(text, hash));
    assert_false(auth_parse_hash("sha256:", hash));
    assert_false(auth_parse_hash("", hash));
}

static void roles(void **state)
{
    unsigned rights = 0;

    (void)state;
    assert_true(auth_parse_role("producer", &rights));
    assert_int_equal(rights, RIGHT_READ | RIGHT_PRODUCE);
    assert_true(auth_parse_role("admin", &rights));
    assert_int_equal(rights, RIGHT_READ | RIGHT_PRODUCE | RIGHT_WORK | RIGHT_ADMIN);
    assert_false(auth_parse_role("Admin", &rights));
    assert_string_equal(auth_role_of(RIGHT_WORK), "worker");
}

static void bearer(void **state)
{
    (void)state;
    assert_string_equal(auth_bearer("Bearer abc"), "abc");
    assert_string_equal(auth_bearer("bearer abc"), "abc");
    assert_null(auth_bearer(NULL));
    assert_null(auth_bearer("Bearer "));
    assert_null(auth_bearer("Bearer a b"));
    assert_null(auth_bearer("Bearer \xc3\xa4"));
    assert_null(auth_bearer("Basic abc"));
}

static void places(void **state)
{
    static const char *const hosts[] = {"jobs.example", NULL};

    (void)state;
    assert_true(auth_host_allowed("LOCALHOST:1", NULL));
    assert_true(auth_host_allowed("10.0.0.1:7070", NULL));
    assert_true(auth_host_allowed("[::1]:7070", NULL));
    assert_true(auth_host_allowed("jobs.example", hosts));
    assert_false(auth_host_allowed("jobs.example", NULL));
    assert_false(auth_host_allowed("jobs.example.evil", hosts));
    assert_false(auth_host_allowed("[::1", NULL));
    assert_false(auth_host_allowed("[::1]x", NULL));
    assert_false(auth_host_allowed("127.0.0.1:80x", NULL));
    assert_false(auth_host_allowed("", NULL));
    assert_false(auth_host_allowed(NULL, NULL));
    assert_true(auth_origin_allowed(NULL, "a"));
    assert_true(auth_origin_allowed("http://a:1", "a:1"));
    assert_false(auth_origin_allowed("http://a:2", "a:1"));
    assert_false(auth_origin_allowed("null", "a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens), cmocka_unit_test(hashes), cmocka_unit_test(roles),
        cmocka_unit_test(bearer), cmocka_unit_test(places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
