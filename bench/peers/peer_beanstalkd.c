// SPDX-License-Identifier: PostgreSQL
//
// beanstalkd over its unix socket, BEANSTALKD_SOCKET. The protocol has no call for many jobs, but
// lets a client send commands ahead: a chunk of "put", a batch of "reserve-with-timeout 0", a batch
// of "delete" go out as one write each, and the answers are read in one go.

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../db.h"
#include "base/buf.h"
#include "payload.h"
#include "peer.h"

enum {
    COMMANDS_BYTES_MAX = 64 << 20,
    INPUT_BYTES = 1 << 16,
    LINE_BYTES_MAX = 256,
    ANSWER_TIMEOUT_MS = 60000,
    PUTS_MAX = 400,
};

struct session {
    int fd;
    size_t have, used; // bytes of `input` that came, and that were read
    char input[INPUT_BYTES];
};

static void beanstalkd_setup(void)
{
}

static void *beanstalkd_open(void)
{
    struct session *session = calloc(1, sizeof *session);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("BEANSTALKD_SOCKET");
    if (!session || !path || strlen(path) >= sizeof address.sun_path) {
        die("BEANSTALKD_SOCKET is not set to a socket's path");
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    session->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct timeval limit = {.tv_sec = ANSWER_TIMEOUT_MS / 1000};
    setsockopt(session->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(session->fd, (struct sockaddr *)&address, sizeof address) != 0) {
        die("cannot connect to beanstalkd: %m");
    }
    return session;
}

static void beanstalkd_close(void *arg)
{
    struct session *session = arg;
    close(session->fd);
    free(session);
}

static void fill_input(struct session *session)
{
    struct pollfd poller = {.fd = session->fd, .events = POLLIN};
    if (poll(&poller, 1, ANSWER_TIMEOUT_MS) <= 0) {
        die("beanstalkd does not answer");
    }
    ssize_t got = read(session->fd, session->input, sizeof session->input);
    if (got <= 0) {
        die("beanstalkd closed the connection");
    }
    session->have = (size_t)got;
    session->used = 0;
}

static char next_byte(struct session *session)
{
    if (session->used == session->have) {
        fill_input(session);
    }
    return session->input[session->used++];
}

static void read_line(struct session *session, char line[LINE_BYTES_MAX])
{
    size_t length = 0;
    char byte;
    while ((byte = next_byte(session)) != '\n') {
        if (length == LINE_BYTES_MAX - 1) {
            die("beanstalkd: an answer is too long");
        }
        line[length++] = byte;
    }
    line[length > 0 ? length - 1 : 0] = '\0';
}

static void skip_bytes(struct session *session, size_t count)
{
    while (count > 0) {
        if (session->used == session->have) {
            fill_input(session);
        }
        size_t step = session->have - session->used;
        step = step < count ? step : count;
        session->used += step;
        count -= step;
    }
}

static void send_all(struct session *session, struct buf *commands)
{
    size_t sent = 0;
    if (buf_status(commands, NULL)) {
        die("too many commands at once");
    }
    while (sent < commands->len) {
        ssize_t step = send(session->fd, commands->data + sent, commands->len - sent, MSG_NOSIGNAL);
        if (step <= 0) {
            die("beanstalkd: %m");
        }
        sent += (size_t)step;
    }
    buf_done(commands);
}

static void expect(struct session *session, const char *word)
{
    char line[LINE_BYTES_MAX];
    read_line(session, line);
    if (strncmp(line, word, strlen(word)) != 0) {
        die("beanstalkd: %s", line);
    }
}

// In parts that fit the socket's buffer: otherwise the server, which takes no command before its
// last answer was read, and this end, which reads nothing before all is written, wait for each
// other.
static void beanstalkd_enqueue(void *arg, int count, bool wake)
{
    struct session *session = arg;
    (void)wake;
    while (count > 0) {
        int part = count < PUTS_MAX ? count : PUTS_MAX;
        struct buf commands = {.max = COMMANDS_BYTES_MAX};
        for (int i = 0; i < part; i++) {
            buf_printf(&commands, "put 50 0 600 %d\r\n%s\r\n", PAYLOAD_BYTES, payload_next());
        }
        send_all(session, &commands);
        for (int i = 0; i < part; i++) {
            expect(session, "INSERTED");
        }
        count -= part;
    }
}

// Reads one answer to "reserve-with-timeout": appends the command that deletes it.
static bool take_reserved(struct session *session, struct buf *deletes)
{
    char line[LINE_BYTES_MAX];
    unsigned long long id;
    size_t bytes;
    read_line(session, line);
    if (sscanf(line, "RESERVED %llu %zu", &id, &bytes) != 2) {
        return false;
    }
    skip_bytes(session, bytes + 2);
    buf_printf(deletes, "delete %llu\r\n", id);
    return true;
}

static long reserve(struct session *session, int batch, const char *command)
{
    struct buf commands = {.max = COMMANDS_BYTES_MAX}, deletes = {.max = COMMANDS_BYTES_MAX};
    long count = 0;
    for (int i = 0; i < batch; i++) {
        buf_puts(&commands, command);
    }
    send_all(session, &commands);
    for (int i = 0; i < batch; i++) {
        count += take_reserved(session, &deletes);
    }
    if (count > 0) {
        peer_note_claim(count);
        send_all(session, &deletes);
    }
    for (long i = 0; i < count; i++) {
        expect(session, "DELETED");
    }
    return count;
}

static long beanstalkd_work(void *arg, int batch, bool more)
{
    (void)more;
    return reserve(arg, batch, "reserve-with-timeout 0\r\n");
}

static void beanstalkd_wait_begin(void *arg)
{
    (void)arg;
}

// The server holds a reservation back until there is a job.
static void beanstalkd_wait(void *arg, int timeout_ms)
{
    (void)timeout_ms;
    reserve(arg, 1, "reserve-with-timeout 1\r\n");
}

const struct peer peer_beanstalkd = {
    .name = "beanstalkd",
    .setup = beanstalkd_setup,
    .open = beanstalkd_open,
    .close = beanstalkd_close,
    .enqueue = beanstalkd_enqueue,
    .work = beanstalkd_work,
    .wait_begin = beanstalkd_wait_begin,
    .wait = beanstalkd_wait,
};
