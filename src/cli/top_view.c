// SPDX-License-Identifier: PostgreSQL
//
// The list of queues, and what stands around every page: see top_view.h. The page of one queue is
// in top_queue.c.

#include "cli/top_view.h"

#include <math.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/str.h"
#include "cli/figure.h"
#include "cli/top_pages.h"
#include "config.h"

// Below so many rows the sums go, and below so many all but the queues.
enum { ROWS_LOW = 10, ROWS_TINY = 5 };

enum { CELL_MAX = 100, NAME_MIN = 12, NAME_USUAL = 24, NAME_MAX = 40, SPARK_MAX = 30, GAP = 1 };

static const struct {
    const char *title;
    const char *name; // of the order by it
    int columns;
    bool time;
} columns[TOP_FIGURES] = {
    [TOP_AVAILABLE] = {"AVAIL", "available", 6, false},
    [TOP_RUNNING] = {"RUN", "running", 5, false},
    [TOP_SCHEDULED] = {"SCHED", "scheduled", 6, false},
    [TOP_RETRYING] = {"RETRY", "retrying", 5, false},
    [TOP_DEAD] = {"DEAD", "dead", 5, false},
    [TOP_IN] = {"IN/S", "in/s", 5, false},
    [TOP_OUT] = {"OUT/S", "out/s", 5, false},
    [TOP_FAILED] = {"FAIL/S", "failed/s", 6, false},
    [TOP_WAIT] = {"WAIT", "wait", 5, true},
    [TOP_OLDEST] = {"OLDEST", "oldest", 6, true},
};

const char *top_sort_name(enum top_figure figure)
{
    return figure == TOP_FIGURES ? "name" : columns[figure].name;
}

void top_add_figure(struct buf *out, double number, bool time)
{
    if (isnan(number)) {
        buf_puts(out, "-");
    } else if (time) {
        figure_add_short_time(out, number);
    } else {
        figure_add_short(out, number);
    }
}

enum style top_status_style(const char *status)
{
    return str_equal(status, "CRITICAL")  ? STYLE_CRITICAL
           : str_equal(status, "WARNING") ? STYLE_WARNING
                                          : STYLE_PLAIN;
}

// ---- above the list ----

static void put_pair(struct screen *screen, const char *name, double number, const char *unit)
{
    AUTO_BUF text;

    buf_init(&text, CELL_MAX);
    top_add_figure(&text, number, false);
    buf_puts(&text, unit);
    screen_put(screen, STYLE_DIM, name);
    screen_put(screen, STYLE_PLAIN, " ");
    screen_put(screen, STYLE_BOLD, buf_peek(&text));
    screen_blanks(screen, 2);
}

static void put_title(const struct top_view *view, struct screen *screen)
{
    AUTO_BUF text;

    buf_init(&text, CELL_MAX * 10);
    buf_printf(&text, "millrace %s  %s  %s  every ", MILLRACE_VERSION, view->place, view->server);
    figure_add_seconds(&text, view->interval_s);
    screen_tint(screen, STYLE_TITLE);
    screen_put(screen, STYLE_PLAIN, buf_peek(&text));
    screen_end_line(screen);
}

static void put_sums(const struct top_model *model, struct screen *screen)
{
    put_pair(screen, "queues", (double)model->count, "");
    put_pair(screen, "available", model->sums[TOP_AVAILABLE], "");
    put_pair(screen, "running", model->sums[TOP_RUNNING], "");
    put_pair(screen, "scheduled", model->sums[TOP_SCHEDULED], "");
    put_pair(screen, "retrying", model->sums[TOP_RETRYING], "");
    put_pair(screen, "dead", model->sums[TOP_DEAD], "");
    screen_end_line(screen);
    put_pair(screen, "in", model->sums[TOP_IN], "/s");
    put_pair(screen, "out", model->sums[TOP_OUT], "/s");
    put_pair(screen, "failed", model->sums[TOP_FAILED], "/s");
}

// Who holds the horizon, and for how long: the first of system()'s list is the oldest.
static void put_xmin(const json_t *system, struct screen *screen)
{
    const json_t *holders = json_object_get(system, "xmin");
    AUTO_BUF text;

    buf_init(&text, CELL_MAX);
    top_add_figure(&text, top_number(json_array_get(holders, 0), "age_seconds"), true);
    screen_put(screen, STYLE_DIM, "oldest snapshot ");
    screen_put(screen, STYLE_BOLD, json_array_size(holders) ? buf_peek(&text) : "none");
    screen_blanks(screen, 2);
}

static void put_server(const struct top_model *model, struct screen *screen)
{
    const json_t *connections = json_object_get(model->system, "connections");
    const json_t *workers = json_object_get(model->workers, "workers");
    put_pair(screen, "workers", model->workers ? (double)json_array_size(workers) : NAN, "");
    put_xmin(model->system, screen);
    put_pair(screen, "connections", top_number(connections, "used"), "");
    screen_end_line(screen);
}

static void put_log(const struct top_model *model, struct screen *screen)
{
    const json_t *log = json_array_get(json_object_get(model->overview, "log"), 0);
    double bytes = top_number(model->system, "millrace_bytes");
    AUTO_BUF text;

    buf_init(&text, CELL_MAX);
    if (!isnan(bytes)) {
        figure_add_bytes(&text, bytes);
    }
    screen_put(screen, STYLE_DIM, "size ");
    screen_put(screen, STYLE_BOLD, text.len ? buf_peek(&text) : "-");
    screen_blanks(screen, 2);
    screen_put(screen, STYLE_DIM, "log ");
    screen_put(screen, top_status_style(top_text(log, "status")), top_text(log, "message"));
    screen_end_line(screen);
}

static void put_notice(const struct top_view *view, struct screen *screen)
{
    screen_put(screen, view->notice_style, view->notice);
    screen_end_line(screen);
}

// ---- the list ----

// Each number is one of eight heights of a block, of the largest.
static void put_spark(const struct top_queue *queue, int room, struct screen *screen)
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    int len = queue->history_len < room ? queue->history_len : room;
    const double *from = queue->history + queue->history_len - len;
    double most = 0;

    for (int i = 0; i < len; i++) {
        most = from[i] > most ? from[i] : most;
    }
    screen_blanks(screen, GAP);
    for (int i = 0; i < len; i++) {
        int height = most > 0 ? (int)(from[i] / most * 7 + 0.5) : 0;
        screen_put(screen, STYLE_PLAIN, from[i] > 0 ? blocks[height] : " ");
    }
}

// What the figures leave: the name gets the first of it, then the curve, then the name again.
static int spare_columns(const struct screen *screen)
{
    int used = 0;

    for (int i = 0; i < TOP_FIGURES; i++) {
        used += columns[i].columns + GAP;
    }
    return screen_columns(screen) - used;
}

static int name_columns(const struct screen *screen)
{
    int spare = spare_columns(screen);
    int beside_curve = spare - SPARK_MAX - GAP;

    if (spare < NAME_USUAL) {
        return spare > NAME_MIN ? spare : NAME_MIN;
    }
    return beside_curve < NAME_USUAL ? NAME_USUAL
           : beside_curve < NAME_MAX ? beside_curve
                                     : NAME_MAX;
}

static int spark_room(const struct screen *screen)
{
    int room = spare_columns(screen) - name_columns(screen) - GAP;

    return room > SPARK_MAX ? SPARK_MAX : room;
}

static void put_titles(const struct top_view *view, struct screen *screen)
{
    int name = name_columns(screen);

    screen_field(screen, view->sort == TOP_FIGURES ? STYLE_BOLD : STYLE_DIM, "QUEUE", name, false);
    for (int i = 0; i < TOP_FIGURES; i++) {
        screen_blanks(screen, GAP);
        screen_field(screen, (int)view->sort == i ? STYLE_BOLD : STYLE_DIM, columns[i].title,
                     columns[i].columns, true);
    }
    if (spark_room(screen) > 0) {
        screen_blanks(screen, GAP);
        screen_put(screen, STYLE_DIM, "OUT/S");
    }
    screen_end_line(screen);
}

static void put_name(const struct top_queue *queue, int room, struct screen *screen)
{
    enum style style = top_status_style(queue->status);

    if (queue->paused) {
        screen_field(screen, STYLE_DIM, queue->name, room - 2, false);
        screen_put(screen, STYLE_DIM, " P");
    } else {
        screen_field(screen, style, queue->name, room, false);
    }
}

static void put_queue(const struct top_queue *queue, bool selected, struct screen *screen)
{
    int name = name_columns(screen);

    if (selected) {
        screen_tint(screen, STYLE_SELECTED);
    }
    put_name(queue, name, screen);
    for (int i = 0; i < TOP_FIGURES; i++) {
        AUTO_BUF text;

        buf_init(&text, CELL_MAX);
        top_add_figure(&text, queue->figures[i], columns[i].time);
        screen_blanks(screen, GAP);
        screen_field(screen, STYLE_PLAIN, buf_peek(&text), columns[i].columns, true);
    }
    put_spark(queue, spark_room(screen), screen);
    screen_end_line(screen);
}

// So that the selected one is in sight.
static int first_shown(const struct top_view *view, const struct top_model *model, int room)
{
    int at = view->selected ? top_model_find(model, view->selected) : 0;

    return at >= room ? at - room + 1 : 0;
}

static void put_list(const struct top_view *view, const struct top_model *model,
                     struct screen *screen)
{
    int room = screen_left(screen) - 2;
    int first = first_shown(view, model, room);

    put_titles(view, screen);
    if (model->count == 0) {
        screen_put(screen, STYLE_DIM, "no queue yet: the first job makes one");
        screen_end_line(screen);
    }
    for (int i = first; i < (int)model->count && i < first + room; i++) {
        put_queue(&model->queues[i],
                  view->interactive && view->selected &&
                      str_equal(model->queues[i].name, view->selected),
                  screen);
    }
}

// ---- all pages ----

static void put_help(struct top_view *view, struct screen *screen)
{
    static const char *const lines[] = {
        "up, k    down, j       select a queue; page up, page down, home, end",
        "enter                  look into the queue: settings, lanes, workers, jobs, errors",
        "esc, left              back",
        "s, S                   sort by the next, the previous column",
        "p                      pause the queue, or resume it (asks)",
        "r                      look again now",
        "?, h                   this",
        "q                      quit",
        "",
        "P behind a name        the queue is paused",
        "IN/S OUT/S FAIL/S      jobs enqueued, completed, failed since the last look",
        "WAIT                   from available to claimed, the 95th percentile of the last claims",
        "OLDEST                 how long the job that waits longest has been available",
    };

    int count = (int)(sizeof(lines) / sizeof(lines[0]));
    int room = screen_left(screen) - 1;
    int most = count > room ? count - room : 0;

    view->scroll = view->scroll < most ? view->scroll : most;
    for (int i = view->scroll; i < count && screen_left(screen) > 1; i++) {
        screen_put(screen, STYLE_PLAIN, lines[i]);
        screen_end_line(screen);
    }
}

static void put_keys(const struct top_view *view, struct screen *screen)
{
    static const char *const keys[] = {
        [TOP_PAGE_LIST] = "q quit  j/k select  enter look into  s sort  p pause  ? help",
        [TOP_PAGE_QUEUE] = "q quit  esc back  j/k scroll  p pause  ? help",
        [TOP_PAGE_HELP] = "q quit  esc back  j/k scroll",
    };

    while (screen_left(screen) > 1) {
        screen_end_line(screen);
    }
    screen_tint(screen, STYLE_TITLE);
    screen_put(screen, STYLE_PLAIN, keys[view->page]);
    if (view->page == TOP_PAGE_LIST) {
        screen_put(screen, STYLE_PLAIN, "  sorted by ");
        screen_put(screen, STYLE_PLAIN, top_sort_name(view->sort));
    }
    screen_end_line(screen);
}

// What stands above a page: on a low screen the rows are for the queues. A question is always
// shown, and so is what went wrong.
static void put_head(const struct top_view *view, const struct top_model *model,
                     struct screen *screen)
{
    int rows = screen_rows(screen);

    if (rows >= ROWS_TINY) {
        put_title(view, screen);
    }
    if (model->overview && view->page != TOP_PAGE_HELP && rows >= ROWS_LOW) {
        put_sums(model, screen);
        put_server(model, screen);
        put_log(model, screen);
    }
    if (!view->interactive) {
        screen_end_line(screen);
    } else if (rows >= ROWS_TINY || view->notice[0]) {
        put_notice(view, screen);
    }
}

static void put_page(struct top_view *view, const struct top_model *model, struct screen *screen)
{
    switch (view->page) {
    case TOP_PAGE_HELP: put_help(view, screen); return;
    case TOP_PAGE_QUEUE: top_put_queue_page(view, model, screen); return;
    case TOP_PAGE_LIST:
        if (model->overview) {
            put_list(view, model, screen);
        }
        return;
    }
}

int top_draw(struct top_view *view, const struct top_model *model, struct screen *screen,
             struct mr_error *err)
{
    screen_begin(screen);
    put_head(view, model, screen);
    put_page(view, model, screen);
    if (view->interactive) {
        put_keys(view, screen);
    }
    return screen_end(screen, err);
}
