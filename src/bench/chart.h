// SPDX-License-Identifier: PostgreSQL
//
// A small chart of bars in text:
//
//   millrace  ################################  151,201
//   textbook  ######                             28,990

#ifndef MILLRACE_BENCH_CHART_H
#define MILLRACE_BENCH_CHART_H

#include <stddef.h>

#include "base/buf.h"

enum { CHART_BARS_MAX = 16, CHART_WIDTH = 50 };

struct chart_bar {
    const char *label; // borrowed
    double value;      // 0 or more
};

struct chart {
    struct chart_bar bars[CHART_BARS_MAX];
    size_t count;
};

void chart_init(struct chart *chart);

// More than CHART_BARS_MAX are left out.
void chart_add(struct chart *chart, const char *label, double value);

// Appends a line a bar. The largest value has CHART_WIDTH characters; what is not zero has one at
// least.
void chart_draw(const struct chart *chart, struct buf *out);

#endif
