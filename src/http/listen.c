// SPDX-License-Identifier: PostgreSQL
//
// The address to listen on: see listen.h.

#include "http/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"

#define BACKLOG  1024
#define FILE_MAX (1024 * 1024)

// NULL when the text is no address.
static struct addrinfo *resolve(const char *text)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
        .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
    };
    struct addrinfo *found = NULL;
    char host[128];
    const char *colon = strrchr(text, ':');
    bool bracket = text[0] == '[';
    int64_t port = 0;

    if (!colon || !str_parse_int(colon + 1, 0, 65535, &port) ||
        (bracket && (colon == text || colon[-1] != ']'))) {
        return NULL;
    }
    snprintf(host, sizeof(host), "%.*s", (int)(colon - text) - 2 * bracket, text + bracket);
    const char *address = str_equal(host, "localhost") ? "127.0.0.1" : host;
    return getaddrinfo(address, colon + 1, &hints, &found) == 0 ? found : NULL;
}

bool listen_is_address(const char *text)
{
    struct addrinfo *found = resolve(text);

    if (found) {
        freeaddrinfo(found);
    }
    return found;
}

int listen_port(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {.v6 = {0}};
    socklen_t size = sizeof(address);

    if (getsockname(fd, &address.any, &size)) {
        return 0;
    }
    return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

int listen_open(const char *address, int *ret_fd, int *ret_port, struct mr_error *err)
{
    struct addrinfo *found = resolve(address);
    int one = 1;

    if (!found) {
        mr_error_set(err, MR_ECONFIG, "cannot listen on \"%s\": no address", address);
        mr_error_hint(err, "Write ADDRESS:PORT, \"127.0.0.1:7070\" or \"[::1]:7070\".");
        return MR_ECONFIG;
    }
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool good = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
                bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0;
    int reason = errno;
    freeaddrinfo(found);
    if (!good) {
        if (fd >= 0) {
            close(fd);
        }
        mr_error_set(err, MR_EIO, "cannot listen on %s: %s", address, strerror(reason));
        mr_error_hint(err, "Choose another address with listen in the http section.");
        return MR_EIO;
    }
    *ret_fd = fd;
    *ret_port = listen_port(fd);
    return 0;
}

static int read_file(const char *path, char **ret, struct mr_error *err)
{
    FILE *file = fopen(path, "re");
    char part[4096];
    size_t size = 0;
    AUTO_BUF text;

    buf_init(&text, FILE_MAX);
    while (file && (size = fread(part, 1, sizeof(part), file)) > 0) {
        buf_add(&text, part, size);
    }
    if (!file || ferror(file)) {
        mr_error_set(err, MR_ECONFIG, "cannot read %s: %s", path, strerror(errno));
    } else if (buf_status(&text, err) == 0) {
        *ret = strdup(buf_peek(&text));
    }
    if (file) {
        fclose(file);
    }
    return *ret ? 0 : MR_ECONFIG;
}

int listen_read_tls(const struct http_options *options, char **ret_key, char **ret_cert,
                    struct mr_error *err)
{
    if (!options->tls_key || !options->tls_cert) {
        return 0;
    }
    int code = read_file(options->tls_key, ret_key, err);
    return code ? code : read_file(options->tls_cert, ret_cert, err);
}
