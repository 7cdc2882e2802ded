// SPDX-License-Identifier: PostgreSQL
//
// The page of one queue in `millrace top`: figures, settings, lanes, workers, the jobs that wait
// longest, the latest dead letters. Longer than the screen it scrolls.

#include <math.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/str.h"
#include "cli/figure.h"
#include "cli/top_pages.h"
#include "cli/width.h"

enum { CELL_MAX = 4096, LANES_MAX = 20, PAIR_COLUMNS = 26 };

// The lines of the page, of which a window is on the screen.
struct page {
    struct screen *screen;
    int above; // lines that are still to be left out
    int count; // in all
};

static void end_line(struct page *page)
{
    page->count++;
    if (page->above > 0) {
        page->above--;
        screen_drop_line(page->screen);
    } else if (screen_left(page->screen) > 1) {
        screen_end_line(page->screen);
    } else {
        screen_drop_line(page->screen);
    }
}

static void heading(struct page *page, const char *text)
{
    end_line(page);
    screen_put(page->screen, STYLE_BOLD, text);
    end_line(page);
}

static void nothing(struct page *page, const char *text)
{
    screen_put(page->screen, STYLE_DIM, text);
    end_line(page);
}

static void cell(struct page *page, const char *text, int columns, bool right)
{
    screen_field(page->screen, STYLE_PLAIN, text, columns, right);
    screen_blanks(page->screen, 1);
}

static void cell_number(struct page *page, double number, bool time, int columns)
{
    AUTO_BUF text;

    buf_init(&text, CELL_MAX);
    top_add_figure(&text, number, time);
    cell(page, buf_peek(&text), columns, true);
}

static void cell_clock(struct page *page, const char *iso, int columns)
{
    AUTO_BUF text;

    buf_init(&text, CELL_MAX);
    figure_add_clock(&text, iso);
    cell(page, text.len ? buf_peek(&text) : "-", columns, false);
}

// ---- its parts ----

static void put_state(struct page *page, const json_t *story)
{
    const json_t *stats = json_object_get(story, "stats");
    bool paused = json_is_true(json_object_get(story, "paused"));

    screen_put(page->screen, STYLE_BOLD, "queue ");
    screen_put(page->screen, STYLE_BOLD, top_text(story, "queue"));
    screen_put(page->screen, STYLE_PLAIN, "  ");
    screen_put(page->screen, top_status_style(top_text(stats, "status")),
               top_text(stats, "status"));
    screen_put(page->screen, STYLE_PLAIN, "  ");
    screen_put(page->screen, STYLE_PLAIN, top_text(stats, "message"));
    screen_put(page->screen, STYLE_WARNING, paused ? "  PAUSED" : "");
    end_line(page);
}

static void put_spread(struct page *page, const json_t *stats)
{
    static const char *const parts[] = {"wait", "run"};

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        const json_t *spread = json_object_get(stats, parts[i]);

        screen_put(page->screen, STYLE_DIM, parts[i]);
        screen_put(page->screen, STYLE_DIM, " p50 p95 p99 ");
        cell_number(page, top_number(spread, "p50"), true, 6);
        cell_number(page, top_number(spread, "p95"), true, 6);
        cell_number(page, top_number(spread, "p99"), true, 6);
        screen_blanks(page->screen, 2);
    }
    end_line(page);
}

static void put_totals(struct page *page, const json_t *stats)
{
    static const char *const keys[] = {"enqueued_total", "completed_total", "failed_total",
                                       "retried_total",  "dead_total",      "rescued_total",
                                       "cancelled_total"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        char name[32];

        snprintf(name, sizeof(name), "%.*s", (int)(width_of(keys[i]) - 6), keys[i]);
        screen_put(page->screen, STYLE_DIM, name);
        screen_blanks(page->screen, 1);
        AUTO_BUF text;
        buf_init(&text, CELL_MAX);
        top_add_figure(&text, top_number(stats, keys[i]), false);
        screen_put(page->screen, STYLE_PLAIN, buf_peek(&text));
        screen_blanks(page->screen, 2);
    }
    end_line(page);
}

static void add_setting(struct buf *out, const char *name, const json_t *value)
{
    buf_printf(out, "%s ", name);
    if (json_is_string(value)) {
        buf_puts(out, json_string_value(value));
    } else if (json_is_number(value)) {
        buf_printf(out, "%.15g", json_number_value(value));
    } else {
        buf_puts(out, json_is_true(value) ? "true" : json_is_false(value) ? "false" : "off");
    }
}

static void put_settings(struct page *page, const json_t *settings)
{
    int in_line = screen_columns(page->screen) / (PAIR_COLUMNS + 1);
    const char *name = NULL;
    json_t *value = NULL;
    int count = 0;

    heading(page, "settings");
    in_line = in_line > 0 ? in_line : 1;
    json_object_foreach((json_t *)settings, name, value)
    {
        AUTO_BUF text;

        buf_init(&text, CELL_MAX);
        add_setting(&text, name, value);
        cell(page, buf_peek(&text), PAIR_COLUMNS, false);
        if (++count % in_line == 0) {
            end_line(page);
        }
    }
    if (count % in_line) {
        end_line(page);
    }
}

static void put_lanes(struct page *page, const json_t *lanes)
{
    size_t count = json_array_size(lanes);

    if (count < 2) {
        return; // then the figures above are the lane's
    }
    heading(page, "lanes: priority, part, available, running, oldest");
    for (size_t i = 0; i < count && i < LANES_MAX; i++) {
        const json_t *lane = json_array_get(lanes, i);

        cell_number(page, top_number(lane, "priority"), false, 8);
        cell_number(page, top_number(lane, "part"), false, 4);
        cell_number(page, top_number(lane, "available"), false, 8);
        cell_number(page, top_number(lane, "running"), false, 8);
        cell_number(page, top_number(lane, "oldest_seconds"), true, 8);
        end_line(page);
    }
}

static void put_workers(struct page *page, const json_t *workers)
{
    heading(page, "workers: jobs that run, claims, the last one");
    if (json_array_size(workers) == 0) {
        nothing(page, "none has taken a job lately");
    }
    for (size_t i = 0; i < json_array_size(workers); i++) {
        const json_t *worker = json_array_get(workers, i);

        cell(page, top_text(worker, "worker"), 40, false);
        cell_number(page, top_number(worker, "jobs_running"), false, 6);
        cell_number(page, top_number(worker, "claims_open"), false, 6);
        cell_clock(page, top_text(worker, "last_claim_at"), 25);
        end_line(page);
    }
}

static void put_oldest(struct page *page, const json_t *jobs)
{
    heading(page, "jobs that wait longest: id, kind, priority, attempt, since");
    if (json_array_size(jobs) == 0) {
        nothing(page, "none waits");
    }
    for (size_t i = 0; i < json_array_size(jobs); i++) {
        const json_t *job = json_array_get(jobs, i);
        char id[32];

        snprintf(id, sizeof(id), "%" JSON_INTEGER_FORMAT,
                 json_integer_value(json_object_get(job, "id")));
        cell(page, id, 12, true);
        cell(page, top_text(job, "kind"), 24, false);
        cell_number(page, top_number(job, "priority"), false, 3);
        cell_number(page, top_number(job, "attempt"), false, 3);
        cell_clock(page, top_text(job, "run_at"), 25);
        end_line(page);
    }
}

static void put_dead(struct page *page, const json_t *dead)
{
    const json_t *list = json_object_get(dead, "jobs");

    heading(page, "latest dead letters: when, id, kind, error");
    if (json_array_size(list) == 0) {
        nothing(page, "none");
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *letter = json_array_get(list, i);
        char id[32];

        snprintf(id, sizeof(id), "%" JSON_INTEGER_FORMAT,
                 json_integer_value(json_object_get(letter, "id")));
        cell_clock(page, top_text(letter, "died_at"), 25);
        cell(page, id, 12, true);
        cell(page, top_text(letter, "kind"), 16, false);
        screen_put(page->screen, STYLE_PLAIN, top_text(letter, "error"));
        end_line(page);
    }
}

static int put_all(const struct top_model *model, int above, struct screen *screen)
{
    struct page page = {.screen = screen, .above = above};
    const json_t *story = model->story;

    if (!story) {
        nothing(&page, "...");
        return page.count;
    }
    put_state(&page, story);
    put_spread(&page, json_object_get(story, "stats"));
    put_totals(&page, json_object_get(story, "stats"));
    put_workers(&page, json_object_get(story, "workers"));
    put_oldest(&page, json_object_get(story, "oldest"));
    put_dead(&page, model->dead);
    put_lanes(&page, json_object_get(story, "lanes"));
    put_settings(&page, json_object_get(story, "settings"));
    return page.count;
}

void top_put_queue_page(struct top_view *view, const struct top_model *model, struct screen *screen)
{
    int room = screen_left(screen) - 1;
    int count = put_all(model, view->scroll, screen);

    // one line further than the end is the end
    if (view->scroll > 0 && view->scroll > count - room) {
        view->scroll = count > room ? count - room : 0;
    }
}
