// SPDX-License-Identifier: PostgreSQL
//
// `millrace top`: the queues, live. One question to the database for each look; keys, signals and
// answers are waited for together, so that a database that hangs or goes away holds up nothing.

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/feed.h"
#include "cli/keys.h"
#include "cli/screen.h"
#include "cli/shard_conns.h"
#include "cli/terminal.h"
#include "cli/top_model.h"
#include "cli/top_view.h"

enum {
    INTERVAL_MS = 1000,
    INTERVAL_MIN_MS = 100,
    SYSTEM_EVERY_MS = 5000, // what costs more is asked for less often
    NOTICE_MAX = 1600,
    NOTICE_MORE = 500,
    PLACE_MAX = 200,
    NOTICE_MS = 10000,
    SILENCE_MS = 3000, // after so long it is said that the database does not answer
};

static const struct command_form form = {
    "top",
    "",
    0,
    0,
    "Shows the queues live: jobs by status, rates, how long jobs wait, and what is wrong. Keys: ?\n"
    "shows them. Where the output is no terminal, one look is printed, with rates over one interval.",
    "millrace-top(1)",
};

static const char *const look_sql =
    "select millrace.overview(), case when $1::boolean then millrace.system() end,"
    " case when $1::boolean then millrace.list_workers() end,"
    " case when $2::text is not null then millrace.queue_story($2::text) end,"
    " case when $2::text is not null"
    " then millrace.list_dead(jsonb_build_object('queue', $2::text, 'limit', 10)) end";

struct top {
    struct feed *feed;
    struct screen *screen;
    struct top_model model;
    struct top_view view;
    struct keys keys;
    int64_t interval_ms;
    int64_t look_ms;   // when to look next
    int64_t system_ms; // when to ask for what costs more
    int64_t sent_ms;   // when the last question was asked
    bool silent;       // it is on the screen that nothing comes
    int64_t key_ms;    // when an unfinished key is given up
    int64_t notice_ms; // when the notice goes
    char *selected;    // the name of the queue under the cursor
    char *asked;       // the queue of the question: the cursor's may be gone when the answer comes
    bool asked_resume; // and what it is about, whatever somebody else does meanwhile
    bool asks;         // for y or n
    bool wants;        // the answer was y; sent as soon as the connection is free
    char *acting;      // "pause" or "resume" was sent, and the queue's name
    bool quit;
    bool changed; // draw
    int signals;  // a descriptor
    char notice[NOTICE_MAX], place[PLACE_MAX], server[PLACE_MAX];
};

static void notice(struct top *top, enum style style, const char *text, const char *more)
{
    snprintf(top->notice, sizeof(top->notice), "%s%.*s", text, NOTICE_MORE, more);
    str_trim_utf8(top->notice);
    top->view.notice_style = style;
    top->notice_ms = clock_ms() + NOTICE_MS;
    top->silent = false; // it is this that is on the screen
    top->changed = true;
}

static void quiet(struct top *top)
{
    top->notice[0] = '\0';
    top->changed = true;
}

// ---- the database ----

static void tell_place(struct top *top)
{
    const PGconn *pg = feed_pg(top->feed);
    const char *host = PQhost(pg);
    const char *version = PQparameterStatus(pg, "server_version");

    bool local = !host || host[0] == '/' || host[0] == '@';
    snprintf(top->place, sizeof(top->place), "%s%s%s%s%s", PQdb(pg), local ? "" : "@",
             local ? "" : host, local ? "" : ":", local ? "" : PQport(pg));
    str_trim_utf8(top->place);
    snprintf(top->server, sizeof(top->server), "PostgreSQL %.*s",
             version ? (int)strcspn(version, " ") : 0, version ? version : "");
}

static void look(struct top *top)
{
    bool into = top->view.page == TOP_PAGE_QUEUE;
    bool all = clock_ms() >= top->system_ms;
    const char *values[] = {all ? "true" : "false", into ? top->selected : NULL};

    feed_ask(top->feed, look_sql, 2, values);
    top->sent_ms = clock_ms();
    top->look_ms = clock_ms() + top->interval_ms;
    if (all) {
        top->system_ms = clock_ms() + SYSTEM_EVERY_MS;
    }
}

static void select_name(struct top *top, const char *name)
{
    char *copy = name ? strdup(name) : NULL;

    free(top->selected);
    top->selected = copy;
    top->changed = true;
}

// The selected queue is gone: the first takes its place.
static void settle_selection(struct top *top)
{
    if (!top->selected || top_model_find(&top->model, top->selected) < 0) {
        select_name(top, top->model.count ? top->model.queues[0].name : NULL);
    }
}

static void refused(struct top *top, const struct mr_error *err)
{
    notice(top, STYLE_CRITICAL, err->message, "");
    if (err->code == MR_EUNKNOWN && top->view.page == TOP_PAGE_QUEUE) {
        top->view.page = TOP_PAGE_LIST; // dropped while it was looked at
    }
    free(top->acting);
    top->acting = NULL;
}

static void answered(struct top *top, PGresult *answer)
{
    struct mr_error err;

    if (top->acting) {
        notice(top, STYLE_GOOD, top->acting, " is done");
        free(top->acting);
        top->acting = NULL;
        top->look_ms = 0;
        return;
    }
    if (top_model_take(&top->model, answer, (double)clock_us() / 1e6, &err)) {
        refused(top, &err);
        return;
    }
    top_model_sort(&top->model, top->view.sort);
    settle_selection(top);
    top->changed = true;
}

// A database that hangs is told from one that has nothing to say. A question stays in sight.
static void tell_silence(struct top *top)
{
    int64_t silent_ms = clock_ms() - top->sent_ms;
    bool silent = feed_status(top->feed) == FEED_BUSY && silent_ms >= SILENCE_MS;
    char text[32];

    if (top->asks || (!silent && !top->silent)) {
        return;
    }
    if (silent) {
        snprintf(text, sizeof(text), "%d s", (int)(silent_ms / 1000));
        notice(top, STYLE_WARNING, "the database has not answered for ", text);
    } else if (top->view.connected) {
        quiet(top);
    }
    top->silent = silent;
}

static void advance(struct top *top)
{
    bool was_up = top->view.connected;
    PGresult *answer = NULL;
    struct mr_error err;

    if (!feed_advance(top->feed)) {
        return;
    }
    enum feed_status status = feed_status(top->feed);
    if (status == FEED_READY && !was_up) {
        tell_place(top);
        top->view.connected = true;
        top->system_ms = 0;
        top->look_ms = 0;
        quiet(top);
    } else if (status == FEED_DOWN) {
        top->view.connected = false;
        notice(top, STYLE_CRITICAL, "no connection, trying again: ", feed_trouble(top->feed));
        top->notice_ms = INT64_MAX;
        top->wants = top->asks = false;
        free(top->acting);
        top->acting = NULL;
    }
    if (feed_answer(top->feed, &answer, &err)) {
        refused(top, &err);
    } else if (answer) {
        answered(top, answer);
    }
    PQclear(answer);
}

// ---- keys ----

static void move(struct top *top, int by)
{
    if (top->view.page != TOP_PAGE_LIST) {
        int scroll = top->view.scroll + by;
        top->view.scroll = scroll > 0 ? scroll : 0;
    } else if (top->model.count > 0) {
        int last = (int)top->model.count - 1;
        int at = top->selected ? top_model_find(&top->model, top->selected) : 0;

        at = at + by < 0 ? 0 : at + by > last ? last : at + by;
        select_name(top, top->model.queues[at].name);
    }
    top->changed = true;
}

static void sort_next(struct top *top, int by)
{
    int count = TOP_FIGURES + 1;

    top->view.sort = (enum top_figure)(((int)top->view.sort + by + count) % count);
    top_model_sort(&top->model, top->view.sort);
    top->changed = true;
}

static void turn_page(struct top *top, enum top_page page)
{
    top->view.page = page;
    top->view.scroll = 0;
    top->changed = true;
    if (page == TOP_PAGE_QUEUE) {
        json_decref(top->model.story);
        json_decref(top->model.dead);
        top->model.story = top->model.dead = NULL;
        top->look_ms = 0;
    }
}

static bool is_paused(const struct top *top)
{
    int at = top->selected ? top_model_find(&top->model, top->selected) : -1;

    return at >= 0 && top->model.queues[at].paused;
}

static void ask_pause(struct top *top)
{
    if (!top->selected || top->view.page == TOP_PAGE_HELP) {
        return;
    }
    free(top->asked);
    top->asked = strdup(top->selected);
    top->asked_resume = is_paused(top);
    if (!top->asked) {
        return;
    }
    AUTO_BUF text;

    buf_init(&text, NOTICE_MAX);
    buf_printf(&text, "%s %s? (y/n)", top->asked_resume ? "resume" : "pause", top->asked);
    notice(top, STYLE_WARNING, buf_peek(&text), "");
    top->notice_ms = INT64_MAX;
    top->asks = true;
}

static void act(struct top *top)
{
    static const char *const pause_sql = "select millrace.pause($1)";
    static const char *const resume_sql = "select millrace.resume($1)";
    const char *values[] = {top->asked};
    char text[NOTICE_MAX];

    snprintf(text, sizeof(text), "%s %s", top->asked_resume ? "resume" : "pause", top->asked);
    feed_ask(top->feed, top->asked_resume ? resume_sql : pause_sql, 1, values);
    free(top->acting);
    top->acting = strdup(text);
    top->sent_ms = clock_ms();
    top->wants = false;
}

static void answer_question(struct top *top, int key)
{
    top->asks = false;
    quiet(top);
    if (key != 'y' && key != 'Y') {
        return;
    }
    top->wants = top->view.connected;
    if (!top->wants) {
        notice(top, STYLE_WARNING, "not done: there is no connection", "");
    }
}

static void back(struct top *top)
{
    turn_page(top, TOP_PAGE_LIST);
}

static void press(struct top *top, int key)
{
    int page = screen_rows(top->screen) / 2;

    if (top->asks && key != KEY_NONE) {
        answer_question(top, key);
        return;
    }
    switch (key) {
    case 'q': top->quit = true; return;
    case 'k':
    case KEY_UP: move(top, -1); return;
    case 'j':
    case KEY_DOWN: move(top, 1); return;
    case KEY_PAGE_UP: move(top, -page); return;
    case KEY_PAGE_DOWN: move(top, page); return;
    case KEY_HOME: move(top, -1000000); return;
    case KEY_END: move(top, 1000000); return;
    case 's': sort_next(top, 1); return;
    case 'S': sort_next(top, -1); return;
    case 'p': ask_pause(top); return;
    case 'r': top->look_ms = 0; return;
    case '?':
    case 'h': turn_page(top, TOP_PAGE_HELP); return;
    case KEY_ESCAPE:
    case KEY_LEFT: back(top); return;
    case KEY_ENTER:
    case KEY_RIGHT:
        if (top->view.page == TOP_PAGE_LIST && top->selected) {
            turn_page(top, TOP_PAGE_QUEUE);
        }
        return;
    }
}

static void read_keys(struct top *top)
{
    char bytes[64];
    ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

    if (n <= 0) {
        top->quit = true; // the terminal is gone
        return;
    }
    for (ssize_t i = 0; i < n && !top->quit; i++) {
        press(top, keys_take(&top->keys, bytes[i]));
    }
    top->key_ms = clock_ms() + KEYS_WAIT_MS;
}

// ---- the loop ----

static int watch_signals(struct top *top, struct mr_error *err)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGQUIT);
    sigaddset(&set, SIGWINCH);
    sigaddset(&set, SIGTSTP);
    sigaddset(&set, SIGCONT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    top->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return top->signals < 0 ? mr_error_set(err, MR_EINTERNAL, "cannot watch signals") : 0;
}

static void read_signals(struct top *top)
{
    struct signalfd_siginfo info;

    while (read(top->signals, &info, sizeof(info)) == sizeof(info)) {
        switch (info.ssi_signo) {
        case SIGWINCH: screen_forget(top->screen); break;
        case SIGTSTP:
            screen_leave(top->screen);
            raise(SIGSTOP);
            screen_enter(top->screen);
            break;
        case SIGCONT: screen_forget(top->screen); break;
        default: top->quit = true;
        }
        top->changed = true;
    }
}

// How long there is nothing to do without a key, a signal or the database.
static int patience_ms(const struct top *top)
{
    int64_t now = clock_ms();
    int64_t due = feed_due_ms(top->feed);

    if (feed_status(top->feed) == FEED_READY) {
        due = top->look_ms < due ? top->look_ms : due;
    }
    if (keys_pending(&top->keys)) {
        due = top->key_ms < due ? top->key_ms : due;
    }
    if (top->notice[0]) {
        due = top->notice_ms < due ? top->notice_ms : due;
    }
    int64_t left = due == INT64_MAX ? INTERVAL_MS : due - now;
    return left < 0 ? 0 : left > INTERVAL_MS ? INTERVAL_MS : (int)left;
}

static void wait_for_something(struct top *top)
{
    struct pollfd fds[] = {
        {.fd = STDIN_FILENO, .events = POLLIN},
        {.fd = top->signals, .events = POLLIN},
        {.fd = feed_fd(top->feed), .events = feed_events(top->feed)},
    };

    poll(fds, sizeof(fds) / sizeof(fds[0]), patience_ms(top));
    if (fds[1].revents) {
        read_signals(top);
    }
    if (fds[0].revents) {
        read_keys(top);
    }
    if (keys_pending(&top->keys) && clock_ms() >= top->key_ms) {
        press(top, keys_flush(&top->keys));
    }
    if (top->notice[0] && clock_ms() >= top->notice_ms) {
        quiet(top);
    }
    tell_silence(top);
    advance(top);
}

static int draw(struct top *top, struct mr_error *err)
{
    top->changed = false;
    top->view.selected = top->selected;
    return top_draw(&top->view, &top->model, top->screen, err);
}

static int run_live(struct top *top, struct mr_error *err)
{
    int code = watch_signals(top, err);

    if (code == 0) {
        code = screen_open(true, &top->screen, err);
    }
    notice(top, STYLE_DIM, "connecting", "");
    while (code == 0 && !top->quit) {
        if (feed_status(top->feed) == FEED_READY && top->wants) {
            act(top);
        } else if (feed_status(top->feed) == FEED_READY && clock_ms() >= top->look_ms) {
            look(top);
        }
        if (top->changed) {
            code = draw(top, err);
        }
        if (code == 0) {
            wait_for_something(top);
        }
    }
    screen_close(top->screen);
    return code;
}

// ---- one look ----

static int look_once(struct top *top, struct conn *conn, struct mr_error *err)
{
    static const char *const values[] = {"true", NULL};
    AUTO_RESULT *answer = NULL;
    int code = command_query(conn, look_sql, 2, values, &answer, err);

    return code ? code : top_model_take(&top->model, answer, (double)clock_us() / 1e6, err);
}

// Twice, because one look has no rates.
static int run_once(struct top *top, const char *dsn, struct mr_error *err)
{
    AUTO_CONN *conn = NULL;
    int code = conn_open(dsn, &conn, err);

    if (code == 0) {
        code = look_once(top, conn, err);
    }
    if (code == 0) {
        poll(NULL, 0, (int)top->interval_ms);
        code = look_once(top, conn, err);
    }
    if (code == 0) {
        snprintf(top->place, sizeof(top->place), "%s", PQdb(conn_pg(conn)));
        snprintf(top->server, sizeof(top->server), "PostgreSQL %d",
                 conn_server_version(conn) / 10000);
        code = screen_open(false, &top->screen, err);
    }
    if (code == 0) {
        code = draw(top, err);
        screen_close(top->screen);
    }
    return code;
}

static int run(struct top *top, const char *dsn, bool once, struct mr_error *err)
{
    bool live = !once && terminal_moves(STDOUT_FILENO) && isatty(STDIN_FILENO);
    int code = 0;

    top->view = (struct top_view){
        .sort = TOP_FIGURES,
        .place = top->place,
        .server = top->server,
        .notice = top->notice,
        .interval_s = (double)top->interval_ms / 1000,
        .interactive = live,
    };
    if (live) {
        code = feed_new(dsn, "millrace top", &top->feed, err);
        code = code ? code : run_live(top, err);
    } else {
        code = run_once(top, dsn, err);
    }
    feed_free(top->feed);
    top_model_done(&top->model);
    free(top->selected);
    free(top->asked);
    free(top->acting);
    return code;
}

// The address of a shard among several, which the caller frees. Below zero: none is asked for.
static int find_shard(const char *dsn, int64_t number, char **ret, struct mr_error *err)
{
    struct shard_conns conns;
    int at = 0;

    if (number < 0) {
        return 0;
    }
    if (number >= SHARD_NUMBERS || !conn_shards_dsn(dsn)) {
        return mr_error_set(err, MR_EUSAGE,
                            number < SHARD_NUMBERS ? "top: --shard needs the addresses of several"
                                                   : "top: --shard is from 0 to 31");
    }
    int code = shard_conns_open(dsn, &conns, err);
    if (code) {
        return code;
    }
    code = shard_conns_find(&conns, (int)number, &at, err);
    if (code == 0 && !(*ret = strdup(conns.list.items[at]))) {
        code = mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    shard_conns_done(&conns);
    return code;
}

int cmd_top(int argc, char **argv)
{
    static struct top top; // large, and there is one
    struct command_shared shared = {0};
    bool once = false;
    int64_t shard = -1;
    char *address = NULL;
    const struct option_row rows[] = {
        {"interval", OPTION_DURATION, &top.interval_ms, "TIME", "between looks (1s)"},
        {"once", OPTION_FLAG, &once, NULL, "print one look and end"},
        {"shard", OPTION_NUMBER, &shard, "NUMBER", "of several shards, the one to look at"},
        {"dsn", OPTION_DSN, &shared.dsn, "DSN", "the database; see millrace(1)"},
        {"help", OPTION_FLAG, &shared.help, NULL, "show this"},
        {0},
    };
    struct mr_error err;

    top.interval_ms = INTERVAL_MS;
    int first = command_read(&form, rows, &shared, argc, argv, &err);
    if (first >= 0 && shared.help) {
        return command_help(&form, rows);
    }
    if (first >= 0 && top.interval_ms < INTERVAL_MIN_MS) {
        first =
            mr_error_set(&err, MR_EUSAGE, "top: --interval is less than %d ms", INTERVAL_MIN_MS);
    }
    if (first >= 0) {
        first = find_shard(shared.dsn, shard, &address, &err);
    }
    int code = first < 0 ? first : run(&top, address ? address : shared.dsn, once, &err);
    free(address);
    return code ? command_fail(&err) : command_finish(EXIT_DONE);
}
