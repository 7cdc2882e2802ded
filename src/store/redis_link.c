// SPDX-License-Identifier: PostgreSQL
//
// A connection to Redis for calls that wait: see redis_link.h.
//
// hiredis makes the connection, writes commands down and reads replies; bytes are sent and received
// here, because its own write raises SIGPIPE and knows no deadline.

#include "store/redis_link.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/str.h"
#include "store/redis_error.h"
#include "store/redis_script.h"

// What one attempt to connect and to log in may take.
#define CONNECT_MS     10000
#define PAUSE_FIRST_MS 20
#define PAUSE_MAX_MS   500
#define POLL_MAX_MS    60000
#define READ_SIZE      (64 * 1024)
#define SHA_SIZE       41
// What one command may have. hiredis counts it in an int, and Redis closes the connection of a
// client that sends more than client-query-buffer-limit, 1 GiB.
#define COMMAND_MAX  (INT64_C(256) * 1024 * 1024)
#define WORD_FRAMING 32 // around each word, at most
#define NAME_SIZE    64
// EVALSHA, the script, the number of keys.
#define EVAL_WORDS 3

struct redis_link {
    struct redis_url url;
    char name[REDIS_TEXT_MAX];
    char place[REDIS_TEXT_MAX + 16];
    int64_t timeout_ms;
    redisContext *context; // NULL: none
    char shas[REDIS_SCRIPTS_MAX][SHA_SIZE];
};

struct command {
    int argc;
    const char *const *argv;
    const size_t *sizes;
};

static int out_of_memory(struct mr_error *err)
{
    mr_error_set(err, MR_ENOMEM, "out of memory");
    return MR_ENOMEM;
}

static void hang_up(struct redis_link *link)
{
    if (link->context) {
        redisFree(link->context);
        link->context = NULL;
    }
}

// The connection broke, or the other side said something that cannot be read.
static int broken(struct redis_link *link, const char *why, struct mr_error *err)
{
    mr_error_set(err, MR_ECONNECT, "Redis at %s: %s", link->place, why);
    mr_error_hint(err, "It may have happened; the next call connects again.");
    hang_up(link);
    return MR_ECONNECT;
}

static int late(struct redis_link *link, struct mr_error *err)
{
    mr_error_set(err, MR_ETIMEOUT, "no answer from Redis at %s within %lld ms", link->place,
                 (long long)link->timeout_ms);
    mr_error_hint(err, "It may have happened. Raise timeout_ms, or look at SLOWLOG.");
    hang_up(link); // the answer may still come, and would be taken for that of the next call
    return MR_ETIMEOUT;
}

// ---- bytes ----

// False: the time is over.
static bool wait_for(const struct redis_link *link, short events, int64_t deadline_ms)
{
    struct pollfd poll_fd = {.fd = link->context->fd, .events = events};

    for (;;) {
        int64_t left_ms = deadline_ms - clock_ms();
        if (left_ms <= 0) {
            return false;
        }
        if (poll(&poll_fd, 1, (int)(left_ms < POLL_MAX_MS ? left_ms : POLL_MAX_MS)) > 0) {
            return true;
        }
    }
}

static bool is_passing(int number)
{
    return number == EAGAIN || number == EWOULDBLOCK || number == EINTR;
}

static int send_all(struct redis_link *link, const char *data, size_t size, int64_t deadline_ms,
                    struct mr_error *err)
{
    for (size_t sent = 0; sent < size;) {
        ssize_t n = send(link->context->fd, data + sent, size - sent, MSG_NOSIGNAL);
        if (n > 0) {
            sent += (size_t)n;
        } else if (n < 0 && !is_passing(errno)) {
            return broken(link, strerror(errno), err);
        } else if (!wait_for(link, POLLOUT, deadline_ms)) {
            return late(link, err);
        }
    }
    return 0;
}

static int receive(struct redis_link *link, int64_t deadline_ms, redisReply **ret,
                   struct mr_error *err)
{
    char data[READ_SIZE];
    void *reply = NULL;

    for (;;) {
        if (redisReaderGetReply(link->context->reader, &reply) != REDIS_OK) {
            return broken(link, "its answer cannot be read", err);
        }
        if (reply) {
            *ret = reply;
            return 0;
        }
        if (!wait_for(link, POLLIN, deadline_ms)) {
            return late(link, err);
        }
        ssize_t n = recv(link->context->fd, data, sizeof(data), 0);
        if (n == 0) {
            return broken(link, "the connection was closed", err);
        }
        if (n < 0 && !is_passing(errno)) {
            return broken(link, strerror(errno), err);
        }
        if (n > 0 && redisReaderFeed(link->context->reader, data, (size_t)n) != REDIS_OK) {
            return broken(link, "its answer cannot be read", err);
        }
    }
}

static int check_size(const struct command *command, struct mr_error *err)
{
    int64_t total = 0;

    for (int i = 0; i < command->argc; i++) {
        size_t size = command->sizes ? command->sizes[i] : strlen(command->argv[i]);
        total += (int64_t)size + WORD_FRAMING;
    }
    if (total > COMMAND_MAX) {
        mr_error_set(err, MR_ELIMIT, "a command of %lld bytes for Redis, the limit is %lld",
                     (long long)total, (long long)COMMAND_MAX);
        mr_error_hint(err, "Nothing was sent. Give fewer jobs a call, or smaller ones.");
        return MR_ELIMIT;
    }
    return 0;
}

static int exchange(struct redis_link *link, const struct command *command, int64_t deadline_ms,
                    redisReply **ret, struct mr_error *err)
{
    if (check_size(command, err)) {
        return MR_ELIMIT;
    }
    char *text = NULL;
    // hiredis does not write through them
    int size = (int)redisFormatCommandArgv(&text, command->argc, (const char **)command->argv,
                                           command->sizes);

    if (size < 0) {
        return out_of_memory(err);
    }
    int code = send_all(link, text, (size_t)size, deadline_ms, err);
    redisFreeCommand(text);
    return code ? code : receive(link, deadline_ms, ret, err);
}

// ---- connecting ----

static int login_with(struct redis_link *link, int argc, const char *const *argv, bool courtesy,
                      int64_t deadline_ms, struct mr_error *err)
{
    struct command command = {argc, argv, NULL};
    redisReply *reply = NULL;
    int code = exchange(link, &command, deadline_ms, &reply, err);

    if (code) {
        return code;
    }
    if (reply->type == REDIS_REPLY_ERROR && !courtesy && !redis_error_reads(reply->str)) {
        code = redis_error_set(reply->str, link->place, err);
        hang_up(link);
    }
    freeReplyObject(reply);
    return code;
}

// A server that wants a password and got none is found out by PING.
static int login(struct redis_link *link, int64_t deadline_ms, struct mr_error *err)
{
    const struct redis_url *url = &link->url;
    char database[16];
    int code = 0;

    if (url->password[0] && url->user[0]) {
        code = login_with(link, 3, (const char *[]){"AUTH", url->user, url->password}, false,
                          deadline_ms, err);
    } else if (url->password[0]) {
        code =
            login_with(link, 2, (const char *[]){"AUTH", url->password}, false, deadline_ms, err);
    }
    if (code == 0) {
        code = login_with(link, 1, (const char *[]){"PING"}, false, deadline_ms, err);
    }
    snprintf(database, sizeof(database), "%d", url->database);
    if (code == 0 && url->database) {
        code = login_with(link, 2, (const char *[]){"SELECT", database}, false, deadline_ms, err);
    }
    // a user of Redis's may be forbidden to give itself a name
    return code ? code
                : login_with(link, 3, (const char *[]){"CLIENT", "SETNAME", link->name}, true,
                             deadline_ms, err);
}

static int refused(struct redis_link *link, const char *why, struct mr_error *err)
{
    mr_error_set(err, MR_ECONNECT, "cannot connect to Redis at %s: %s", link->place, why);
    mr_error_hint(err, "Is Redis running there, and does the network let the connection through?");
    hang_up(link);
    return MR_ECONNECT;
}

static int dial(struct redis_link *link, int64_t call_deadline_ms, struct mr_error *err)
{
    const struct redis_url *url = &link->url;
    int64_t deadline_ms = clock_ms() + CONNECT_MS;
    int number = 0;
    socklen_t size = sizeof(number);

    if (call_deadline_ms < deadline_ms) {
        deadline_ms = call_deadline_ms;
    }

    link->context = url->path[0] ? redisConnectUnixNonBlock(url->path)
                                 : redisConnectNonBlock(url->host, url->port);
    if (!link->context) {
        return out_of_memory(err);
    }
    if (link->context->err) {
        char why[sizeof(link->context->errstr)];
        snprintf(why, sizeof(why), "%s", link->context->errstr);
        return refused(link, why, err);
    }
    if (!wait_for(link, POLLOUT, deadline_ms)) {
        return refused(link, "no answer", err);
    }
    if (getsockopt(link->context->fd, SOL_SOCKET, SO_ERROR, &number, &size) || number) {
        return refused(link, strerror(number ? number : errno), err);
    }
    if (!url->path[0]) {
        redisEnableKeepAlive(link->context);
    }
    return login(link, deadline_ms, err);
}

static void pause_for(int64_t *pause_ms, int64_t deadline_ms)
{
    int64_t left_ms = deadline_ms - clock_ms();

    if (left_ms > 0) {
        poll(NULL, 0, (int)(*pause_ms < left_ms ? *pause_ms : left_ms));
    }
    *pause_ms = *pause_ms * 2 < PAUSE_MAX_MS ? *pause_ms * 2 : PAUSE_MAX_MS;
}

// Nothing comes unasked: a connection with something to read has ended.
static void listen_first(struct redis_link *link)
{
    struct pollfd poll_fd = {.events = POLLIN};

    if (link->context) {
        poll_fd.fd = link->context->fd;
        if (poll(&poll_fd, 1, 0) > 0) {
            hang_up(link);
        }
    }
}

static int connect_until(struct redis_link *link, int64_t deadline_ms, struct mr_error *err)
{
    int64_t pause_ms = PAUSE_FIRST_MS;
    int code = 0;

    listen_first(link);
    while (!link->context && (code = dial(link, deadline_ms, err))) {
        if (mr_code_class(code) != MR_CLASS_TRANSIENT || clock_ms() >= deadline_ms) {
            mr_error_detail(err, "Nothing was sent; the call has not happened.");
            return code;
        }
        pause_for(&pause_ms, deadline_ms);
    }
    return 0;
}

// ---- asking ----

// The reply may be an error of Redis's, but none that passes.
static int ask(struct redis_link *link, const struct command *command, redisReply **ret,
               mr_error *err)
{
    int64_t deadline_ms = clock_ms() + link->timeout_ms;
    int64_t pause_ms = PAUSE_FIRST_MS;
    mr_error last; // the caller's is not for failures that are got over
    int code;

    for (;;) {
        if ((code = connect_until(link, deadline_ms, &last)) ||
            (code = exchange(link, command, deadline_ms, ret, &last))) {
            if (err) {
                *err = last;
            }
            return code;
        }
        if (!redis_error_passes(*ret) || clock_ms() >= deadline_ms) {
            return 0;
        }
        freeReplyObject(*ret);
        pause_for(&pause_ms, deadline_ms);
    }
}

static int give(struct redis_link *link, redisReply *reply, redisReply **ret, mr_error *err)
{
    if (reply->type == REDIS_REPLY_ERROR) {
        int code = redis_error_set(reply->str, link->place, err);
        freeReplyObject(reply);
        if (code == MR_EREADONLY) {
            hang_up(link); // behind its address another server may be the master by now
        }
        return code;
    }
    *ret = reply;
    return 0;
}

int redis_link_ask(struct redis_link *link, int argc, const char *const *argv, const size_t *sizes,
                   redisReply **ret, struct mr_error *err)
{
    struct command command = {argc, argv, sizes};
    redisReply *reply = NULL;
    int code = ask(link, &command, &reply, err);

    return code ? code : give(link, reply, ret, err);
}

// ---- scripts ----

// The name that Redis gives to a script depends on nothing but its text: it is asked for once.
static int load(struct redis_link *link, const struct redis_script *script, char sha[SHA_SIZE],
                mr_error *err)
{
    redisReply *reply = NULL;

    if (sha[0]) {
        return 0;
    }
    char *text = redis_script_text(script);
    const char *const argv[] = {"SCRIPT", "LOAD", text};
    int code = text ? redis_link_ask(link, 3, argv, NULL, &reply, err) : out_of_memory(err);
    if (code == 0 && reply && reply->type == REDIS_REPLY_STRING) {
        snprintf(sha, SHA_SIZE, "%s", reply->str);
    }
    freeReplyObject(reply);
    free(text);
    return code;
}

struct words {
    const char **argv;
    size_t *sizes;
};

static int run(struct redis_link *link, const struct redis_script *script, const char *sha,
               const struct words *words, int argc, redisReply **ret, mr_error *err)
{
    struct command command = {argc, words->argv, words->sizes};
    redisReply *reply = NULL;

    words->argv[0] = "EVALSHA";
    words->argv[1] = sha;
    words->sizes[0] = strlen("EVALSHA");
    words->sizes[1] = strlen(sha);
    int code = ask(link, &command, &reply, err);
    if (code == 0 && reply->type == REDIS_REPLY_ERROR && str_starts(reply->str, "NOSCRIPT")) {
        freeReplyObject(reply);
        char *text = redis_script_text(script);
        words->argv[0] = "EVAL";
        words->argv[1] = text;
        words->sizes[0] = strlen("EVAL");
        words->sizes[1] = text ? strlen(text) : 0;
        code = text ? ask(link, &command, &reply, err) : out_of_memory(err);
        free(text);
    }
    return code ? code : give(link, reply, ret, err);
}

int redis_link_eval(struct redis_link *link, const char *name, int keys, int argc,
                    const char *const *argv, const size_t *sizes, redisReply **ret,
                    struct mr_error *err)
{
    size_t at = 0;
    const struct redis_script *script = redis_script_find(name, &at);
    size_t total = (size_t)argc + EVAL_WORDS;
    char count[16];

    if (!script) {
        return mr_error_set(err, MR_EINTERNAL, "there is no script %s", name);
    }
    struct words words = {calloc(total, sizeof(*words.argv)), calloc(total, sizeof(*words.sizes))};
    int code = words.argv && words.sizes ? 0 : out_of_memory(err);
    if (code == 0 && (code = load(link, script, link->shas[at], err)) == 0) {
        words.sizes[2] = (size_t)snprintf(count, sizeof(count), "%d", keys);
        words.argv[2] = count;
        for (int i = 0; i < argc; i++) {
            words.argv[EVAL_WORDS + i] = argv[i];
            words.sizes[EVAL_WORDS + i] = sizes ? sizes[i] : strlen(argv[i]);
        }
        code = run(link, script, link->shas[at], &words, argc + EVAL_WORDS, ret, err);
    }
    free(words.argv);
    free(words.sizes);
    return code;
}

// ---- life ----

int redis_link_open(const struct redis_url *url, const char *name, int64_t timeout_ms,
                    struct redis_link **ret, struct mr_error *err)
{
    struct redis_link *link = calloc(1, sizeof(*link));

    if (!link) {
        return out_of_memory(err);
    }
    link->url = *url;
    link->timeout_ms = timeout_ms;
    redis_url_place(url, link->place, sizeof(link->place));
    snprintf(link->name, sizeof(link->name), "%s", name);
    for (char *c = link->name; *c; c++) { // as CLIENT SETNAME wants it
        *c = *c > ' ' && *c < 127 ? *c : '_';
    }
    int code = dial(link, clock_ms() + timeout_ms, err);
    if (code) {
        redis_link_free(link);
        return code;
    }
    *ret = link;
    return 0;
}

void redis_link_free(struct redis_link *link)
{
    if (link) {
        hang_up(link);
        free(link);
    }
}

const char *redis_link_place(const struct redis_link *link)
{
    return link->place;
}

int redis_link_strange(const struct redis_link *link, struct mr_error *err)
{
    mr_error_set(err, MR_EDATABASE, "Redis at %s: the answer has another form than expected",
                 link->place);
    mr_error_hint(err, "Is it Redis 6.2 or newer?");
    return MR_EDATABASE;
}
