// SPDX-License-Identifier: PostgreSQL
//
// What `millrace bench` prints at its end.

#ifndef MILLRACE_CLI_BENCH_REPORT_H
#define MILLRACE_CLI_BENCH_REPORT_H

#include "bench/bench.h"

// One JSON object on stdout.
int bench_report_json(const struct bench *bench, struct mr_error *err);

// What was measured on, tables of figures and ratios, a chart.
int bench_report_text(const struct bench *bench, struct mr_error *err);

#endif
