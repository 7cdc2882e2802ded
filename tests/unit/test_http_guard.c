// SPDX-License-Identifier: PostgreSQL
//
// Which addresses a webhook may call, at the edges of every range.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "handler/http_guard.h"

static const char *reason_of(const char *text)
{
    struct sockaddr_storage storage = {0};
    struct sockaddr_in in4 = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};

    if (inet_pton(AF_INET, text, &in4.sin_addr) == 1) {
        memcpy(&storage, &in4, sizeof(in4));
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
        memcpy(&storage, &in6, sizeof(in6));
    }
    return http_guard_reason((const struct sockaddr *)&storage);
}

static void public_addresses(void **state)
{
    (void)state;
    static const char *const addresses[] = {
        "1.0.0.0",         "9.255.255.255",    "11.0.0.0",       "100.63.255.255",
        "100.128.0.0",     "126.255.255.255",  "128.0.0.0",      "169.253.255.255",
        "169.255.0.0",     "172.15.255.255",   "172.32.0.0",     "192.0.1.0",
        "192.167.0.1",     "192.169.0.0",      "198.17.255.255", "198.20.0.0",
        "8.8.8.8",         "223.255.255.255",  "2606:4700::1",   "2a00::1",
        "2002:808:808::1", "64:ff9b::808:808", "::ffff:8.8.8.8", "2001:4860:4860::8888",
    };

    for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
        if (reason_of(addresses[i])) {
            fail_msg("%s is called %s", addresses[i], reason_of(addresses[i]));
        }
    }
}

static void other_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *address;
        const char *reason;
    } rows[] = {
        {"0.0.0.0", "unspecified"},
        {"10.0.0.0", "private"},
        {"10.255.255.255", "private"},
        {"100.64.0.0", "private"},
        {"100.127.255.255", "private"},
        {"127.0.0.1", "loopback"},
        {"127.255.255.255", "loopback"},
        {"169.254.169.254", "link-local"}, // the cloud's metadata
        {"172.16.0.0", "private"},
        {"172.31.255.255", "private"},
        {"192.168.255.255", "private"},
        {"198.19.255.255", "for benchmarks"},
        {"203.0.113.9", "for documentation"},
        {"224.0.0.1", "multicast"},
        {"255.255.255.255", "reserved"},
        {"::", "unspecified"},
        {"::1", "loopback"},
        {"::ffff:127.0.0.1", "loopback"},
        {"::ffff:169.254.169.254", "link-local"},
        {"::10.0.0.1", "private"},
        {"64:ff9b::10.0.0.1", "private"},
        {"64:ff9b:1::1", "private"},
        {"2002:7f00:1::1", "loopback"},
        {"2001::1", "a tunnel"},
        {"2001:db8::1", "for documentation"},
        {"fc00::1", "private"},
        {"fd00:ec2::254", "private"}, // metadata again
        {"fe80::1", "link-local"},
        {"febf::1", "link-local"},
        {"fec0::1", "private"},
        {"ff02::1", "multicast"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *reason = reason_of(rows[i].address);
        if (!reason || strcmp(reason, rows[i].reason) != 0) {
            fail_msg("%s is called %s", rows[i].address, reason ? reason : "public");
        }
    }
}

static void other_families(void **state)
{
    (void)state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    assert_non_null(http_guard_reason((const struct sockaddr *)&address));
}

static void hosts(void **state)
{
    (void)state;
    static const char *const meant[] = {
        "127.0.0.1", "10.1.2.3",      "[::1]",           "::1", "[fd00::7]", "localhost",
        "LOCALHOST", "api.localhost", "169.254.169.254",
    };
    static const char *const not_meant[] = {
        "",
        "example.org",
        "8.8.8.8",
        "[2a00::1]",
        "localhost.example.org",
        "127.0.0.1.example.org",
        "notlocalhost",
        ".",
        "[",
        "[]",
        "a.very.long.name.that.is.no.address.but.has.many.parts.localhost.example",
    };

    for (size_t i = 0; i < sizeof(meant) / sizeof(meant[0]); i++) {
        assert_true(http_guard_names_private(meant[i]));
    }
    for (size_t i = 0; i < sizeof(not_meant) / sizeof(not_meant[0]); i++) {
        assert_false(http_guard_names_private(not_meant[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(public_addresses),
        cmocka_unit_test(other_addresses),
        cmocka_unit_test(other_families),
        cmocka_unit_test(hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
