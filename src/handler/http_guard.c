// SPDX-License-Identifier: PostgreSQL
//
// Which addresses a webhook may call: see http_guard.h.

#include "handler/http_guard.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

// The registries of special addresses (IANA, RFC 6890), as far as they are not global.
static const struct {
    uint32_t address;
    int bits;
    const char *reason;
} special4[] = {
    {0x00000000, 8, "unspecified"},        // 0.0.0.0/8: this host
    {0x0a000000, 8, "private"},            // 10.0.0.0/8
    {0x64400000, 10, "private"},           // 100.64.0.0/10: behind a carrier's NAT
    {0x7f000000, 8, "loopback"},           // 127.0.0.0/8
    {0xa9fe0000, 16, "link-local"},        // 169.254.0.0/16, the cloud's metadata among them
    {0xac100000, 12, "private"},           // 172.16.0.0/12
    {0xc0000000, 24, "reserved"},          // 192.0.0.0/24: protocol assignments
    {0xc0000200, 24, "for documentation"}, // 192.0.2.0/24
    {0xc0a80000, 16, "private"},           // 192.168.0.0/16
    {0xc6120000, 15, "for benchmarks"},    // 198.18.0.0/15
    {0xc6336400, 24, "for documentation"}, // 198.51.100.0/24
    {0xcb007100, 24, "for documentation"}, // 203.0.113.0/24
    {0xe0000000, 4, "multicast"},          // 224.0.0.0/4
    {0xf0000000, 4, "reserved"},           // 240.0.0.0/4, broadcast among them
};

static const struct {
    uint8_t address[16];
    int bits;
    const char *reason;
} special6[] = {
    {{0}, 128, "unspecified"},                             // ::
    {{[15] = 1}, 128, "loopback"},                         // ::1
    {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, "private"}, // 64:ff9b:1::/48
    {{0x01, 0x00}, 64, "reserved"},                        // 100::/64: discard
    {{0x20, 0x01, 0x00, 0x00}, 32, "a tunnel"},            // 2001::/32: Teredo
    {{0x20, 0x01, 0x0d, 0xb8}, 32, "for documentation"},   // 2001:db8::/32
    {{0xfc, 0x00}, 7, "private"},                          // fc00::/7
    {{0xfe, 0x80}, 10, "link-local"},                      // fe80::/10
    {{0xfe, 0xc0}, 10, "private"},                         // fec0::/10: site
    {{0xff, 0x00}, 8, "multicast"},                        // ff00::/8
};

// IPv6 addresses that stand for an IPv4 one, and where it is inside of them.
static const struct {
    uint8_t address[16];
    int bits;
    size_t offset;
} embeds4[] = {
    {{[10] = 0xff, [11] = 0xff}, 96, 12}, // ::ffff:a.b.c.d
    {{0x00, 0x64, 0xff, 0x9b}, 96, 12},   // 64:ff9b::a.b.c.d: NAT64
    {{0x20, 0x02}, 16, 2},                // 2002:a.b.c.d::/48: 6to4
    {{0}, 96, 12},                        // ::a.b.c.d, long out of use
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const char *reason4(uint32_t address)
{
    for (size_t i = 0; i < COUNT_OF(special4); i++) {
        if ((address ^ special4[i].address) >> (32 - special4[i].bits) == 0) {
            return special4[i].reason;
        }
    }
    return NULL;
}

static bool begins6(const uint8_t *address, const uint8_t *prefix, int bits)
{
    int bytes = bits / 8;
    int rest = bits % 8;

    return memcmp(address, prefix, (size_t)bytes) == 0 &&
           (rest == 0 || (address[bytes] ^ prefix[bytes]) >> (8 - rest) == 0);
}

static const char *reason6(const uint8_t *address)
{
    for (size_t i = 0; i < COUNT_OF(special6); i++) {
        if (begins6(address, special6[i].address, special6[i].bits)) {
            return special6[i].reason;
        }
    }
    for (size_t i = 0; i < COUNT_OF(embeds4); i++) {
        if (begins6(address, embeds4[i].address, embeds4[i].bits)) {
            uint32_t inner;
            memcpy(&inner, address + embeds4[i].offset, sizeof(inner));
            return reason4(ntohl(inner));
        }
    }
    return NULL;
}

const char *http_guard_reason(const struct sockaddr *address)
{
    struct sockaddr_in in4;
    struct sockaddr_in6 in6;

    if (address->sa_family == AF_INET) {
        memcpy(&in4, address, sizeof(in4));
        return reason4(ntohl(in4.sin_addr.s_addr));
    }
    if (address->sa_family == AF_INET6) {
        memcpy(&in6, address, sizeof(in6));
        return reason6(in6.sin6_addr.s6_addr);
    }
    return "neither IPv4 nor IPv6";
}

static bool is_localhost(const char *host)
{
    static const char suffix[] = ".localhost";
    size_t size = strlen(host);

    return strcasecmp(host, "localhost") == 0 ||
           (size >= sizeof(suffix) && strcasecmp(host + size - (sizeof(suffix) - 1), suffix) == 0);
}

bool http_guard_names_private(const char *host)
{
    char bare[INET6_ADDRSTRLEN];
    struct in_addr in4;
    struct in6_addr in6;
    size_t size = strlen(host);

    if (host[0] == '[' && host[size - 1] == ']') {
        host++;
        size -= 2;
    }
    if (size >= sizeof(bare)) {
        return false;
    }
    memcpy(bare, host, size);
    bare[size] = '\0';
    if (inet_pton(AF_INET, bare, &in4) == 1) {
        return reason4(ntohl(in4.s_addr)) != NULL;
    }
    if (inet_pton(AF_INET6, bare, &in6) == 1) {
        return reason6(in6.s6_addr) != NULL;
    }
    return is_localhost(bare);
}
