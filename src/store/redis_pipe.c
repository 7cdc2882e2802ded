// SPDX-License-Identifier: PostgreSQL
//
// A connection to Redis that never blocks and follows a cluster: see redis_pipe.h.
//
// hiredis makes the socket, writes commands down and reads replies; bytes are sent and received
// here. A command is kept until its answer is there: MOVED and ASK have it sent again elsewhere.

#include "store/redis_pipe.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "store/redis_error.h"
#include "store/redis_script.h"

#define CONNECT_MS     10000
#define LOGIN_MS       10000
#define RETRY_FIRST_MS 100
#define RETRY_MAX_MS   5000
#define READ_SIZE      (64 * 1024)
#define PLACE_SIZE     (REDIS_TEXT_MAX + 16)

// A command that is sent on so often goes in a circle.
enum { REDIRECTS_MAX = 8 };
// Nodes of a cluster that are remembered, and commands that one system call sends.
enum { NODES_MAX = 32, GATHER_MAX = 64 };

enum pipe_status {
    PIPE_WAITING,    // until retry_at_ms
    PIPE_CONNECTING, // the socket
    PIPE_LOGIN,
    PIPE_OPEN,
};

struct request {
    char *text; // of hiredis; NULL: the ASKING before the next one
    size_t size;
    int64_t deadline_ms;
    int redirects;
    bool login;
    redis_pipe_answer_fn *answer;
    void *arg;
    struct request *next;
};

struct request_list {
    struct request *first, **end;
    int count;
};

struct redis_pipe {
    struct redis_url seed, url; // as given; where it is, or tries to be
    char name[REDIS_TEXT_MAX];
    char place[PLACE_SIZE];
    struct redis_pipe_hooks hooks;
    int epoll_fd, timer_fd;
    redisContext *context; // NULL: none
    uint32_t watched;      // events of its socket
    enum pipe_status status;
    struct request_list waiting; // to be sent
    struct request_list sent;    // without an answer
    struct request_list again;   // to be sent to the node at `moved`
    size_t written;              // bytes of the first one that waits
    struct redis_url moved;
    int64_t retry_at_ms, retry_pause_ms, until_ms;
    int64_t answered_at_ms;
    bool reset;
    bool told; // the owner, of a connection
    struct redis_url nodes[NODES_MAX];
    int node_count, node_turn;
    struct mr_error trouble;   // why the connection ends; code 0: not known
    struct redis_pipe *ask;    // to the node that ASK named; NULL: none
    struct request_list asked; // for it, while it connects
};

// ---- lists of commands ----

static void list_init(struct request_list *list)
{
    *list = (struct request_list){NULL, &list->first, 0};
}

static void list_push(struct request_list *list, struct request *request)
{
    request->next = NULL;
    *list->end = request;
    list->end = &request->next;
    list->count++;
}

static struct request *list_pop(struct request_list *list)
{
    struct request *request = list->first;

    if (request) {
        list->first = request->next;
        list->count--;
        if (!list->first) {
            list->end = &list->first;
        }
    }
    return request;
}

static void request_free(struct request *request)
{
    redisFreeCommand(request->text);
    free(request);
}

static void request_end(struct request *request, const redisReply *reply,
                        const struct mr_error *err)
{
    if (request->answer) {
        request->answer(request->arg, reply, err);
    }
    request_free(request);
}

// Nothing that an answer sends meanwhile is in these lists: there is no connection.
static void list_fail(struct request_list *list, const struct mr_error *err)
{
    struct request *request;

    while ((request = list_pop(list))) {
        request_end(request, NULL, err);
    }
}

// ---- descriptors ----

static void watch(struct redis_pipe *pipe, uint32_t events)
{
    struct epoll_event event = {.events = events};

    if (pipe->context && pipe->watched != events) {
        epoll_ctl(pipe->epoll_fd, pipe->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, pipe->context->fd,
                  &event);
        pipe->watched = events;
    }
}

static int64_t earliest_deadline(const struct redis_pipe *pipe)
{
    int64_t at_ms = pipe->waiting.first ? pipe->waiting.first->deadline_ms : 0;

    for (const struct request *request = pipe->sent.first; request; request = request->next) {
        if (at_ms == 0 || request->deadline_ms < at_ms) {
            at_ms = request->deadline_ms;
        }
    }
    return at_ms;
}

static void arm_timer(struct redis_pipe *pipe)
{
    int64_t at_ms = 0, now_ms = clock_ms();
    struct itimerspec spec = {0};

    switch (pipe->status) {
    case PIPE_WAITING: at_ms = pipe->retry_at_ms; break;
    case PIPE_CONNECTING:
    case PIPE_LOGIN: at_ms = pipe->until_ms; break;
    case PIPE_OPEN: at_ms = pipe->reset ? now_ms : earliest_deadline(pipe); break;
    }
    if (at_ms) {
        int64_t wait_ms = at_ms > now_ms ? at_ms - now_ms : 0;
        spec.it_value.tv_sec = wait_ms / 1000;
        spec.it_value.tv_nsec = wait_ms % 1000 * 1000000 + 1; // 0 would be: never
    }
    timerfd_settime(pipe->timer_fd, 0, &spec, NULL);
}

static void hang_up(struct redis_pipe *pipe)
{
    if (pipe->context) {
        redisFree(pipe->context); // closing takes it out of the epoll set
        pipe->context = NULL;
    }
    pipe->watched = 0;
    pipe->written = 0;
}

// ---- the end of a connection ----

static void blame(struct redis_pipe *pipe, const char *why)
{
    if (pipe->trouble.code == 0) {
        mr_error_set(&pipe->trouble, MR_ECONNECT, "Redis at %s: %s", pipe->place, why);
    }
}

// The next of those that the cluster named, and every other time the address that was given.
static void choose_node(struct redis_pipe *pipe)
{
    int turn = pipe->node_turn++;

    if (pipe->node_count == 0 || turn % 2 == 1) {
        pipe->url = pipe->seed;
    } else {
        pipe->url = pipe->nodes[turn / 2 % pipe->node_count];
    }
    redis_url_place(&pipe->url, pipe->place, sizeof(pipe->place));
}

static void lose(struct redis_pipe *pipe)
{
    bool was_open = pipe->told;
    int64_t pause_ms = pipe->retry_pause_ms;
    struct mr_error err = pipe->trouble;

    hang_up(pipe);
    pipe->status = PIPE_WAITING;
    pipe->reset = pipe->told = false;
    pipe->retry_at_ms = clock_ms() + pause_ms / 2 + random() % (pause_ms / 2 + 1);
    pipe->retry_pause_ms = pause_ms * 2 < RETRY_MAX_MS ? pause_ms * 2 : RETRY_MAX_MS;
    list_fail(&pipe->sent, &err);
    list_fail(&pipe->waiting, &err);
    list_fail(&pipe->again, &err);
    list_fail(&pipe->asked, &err);
    pipe->trouble = (struct mr_error){0};
    pipe->hooks.event(pipe->hooks.arg, was_open ? REDIS_PIPE_LOST : REDIS_PIPE_REFUSED, &err);
    choose_node(pipe);
}

// ---- sending ----

static void queue(struct redis_pipe *pipe, struct request *request)
{
    list_push(&pipe->waiting, request);
    watch(pipe, EPOLLIN | EPOLLOUT);
}

static struct request *request_new(int argc, const char *const *argv, const size_t *sizes,
                                   int64_t timeout_ms)
{
    struct request *request = calloc(1, sizeof(*request));
    // hiredis does not write through them
    int64_t size =
        request ? redisFormatCommandArgv(&request->text, argc, (const char **)argv, sizes) : -1;

    if (size < 0) {
        free(request);
        return NULL;
    }
    request->size = (size_t)size;
    request->deadline_ms = clock_ms() + timeout_ms;
    return request;
}

int redis_pipe_send(struct redis_pipe *pipe, int argc, const char *const *argv, const size_t *sizes,
                    int64_t timeout_ms, redis_pipe_answer_fn *answer, void *arg,
                    struct mr_error *err)
{
    if (pipe->status != PIPE_OPEN || pipe->reset) {
        return mr_error_set(err, MR_ECONNECT, "Redis at %s: not connected", pipe->place);
    }
    struct request *request = request_new(argc, argv, sizes, timeout_ms);
    if (!request) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    request->answer = answer;
    request->arg = arg;
    queue(pipe, request);
    return 0;
}

int redis_pipe_eval(struct redis_pipe *pipe, const char *script, const struct redis_args *args,
                    int64_t timeout_ms, redis_pipe_answer_fn *answer, void *arg,
                    struct mr_error *err)
{
    enum { LEAD = 3 };
    size_t at = 0, *sizes = NULL;
    const struct redis_script *found = redis_script_find(script, &at);
    const char **argv = NULL;
    char keys[16];

    if (!found) {
        return mr_error_set(err, MR_EINTERNAL, "there is no script %s", script);
    }
    char *text = redis_script_text(found);
    int code = text ? redis_args_words(args, LEAD, &argv, &sizes, err)
                    : mr_error_set(err, MR_ENOMEM, "out of memory");
    if (code == 0 && argv) {
        argv[0] = "EVAL";
        argv[1] = text;
        argv[2] = keys;
        sizes[0] = strlen(argv[0]);
        sizes[1] = strlen(text);
        sizes[2] = (size_t)snprintf(keys, sizeof(keys), "%d", args->keys);
        code = redis_pipe_send(pipe, (int)args->count + LEAD, argv, sizes, timeout_ms, answer, arg,
                               err);
    }
    free(text);
    free(argv);
    free(sizes);
    return code;
}

static bool is_passing(int number)
{
    return number == EAGAIN || number == EWOULDBLOCK || number == EINTR;
}

// How many bytes of what waits went out, moved to what was sent.
static void note_written(struct redis_pipe *pipe, size_t size)
{
    pipe->written += size;
    while (pipe->waiting.first && pipe->written >= pipe->waiting.first->size) {
        struct request *request = list_pop(&pipe->waiting);
        pipe->written -= request->size;
        list_push(&pipe->sent, request);
    }
}

// False: the connection is over.
static bool write_some(struct redis_pipe *pipe)
{
    while (pipe->waiting.first) {
        struct iovec parts[GATHER_MAX];
        struct msghdr message = {.msg_iov = parts};
        size_t skip = pipe->written;
        for (const struct request *request = pipe->waiting.first;
             request && message.msg_iovlen < GATHER_MAX; request = request->next) {
            parts[message.msg_iovlen++] =
                (struct iovec){request->text + skip, request->size - skip};
            skip = 0;
        }
        ssize_t n = sendmsg(pipe->context->fd, &message, MSG_NOSIGNAL);
        if (n < 0 && !is_passing(errno)) {
            blame(pipe, strerror(errno));
            return false;
        }
        if (n <= 0) {
            break;
        }
        note_written(pipe, (size_t)n);
    }
    watch(pipe, pipe->waiting.first ? EPOLLIN | EPOLLOUT : EPOLLIN);
    return true;
}

// ---- a cluster ----

bool redis_pipe_read_redirect(const char *text, const struct redis_url *from, struct redis_url *ret)
{
    struct redis_url url = *from;
    char host[REDIS_TEXT_MAX] = "", rest = 0;
    int slot = 0, port = 0;
    const char *space = strchr(text, ' ');
    const char *colon = strrchr(text, ':');

    if (!space || !colon || sscanf(space, "%d", &slot) != 1 || !(space = strchr(space + 1, ' ')) ||
        colon <= space || sscanf(colon, ":%d%c", &port, &rest) != 1 || port < 1 || port > 65535) {
        return false;
    }
    size_t size = (size_t)(colon - space - 1);
    if (size >= sizeof(host)) {
        return false;
    }
    memcpy(host, space + 1, size);
    host[size] = '\0';
    if (host[0]) { // none: the one that says so
        memcpy(url.host, host, sizeof(host));
    }
    url.port = port;
    url.path[0] = '\0';
    if (!url.host[0]) {
        return false;
    }
    *ret = url;
    return true;
}

static bool same_node(const struct redis_url *a, const struct redis_url *b)
{
    return a->port == b->port && str_equal(a->host, b->host);
}

static void add_node(struct redis_pipe *pipe, const redisReply *node)
{
    struct redis_url url = pipe->url;

    if (node->type != REDIS_REPLY_ARRAY || node->elements < 2 ||
        node->element[0]->type != REDIS_REPLY_STRING ||
        node->element[1]->type != REDIS_REPLY_INTEGER || pipe->node_count == NODES_MAX) {
        return;
    }
    if (node->element[0]->str[0] && strlen(node->element[0]->str) < sizeof(url.host)) {
        snprintf(url.host, sizeof(url.host), "%s", node->element[0]->str);
    }
    url.port = (int)node->element[1]->integer;
    for (int i = 0; i < pipe->node_count; i++) {
        if (same_node(&pipe->nodes[i], &url)) {
            return;
        }
    }
    pipe->nodes[pipe->node_count++] = url;
}

// The answer to CLUSTER SLOTS: ranges, each with its nodes behind two numbers. A server that is in
// no cluster answers with an error, and is all that there is.
static void learn_nodes(struct redis_pipe *pipe, const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0) {
        return;
    }
    pipe->node_count = 0;
    for (size_t i = 0; i < reply->elements; i++) {
        const redisReply *range = reply->element[i];
        for (size_t k = 2; range->type == REDIS_REPLY_ARRAY && k < range->elements; k++) {
            add_node(pipe, range->element[k]);
        }
    }
}

static void send_asked(struct redis_pipe *pipe)
{
    static const char *const asking[] = {"ASKING"};
    struct request *request;

    while ((request = list_pop(&pipe->asked))) {
        struct request *before = request_new(1, asking, NULL, LOGIN_MS);
        if (before) { // without it the other node answers MOVED, and the way begins anew
            queue(pipe->ask, before);
        }
        queue(pipe->ask, request);
    }
}

static void on_ask_event(void *arg, enum redis_pipe_event event, const struct mr_error *err)
{
    struct redis_pipe *pipe = arg;

    switch (event) {
    case REDIS_PIPE_CONNECTED: send_asked(pipe); return;
    case REDIS_PIPE_LOST:
    case REDIS_PIPE_REFUSED: list_fail(&pipe->asked, err); return;
    }
}

static void follow_ask(struct redis_pipe *pipe, struct request *request,
                       const struct redis_url *url)
{
    const struct redis_pipe_hooks hooks = {.event = on_ask_event, .arg = pipe};
    struct epoll_event event = {.events = EPOLLIN};
    struct mr_error err;

    if (pipe->ask && !same_node(&pipe->ask->seed, url)) {
        redis_pipe_free(pipe->ask);
        pipe->ask = NULL;
    }
    if (!pipe->ask && redis_pipe_new(url, pipe->name, &hooks, &pipe->ask, &err)) {
        request_end(request, NULL, &err);
        return;
    }
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): redis_pipe_new() has made it
    epoll_ctl(pipe->epoll_fd, EPOLL_CTL_ADD, pipe->ask->epoll_fd, &event);
    list_push(&pipe->asked, request);
    if (redis_pipe_connected(pipe->ask)) {
        send_asked(pipe);
    }
}

// Whether the reply sends the command elsewhere; then it is taken over.
static bool redirect(struct redis_pipe *pipe, struct request *request, const redisReply *reply)
{
    struct redis_url url;
    bool moved = reply->type == REDIS_REPLY_ERROR && str_starts(reply->str, "MOVED ");
    bool ask = reply->type == REDIS_REPLY_ERROR && str_starts(reply->str, "ASK ");

    if ((!moved && !ask) || request->login || request->redirects++ >= REDIRECTS_MAX ||
        !redis_pipe_read_redirect(reply->str, &pipe->url, &url)) {
        return false;
    }
    if (ask) {
        follow_ask(pipe, request, &url);
    } else {
        pipe->moved = url;
        list_push(&pipe->again, request);
    }
    return true;
}

// ---- answers ----

static void logged_in(struct redis_pipe *pipe)
{
    pipe->status = PIPE_OPEN;
    pipe->told = true;
    pipe->retry_pause_ms = RETRY_FIRST_MS;
    pipe->node_turn = 0;
    for (struct request *request; (request = list_pop(&pipe->again));) {
        queue(pipe, request);
    }
    pipe->hooks.event(pipe->hooks.arg, REDIS_PIPE_CONNECTED, NULL);
}

// AUTH, PING and SELECT must succeed. A name is a courtesy, and so is the list of nodes.
static void on_login(void *arg, const redisReply *reply, const struct mr_error *err)
{
    struct redis_pipe *pipe = arg;

    if (err || pipe->trouble.code) {
        return;
    }
    bool courtesy = pipe->sent.count + pipe->waiting.count < 2;
    if (reply->type == REDIS_REPLY_ERROR && !courtesy && !redis_error_reads(reply->str)) {
        redis_error_set(reply->str, pipe->place, &pipe->trouble);
        return;
    }
    if (pipe->sent.count + pipe->waiting.count == 0) {
        learn_nodes(pipe, reply);
        logged_in(pipe);
    }
}

static void take_reply(struct redis_pipe *pipe, const redisReply *reply)
{
    struct request *request = list_pop(&pipe->sent);

    if (!request) {
        blame(pipe, "an answer that nobody asked for");
        return;
    }
    pipe->answered_at_ms = clock_ms();
    if (reply->type == REDIS_REPLY_ERROR && str_starts(reply->str, "READONLY")) {
        pipe->reset = pipe->status == PIPE_OPEN; // its replica may be the master by now
    }
    if (!redirect(pipe, request, reply)) {
        request_end(request, reply, NULL);
    }
}

static bool take_replies(struct redis_pipe *pipe)
{
    void *reply = NULL;

    while (pipe->context && pipe->trouble.code == 0) {
        if (redisReaderGetReply(pipe->context->reader, &reply) != REDIS_OK) {
            blame(pipe, "its answer cannot be read");
            return false;
        }
        if (!reply) {
            return true;
        }
        take_reply(pipe, reply);
        freeReplyObject(reply);
    }
    return false;
}

// False: the connection is over.
static bool read_some(struct redis_pipe *pipe)
{
    char data[READ_SIZE];

    for (;;) {
        ssize_t n = recv(pipe->context->fd, data, sizeof(data), 0);
        if (n < 0 && is_passing(errno)) {
            return true;
        }
        if (n <= 0) {
            blame(pipe, n == 0 ? "the connection was closed" : strerror(errno));
            return false;
        }
        if (redisReaderFeed(pipe->context->reader, data, (size_t)n) != REDIS_OK) {
            blame(pipe, "its answer cannot be read");
            return false;
        }
        if (!take_replies(pipe)) {
            return false;
        }
    }
}

// ---- connecting ----

static void login_with(struct redis_pipe *pipe, int argc, const char *const *argv)
{
    struct request *request = request_new(argc, argv, NULL, LOGIN_MS);

    if (request) {
        request->login = true;
        request->answer = on_login;
        request->arg = pipe;
        queue(pipe, request);
    } else {
        mr_error_set(&pipe->trouble, MR_ENOMEM, "out of memory");
    }
}

// A server that wants a password and got none is found out by PING.
static void login(struct redis_pipe *pipe)
{
    const struct redis_url *url = &pipe->url;
    char database[16];

    pipe->status = PIPE_LOGIN;
    pipe->until_ms = clock_ms() + LOGIN_MS;
    if (url->password[0] && url->user[0]) {
        login_with(pipe, 3, (const char *[]){"AUTH", url->user, url->password});
    } else if (url->password[0]) {
        login_with(pipe, 2, (const char *[]){"AUTH", url->password});
    }
    login_with(pipe, 1, (const char *[]){"PING"});
    snprintf(database, sizeof(database), "%d", url->database);
    if (url->database) {
        login_with(pipe, 2, (const char *[]){"SELECT", database});
    }
    login_with(pipe, 3, (const char *[]){"CLIENT", "SETNAME", pipe->name});
    login_with(pipe, 2, (const char *[]){"CLUSTER", "SLOTS"});
}

static void dial(struct redis_pipe *pipe)
{
    const struct redis_url *url = &pipe->url;

    redis_url_place(url, pipe->place, sizeof(pipe->place));
    pipe->context = url->path[0] ? redisConnectUnixNonBlock(url->path)
                                 : redisConnectNonBlock(url->host, url->port);
    pipe->status = PIPE_CONNECTING;
    pipe->until_ms = clock_ms() + CONNECT_MS;
    if (!pipe->context || pipe->context->err) {
        blame(pipe, pipe->context ? pipe->context->errstr : "out of memory");
        lose(pipe);
        return;
    }
    if (!url->path[0]) {
        redisEnableKeepAlive(pipe->context);
    }
    watch(pipe, EPOLLOUT);
}

static void check_socket(struct redis_pipe *pipe)
{
    struct pollfd poll_fd = {.fd = pipe->context->fd, .events = POLLOUT};
    int number = 0;
    socklen_t size = sizeof(number);

    if (poll(&poll_fd, 1, 0) <= 0) {
        return;
    }
    if (getsockopt(poll_fd.fd, SOL_SOCKET, SO_ERROR, &number, &size) || number) {
        blame(pipe, strerror(number ? number : errno));
        lose(pipe);
        return;
    }
    login(pipe);
}

// Everything that was sent has been answered: to the node that MOVED named.
static void move(struct redis_pipe *pipe)
{
    hang_up(pipe);
    pipe->url = pipe->moved;
    for (struct request *request; (request = list_pop(&pipe->waiting));) {
        list_push(&pipe->again, request);
    }
    dial(pipe);
}

// ---- the whole ----

static bool is_late(const struct redis_pipe *pipe, int64_t now_ms)
{
    int64_t deadline_ms = pipe->status == PIPE_OPEN ? earliest_deadline(pipe) : pipe->until_ms;

    return pipe->status != PIPE_WAITING && deadline_ms && now_ms >= deadline_ms;
}

static void talk(struct redis_pipe *pipe)
{
    if (pipe->reset) {
        blame(pipe, "another server may be the one that is meant");
    }
    // NOLINTNEXTLINE(bugprone-branch-clone): the last one counts only where nothing moves
    if (pipe->trouble.code || !write_some(pipe) || !read_some(pipe) || pipe->trouble.code) {
        lose(pipe);
    } else if (pipe->again.first && !pipe->sent.first) {
        move(pipe);
    } else if (!write_some(pipe)) { // what the answers have sent
        lose(pipe);
    }
}

void redis_pipe_advance(struct redis_pipe *pipe)
{
    uint64_t expired;
    int64_t now_ms = clock_ms();

    if (read(pipe->timer_fd, &expired, sizeof(expired)) < 0 && !is_passing(errno)) {
        return;
    }
    if (pipe->ask) {
        redis_pipe_advance(pipe->ask);
    }
    if (is_late(pipe, now_ms)) {
        blame(pipe, "no answer in time");
        lose(pipe);
    }
    if (pipe->status == PIPE_WAITING && now_ms >= pipe->retry_at_ms) {
        dial(pipe);
    }
    if (pipe->status == PIPE_CONNECTING) {
        check_socket(pipe);
    }
    if (pipe->status == PIPE_LOGIN || pipe->status == PIPE_OPEN) {
        talk(pipe);
    }
    arm_timer(pipe);
}

void redis_pipe_reset(struct redis_pipe *pipe)
{
    pipe->reset = pipe->status == PIPE_OPEN;
    arm_timer(pipe);
}

int redis_pipe_fd(const struct redis_pipe *pipe)
{
    return pipe->epoll_fd;
}

bool redis_pipe_connected(const struct redis_pipe *pipe)
{
    return pipe->status == PIPE_OPEN && !pipe->reset;
}

int redis_pipe_pending(const struct redis_pipe *pipe)
{
    return pipe->sent.count + pipe->waiting.count + pipe->again.count + pipe->asked.count;
}

int64_t redis_pipe_answered_at(const struct redis_pipe *pipe)
{
    return pipe->answered_at_ms;
}

const char *redis_pipe_place(const struct redis_pipe *pipe)
{
    return pipe->place;
}

// ---- life ----

int redis_pipe_new(const struct redis_url *url, const char *name,
                   const struct redis_pipe_hooks *hooks, struct redis_pipe **ret,
                   struct mr_error *err)
{
    struct redis_pipe *pipe = calloc(1, sizeof(*pipe));
    struct epoll_event event = {.events = EPOLLIN};

    if (!pipe) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    pipe->seed = pipe->url = *url;
    pipe->hooks = *hooks;
    pipe->retry_pause_ms = RETRY_FIRST_MS;
    list_init(&pipe->waiting);
    list_init(&pipe->sent);
    list_init(&pipe->again);
    list_init(&pipe->asked);
    redis_url_place(url, pipe->place, sizeof(pipe->place));
    snprintf(pipe->name, sizeof(pipe->name), "%s", name);
    for (char *c = pipe->name; *c; c++) { // as CLIENT SETNAME wants it
        *c = *c > ' ' && *c < 127 ? *c : '_';
    }
    pipe->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    pipe->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (pipe->epoll_fd < 0 || pipe->timer_fd < 0 ||
        epoll_ctl(pipe->epoll_fd, EPOLL_CTL_ADD, pipe->timer_fd, &event)) {
        int number = errno;
        redis_pipe_free(pipe);
        return mr_error_set(err, MR_EIO, "cannot make a descriptor: %s", strerror(number));
    }
    pipe->retry_at_ms = 1;
    arm_timer(pipe);
    *ret = pipe;
    return 0;
}

void redis_pipe_free(struct redis_pipe *pipe)
{
    struct mr_error err;

    if (!pipe) {
        return;
    }
    hang_up(pipe);
    pipe->status = PIPE_WAITING;
    mr_error_set(&err, MR_ECONNECT, "the connection was closed");
    redis_pipe_free(pipe->ask);
    list_fail(&pipe->sent, &err);
    list_fail(&pipe->waiting, &err);
    list_fail(&pipe->again, &err);
    list_fail(&pipe->asked, &err);
    if (pipe->timer_fd >= 0) {
        close(pipe->timer_fd);
    }
    if (pipe->epoll_fd >= 0) {
        close(pipe->epoll_fd);
    }
    free(pipe);
}
