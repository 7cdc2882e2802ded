// SPDX-License-Identifier: PostgreSQL
//
// Numbers and times as people read them: see figure.h.

#include "cli/figure.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void figure_add_number(struct buf *out, int64_t number)
{
    char digits[32];
    int len = snprintf(digits, sizeof(digits), "%lld", (long long)number);

    for (int i = 0; i < len; i++) {
        if (i > 0 && digits[i - 1] != '-' && (len - i) % 3 == 0) {
            buf_add(out, ",", 1);
        }
        buf_add(out, &digits[i], 1);
    }
}

void figure_add_time(struct buf *out, int64_t ms)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = {{"d", 86400000}, {"h", 3600000}, {"min", 60000}, {"s", 1000}};

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (ms < units[i].ms) {
            continue;
        }
        buf_printf(out, "%lld %s", (long long)(ms / units[i].ms), units[i].unit);
        if (i + 1 < sizeof(units) / sizeof(units[0]) && ms % units[i].ms >= units[i + 1].ms) {
            buf_printf(out, " %lld %s", (long long)(ms % units[i].ms / units[i + 1].ms),
                       units[i + 1].unit);
        }
        return;
    }
    buf_printf(out, "%lld ms", (long long)ms);
}

void figure_add_seconds(struct buf *out, double seconds)
{
    if (seconds >= 1 && seconds < 10) {
        buf_printf(out, "%.1f s", seconds);
    } else {
        figure_add_time(out, seconds > 0 ? (int64_t)(seconds * 1000 + 0.5) : 0);
    }
}

// With a tenth below a hundred, where the number is not whole.
static void add_tenth(struct buf *out, double number)
{
    bool whole = number >= 99.95 || number - (double)(int64_t)number < 0.05;

    buf_printf(out, "%.*f", whole ? 0 : 1, number);
}

void figure_add_short(struct buf *out, double number)
{
    static const char *const units[] = {"", "k", "M", "G", "T"};
    size_t unit = 0;

    if (number < 100000 && number == (double)(int64_t)number) {
        buf_printf(out, "%.0f", number);
        return;
    }
    for (; number >= 999.5 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++) {
        number /= 1000;
    }
    add_tenth(out, number);
    buf_puts(out, units[unit]);
}

void figure_add_short_time(struct buf *out, double seconds)
{
    static const struct {
        double from, unit;
        const char *name;
    } units[] = {{172800, 86400, "d"}, {7200, 3600, "h"}, {120, 60, "m"}, {1, 1, "s"}};

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (seconds >= units[i].from) {
            add_tenth(out, seconds >= 10 && units[i].unit <= 60
                               ? (double)(int64_t)(seconds / units[i].unit)
                               : seconds / units[i].unit);
            buf_puts(out, units[i].name);
            return;
        }
    }
    if (seconds < 0.0005) {
        buf_puts(out, "0");
    } else {
        buf_printf(out, "%.0fms", seconds * 1000);
    }
}

void figure_add_bytes(struct buf *out, double bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    size_t unit = 0;

    for (; bytes >= 999.5 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++) {
        bytes /= 1000;
    }
    add_tenth(out, bytes);
    buf_printf(out, " %s", units[unit]);
}

void figure_add_clock(struct buf *out, const char *iso)
{
    const char *text = *iso == '"' ? iso + 1 : iso;
    size_t len = strcspn(text, "\"");
    const char *day_end = memchr(text, 'T', len);
    size_t time_len = strlen("09:10:11");

    if (!day_end || (size_t)(text + len - day_end) <= time_len) {
        buf_add(out, text, len);
        return;
    }
    const char *zone = day_end + 1 + time_len;
    if (*zone == '.') {
        zone += 1 + strspn(zone + 1, "0123456789");
    }
    buf_add(out, text, (size_t)(day_end - text));
    buf_puts(out, " ");
    buf_add(out, day_end + 1, time_len);
    buf_add(out, zone, (size_t)(text + len - zone));
}
