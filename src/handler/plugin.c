// SPDX-License-Identifier: PostgreSQL
//
// The handler that calls a C function of a shared object: an mr_handler (millrace.h), on threads.
//
// Code in this process cannot be stopped from outside. A job over its timeout, and one whose lease
// is lost, runs until the function returns: its lease is kept alive meanwhile, and the log says so
// once. One that was cancelled does so, too, unless it asks (mr_outcome_cancelled()). What needs a
// hard limit belongs into a process (exec, run).

#include <dlfcn.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "client/mr_outcome.h"
#include "client/pool.h"
#include "handler/handler.h"

#define SYMBOL_DEFAULT "millrace_handler"
// How often running jobs are looked at.
#define LOOK_MS 500
// Jobs are held ahead of the threads, as many as they do in this time.
#define AHEAD_US 100000

struct plugin {
    struct handler handler;
    struct handler_options options;
    struct handler_env env;
    void *object; // of dlopen()
    mr_handler *function;
    struct pool *pool;
    uv_poll_t poll; // of the pool's descriptor
    uv_timer_t timer;
    struct plugin_job *jobs; // all that are held
    int held;
    int64_t job_us; // what a job takes, as a moving average; 0: not known yet
    int open_handles;
    void (*closed)(void *arg);
    void *closed_arg;
};

struct plugin_job {
    struct pool_work work;
    struct plugin *plugin;
    struct held_job *held;
    struct outcome outcome;
    int64_t began_us; // written by the thread; 0: not yet
    int64_t took_us;
    bool told;             // that it takes too long
    atomic_bool cancelled; // what mr_outcome_cancelled() says
    struct plugin_job *next, *prev;
};

// ---- on the threads ----

static void run_job(struct pool_work *work, void *thread_state)
{
    struct plugin_job *job = (struct plugin_job *)work;
    mr_outcome outcome;

    (void)thread_state;
    int64_t began_us = clock_us();
    __atomic_store_n(&job->began_us, began_us, __ATOMIC_RELAXED);
    mr__outcome_init(&outcome);
    outcome.cancelled = &job->cancelled;
    outcome.report = job->plugin->env.report;
    outcome.report_arg = job->plugin->env.arg;
    outcome.held = job->held;
    int status = job->plugin->function(job->held->job, &outcome, NULL);
    job->took_us = clock_us() - began_us;
    mr__outcome_end(&outcome, status, &job->outcome);
    mr__outcome_done(&outcome);
}

// ---- on the loop ----

static void job_free(struct plugin_job *job)
{
    struct plugin *plugin = job->plugin;

    *(job->prev ? &job->prev->next : &plugin->jobs) = job->next;
    if (job->next) {
        job->next->prev = job->prev;
    }
    plugin->held--;
    outcome_done(&job->outcome);
    free(job);
}

static void settle(struct plugin_job *job)
{
    const struct handler_env *env = &job->plugin->env;
    struct held_job *held = job->held;
    AUTO_OUTCOME outcome;

    outcome_init(&outcome);
    outcome_take(&outcome, &job->outcome);
    held->user = NULL;
    job_free(job); // before: whoever is told may want the room
    env->settle(env->arg, held, &outcome);
}

static void on_done(uv_poll_t *poll, int status, int events)
{
    struct plugin *plugin = poll->data;
    struct pool_work *work;

    (void)status;
    (void)events;
    while ((work = pool_collect(plugin->pool))) {
        struct plugin_job *job = (struct plugin_job *)work;
        int64_t took_us = job->took_us + 1;
        plugin->job_us = plugin->job_us ? (plugin->job_us * 7 + took_us) / 8 : took_us;
        settle(job);
    }
}

static int64_t timeout_of(const struct plugin_job *job)
{
    int64_t own_ms = job->held->job->timeout_ms;

    return own_ms > 0 ? own_ms : job->plugin->options.timeout_ms;
}

static void tell_overdue(struct plugin_job *job, int64_t timeout_ms)
{
    const mr_claimed_job *claimed = job->held->job;
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("worker", job->plugin->options.name),
        LOG_TEXT_FIELD("queue", claimed->queue),
        LOG_NUMBER_FIELD("job", claimed->id),
        LOG_TEXT_FIELD("kind", claimed->kind),
    };

    job->told = true;
    log_put(LEVEL_WARNING, "plugin.overdue", fields, sizeof(fields) / sizeof(fields[0]),
            "job %lld runs longer than its timeout of %lld ms; a plugin cannot be stopped, its "
            "lease is kept alive",
            (long long)claimed->id, (long long)timeout_ms);
}

static void on_timer(uv_timer_t *timer)
{
    struct plugin *plugin = timer->data;
    int64_t now_us = clock_us();

    for (struct plugin_job *job = plugin->jobs; job; job = job->next) {
        int64_t began_us = __atomic_load_n(&job->began_us, __ATOMIC_RELAXED);
        int64_t timeout_ms = timeout_of(job);
        if (!job->told && began_us && timeout_ms > 0 && (now_us - began_us) / 1000 > timeout_ms) {
            tell_overdue(job, timeout_ms);
        }
    }
    if (!plugin->jobs) {
        uv_timer_stop(timer);
    }
}

static int plugin_room(struct handler *handler)
{
    struct plugin *plugin = (struct plugin *)handler;

    int64_t threads = plugin->options.concurrency;
    int64_t most = 2 * (int64_t)plugin->options.batch;
    int64_t ahead = plugin->job_us ? threads * AHEAD_US / plugin->job_us : 0;

    return (int)(threads + (ahead < most ? ahead : most)) - plugin->held;
}

// NULL: out of memory.
static struct plugin_job *job_new(struct plugin *plugin, struct held_job *held)
{
    struct plugin_job *job = calloc(1, sizeof(*job));

    if (!job) {
        return NULL;
    }
    job->work.run = run_job;
    job->plugin = plugin;
    job->held = held;
    outcome_init(&job->outcome);
    held->user = job;
    job->next = plugin->jobs;
    if (plugin->jobs) {
        plugin->jobs->prev = job;
    }
    plugin->jobs = job;
    plugin->held++;
    return job;
}

static void refuse(struct plugin *plugin, struct held_job *held)
{
    AUTO_OUTCOME outcome;

    outcome_init(&outcome);
    outcome_fail(&outcome, "out of memory", 0, false);
    plugin->env.settle(plugin->env.arg, held, &outcome);
}

static void plugin_start(struct handler *handler, struct held_job *const *jobs, int count)
{
    struct plugin *plugin = (struct plugin *)handler;
    struct pool_work **works = malloc((size_t)count * sizeof(*works));
    int ready = 0;

    for (int i = 0; i < count; i++) {
        struct plugin_job *job = works ? job_new(plugin, jobs[i]) : NULL;
        if (job) {
            works[ready++] = &job->work;
        } else {
            refuse(plugin, jobs[i]);
        }
    }
    pool_submit_many(plugin->pool, works, ready);
    free(works);
    if (!uv_is_active((uv_handle_t *)&plugin->timer)) {
        uv_timer_start(&plugin->timer, on_timer, LOOK_MS, LOOK_MS);
    }
}

// One that has not begun can be taken back; for the others there is no way.
static void plugin_drop(struct handler *handler, struct held_job *held)
{
    struct plugin *plugin = (struct plugin *)handler;
    struct plugin_job *job = held->user;

    if (job && pool_withdraw(plugin->pool, &job->work)) {
        outcome_release(&job->outcome);
        settle(job);
    }
}

static void plugin_cancel(struct handler *handler, struct held_job *held)
{
    struct plugin *plugin = (struct plugin *)handler;
    struct plugin_job *job = held->user;

    if (job && pool_withdraw(plugin->pool, &job->work)) {
        outcome_cancel(&job->outcome);
        settle(job);
    } else if (job) {
        atomic_store(&job->cancelled, true);
    }
}

// ---- life ----

static void plugin_free(struct plugin *plugin)
{
    pool_free(plugin->pool);
    if (plugin->object) {
        dlclose(plugin->object);
    }
    free(plugin);
}

static void on_closed(uv_handle_t *handle)
{
    struct plugin *plugin = handle->data;
    void (*closed)(void *) = plugin->closed;
    void *arg = plugin->closed_arg;

    if (--plugin->open_handles == 0) {
        plugin_free(plugin);
        closed(arg);
    }
}

static void plugin_close(struct handler *handler, void (*closed)(void *arg), void *arg)
{
    struct plugin *plugin = (struct plugin *)handler;

    plugin->closed = closed;
    plugin->closed_arg = arg;
    plugin->open_handles = 2;
    uv_close((uv_handle_t *)&plugin->poll, on_closed);
    uv_close((uv_handle_t *)&plugin->timer, on_closed);
}

static int config_error(struct mr_error *err, const char *target)
{
    const char *why = dlerror();

    mr_error_set(err, MR_ECONFIG, "cannot load the plugin %.300s: %.600s", target,
                 why ? why : "the symbol is null");
    mr_error_hint(err,
                  "Name the file of a shared object, and after a colon the function, unless it is "
                  "%s: ./charge.so:charge.",
                  SYMBOL_DEFAULT);
    return MR_ECONFIG;
}

// A name without a slash is a file here too; the loader would look for a library.
static int open_object(struct plugin *plugin, const char *path, size_t size, struct mr_error *err)
{
    AUTO_BUF text;

    buf_init(&text, PATH_MAX);
    buf_puts(&text, memchr(path, '/', size) ? "" : "./");
    buf_add(&text, path, size);
    int code = buf_status(&text, err);
    if (code == 0) {
        plugin->object = dlopen(buf_peek(&text), RTLD_NOW | RTLD_LOCAL);
        code = plugin->object ? 0 : config_error(err, plugin->options.target);
    }
    return code;
}

// `FILE[:SYMBOL]`: the last colon counts, if a symbol can follow it.
static int load(struct plugin *plugin, struct mr_error *err)
{
    const char *target = plugin->options.target;
    const char *colon = strrchr(target, ':');
    bool named = colon && colon[1] && !strchr(colon, '/');
    int code = open_object(plugin, target, named ? (size_t)(colon - target) : strlen(target), err);

    if (code) {
        return code;
    }
    dlerror();
    void *symbol = dlsym(plugin->object, named ? colon + 1 : SYMBOL_DEFAULT);
    if (!symbol) {
        return config_error(err, target);
    }
    // ISO C has no conversion from an object's to a function's address; POSIX says they fit
    memcpy(&plugin->function, &symbol, sizeof(symbol));
    return 0;
}

static int plugin_open(const struct handler_options *options, const struct handler_env *env,
                       struct handler **ret, struct mr_error *err)
{
    const struct pool_options pool = {.threads = options->concurrency};
    struct plugin *plugin = calloc(1, sizeof(*plugin));

    if (!plugin) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    plugin->handler.ops = &handler_plugin;
    plugin->options = *options;
    plugin->env = *env;
    int code = load(plugin, err);
    code = code ? code : pool_new(&pool, &plugin->pool, err);
    if (code) {
        plugin_free(plugin);
        return code;
    }
    uv_poll_init(env->loop, &plugin->poll, pool_fd(plugin->pool));
    uv_timer_init(env->loop, &plugin->timer);
    plugin->poll.data = plugin->timer.data = plugin;
    uv_poll_start(&plugin->poll, UV_READABLE, on_done);
    *ret = &plugin->handler;
    return 0;
}

const struct handler_ops handler_plugin = {
    .name = "plugin",
    .open = plugin_open,
    .room = plugin_room,
    .start = plugin_start,
    .drop = plugin_drop,
    .cancel = plugin_cancel,
    .close = plugin_close,
};
