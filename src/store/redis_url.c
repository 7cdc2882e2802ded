// SPDX-License-Identifier: PostgreSQL
//
// Addresses of Redis: see redis_url.h.

#include "store/redis_url.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define PORT_MAX 65535

static int refuse(struct mr_error *err, const char *what)
{
    mr_error_set(err, MR_ECONFIG, "not the address of a Redis server: %s", what);
    mr_error_hint(err, "Write redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE], or "
                       "unix://[USER:PASSWORD@]/PATH[?db=DATABASE].");
    return MR_ECONFIG;
}

static int hex_value(char c)
{
    static const char digits[] = "0123456789abcdef";
    char lower = c >= 'A' && c <= 'F' ? (char)(c + ('a' - 'A')) : c;
    const char *at = c ? strchr(digits, lower) : NULL;

    return at ? (int)(at - digits) : -1;
}

// Copies `size` bytes with %XX decoded; false when it does not fit or an escape is wrong.
static bool decode(const char *text, size_t size, char ret[REDIS_TEXT_MAX])
{
    size_t used = 0;

    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (c == '%') {
            bool whole = i + 2 < size;
            int high = whole ? hex_value(text[i + 1]) : -1;
            int low = whole ? hex_value(text[i + 2]) : -1;
            if (high < 0 || low < 0 || high + low == 0) {
                return false;
            }
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (used + 1 >= REDIS_TEXT_MAX) {
            return false;
        }
        ret[used++] = c;
    }
    ret[used] = '\0';
    return true;
}

static bool read_number(const char *text, size_t size, int64_t max, int *ret)
{
    char digits[24];
    int64_t number = 0;

    if (size == 0 || size >= sizeof(digits)) {
        return false;
    }
    memcpy(digits, text, size);
    digits[size] = '\0';
    if (!str_parse_int(digits, 0, max, &number)) {
        return false;
    }
    *ret = (int)number;
    return true;
}

// USER:PASSWORD, up to the last @ before the path.
static int read_login(const char *text, size_t size, struct redis_url *ret, struct mr_error *err)
{
    const char *colon = memchr(text, ':', size);
    size_t user = colon ? (size_t)(colon - text) : size;

    if (!decode(text, user, ret->user) ||
        (colon && !decode(colon + 1, size - user - 1, ret->password))) {
        return refuse(err, "its user or password cannot be read");
    }
    return 0;
}

static int read_place(const char *text, size_t size, struct redis_url *ret, struct mr_error *err)
{
    const char *end = text + size;
    const char *host_end = text;

    if (size > 0 && text[0] == '[') {
        const char *bracket = memchr(text, ']', size);
        if (!bracket || !decode(text + 1, (size_t)(bracket - text - 1), ret->host)) {
            return refuse(err, "its host cannot be read");
        }
        host_end = bracket + 1;
    } else {
        const char *colon = memchr(text, ':', size);
        host_end = colon ? colon : end;
        if (!decode(text, (size_t)(host_end - text), ret->host)) {
            return refuse(err, "its host cannot be read");
        }
    }
    if (!ret->host[0]) {
        return refuse(err, "it has no host");
    }
    if (host_end < end &&
        (*host_end != ':' ||
         !read_number(host_end + 1, (size_t)(end - host_end - 1), PORT_MAX, &ret->port) ||
         ret->port == 0)) {
        return refuse(err, "its port is no number from 1 to 65535");
    }
    return 0;
}

static int read_network(const char *rest, struct redis_url *ret, struct mr_error *err)
{
    size_t size = strcspn(rest, "/?#");
    const char *tail = rest + size;
    const char *at = memrchr(rest, '@', size);

    ret->port = REDIS_DEFAULT_PORT;
    if (at && read_login(rest, (size_t)(at - rest), ret, err)) {
        return MR_ECONFIG;
    }
    const char *place = at ? at + 1 : rest;
    if (read_place(place, (size_t)(tail - place), ret, err)) {
        return MR_ECONFIG;
    }
    if (str_equal(tail, "") || str_equal(tail, "/")) {
        return 0;
    }
    if (*tail != '/' ||
        !read_number(tail + 1, strlen(tail + 1), REDIS_DATABASE_MAX, &ret->database)) {
        return refuse(err, "what follows the port is no number of a database");
    }
    return 0;
}

static int read_socket(const char *rest, struct redis_url *ret, struct mr_error *err)
{
    const char *login_end = rest[0] == '/' ? NULL : strstr(rest, "@/");

    if (login_end && read_login(rest, (size_t)(login_end - rest), ret, err)) {
        return MR_ECONFIG;
    }
    rest = login_end ? login_end + 1 : rest;
    size_t size = strcspn(rest, "?");
    const char *query = rest + size;

    if (rest[0] != '/' || !decode(rest, size, ret->path)) {
        return refuse(err, "its path must begin with / and have at most 255 bytes");
    }
    if (*query &&
        (!str_starts(query, "?db=") ||
         !read_number(query + 4, strlen(query + 4), REDIS_DATABASE_MAX, &ret->database))) {
        return refuse(err, "what follows ? is not db=NUMBER");
    }
    return 0;
}

bool redis_url_is(const char *text)
{
    return str_starts(text, "redis://") || str_starts(text, "rediss://") ||
           str_starts(text, "unix://");
}

int redis_url_parse(const char *text, struct redis_url *ret, struct mr_error *err)
{
    struct redis_url url = {.port = 0};
    int code;

    if (str_starts(text, "redis://")) {
        code = read_network(text + strlen("redis://"), &url, err);
    } else if (str_starts(text, "unix://")) {
        code = read_socket(text + strlen("unix://"), &url, err);
    } else if (str_starts(text, "rediss://")) {
        mr_error_set(err, MR_ECONFIG, "TLS to Redis is not supported");
        mr_error_hint(err, "Use redis:// through a tunnel such as stunnel, or a socket.");
        code = MR_ECONFIG;
    } else {
        code = refuse(err, "it does not begin with redis:// or unix://");
    }
    if (code == 0) {
        *ret = url;
    }
    return code;
}

void redis_url_place(const struct redis_url *url, char *ret, size_t size)
{
    bool bare = strchr(url->host, ':');

    if (url->path[0]) {
        snprintf(ret, size, "%s", url->path);
    } else {
        snprintf(ret, size, "%s%s%s:%d", bare ? "[" : "", url->host, bare ? "]" : "", url->port);
    }
}
