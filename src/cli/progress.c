// SPDX-License-Identifier: PostgreSQL
//
// How far a long command is: see progress.h.

#include "cli/progress.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/figure.h"
#include "cli/terminal.h"

enum { TEXT_MAX = 1024, WIDTH_DEFAULT = 80, BAR_MIN = 10, BAR_MAX = 30 };

void progress_init(struct progress *progress, const char *noun, int64_t whole, bool quiet)
{
    *progress = (struct progress){
        .out = quiet ? NULL : stderr,
        .terminal = terminal_moves(STDERR_FILENO),
        .noun = noun,
        .whole = whole,
        .start_ms = clock_ms(),
    };
    // the first line comes when there is something to say
    progress->drawn_ms = progress->terminal ? 0 : progress->start_ms;
}

static void add_bar(struct buf *out, int64_t part, int64_t whole, int room)
{
    int width = room > BAR_MAX ? BAR_MAX : room;
    int filled = (int)((double)part / (double)whole * width);

    buf_puts(out, "[");
    for (int i = 0; i < width; i++) {
        buf_puts(out, i < filled ? "=" : i == filled ? ">" : " ");
    }
    buf_puts(out, "] ");
}

static void add_figures(struct buf *out, const char *noun, int64_t count, int64_t part,
                        int64_t whole, int64_t elapsed_ms)
{
    if (whole > 0) {
        buf_printf(out, "%3d %%  ", (int)((double)part / (double)whole * 100));
    }
    figure_add_number(out, count);
    buf_printf(out, " %s", noun);
    if (elapsed_ms <= 0) {
        return;
    }
    buf_puts(out, "  ");
    figure_add_number(out, (int64_t)((double)count * 1000 / (double)elapsed_ms));
    buf_puts(out, "/s");
    if (whole > 0 && part > 0 && part < whole) {
        double left_ms = (double)elapsed_ms * (double)(whole - part) / (double)part;

        buf_puts(out, "  ");
        figure_add_time(out, ((int64_t)(left_ms / 1000) + 1) * 1000);
        buf_puts(out, " left");
    }
}

void progress_text(struct buf *out, const char *noun, int64_t count, int64_t part, int64_t whole,
                   int64_t elapsed_ms, int width)
{
    AUTO_BUF figures;

    buf_init(&figures, TEXT_MAX);
    part = part > whole ? whole : part;
    add_figures(&figures, noun, count, part, whole, elapsed_ms);
    int room = width - (int)figures.len - (int)strlen("[] ");
    if (whole > 0 && room >= BAR_MIN) {
        add_bar(out, part, whole, room);
    }
    buf_puts(out, buf_peek(&figures));
}

static int terminal_width(void)
{
    int columns = terminal_columns(STDERR_FILENO);

    return columns ? columns : WIDTH_DEFAULT;
}

static void draw(struct progress *progress, int64_t count, int64_t part, int64_t now)
{
    int width = progress->terminal ? terminal_width() - 1 : 0;
    AUTO_BUF text;

    buf_init(&text, TEXT_MAX);
    progress_text(&text, progress->noun, count, part, progress->whole, now - progress->start_ms,
                  width);
    if (progress->terminal) {
        fprintf(progress->out, "\r%.*s\033[K", width, buf_peek(&text));
    } else {
        fprintf(progress->out, "%s\n", buf_peek(&text));
    }
    fflush(progress->out);
    progress->drawn = progress->terminal;
    progress->drawn_ms = now;
}

void progress_update(struct progress *progress, int64_t count, int64_t part)
{
    int64_t now = clock_ms();
    int64_t pause_ms = progress->terminal ? PROGRESS_TERMINAL_MS : PROGRESS_LINE_MS;

    if (progress->out && now - progress->drawn_ms >= pause_ms) {
        draw(progress, count, part, now);
    }
}

void progress_clear(struct progress *progress)
{
    if (progress->drawn) {
        fputs("\r\033[K", progress->out);
        fflush(progress->out);
        progress->drawn = false;
    }
}
