// SPDX-License-Identifier: PostgreSQL
//
// What the pages of `millrace top` share.

#ifndef MILLRACE_CLI_TOP_PAGES_H
#define MILLRACE_CLI_TOP_PAGES_H

#include "cli/top_view.h"

// A number or a length of time in few columns; a dash when it is not known.
void top_add_figure(struct buf *out, double number, bool time);

// By what health() says: OK, WARNING, CRITICAL.
enum style top_status_style(const char *status);

// The page of the selected queue.
void top_put_queue_page(struct top_view *view, const struct top_model *model,
                        struct screen *screen);

#endif
