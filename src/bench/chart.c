// SPDX-License-Identifier: PostgreSQL
//
// A small chart of bars in text: see chart.h.

#include "bench/chart.h"

#include <math.h>
#include <string.h>

void chart_init(struct chart *chart)
{
    *chart = (struct chart){0};
}

void chart_add(struct chart *chart, const char *label, double value)
{
    if (chart->count < CHART_BARS_MAX) {
        chart->bars[chart->count++] = (struct chart_bar){label, isfinite(value) ? value : 0};
    }
}

static int length_of(double value, double most)
{
    if (value <= 0 || most <= 0) {
        return 0;
    }
    int length = (int)lround(value / most * CHART_WIDTH);
    return length < 1 ? 1 : length;
}

static void add_bar(struct buf *out, const struct chart_bar *bar, int label_width, int length)
{
    buf_printf(out, "  %-*s  ", label_width, bar->label);
    for (int i = 0; i < CHART_WIDTH; i++) {
        buf_puts(out, i < length ? "#" : " ");
    }
    buf_printf(out, "  %.*f\n", bar->value < 100 ? 2 : 0, bar->value);
}

void chart_draw(const struct chart *chart, struct buf *out)
{
    double most = 0;
    int label_width = 0;

    for (size_t i = 0; i < chart->count; i++) {
        int width = (int)strlen(chart->bars[i].label);
        label_width = width > label_width ? width : label_width;
        most = chart->bars[i].value > most ? chart->bars[i].value : most;
    }
    for (size_t i = 0; i < chart->count; i++) {
        add_bar(out, &chart->bars[i], label_width, length_of(chart->bars[i].value, most));
    }
}
