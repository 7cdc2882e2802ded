// SPDX-License-Identifier: PostgreSQL

#include "report.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/json.h"

enum {
    CHECKS_MAX = 64,
    FIGURES_BYTES_MAX = 65536,
    NAME_SIZE = 64,
};

struct check {
    char name[NAME_SIZE];
    char what[NAME_SIZE];
    enum check_kind kind;
    enum bar_side side;
    double value;
    double bar;
    bool ok;
};

static struct check checks[CHECKS_MAX];
static size_t check_count;
static struct buf figures = {.max = FIGURES_BYTES_MAX};

static const char *side_text(enum bar_side side)
{
    switch (side) {
    case AT_MOST: return "<=";
    case AT_LEAST: return ">=";
    case BELOW: return "<";
    }
    return "?";
}

static bool holds(double value, enum bar_side side, double bar)
{
    switch (side) {
    case AT_MOST: return value <= bar;
    case AT_LEAST: return value >= bar;
    case BELOW: return value < bar;
    }
    return false;
}

static void figure_name(const char *name)
{
    buf_puts(&figures, figures.len ? ", " : "");
    json_add_string(&figures, name);
    buf_puts(&figures, ": ");
}

void report_figure(const char *name, double value)
{
    figure_name(name);
    buf_printf(&figures, "%.10g", value);
}

void report_note(const char *name, const char *text)
{
    figure_name(name);
    json_add_string(&figures, text);
}

void report_check(const char *name, enum check_kind kind, const char *what, double value,
                  enum bar_side side, double bar)
{
    if (check_count == CHECKS_MAX)
        abort();
    struct check *check = &checks[check_count++];
    snprintf(check->name, sizeof check->name, "%s", name);
    snprintf(check->what, sizeof check->what, "%s", what);
    check->kind = kind;
    check->side = side;
    check->value = value;
    check->bar = bar;
    check->ok = holds(value, side, bar);
    printf(
        "{\"name\": \"%s\", \"kind\": \"%s\", \"%s\": %.6g, \"bar\": \"%s %.6g\", \"ok\": %s, \"figures\": {%s}}\n",
        name, kind == CHECK_TIME ? "time" : "structure", what, value, side_text(side), bar,
        check->ok ? "true" : "false", buf_peek(&figures));
    fflush(stdout);
    buf_done(&figures);
}

int report_end(bool small)
{
    int missed = 0;
    printf("\n%-24s %-28s %12s   %-10s\n", "check", "what", "value", "bar");
    for (size_t i = 0; i < check_count; i++) {
        const struct check *check = &checks[i];
        printf("%-24s %-28s %12.4g   %-2s %-8.6g %s\n", check->name, check->what, check->value,
               side_text(check->side), check->bar, check->ok ? "ok" : "MISSED");
        if (!check->ok && (!small || check->kind == CHECK_STRUCTURE))
            missed++;
    }
    return missed;
}

static int compare(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return (*x > *y) - (*x < *y);
}

double percentile(double *values, size_t count, double share)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, compare);
    size_t i = (size_t)(share * (double)count);
    return values[i < count ? i : count - 1];
}

double median(double *values, size_t count)
{
    return percentile(values, count, 0.5);
}
