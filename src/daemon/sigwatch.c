// SPDX-License-Identifier: PostgreSQL
//
// Signals for a process without a loop: see sigwatch.h.

#include "daemon/sigwatch.h"

#include <stddef.h>
#include <time.h>

void sigwatch_begin(struct sigwatch *watch)
{
    static const int numbers[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP};

    watch->stops = watch->reloads = 0;
    sigemptyset(&watch->held);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        // an ignored signal, as nohup leaves it, is never pending
        if (numbers[i] == SIGCHLD) {
            signal(numbers[i], SIG_DFL);
        }
        sigaddset(&watch->held, numbers[i]);
    }
    sigprocmask(SIG_BLOCK, &watch->held, &watch->before);
}

void sigwatch_end(const struct sigwatch *watch)
{
    sigprocmask(SIG_SETMASK, &watch->before, NULL);
}

enum sigwatch_event sigwatch_wait(struct sigwatch *watch, int64_t timeout_ms)
{
    struct timespec timeout = {
        .tv_sec = (time_t)(timeout_ms / 1000),
        .tv_nsec = (long)(timeout_ms % 1000) * 1000000,
    };

    switch (sigtimedwait(&watch->held, NULL, &timeout)) {
    case SIGCHLD: return SIGWATCH_CHILD;
    case SIGHUP: watch->reloads++; return SIGWATCH_RELOAD;
    case SIGTERM:
    case SIGINT: watch->stops++; return SIGWATCH_STOP;
    default: return SIGWATCH_TIME;
    }
}
