// SPDX-License-Identifier: PostgreSQL
//
// Whole requests to a daemon in this process, over a socket: whatever comes, in whatever pieces,
// the answer is one of HTTP, or the connection is closed. The first two bytes are the seed of the
// pieces. There is no database, so that what gets that far is refused with 503.

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "base/log.h"
#include "fuzz.h"
#include "http/http.h"

#define TOKEN      "mr_fuzz"
#define ANSWER_MAX (1 << 20)
#define TURNS_MAX  2000

static uv_loop_t loop;
static struct http *http;
static struct tally tally;
static struct sockaddr_un address = {.sun_family = AF_UNIX};

static void nothing(void *arg)
{
    (void)arg;
}

static void no_reasons(void *arg, struct buf *out)
{
    (void)arg;
    (void)out;
}

static void no_breakers(void *arg, void (*each)(void *each_arg, const char *worker, bool open),
                        void *each_arg)
{
    (void)arg;
    (void)each;
    (void)each_arg;
}

static void no_bridges(void *arg, void (*each)(void *each_arg, const struct http_bridge *bridge),
                       void *each_arg)
{
    (void)arg;
    (void)each;
    (void)each_arg;
}

static void no_relays(void *arg, void (*each)(void *each_arg, const struct http_relay *relay),
                      void *each_arg)
{
    (void)arg;
    (void)each;
    (void)each_arg;
}

static int64_t no_reconnects(void *arg)
{
    (void)arg;
    return 0;
}

// A name of Linux's own kind, that leaves no file behind.
static int listen_here(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "millrace-fuzz-%d", (int)getpid());
    MUST(fd > 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
         listen(fd, 16) == 0);
    return fd;
}

static void start(void)
{
    static struct auth_token token = {.name = "ops", .rights = 15};
    static const struct http_hooks hooks = {nothing,   no_reasons,    no_breakers, no_bridges,
                                            no_relays, no_reconnects, NULL};
    char hash[AUTH_HASH_SIZE];
    struct mr_error err;

    log_setup(STDERR_FILENO, LOG_TEXT, LEVEL_ERROR);
    auth_hash_token(TOKEN, hash);
    MUST(auth_parse_hash(hash, token.hash));
    const struct http_options options = {
        .dsn = "host=/nonexistent dbname=none",
        .version = "0",
        .listen = "127.0.0.1:0",
        .listen_fd = listen_here(),
        .tokens = &token,
        .token_count = 1,
        .max_connections = 100,
        .max_body = 65536,
        .idle_ms = 60000,
    };
    MUST(uv_loop_init(&loop) == 0);
    MUST(http_new(&options, &hooks, &tally, &loop, &http, &err) == 0);
}

static size_t next_piece(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return 1 + (*seed >> 24 < 200 ? *seed >> 8 & 0xFFFF : *seed >> 16 & 31);
}

// Every answer begins with a status line; there may be several.
static void check_answer(const char *text, size_t size)
{
    int status = 0;

    if (size > 0) {
        MUST(size > 12 && sscanf(text, "HTTP/1.%*1d %3d ", &status) == 1);
        MUST(status >= 100 && status <= 599);
    }
}

static void read_answer(int fd, char *text, size_t *size, bool *open)
{
    ssize_t n = recv(fd, text + *size, ANSWER_MAX - *size, MSG_DONTWAIT);

    *open = n > 0 || (n < 0 && *open);
    *size += n > 0 ? (size_t)n : 0;
}

static void talk(int fd, uint32_t seed, const uint8_t *data, size_t size)
{
    static char answer[ANSWER_MAX];
    size_t sent = 0, got = 0;
    bool open = true;
    int quiet = 0; // turns in which nothing came

    for (int turn = 0; turn < TURNS_MAX && open && quiet < 3; turn++) {
        size_t before = got;
        if (sent < size) {
            size_t piece = next_piece(&seed);
            ssize_t n = send(fd, data + sent, piece < size - sent ? piece : size - sent,
                             MSG_DONTWAIT | MSG_NOSIGNAL);
            sent += n > 0 ? (size_t)n : 0;
            if (sent == size) {
                shutdown(fd, SHUT_WR);
            }
        }
        uv_run(&loop, UV_RUN_NOWAIT);
        read_answer(fd, answer, &got, &open);
        quiet = sent == size && got == before ? quiet + 1 : 0;
    }
    check_answer(answer, got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!http) {
        start();
    }
    if (size < 2) {
        return 0;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    MUST(fd > 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    talk(fd, (uint32_t)data[0] << 8 | data[1], data + 2, size - 2);
    close(fd);
    uv_run(&loop, UV_RUN_NOWAIT);
    return 0;
}
