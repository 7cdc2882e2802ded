// SPDX-License-Identifier: PostgreSQL
//
// A handler on a loop of its own: see trial.h.

#include "trial.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"

// ---- in the place of the worker ----

static void on_settle(void *arg, struct held_job *held, struct outcome *outcome)
{
    struct trial *trial = arg;
    struct trial_job *job = &trial->jobs[held->job->id];
    AUTO_BUF entry;

    assert_null(job->entry);
    buf_init(&entry, 1024 * 1024);
    outcome_print(outcome, held->job->id, &entry);
    job->entry = strdup(buf_peek(&entry));
    job->order = ++trial->settled;
}

static int on_report(void *arg, struct held_job *held, double percent, const char *note)
{
    struct trial *trial = arg;
    struct trial_job *job = &trial->jobs[held->job->id];

    assert_null(job->entry);
    job->reports++;
    snprintf(job->report, sizeof(job->report), "%g %s", percent, note ? note : "-");
    return 0;
}

static void on_roomier(void *arg)
{
    struct trial *trial = arg;

    trial->roomier++;
}

static void on_closed(void *arg)
{
    struct trial *trial = arg;

    trial->closed = true;
}

// ---- waiting ----

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

typedef bool condition(struct trial *trial, const void *what);

// Runs the loop until the condition holds. The loop also turns when nothing happens on it.
static void run_until(struct trial *trial, condition *holds, const void *what, const char *name)
{
    int64_t deadline_ms = clock_ms() + TRIAL_DEADLINE_MS;
    uv_timer_t tick;

    uv_timer_init(&trial->loop, &tick);
    uv_timer_start(&tick, on_tick, 5, 5);
    while (!holds(trial, what)) {
        uv_run(&trial->loop, UV_RUN_ONCE);
        if (clock_ms() > deadline_ms) {
            fail_msg("gave up waiting for %s; the log:\n%s", name, trial_log(trial));
        }
    }
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(&trial->loop, UV_RUN_NOWAIT);
}

static bool are_settled(struct trial *trial, const void *what)
{
    (void)what;
    return trial->settled == trial->started;
}

void trial_wait(struct trial *trial)
{
    run_until(trial, are_settled, NULL, "jobs to end");
}

static bool is_settled(struct trial *trial, const void *id)
{
    return trial->jobs[*(const int *)id].entry != NULL;
}

void trial_wait_job(struct trial *trial, int id)
{
    run_until(trial, is_settled, &id, "a job to end");
}

static void path_of(const struct trial *trial, const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s/%s", trial->folder, name);
}

static bool has_file(struct trial *trial, const void *name)
{
    char path[TRIAL_PATH_SIZE];
    struct stat info;

    path_of(trial, name, path, sizeof(path));
    return stat(path, &info) == 0;
}

void trial_wait_file(struct trial *trial, const char *name)
{
    run_until(trial, has_file, name, name);
}

static bool has_log(struct trial *trial, const void *text)
{
    return strstr(trial_log(trial), text) != NULL;
}

void trial_wait_log(struct trial *trial, const char *text)
{
    run_until(trial, has_log, text, text);
}

// Reaped or not: an orphan's zombie is init's matter.
static bool is_gone(struct trial *trial, const void *pid)
{
    char path[64];
    char line[256] = "";

    (void)trial;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)*(const pid_t *)pid);
    FILE *file = fopen(path, "r");
    if (!file) {
        return true;
    }
    bool zombie = fgets(line, sizeof(line), file) && strstr(line, ") Z");
    fclose(file);
    return zombie;
}

void trial_wait_gone(struct trial *trial, pid_t pid)
{
    run_until(trial, is_gone, &pid, "a process to end");
}

static bool is_written(struct trial *trial, const void *name)
{
    char path[TRIAL_PATH_SIZE];
    struct stat info;

    path_of(trial, name, path, sizeof(path));
    return stat(path, &info) == 0 && info.st_size > 1;
}

pid_t trial_pid(struct trial *trial, const char *name)
{
    char path[TRIAL_PATH_SIZE];
    int pid = 0;

    run_until(trial, is_written, name, name);
    path_of(trial, name, path, sizeof(path));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    return pid;
}

void trial_write_file(struct trial *trial, const char *name, const char *text)
{
    char path[TRIAL_PATH_SIZE];

    path_of(trial, name, path, sizeof(path));
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

void trial_make_file(struct trial *trial, const char *name)
{
    trial_write_file(trial, name, "");
}

// ---- the log ----

const char *trial_log(struct trial *trial)
{
    struct stat info;

    assert_int_equal(fstat(trial->log_fd, &info), 0);
    free(trial->log);
    trial->log = calloc(1, (size_t)info.st_size + 1);
    assert_non_null(trial->log);
    assert_int_equal(pread(trial->log_fd, trial->log, (size_t)info.st_size, 0), info.st_size);
    return trial->log;
}

int trial_log_count(struct trial *trial, const char *text)
{
    int count = 0;

    for (const char *at = trial_log(trial); (at = strstr(at, text)) != NULL; at++) {
        count++;
    }
    return count;
}

// ---- jobs ----

static struct held_job *make_job(struct trial *trial, int id, const char *args)
{
    struct trial_job *job = &trial->jobs[id];

    assert_true(id >= 1 && id <= TRIAL_JOBS && !job->args);
    trial->started++;
    job->args = strdup(args);
    job->about = (mr_claimed_job){
        .id = id,
        .attempt = 1,
        .max_attempts = 3,
        .priority = 50,
        .queue = "trial",
        .kind = "try",
        .args = job->args,
        .timeout_ms = strstr(args, "own-timeout") ? 300 : 0,
    };
    job->held = (struct held_job){.job = &job->about};
    return &job->held;
}

void trial_start_args(struct trial *trial, int id, const char *args)
{
    struct held_job *held = make_job(trial, id, args);

    trial->handler->ops->start(trial->handler, &held, 1);
}

static void args_of(const char *what, char *out, size_t size)
{
    snprintf(out, size, "{\"do\": \"%s\"}", what);
}

void trial_start(struct trial *trial, int id, const char *what)
{
    char args[256];

    args_of(what, args, sizeof(args));
    trial_start_args(trial, id, args);
}

void trial_start_all(struct trial *trial, int from, int to, const char *what)
{
    struct held_job *held[TRIAL_JOBS];
    char args[256];

    args_of(what, args, sizeof(args));
    for (int id = from; id <= to; id++) {
        held[id - from] = make_job(trial, id, args);
    }
    trial->handler->ops->start(trial->handler, held, to - from + 1);
}

int trial_room(struct trial *trial)
{
    return trial->handler->ops->room(trial->handler);
}

static bool has_room(struct trial *trial, const void *what)
{
    (void)what;
    return trial_room(trial) > 0;
}

void trial_feed(struct trial *trial, int from, int to, const char *what)
{
    for (int id = from; id <= to;) {
        int room = trial_room(trial);
        int last = id + room - 1 < to ? id + room - 1 : to;
        if (room > 0) {
            trial_start_all(trial, id, last, what);
            id = last + 1;
        }
        run_until(trial, has_room, NULL, "room");
    }
    trial_wait(trial);
}

void trial_drop(struct trial *trial, int id)
{
    trial->jobs[id].held.dropped = true;
    trial->handler->ops->drop(trial->handler, &trial->jobs[id].held);
}

void trial_cancel(struct trial *trial, int id)
{
    trial->jobs[id].held.cancelled = true;
    trial->handler->ops->cancel(trial->handler, &trial->jobs[id].held);
}

bool trial_is_settled(const struct trial *trial, int id)
{
    return trial->jobs[id].entry != NULL;
}

void trial_expect(struct trial *trial, int id, const char *entry)
{
    assert_non_null(trial->jobs[id].entry);
    assert_string_equal(trial->jobs[id].entry, entry);
}

void trial_expect_part(struct trial *trial, int id, const char *text)
{
    assert_non_null(trial->jobs[id].entry);
    if (!strstr(trial->jobs[id].entry, text)) {
        fail_msg("job %d: %s\nhas no: %s", id, trial->jobs[id].entry, text);
    }
}

// ---- life ----

// Writes the target with the folder in it.
static const char *fill_in(struct trial *trial, const char *target)
{
    static char filled[8192];
    size_t at = 0;

    for (; *target; target++) {
        if (target[0] == '%' && target[1] == 's') {
            at += (size_t)snprintf(filled + at, sizeof(filled) - at, "%s", trial->folder);
            target++;
        } else {
            filled[at++] = *target;
        }
        assert_true(at < sizeof(filled) - 1);
    }
    filled[at] = '\0';
    return filled;
}

void trial_open(struct trial *trial, enum handler_kind kind, const char *target, int concurrency,
                int64_t timeout_ms)
{
    const struct handler_ops *ops = kind == HANDLER_EXEC ? &handler_exec : &handler_run;
    const struct handler_env env = {
        .loop = &trial->loop,
        .settle = on_settle,
        .roomier = on_roomier,
        .report = on_report,
        .arg = trial,
    };
    struct mr_error err = {0};

    memset(trial, 0, sizeof(*trial));
    const char *scratch = getenv("MR_SCRATCH"); // of tests/run, which removes it
    snprintf(trial->folder, sizeof(trial->folder), "%s/trial.XXXXXX", scratch ? scratch : "/tmp");
    assert_non_null(mkdtemp(trial->folder));
    trial->log_fd = memfd_create("log", MFD_CLOEXEC);
    assert_true(trial->log_fd >= 0);
    log_setup(trial->log_fd, LOG_TEXT, LEVEL_DEBUG);
    assert_int_equal(uv_loop_init(&trial->loop), 0);
    const struct handler_options options = {
        .kind = kind,
        .name = "trial",
        .target = fill_in(trial, target),
        .concurrency = concurrency,
        .timeout_ms = timeout_ms,
    };
    if (ops->open(&options, &env, &trial->handler, &err)) {
        fail_msg("%s", err.message);
    }
}

static bool is_closed(struct trial *trial, const void *what)
{
    (void)what;
    return trial->closed;
}

static void remove_folder(const struct trial *trial)
{
    char command[TRIAL_PATH_SIZE + 16];

    snprintf(command, sizeof(command), "rm -r %s", trial->folder);
    assert_int_equal(system(command), 0);
}

void trial_end(struct trial *trial)
{
    trial->handler->ops->close(trial->handler, on_closed, trial);
    assert_false(trial->closed);
    run_until(trial, is_closed, NULL, "the handler to close");
}

void trial_close(struct trial *trial)
{
    if (!trial->closed) {
        trial_end(trial);
    }
    uv_run(&trial->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&trial->loop), 0);
    for (int i = 1; i <= TRIAL_JOBS; i++) {
        if (trial->jobs[i].args) {
            assert_non_null(trial->jobs[i].entry);
        }
        free(trial->jobs[i].args);
        free(trial->jobs[i].entry);
    }
    log_setup(STDERR_FILENO, LOG_TEXT, LEVEL_INFO);
    close(trial->log_fd);
    free(trial->log);
    remove_folder(trial);
}
