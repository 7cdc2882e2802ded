// SPDX-License-Identifier: PostgreSQL
//
// A terminal as a screen: see screen.h.

#include "cli/screen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/terminal.h"
#include "cli/width.h"

enum { LINE_MAX_BYTES = 64 * 1024, OUT_MAX = 16 * 1024 * 1024 };

#define TAKE "\033[?1049h\033[?25l\033[?7l" // the other screen, no cursor, no wrapping
#define GIVE "\033[?7h\033[?25h\033[?1049l"

struct line {
    struct buf text;
    int columns;
};

struct screen {
    bool terminal;
    bool taken;
    bool colours;
    struct termios before;
    int rows, columns;
    struct line line; // that is put together
    enum style tint;
    int row;         // its number
    struct buf out;  // of this frame
    char **drawn;    // rows as they are on the terminal; NULL: not known
    int drawn_count; // allocated
};

static struct screen *open_screen; // to be given back at exit

// With colours, and without: then what is bad is bold.
static const char *const styles[][2] = {
    [STYLE_PLAIN] = {"", ""},
    [STYLE_BOLD] = {"\033[1m", "\033[1m"},
    [STYLE_DIM] = {"\033[2m", "\033[2m"},
    [STYLE_TITLE] = {"\033[7m", "\033[7m"},
    [STYLE_SELECTED] = {"\033[7m", "\033[7m"},
    [STYLE_GOOD] = {"\033[32m", ""},
    [STYLE_WARNING] = {"\033[33m", "\033[1m"},
    [STYLE_CRITICAL] = {"\033[1;31m", "\033[1m"},
};

// ---- the terminal ----

static int write_all(const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDOUT_FILENO, data, len);

        if (n < 0 && errno != EINTR && errno != EAGAIN) {
            return -1;
        }
        data += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

void screen_enter(struct screen *screen)
{
    struct termios raw = screen->before;

    if (!screen->terminal || screen->taken) {
        return;
    }
    raw.c_lflag &= (tcflag_t) ~(ECHO | ICANON); // signals stay: Ctrl-C and Ctrl-Z are signals
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
    write_all(TAKE, strlen(TAKE));
    screen->taken = true;
    screen_forget(screen);
}

void screen_leave(struct screen *screen)
{
    if (screen->taken) {
        write_all(GIVE, strlen(GIVE));
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &screen->before);
        screen->taken = false;
    }
}

static void leave_at_exit(void)
{
    if (open_screen) {
        screen_leave(open_screen);
    }
}

int screen_open(bool terminal, struct screen **ret, struct mr_error *err)
{
    struct screen *screen = calloc(1, sizeof(*screen));

    if (!screen) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    screen->terminal = terminal;
    screen->colours = terminal && terminal_colours(STDOUT_FILENO);
    if (terminal && tcgetattr(STDIN_FILENO, &screen->before)) {
        free(screen);
        mr_error_set(err, MR_EUSAGE, "the keyboard is no terminal");
        mr_error_hint(err, "Use --once to print the figures once.");
        return MR_EUSAGE;
    }
    buf_init(&screen->line.text, LINE_MAX_BYTES);
    buf_init(&screen->out, OUT_MAX);
    open_screen = screen;
    if (terminal) {
        atexit(leave_at_exit);
    }
    screen_enter(screen);
    *ret = screen;
    return 0;
}

void screen_close(struct screen *screen)
{
    if (!screen) {
        return;
    }
    screen_leave(screen);
    screen_forget(screen);
    free(screen->drawn);
    buf_done(&screen->line.text);
    buf_done(&screen->out);
    free(screen);
    open_screen = NULL;
}

static void measure(struct screen *screen)
{
    struct winsize size = {0};

    if (!screen->terminal) {
        screen->rows = SCREEN_ROWS_PLAIN;
        screen->columns =
            ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 132;
        return;
    }
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_row == 0 || size.ws_col == 0) {
        size = (struct winsize){.ws_row = 24, .ws_col = 80};
    }
    int rows = size.ws_row > SCREEN_ROWS_MAX ? SCREEN_ROWS_MAX : size.ws_row;
    int columns = size.ws_col > SCREEN_COLUMNS_MAX ? SCREEN_COLUMNS_MAX : size.ws_col;
    if (rows != screen->rows || columns != screen->columns) {
        screen_forget(screen);
    }
    screen->rows = rows;
    screen->columns = columns;
}

int screen_rows(const struct screen *screen)
{
    return screen->rows;
}

int screen_columns(const struct screen *screen)
{
    return screen->columns;
}

void screen_forget(struct screen *screen)
{
    for (int i = 0; i < screen->drawn_count; i++) {
        free(screen->drawn[i]);
        screen->drawn[i] = NULL;
    }
}

// ---- a line ----

static void clear_line(struct screen *screen)
{
    buf_done(&screen->line.text);
    screen->line.columns = 0;
    screen->tint = STYLE_PLAIN;
}

static int room(const struct screen *screen)
{
    return screen->columns - screen->line.columns;
}

static const char *style_text(const struct screen *screen, enum style style)
{
    return styles[style == STYLE_PLAIN ? screen->tint : style][screen->colours ? 0 : 1];
}

void screen_put(struct screen *screen, enum style style, const char *text)
{
    screen_field(screen, style, text, width_of(text), false);
}

void screen_blanks(struct screen *screen, int columns)
{
    for (int i = 0; i < columns && room(screen) > 0; i++) {
        buf_puts(&screen->line.text, " ");
        screen->line.columns++;
    }
}

void screen_field(struct screen *screen, enum style style, const char *text, int columns,
                  bool right)
{
    const char *on = screen->terminal ? style_text(screen, style) : "";
    int width = width_of(text) < columns ? width_of(text) : columns;
    int blanks = columns - width;

    if (right) {
        screen_blanks(screen, blanks);
    }
    width = width < room(screen) ? width : room(screen);
    if (on[0] && screen->tint != STYLE_SELECTED) {
        buf_puts(&screen->line.text, on);
    }
    screen->line.columns += width_add(&screen->line.text, text, width);
    if (on[0] && screen->tint != STYLE_SELECTED) {
        buf_puts(&screen->line.text, "\033[0m");
        buf_puts(&screen->line.text, style_text(screen, screen->tint));
    }
    if (!right) {
        screen_blanks(screen, blanks);
    }
}

void screen_tint(struct screen *screen, enum style style)
{
    screen->tint = style;
    if (screen->terminal) {
        buf_puts(&screen->line.text, style_text(screen, style));
    }
}

void screen_drop_line(struct screen *screen)
{
    clear_line(screen);
}

// Blanks at the end of a line say nothing in a file.
static void trim(struct buf *text)
{
    while (text->len > 0 && text->data[text->len - 1] == ' ') {
        text->data[--text->len] = '\0';
    }
}

static bool remember(struct screen *screen, const char *text)
{
    if (screen->row >= screen->drawn_count) {
        int count = screen->row + 100;
        char **drawn = realloc(screen->drawn, (size_t)count * sizeof(*drawn));

        if (!drawn) {
            return true; // then it is drawn each time
        }
        memset(drawn + screen->drawn_count, 0,
               (size_t)(count - screen->drawn_count) * sizeof(*drawn));
        screen->drawn = drawn;
        screen->drawn_count = count;
    }
    char **known = &screen->drawn[screen->row];
    if (*known && str_equal(*known, text)) {
        return false;
    }
    free(*known);
    *known = strdup(text);
    return true;
}

void screen_end_line(struct screen *screen)
{
    if (screen->row < screen->rows && !screen->terminal) {
        trim(&screen->line.text);
        buf_printf(&screen->out, "%s\n", buf_peek(&screen->line.text));
    } else if (screen->row < screen->rows) {
        if (screen->tint != STYLE_PLAIN) {
            screen_blanks(screen, room(screen));
            buf_puts(&screen->line.text, "\033[0m");
        }
        if (remember(screen, buf_peek(&screen->line.text))) {
            // in the last column the cursor stays on what it wrote, which may not be erased
            buf_printf(&screen->out, "\033[%d;1H%s%s", screen->row + 1,
                       buf_peek(&screen->line.text), room(screen) > 0 ? "\033[K" : "");
        }
    }
    screen->row++;
    clear_line(screen);
}

// ---- a frame ----

void screen_begin(struct screen *screen)
{
    measure(screen);
    buf_done(&screen->out);
    clear_line(screen);
    screen->row = 0;
}

int screen_left(const struct screen *screen)
{
    return screen->row < screen->rows ? screen->rows - screen->row : 0;
}

int screen_end(struct screen *screen, struct mr_error *err)
{
    while (screen->terminal && screen->row < screen->rows) {
        screen_end_line(screen);
    }
    int code = buf_status(&screen->out, err);
    if (code == 0 && write_all(buf_peek(&screen->out), screen->out.len)) {
        code =
            mr_error_set(err, MR_EINTERNAL, "cannot write to standard output: %s", strerror(errno));
    }
    return code;
}
