// SPDX-License-Identifier: PostgreSQL
//
// A process on the loop: see child.h.

#include "handler/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

// One read of a pipe at most; a pipe holds 64 KiB as a rule.
#define READ_SIZE (64 * 1024)
// What is read at most from a pipe after the process has ended: others may go on writing.
#define LAST_READ_MAX (1024 * 1024)
// What is collected for one child at most.
#define UNSENT_MAX (512 * 1024 * 1024)

#define LOG_LINE_MAX \
    (HANDLER_LINE_MAX < LOG_MESSAGE_MAX - 64 ? HANDLER_LINE_MAX : LOG_MESSAGE_MAX - 64)

enum pipe_name { PIPE_IN, PIPE_OUT, PIPE_ERR, PIPES };

struct child {
    uv_process_t process;
    uv_pipe_t pipes[PIPES];
    uv_timer_t timer;
    bool has_process;
    int open_handles;
    const struct child_events *events; // NULL: it was never started
    void *arg;
    struct child_end end;
    bool ended;
    bool stopping;
    bool input_ends;   // close the input when all is sent
    size_t lost;       // bytes that could not be written
    size_t unread;     // see child_unread()
    struct buf unsent; // collected, not yet given to the loop
    struct lines out;  // standard output
    struct lines err;  // standard error
    int64_t armed_ms;  // when the timer fires; 0: it does not run
    int64_t late_ms;   // each of these: when, or 0
    int64_t term_ms;
    int64_t kill_ms;
    int64_t broken_ms;
    const char *broken; // which pipe
    const char *worker;
    int64_t job_id;
    int logged;
    int64_t left_out;
    int64_t job_ms;   // since when
    int64_t words_ms; // when the words came
    char words[CHILD_WORDS_SIZE];
};

struct write {
    uv_write_t request;
    struct child *child;
    char *data;
    size_t size;
};

// ---- the end ----

static void on_closed(uv_handle_t *handle)
{
    struct child *child = handle->data;

    if (--child->open_handles > 0 || !child->ended) {
        return;
    }
    if (child->events) {
        child->events->exited(child->arg, &child->end);
        child_set_job(child, -1);
    }
    lines_done(&child->out);
    lines_done(&child->err);
    buf_done(&child->unsent);
    free(child);
}

static void close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle)) {
        uv_close(handle, on_closed);
    }
}

static void close_all(struct child *child)
{
    child->ended = true;
    if (child->has_process) {
        close_handle((uv_handle_t *)&child->process);
    }
    close_handle((uv_handle_t *)&child->timer);
    for (int i = 0; i < PIPES; i++) {
        close_handle((uv_handle_t *)&child->pipes[i]);
    }
}

void child_end_print(const struct child_end *end, char *out, size_t size)
{
    const char *name = end->signal ? sigabbrev_np(end->signal) : NULL;

    if (name) {
        snprintf(out, size, "exited with signal SIG%s", name);
    } else if (end->signal) {
        snprintf(out, size, "exited with signal %d", end->signal);
    } else {
        snprintf(out, size, "exited with status %lld", (long long)end->status);
    }
}

bool child_has_ended(const struct child *child)
{
    return child->ended;
}

// ---- time ----

static void on_timer(uv_timer_t *timer);

static int64_t sooner(int64_t a, int64_t b)
{
    return a && (!b || a < b) ? a : b;
}

// A timer that fires too early is set again: deadlines move with every answer of a busy child,
// the timer does not.
static void arm(struct child *child)
{
    int64_t due_ms =
        sooner(sooner(child->late_ms, child->term_ms), sooner(child->kill_ms, child->broken_ms));
    int64_t wait_ms = due_ms - clock_ms();

    if (child->ended || !due_ms || (child->armed_ms && child->armed_ms <= due_ms)) {
        return;
    }
    uv_update_time(child->timer.loop);
    uv_timer_start(&child->timer, on_timer, wait_ms > 0 ? (uint64_t)wait_ms : 0, 0);
    child->armed_ms = due_ms;
}

static bool is_due(int64_t *at_ms, int64_t now_ms)
{
    if (!*at_ms || now_ms < *at_ms) {
        return false;
    }
    *at_ms = 0;
    return true;
}

static void send_signal(const struct child *child, int number)
{
    // the group, so that what it has started goes with it
    kill(-child->process.pid, number);
}

void child_stop(struct child *child)
{
    if (child->ended || child->stopping) {
        return;
    }
    child->stopping = true;
    child->late_ms = child->term_ms = child->broken_ms = 0;
    send_signal(child, SIGTERM);
    child->kill_ms = clock_ms() + CHILD_KILL_MS;
    arm(child);
}

static void on_timer(uv_timer_t *timer)
{
    struct child *child = timer->data;
    int64_t now_ms = clock_ms();

    child->armed_ms = 0;
    if (is_due(&child->kill_ms, now_ms)) {
        send_signal(child, SIGKILL);
    }
    if (is_due(&child->term_ms, now_ms)) {
        child_stop(child);
    }
    if (is_due(&child->late_ms, now_ms) && child->events->late) {
        child->events->late(child->arg);
    }
    if (is_due(&child->broken_ms, now_ms) && child->events->broken) {
        child->events->broken(child->arg, child->broken);
    }
    arm(child);
}

void child_deadline(struct child *child, int64_t at_ms)
{
    child->late_ms = child->stopping ? 0 : at_ms;
    arm(child);
}

// As a rule the process is about to end: that says more than a pipe.
static void lose_pipe(struct child *child, const char *what)
{
    if (child->ended || child->stopping || child->input_ends || child->broken) {
        return;
    }
    child->broken = what;
    child->broken_ms = clock_ms() + CHILD_FAREWELL_MS;
    arm(child);
}

// ---- the log ----

static void put(const struct child *child, const char *text)
{
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("worker", child->worker),
        child->job_id >= 0 ? LOG_NUMBER_FIELD("job", child->job_id) : LOG_TEXT_FIELD("job", NULL),
    };

    log_put(LEVEL_INFO, "handler.output", fields, sizeof(fields) / sizeof(fields[0]), "%s", text);
}

static void log_line(struct child *child, const char *text, size_t size, bool cut)
{
    char shown[LOG_LINE_MAX + 64];

    if (child->logged == CHILD_LOG_LINES) {
        child->left_out++;
        return;
    }
    child->logged++;
    cut = cut || size > LOG_LINE_MAX;
    size = size < LOG_LINE_MAX ? size : LOG_LINE_MAX;
    snprintf(shown, sizeof(shown), "%.*s%s", (int)size, text,
             cut ? " ... (the line is longer)" : "");
    put(child, shown);
}

void child_log(struct child *child, const char *text, size_t size)
{
    log_line(child, text, size, false);
}

static void on_error_line(void *arg, const char *text, size_t size, enum line_end end)
{
    struct child *child = arg;

    if (size) {
        line_show(text, size, child->words, sizeof(child->words));
        child->words_ms = clock_ms();
    }
    log_line(child, text, size, end == LINE_CUT);
}

void child_set_job(struct child *child, int64_t job_id)
{
    char text[80];

    if (child->left_out) {
        snprintf(text, sizeof(text), "%lld more lines were left out", (long long)child->left_out);
        put(child, text);
    }
    child->job_id = job_id;
    child->job_ms = clock_ms();
    child->logged = 0;
    child->left_out = 0;
}

// A line may be read shortly before the answer to the job before: nothing orders the two pipes.
const char *child_words(const struct child *child)
{
    return child->words_ms + CHILD_FAREWELL_MS < child->job_ms ? "" : child->words;
}

// ---- reading ----

static void on_output_line(void *arg, const char *text, size_t size, enum line_end end)
{
    struct child *child = arg;

    if (child->events->line) {
        child->events->line(child->arg, text, size, end);
    }
}

static void feed(struct child *child, enum pipe_name pipe, const char *data, size_t size)
{
    if (pipe == PIPE_OUT) {
        lines_feed(&child->out, data, size, on_output_line, child);
    } else {
        lines_feed(&child->err, data, size, on_error_line, child);
    }
}

// Reads what is there now, at most `max` bytes, without waiting for the loop's turn.
static void drain(struct child *child, enum pipe_name pipe, size_t max)
{
    char data[4096];
    uv_os_fd_t fd = -1;
    ssize_t got = 0;

    if (uv_is_closing((uv_handle_t *)&child->pipes[pipe]) ||
        uv_fileno((uv_handle_t *)&child->pipes[pipe], &fd)) {
        return;
    }
    do {
        got = read(fd, data, sizeof(data));
        if (got > 0) {
            feed(child, pipe, data, (size_t)got);
            max -= (size_t)got < max ? (size_t)got : max;
        }
    } while ((got > 0 && max) || (got < 0 && errno == EINTR));
}

// The loop reads into it and hands it to on_read() at once: one for all children of a thread.
static void on_space(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    static _Thread_local char space[READ_SIZE];

    (void)handle;
    (void)suggested;
    *ret = uv_buf_init(space, sizeof(space));
}

static void end_pipe(struct child *child, enum pipe_name pipe)
{
    uv_read_stop((uv_stream_t *)&child->pipes[pipe]);
    if (pipe == PIPE_OUT) {
        lines_end(&child->out, on_output_line, child);
        lose_pipe(child, "its output");
    } else {
        lines_end(&child->err, on_error_line, child);
    }
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *space)
{
    struct child *child = stream->data;
    enum pipe_name pipe = (uv_pipe_t *)stream == &child->pipes[PIPE_OUT] ? PIPE_OUT : PIPE_ERR;

    if (got < 0) {
        end_pipe(child, pipe);
        return;
    }
    if (pipe == PIPE_OUT) {
        // what it said before it answered belongs to the job that is answered
        drain(child, PIPE_ERR, READ_SIZE);
    }
    feed(child, pipe, space->base, (size_t)got);
}

// Before the handles are closed: afterwards nobody knows.
static size_t count_unread(struct child *child)
{
    uv_os_fd_t fd = -1;
    int in_pipe = 0;

    if (uv_is_closing((uv_handle_t *)&child->pipes[PIPE_IN]) ||
        uv_fileno((uv_handle_t *)&child->pipes[PIPE_IN], &fd)) {
        return 0;
    }
    if (ioctl(fd, FIONREAD, &in_pipe)) {
        in_pipe = 0;
    }
    return (size_t)in_pipe + child_unsent(child) + child->lost;
}

size_t child_unread(const struct child *child)
{
    return child->unread;
}

static void on_exit_status(uv_process_t *process, int64_t status, int number)
{
    struct child *child = process->data;

    child->end = (struct child_end){.status = status, .signal = number};
    child->ended = true;
    child->unread = count_unread(child);
    drain(child, PIPE_ERR, LAST_READ_MAX);
    lines_end(&child->err, on_error_line, child);
    drain(child, PIPE_OUT, LAST_READ_MAX);
    lines_end(&child->out, on_output_line, child);
    if (child->stopping) {
        send_signal(child, SIGKILL); // what it leaves behind
    }
    close_all(child);
}

// ---- writing ----

int child_send(struct child *child, const char *data, size_t size, struct mr_error *err)
{
    size_t before = child->unsent.len;

    buf_add(&child->unsent, data, size);
    int rc = buf_status(&child->unsent, err);
    if (rc) {
        child->unsent.len = before;
        child->unsent.status = 0;
    }
    return rc;
}

size_t child_unsent(const struct child *child)
{
    return child->unsent.len +
           uv_stream_get_write_queue_size((const uv_stream_t *)&child->pipes[PIPE_IN]);
}

static void end_input_if_sent(struct child *child)
{
    if (child->input_ends && child_unsent(child) == 0) {
        close_handle((uv_handle_t *)&child->pipes[PIPE_IN]);
    }
}

static void on_written(uv_write_t *request, int status)
{
    struct write *write = request->data;
    struct child *child = write->child;

    size_t size = write->size;

    free(write->data);
    free(write);
    if (child->ended) {
        return;
    }
    if (status < 0) {
        // a longer piece may have gone in part
        child->lost += size <= PIPE_BUF ? size : 0;
        lose_pipe(child, "its input");
    }
    end_input_if_sent(child);
    if (child_unsent(child) == 0 && child->events->drained) {
        child->events->drained(child->arg);
    }
}

// What could not be written at once; takes over child->unsent from `from` on.
static void write_later(struct child *child, size_t from)
{
    struct write *write = malloc(sizeof(*write));
    uv_buf_t piece = uv_buf_init(child->unsent.data + from, (unsigned)(child->unsent.len - from));

    if (!write) {
        lose_pipe(child, "its input");
        return;
    }
    *write = (struct write){.child = child, .data = child->unsent.data, .size = piece.len};
    write->request.data = write;
    buf_init(&child->unsent, UNSENT_MAX);
    if (uv_write(&write->request, (uv_stream_t *)&child->pipes[PIPE_IN], &piece, 1, on_written)) {
        free(write->data);
        free(write);
        lose_pipe(child, "its input");
    }
}

void child_flush(struct child *child)
{
    uv_stream_t *in = (uv_stream_t *)&child->pipes[PIPE_IN];
    int done = 0;

    if (child->ended || uv_is_closing((uv_handle_t *)in)) {
        buf_done(&child->unsent);
        return;
    }
    if (child->unsent.len && uv_stream_get_write_queue_size(in) == 0) {
        uv_buf_t all = uv_buf_init(child->unsent.data, (unsigned)child->unsent.len);
        done = uv_try_write(in, &all, 1);
        done = done > 0 ? done : 0; // an error comes again below
    }
    if ((size_t)done < child->unsent.len) {
        write_later(child, (size_t)done);
    }
    child->unsent.len = 0;
    end_input_if_sent(child);
}

void child_end_input(struct child *child)
{
    child->input_ends = true;
    child_flush(child);
}

void child_retire(struct child *child)
{
    child_end_input(child);
    if (!child->stopping) {
        child->late_ms = child->broken_ms = 0;
        child->term_ms = clock_ms() + CHILD_FAREWELL_MS;
        arm(child);
    }
}

// ---- the beginning ----

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

// The child's ends are in `theirs`; ours belong to the handles.
static int make_pipes(struct child *child, int *theirs)
{
    for (int i = 0; i < PIPES; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC)) {
            return -errno;
        }
        theirs[i] = ends[i == PIPE_IN ? 0 : 1];
        int ours = ends[i == PIPE_IN ? 1 : 0];
        int rc = uv_pipe_open(&child->pipes[i], ours);
        if (rc) {
            close_fd(&ours);
            return rc;
        }
    }
    return 0;
}

static int start(struct child *child, const struct child_options *options, const int *theirs)
{
    uv_stdio_container_t stdio[PIPES];
    uv_process_options_t process = {
        .exit_cb = on_exit_status,
        .file = options->argv[0],
        .args = options->argv,
        .env = options->env,
        .flags = UV_PROCESS_DETACHED,
        .stdio_count = PIPES,
        .stdio = stdio,
    };

    for (int i = 0; i < PIPES; i++) {
        stdio[i].flags = UV_INHERIT_FD;
        stdio[i].data.fd = theirs[i];
    }
    return uv_spawn(options->loop, &child->process, &process);
}

static int spawn(struct child *child, const struct child_options *options)
{
    int theirs[PIPES] = {-1, -1, -1};
    int rc = make_pipes(child, theirs);

    if (rc == 0) {
        // also when it fails: the handle has to be closed
        child->has_process = true;
        child->open_handles++;
        child->process.data = child;
        rc = start(child, options, theirs);
    }
    for (int i = 0; i < PIPES; i++) {
        close_fd(&theirs[i]);
    }
    return rc;
}

// A pipe whose reader has gone must not end this process.
static void ignore_sigpipe(void)
{
    struct sigaction now;

    if (sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_DFL) {
        signal(SIGPIPE, SIG_IGN);
    }
}

static struct child *child_new(const struct child_options *options)
{
    struct child *child = calloc(1, sizeof(*child));

    if (!child) {
        return NULL;
    }
    child->worker = options->worker;
    child->job_id = -1;
    lines_init(&child->out, HANDLER_ANSWER_MAX);
    lines_init(&child->err, LOG_LINE_MAX);
    buf_init(&child->unsent, UNSENT_MAX);
    uv_timer_init(options->loop, &child->timer);
    child->timer.data = child;
    for (int i = 0; i < PIPES; i++) {
        uv_pipe_init(options->loop, &child->pipes[i], 0);
        child->pipes[i].data = child;
    }
    child->open_handles = 1 + PIPES;
    return child;
}

int child_spawn(const struct child_options *options, struct child **ret, struct mr_error *err)
{
    struct child *child = child_new(options);

    if (!child) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    ignore_sigpipe();
    int rc = spawn(child, options);
    if (rc) {
        close_all(child);
        return mr_error_set(err, MR_EIO, "cannot start %s: %s", options->argv[0], uv_strerror(rc));
    }
    child->events = options->events;
    child->arg = options->arg;
    uv_read_start((uv_stream_t *)&child->pipes[PIPE_OUT], on_space, on_read);
    uv_read_start((uv_stream_t *)&child->pipes[PIPE_ERR], on_space, on_read);
    *ret = child;
    return 0;
}
