// SPDX-License-Identifier: PostgreSQL
//
// What ends the process: see signals.h.

#include "daemon/signals.h"

#include <signal.h>
#include <unistd.h>

#include "base/log.h"

static const int watched[] = {SIGTERM, SIGINT, SIGHUP};

_Static_assert(sizeof(watched) / sizeof(watched[0]) ==
                   sizeof(((struct signals *)0)->watchers) / sizeof(uv_signal_t),
               "a watcher for each signal");

#define WATCHED (sizeof(watched) / sizeof(watched[0]))

static void on_signal(uv_signal_t *watcher, int number)
{
    struct signals *signals = watcher->data;

    if (number == SIGHUP && signals->hooks.reload) {
        if (!signals->stopping) {
            signals->hooks.reload(signals->hooks.arg);
        }
        return;
    }
    if (signals->stopping) {
        log_put(LEVEL_WARNING, "signal.exit", NULL, 0,
                "a second signal: leaving at once, running jobs come back when their leases end");
        _exit(1);
    }
    signals->stopping = true;
    log_put(LEVEL_INFO, "signal.stop", NULL, 0,
            "no more jobs are claimed, running ones may finish");
    signals->hooks.stop(signals->hooks.arg);
}

static bool is_ignored(int number)
{
    struct sigaction present;

    return sigaction(number, NULL, &present) == 0 && present.sa_handler == SIG_IGN;
}

void signals_init(struct signals *signals, uv_loop_t *loop, const struct signals_hooks *hooks)
{
    signals->hooks = *hooks;
    signals->stopping = false;
    // a child or a server that closes its end is an error of the write
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < WATCHED; i++) {
        uv_signal_init(loop, &signals->watchers[i]);
        signals->watchers[i].data = signals;
        if (watched[i] != SIGHUP || hooks->reload || !is_ignored(SIGHUP)) {
            uv_signal_start(&signals->watchers[i], on_signal, watched[i]);
        }
        uv_unref((uv_handle_t *)&signals->watchers[i]);
    }
    uv_timer_init(loop, &signals->limit);
    uv_unref((uv_handle_t *)&signals->limit);
}

static void on_limit(uv_timer_t *timer)
{
    (void)timer;
    log_put(LEVEL_ERROR, "signal.exit", NULL, 0,
            "something does not end: leaving without it, its jobs come back when their leases end");
    _exit(1);
}

void signals_limit(struct signals *signals, int64_t ms)
{
    uv_update_time(signals->limit.loop);
    uv_timer_start(&signals->limit, on_limit, (uint64_t)ms, 0);
}

void signals_close(struct signals *signals)
{
    for (size_t i = 0; i < WATCHED; i++) {
        uv_close((uv_handle_t *)&signals->watchers[i], NULL);
    }
    uv_close((uv_handle_t *)&signals->limit, NULL);
}
