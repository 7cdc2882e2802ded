// SPDX-License-Identifier: PostgreSQL
//
// Who looks on while something is measured: see watch.h.

#include "bench/watch.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

void watch_begin(struct watch *watch, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(watch->what, sizeof(watch->what), format, args);
    va_end(args);
}

int watch_tick(struct watch *watch, int64_t done, int64_t whole, struct mr_error *err)
{
    if (*watch->stopped) {
        return mr_error_set(err, MR_EINVALID, "bench: interrupted");
    }
    if (watch->progress) {
        watch->progress(watch->arg, watch->what, done, whole);
    }
    return 0;
}

void watch_pause_us(int64_t us)
{
    struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

    nanosleep(&time, NULL);
}
