// SPDX-License-Identifier: PostgreSQL
//
// How `millrace top` looks: the list of queues, one queue, help.

#ifndef MILLRACE_CLI_TOP_VIEW_H
#define MILLRACE_CLI_TOP_VIEW_H

#include <stdbool.h>

#include "cli/screen.h"
#include "cli/top_model.h"

enum top_page { TOP_PAGE_LIST, TOP_PAGE_QUEUE, TOP_PAGE_HELP };

// What a frame is drawn of, besides the model.
struct top_view {
    enum top_page page;
    const char *selected; // the queue under the cursor; NULL
    enum top_figure sort; // TOP_FIGURES: by name
    int scroll;           // lines of a queue's page that are above the screen; corrected here
    const char *place;    // the database and its server
    const char *server;   // its version
    const char *notice;   // what happened, or a question; "" for nothing
    enum style notice_style;
    double interval_s;
    bool connected;
    bool interactive; // there are keys
};

// The name of what is sorted by.
const char *top_sort_name(enum top_figure figure);

int top_draw(struct top_view *view, const struct top_model *model, struct screen *screen,
             struct mr_error *err);

#endif
