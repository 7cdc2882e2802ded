// SPDX-License-Identifier: PostgreSQL
//
// Who may do what: see auth.h.

#include "http/auth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/str.h"

#define HOST_MAX    256
#define HASH_PREFIX "sha256:"

static const struct {
    const char *name;
    unsigned rights;
    enum right own; // what makes it more than a reader
} roles[] = {
    {"reader", RIGHT_READ, RIGHT_READ},
    {"producer", RIGHT_READ | RIGHT_PRODUCE, RIGHT_PRODUCE},
    {"worker", RIGHT_READ | RIGHT_WORK, RIGHT_WORK},
    {"admin", RIGHT_READ | RIGHT_PRODUCE | RIGHT_WORK | RIGHT_ADMIN, RIGHT_ADMIN},
};

enum { ROLE_COUNT = sizeof(roles) / sizeof(roles[0]) };

bool auth_parse_role(const char *role, unsigned *ret)
{
    for (size_t i = 0; i < ROLE_COUNT; i++) {
        if (str_equal(role, roles[i].name)) {
            *ret = roles[i].rights;
            return true;
        }
    }
    return false;
}

const char *auth_role_of(enum right right)
{
    for (size_t i = 0; i < ROLE_COUNT; i++) {
        if (roles[i].own == right) {
            return roles[i].name;
        }
    }
    return "anybody";
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool auth_parse_hash(const char *text, unsigned char ret[SHA256_SIZE])
{
    const char *hex = text + strlen(HASH_PREFIX);

    if (!str_starts(text, HASH_PREFIX) || strlen(hex) != (size_t)SHA256_SIZE * 2) {
        return false;
    }
    for (size_t i = 0; i < SHA256_SIZE; i++) {
        int high = digit_of(hex[2 * i]);
        int low = digit_of(hex[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        ret[i] = (unsigned char)(high * 16 + low);
    }
    return true;
}

// ---- tokens ----

void auth_hash_token(const char *token, char ret_hash[AUTH_HASH_SIZE])
{
    char hex[SHA256_HEX_SIZE];

    sha256_hex(token, strlen(token), hex);
    snprintf(ret_hash, AUTH_HASH_SIZE, HASH_PREFIX "%s", hex);
}

int auth_make_token(char ret_token[AUTH_TOKEN_SIZE], char ret_hash[AUTH_HASH_SIZE],
                    struct mr_error *err)
{
    unsigned char bytes[32];
    AUTO_BUF text;

    buf_init(&text, 64);
    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) {
        return mr_error_set(err, MR_EIO, "no random numbers: %s", strerror(errno));
    }
    base64_add(&text, bytes, sizeof(bytes));
    int code = buf_status(&text, err);
    if (code) {
        return code;
    }
    for (size_t i = 0; i < text.len; i++) { // the form that URLs take
        text.data[i] = text.data[i] == '+' ? '-' : text.data[i] == '/' ? '_' : text.data[i];
    }
    snprintf(ret_token, AUTH_TOKEN_SIZE, "mr_%.43s", buf_peek(&text));
    auth_hash_token(ret_token, ret_hash);
    return 0;
}

const char *auth_bearer(const char *header)
{
    static const char scheme[] = "bearer ";

    if (!header || strncasecmp(header, scheme, strlen(scheme)) != 0) {
        return NULL;
    }
    const char *token = header + strlen(scheme);
    size_t length = strnlen(token, AUTH_TOKEN_MAX + 1);
    for (size_t i = 0; i < length; i++) {
        if (token[i] <= ' ' || token[i] >= 0x7f) {
            return NULL;
        }
    }
    return length > 0 && length <= AUTH_TOKEN_MAX ? token : NULL;
}

static unsigned difference(const unsigned char *a, const unsigned char *b)
{
    unsigned sum = 0;

    for (size_t i = 0; i < SHA256_SIZE; i++) {
        sum |= (unsigned)(a[i] ^ b[i]);
    }
    return sum;
}

const struct auth_token *auth_find(const struct auth_token *tokens, size_t count, const char *token)
{
    const struct auth_token *found = NULL;
    unsigned char hash[SHA256_SIZE];
    struct sha256 sum;

    sha256_init(&sum);
    sha256_add(&sum, token, strlen(token));
    sha256_end(&sum, hash);
    for (size_t i = 0; i < count; i++) {
        found = difference(hash, tokens[i].hash) == 0 ? &tokens[i] : found;
    }
    return found;
}

// ---- where a request comes from ----

// The host of `HOST[:PORT]`, without the brackets of an address. False when it is none.
static bool host_of(const char *text, char ret[HOST_MAX])
{
    bool bracket = text[0] == '[';
    const char *begin = text + bracket;
    size_t length = strcspn(begin, bracket ? "]" : ":");
    const char *rest = begin + length;

    if (length == 0 || length >= HOST_MAX || (bracket && *rest++ != ']')) {
        return false;
    }
    if (*rest == ':') {
        rest += 1 + strspn(rest + 1, "0123456789");
    }
    memcpy(ret, begin, length);
    ret[length] = '\0';
    return *rest == '\0';
}

static bool is_address(const char *host)
{
    struct in6_addr address;

    return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

bool auth_host_allowed(const char *header, const char *const *hosts)
{
    char host[HOST_MAX];

    if (!header || !host_of(header, host)) {
        return false;
    }
    for (size_t i = 0; hosts && hosts[i]; i++) {
        if (strcasecmp(host, hosts[i]) == 0) {
            return true;
        }
    }
    return strcasecmp(host, "localhost") == 0 || is_address(host);
}

bool auth_origin_allowed(const char *origin, const char *host)
{
    static const char *const schemes[] = {"http://", "https://"};

    for (size_t i = 0; origin && i < 2; i++) {
        if (str_starts(origin, schemes[i]) && strcasecmp(origin + strlen(schemes[i]), host) == 0) {
            return true;
        }
    }
    return !origin;
}
