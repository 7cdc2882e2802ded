// SPDX-License-Identifier: PostgreSQL
//
// Addresses of S3: see s3_address.h.

#include "store/s3_address.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "store/blob.h"

#define SCHEME "s3://"

__attribute__((format(printf, 2, 3))) static int refuse(struct mr_error *err, const char *format,
                                                        ...)
{
    char what[S3_TEXT_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    mr_error_set(err, MR_ECONFIG, "not the address of a blob store: %s", what);
    mr_error_hint(err, "Write s3://BUCKET[/PREFIX][?endpoint=http://HOST:PORT&region=R&"
                       "style=path|host&ca=FILE].");
    return MR_ECONFIG;
}

// ---- parts ----

static bool is_bucket_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
}

static int read_bucket(const char *text, size_t size, struct s3_address *ret, struct mr_error *err)
{
    if (size < S3_BUCKET_MIN || size > S3_BUCKET_MAX) {
        return refuse(err, "the name of a bucket has %d to %d characters", S3_BUCKET_MIN,
                      S3_BUCKET_MAX);
    }
    for (size_t i = 0; i < size; i++) {
        if (!is_bucket_character(text[i])) {
            return refuse(err, "the name of a bucket is made of a-z, 0-9, - and .");
        }
    }
    memcpy(ret->bucket, text, size);
    ret->bucket[size] = '\0';
    return 0;
}

// PREFIX or PREFIX/; nothing is no prefix.
static int read_prefix(const char *text, size_t size, struct s3_address *ret, struct mr_error *err)
{
    size -= size > 0 && text[size - 1] == '/';
    if (size == 0) {
        return 0;
    }
    if (size >= S3_PREFIX_MAX) {
        return refuse(err, "its prefix is longer than %d bytes", S3_PREFIX_MAX - 1);
    }
    memcpy(ret->prefix, text, size);
    ret->prefix[size] = '\0';
    if (!blob_key_is_good(ret->prefix)) {
        return refuse(err, "its prefix has to be made of A-Z a-z 0-9 - _ . ~ and single /");
    }
    memcpy(ret->prefix + size, "/", 2);
    return 0;
}

// ---- options ----

static int hex_value(char c)
{
    static const char digits[] = "0123456789abcdef";
    char lower = c >= 'A' && c <= 'F' ? (char)(c + ('a' - 'A')) : c;
    const char *at = c ? strchr(digits, lower) : NULL;

    return at ? (int)(at - digits) : -1;
}

// Copies a value with %XX decoded; false when it is empty, does not fit, or has what no value has.
static bool decode(const char *text, size_t size, char ret[S3_TEXT_MAX])
{
    size_t used = 0;

    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (c == '%') {
            int high = i + 2 < size ? hex_value(text[i + 1]) : -1;
            int low = i + 2 < size ? hex_value(text[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return false;
            }
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (used + 1 >= S3_TEXT_MAX || (unsigned char)c < ' ' || c == 0x7f) {
            return false;
        }
        ret[used++] = c;
    }
    ret[used] = '\0';
    return used > 0;
}

// Whether it is HOST[:PORT], and nothing else that a URL may have: no user, no path, no query.
static bool is_place(const char *text)
{
    const char *port = text[0] == '[' ? strchr(text, ']') : text + strcspn(text, ":");
    int64_t number = 0;

    if (!port || port == text || strpbrk(text, " /?#@\\\"<>")) {
        return false;
    }
    port += *port == ']';
    return !*port || (*port == ':' && str_parse_int(port + 1, 1, 65535, &number));
}

static int set_endpoint(struct s3_address *ret, const char *value, struct mr_error *err)
{
    size_t size = strlen(value);
    size_t scheme = str_starts(value, "http://")    ? strlen("http://")
                    : str_starts(value, "https://") ? strlen("https://")
                                                    : 0;

    memcpy(ret->endpoint, value, size + 1);
    if (size > scheme && value[size - 1] == '/') {
        ret->endpoint[size - 1] = '\0';
    }
    if (!scheme || !is_place(ret->endpoint + scheme)) {
        return refuse(err, "endpoint has to be http://HOST[:PORT] or https://HOST[:PORT]");
    }
    return 0;
}

static int set_region(struct s3_address *ret, const char *value, struct mr_error *err)
{
    if (strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") !=
        strlen(value)) {
        return refuse(err, "region is a word such as us-east-1");
    }
    memcpy(ret->region, value, strlen(value) + 1);
    return 0;
}

static int set_style(struct s3_address *ret, const char *value, struct mr_error *err)
{
    ret->host_style = str_equal(value, "host");
    return ret->host_style || str_equal(value, "path") ? 0 : refuse(err, "style is path or host");
}

static int set_ca(struct s3_address *ret, const char *value, struct mr_error *err)
{
    (void)err;
    memcpy(ret->ca, value, strlen(value) + 1);
    return 0;
}

enum { OPTION_ENDPOINT, OPTION_REGION, OPTION_STYLE, OPTION_CA, OPTION_COUNT };

static const struct {
    const char *name;
    int (*set)(struct s3_address *ret, const char *value, struct mr_error *err);
} options[] = {
    [OPTION_ENDPOINT] = {"endpoint", set_endpoint},
    [OPTION_REGION] = {"region", set_region},
    [OPTION_STYLE] = {"style", set_style},
    [OPTION_CA] = {"ca", set_ca},
};

// One NAME=VALUE.
static int read_option(const char *text, size_t size, bool seen[OPTION_COUNT],
                       struct s3_address *ret, struct mr_error *err)
{
    const char *equals = memchr(text, '=', size);
    size_t name = equals ? (size_t)(equals - text) : size;
    char value[S3_TEXT_MAX];

    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (strlen(options[i].name) != name || memcmp(options[i].name, text, name) != 0) {
            continue;
        }
        if (seen[i]) {
            return refuse(err, "%s is given twice", options[i].name);
        }
        if (!equals || !decode(equals + 1, size - name - 1, value)) {
            return refuse(err, "the value of %s cannot be read", options[i].name);
        }
        seen[i] = true;
        return options[i].set(ret, value, err);
    }
    return refuse(err, "what follows ? is endpoint, region, style, ca, with & between them");
}

// Without an endpoint it is Amazon's own, which wants the bucket in the host's name.
static void set_defaults(const bool seen[OPTION_COUNT], struct s3_address *address)
{
    if (!seen[OPTION_ENDPOINT]) {
        snprintf(address->endpoint, sizeof(address->endpoint), "https://s3.%.200s.amazonaws.com",
                 address->region);
        address->host_style = address->host_style || !seen[OPTION_STYLE];
    }
}

static int read_options(const char *text, struct s3_address *ret, struct mr_error *err)
{
    bool seen[OPTION_COUNT] = {false};
    int code = 0;

    while (*text && code == 0) {
        size_t size = strcspn(text, "&");
        code = read_option(text, size, seen, ret, err);
        text += size;
        text += *text == '&';
    }
    if (code == 0) {
        set_defaults(seen, ret);
    }
    return code;
}

// ---- whole ----

int s3_address_parse(const char *text, struct s3_address *ret, struct mr_error *err)
{
    struct s3_address address = {.region = S3_DEFAULT_REGION};

    if (!str_starts(text, SCHEME)) {
        return refuse(err, "it does not begin with " SCHEME);
    }
    const char *bucket = text + strlen(SCHEME);
    size_t bucket_size = strcspn(bucket, "/?");
    const char *prefix = bucket + bucket_size;
    prefix += *prefix == '/';
    size_t prefix_size = strcspn(prefix, "?");
    const char *query = prefix + prefix_size;
    query += *query == '?';

    int code = read_bucket(bucket, bucket_size, &address, err);
    code = code ? code : read_prefix(prefix, prefix_size, &address, err);
    code = code ? code : read_options(query, &address, err);
    if (code == 0) {
        *ret = address;
    }
    return code;
}

void s3_address_origin(const struct s3_address *address, char ret[S3_ORIGIN_SIZE])
{
    const char *host = strstr(address->endpoint, "://") + strlen("://");
    int scheme = (int)(host - address->endpoint);

    if (address->host_style) {
        snprintf(ret, S3_ORIGIN_SIZE, "%.*s%s.%s", scheme, address->endpoint, address->bucket,
                 host);
    } else {
        snprintf(ret, S3_ORIGIN_SIZE, "%s/%s", address->endpoint, address->bucket);
    }
}

void s3_address_place(const struct s3_address *address, char ret[S3_PLACE_SIZE])
{
    size_t prefix = strlen(address->prefix);

    prefix -= prefix > 0;
    snprintf(ret, S3_PLACE_SIZE, SCHEME "%s%s%.*s at %s", address->bucket, prefix ? "/" : "",
             (int)prefix, address->prefix, address->endpoint);
}
