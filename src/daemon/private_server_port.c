// SPDX-License-Identifier: PostgreSQL
//
// The address of a private server: see private_server_parts.h.

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/str.h"
#include "daemon/private_server_parts.h"

// Below the range that the kernel hands out to outgoing connections.
enum { PORT_FIRST = 20000, PORT_COUNT = 12000, PORT_TRIES = 100 };

bool private_server_port_is_free(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return false;
    }
    // as PostgreSQL does it: connections of the last server that are winding down do not count
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    bool is_free = bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
    close(fd);
    return is_free;
}

static int wanted_is_taken(int port, struct mr_error *err)
{
    mr_error_set(err, MR_ECONFLICT, "cannot listen on 127.0.0.1: port %d is in use", port);
    mr_error_hint(err, "Choose another one with --port, or none: then a free one is found.");
    return MR_ECONFLICT;
}

static int last_port(const struct private_server *server)
{
    AUTO_BUF text;
    bool there = false;
    int64_t port = 0;

    buf_init(&text, SERVER_DIR_FILE_MAX);
    if (server_dir_read(&server->dir, "port", &text, &there, NULL) || !there || !text.len) {
        return 0;
    }
    text.data[strcspn(text.data, "\n")] = '\0';
    return str_parse_int(text.data, 1, UINT16_MAX, &port) ? (int)port : 0;
}

static int random_port(void)
{
    uint32_t number = 0;

    return getrandom(&number, sizeof(number), 0) == (ssize_t)sizeof(number)
               ? (int)(PORT_FIRST + number % PORT_COUNT)
               : 0;
}

int private_server_choose_port(struct private_server *server, int wanted, struct mr_error *err)
{
    int port = wanted ? wanted : last_port(server);

    if (wanted && !private_server_port_is_free(wanted)) {
        return wanted_is_taken(wanted, err);
    }
    for (int try = 0; try < PORT_TRIES; try++) {
        if (port && private_server_port_is_free(port)) {
            server->port = port;
            return 0;
        }
        port = random_port();
    }
    mr_error_set(err, MR_ECONFLICT, "cannot listen on 127.0.0.1: no free port found");
    mr_error_hint(err, "Choose one with --port.");
    return MR_ECONFLICT;
}

// As a URI: whatever is special in a path is written as %XX, so that neither libpq nor a shell
// sees more in it than a path.
static void add_escaped(struct buf *out, const char *text)
{
    for (const char *c = text; *c; c++) {
        if (isalnum((unsigned char)*c) || strchr("/._~-", *c)) {
            buf_add(out, c, 1);
        } else {
            buf_printf(out, "%%%02X", (unsigned char)*c);
        }
    }
}

int private_server_settle(struct private_server *server, struct mr_error *err)
{
    char port[16];
    AUTO_BUF dsn;

    buf_init(&dsn, sizeof(server->dsn) - 1);
    buf_puts(&dsn, "postgresql://" PRIVATE_SERVER_USER "@/" PRIVATE_SERVER_DATABASE "?host=");
    add_escaped(&dsn, server->dir.socket);
    buf_printf(&dsn, "&port=%d", server->port);
    int code = buf_status(&dsn, err);
    if (code) {
        return code;
    }
    snprintf(server->dsn, sizeof(server->dsn), "%s", buf_peek(&dsn));
    snprintf(port, sizeof(port), "%d\n", server->port);
    return server_dir_write(&server->dir, "port", 0600, port, err);
}

int private_server_publish(const struct private_server *server, struct mr_error *err)
{
    char line[PRIVATE_SERVER_DSN_SIZE + 1];

    snprintf(line, sizeof(line), "%s\n", server->dsn);
    return server_dir_write(&server->dir, "dsn", 0600, line, err);
}
