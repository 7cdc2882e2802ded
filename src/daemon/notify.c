// SPDX-License-Identifier: PostgreSQL
//
// A word to systemd: see notify.h.

#include "daemon/notify.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

void notify_supervisor(const char *status)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (!path || !path[0] || strlen(path) >= sizeof(address.sun_path)) {
        return;
    }
    memcpy(address.sun_path, path, strlen(path));
    if (path[0] == '@') { // of the abstract kind
        address.sun_path[0] = '\0';
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return;
    }
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    if (sendto(fd, status, strlen(status), MSG_NOSIGNAL, (struct sockaddr *)&address, size) < 0) {
        // nobody listens any more: the supervisor's own trouble
    }
    close(fd);
}

// The interval that systemd wants, in microseconds; 0: none, or another process is meant.
static int64_t watchdog_us(void)
{
    const char *interval = getenv("WATCHDOG_USEC");
    const char *pid = getenv("WATCHDOG_PID");
    int64_t us = 0, process = 0;

    if (!interval || !str_parse_int(interval, 1, INT64_MAX, &us)) {
        return 0;
    }
    if (pid && (!str_parse_int(pid, 1, INT32_MAX, &process) || process != getpid())) {
        return 0;
    }
    return us;
}

static void on_watchdog(uv_timer_t *timer)
{
    (void)timer;
    notify_supervisor("WATCHDOG=1");
}

void notify_watchdog_start(struct notify_watchdog *watchdog, uv_loop_t *loop)
{
    // twice in each interval, as sd_watchdog_enabled(3) advises
    int64_t every_ms = watchdog_us() / 2000;

    if (every_ms > 0) {
        uv_timer_init(loop, &watchdog->timer);
        uv_timer_start(&watchdog->timer, on_watchdog, 0, (uint64_t)every_ms);
        uv_unref((uv_handle_t *)&watchdog->timer);
        watchdog->on = true;
    }
}

void notify_watchdog_stop(struct notify_watchdog *watchdog)
{
    if (watchdog->on) {
        uv_close((uv_handle_t *)&watchdog->timer, NULL);
        watchdog->on = false;
    }
}

void notify_reloading(void)
{
    char text[80];

    snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)clock_us());
    notify_supervisor(text);
}
