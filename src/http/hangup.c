// SPDX-License-Identifier: PostgreSQL
//
// Tells when the other end of a socket hangs up: see hangup.h.

#include "http/hangup.h"

#include <stdlib.h>

struct hangup {
    uv_poll_t poll;
    void (*left)(void *arg);
    void *arg;
};

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

// An error of the socket is a hang-up, too.
static void on_event(uv_poll_t *poll, int status, int events)
{
    struct hangup *hangup = poll->data;

    if (status < 0 || (events & UV_DISCONNECT)) {
        uv_poll_stop(poll);
        hangup->left(hangup->arg);
    }
}

void hangup_watch(uv_loop_t *loop, int fd, void (*left)(void *arg), void *arg, struct hangup **ret)
{
    struct hangup *hangup = calloc(1, sizeof(*hangup));

    *ret = NULL;
    if (!hangup) {
        return;
    }
    *hangup = (struct hangup){.left = left, .arg = arg};
    if (uv_poll_init(loop, &hangup->poll, fd) != 0) {
        free(hangup);
        return;
    }
    hangup->poll.data = hangup;
    uv_poll_start(&hangup->poll, UV_DISCONNECT, on_event);
    *ret = hangup;
}

void hangup_forget(struct hangup **hangup)
{
    if (*hangup) {
        uv_poll_stop(&(*hangup)->poll);
        uv_close((uv_handle_t *)&(*hangup)->poll, on_closed);
        *hangup = NULL;
    }
}
