// SPDX-License-Identifier: PostgreSQL
//
// What the system knows about this process.

#ifndef MILLRACE_HTTP_PROCESS_FIGURES_H
#define MILLRACE_HTTP_PROCESS_FIGURES_H

#include <stdbool.h>

// `cpu` in seconds, `rss` in bytes, `fds`, `max_fds`, `start` in seconds since 1970. False where it
// cannot be known.
bool process_figure(const char *which, double *ret);

#endif
