// SPDX-License-Identifier: PostgreSQL
//
// A wire on the loop: see link.h.

#include "daemon/link.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/str.h"

struct link {
    struct link_options options;
    struct link_hooks hooks;
    struct wire *wire;
    uv_poll_t poll;
    char trouble[MR_ERROR_MESSAGE_SIZE]; // as last told
    void (*closed)(void *arg);
    void *closed_arg;
    int64_t reconnects;
};

bool link_is_news(char *known, const char *message)
{
    if (str_equal(known, message)) {
        return false;
    }
    snprintf(known, MR_ERROR_MESSAGE_SIZE, "%s", message);
    return true;
}

static void tell(const struct link *link, enum log_level level, const char *event,
                 const char *message, const struct mr_error *err)
{
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("part", link->options.part),
        LOG_TEXT_FIELD("hint", err && err->hint[0] ? err->hint : NULL),
    };

    log_put(level, event, fields, sizeof(fields) / sizeof(fields[0]), "%s%s%s", message,
            err ? ": " : "", err ? err->message : "");
}

static void on_event(void *arg, enum wire_event event, const struct mr_error *err)
{
    struct link *link = arg;

    switch (event) {
    case WIRE_CONNECTED:
        link->trouble[0] = '\0';
        tell(link, LEVEL_INFO, "link.connected", "connected", NULL);
        if (link->hooks.connected) {
            link->hooks.connected(link->hooks.arg);
        }
        return;
    case WIRE_LOST:
        link->reconnects++;
        tell(link, LEVEL_WARNING, "link.disconnected", err->message, NULL);
        return;
    case WIRE_REFUSED:
        if (link_is_news(link->trouble, err->message)) {
            tell(link, LEVEL_WARNING, "link.unreachable", "still trying", err);
        }
        return;
    }
}

static void on_timer(void *arg)
{
    struct link *link = arg;

    if (link->hooks.timer) {
        link->hooks.timer(link->hooks.arg);
    }
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct link *link = poll->data;

    (void)status;
    (void)events;
    wire_advance(link->wire);
}

int link_new(const struct link_options *options, const struct link_hooks *hooks, uv_loop_t *loop,
             struct link **ret, struct mr_error *err)
{
    struct link *link = calloc(1, sizeof(*link));

    if (!link) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    const struct wire_options wire_options = {
        .dsn = options->dsn,
        .application_name = "millrace serve",
        .pooler = options->pooler,
    };
    const struct wire_hooks wire_hooks = {.event = on_event, .timer = on_timer, .arg = link};
    link->options = *options;
    link->options.dsn = NULL; // the wire has its copy
    link->hooks = *hooks;
    int code = wire_new(&wire_options, &wire_hooks, &link->wire, err);
    if (code) {
        free(link);
        return code;
    }
    uv_poll_init(loop, &link->poll, wire_fd(link->wire));
    link->poll.data = link;
    uv_poll_start(&link->poll, UV_READABLE, on_readable);
    wire_wake(link->wire);
    *ret = link;
    return 0;
}

struct wire *link_wire(struct link *link)
{
    return link->wire;
}

int64_t link_reconnects(const struct link *link)
{
    return link->reconnects;
}

static void on_closed(uv_handle_t *handle)
{
    struct link *link = handle->data;
    void (*closed)(void *arg) = link->closed;
    void *arg = link->closed_arg;

    free(link);
    closed(arg);
}

void link_close(struct link *link, void (*closed)(void *arg), void *arg)
{
    link->closed = closed;
    link->closed_arg = arg;
    uv_poll_stop(&link->poll);
    wire_free(link->wire);
    uv_close((uv_handle_t *)&link->poll, on_closed);
}
