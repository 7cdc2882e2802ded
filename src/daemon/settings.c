// SPDX-License-Identifier: PostgreSQL
//
// Settings of queues and retries, and schedules: see settings.h.
//
// Every call is kept until the database has answered for it. What the database refuses is logged
// and left; what it could not do now (a lost connection, a conflict with another daemon that
// applies the same) is tried again.

#include "daemon/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "client/shard.h"
#include "daemon/link.h"

#define RETRY_MS     1000
#define SETTINGS_MAX (128 * 1024)

enum change_status {
    CHANGE_WAITING,
    CHANGE_SENT,
    CHANGE_DONE,
};

// One call of set_queue(), set_retry() or schedule().
struct change {
    struct settings *settings;
    struct call call;
    const char *what; // constant: queue, retry or schedule
    char *name;
    enum change_status status;
};

struct settings {
    struct link *link;
    struct change *changes;
    size_t count;
    size_t done, refused;
    size_t left;   // of those done: to another shard
    uv_idle_t end; // closes the link from outside of its callbacks
    bool ending;
    bool asks_shard; // before anything else: what this database is
    void (*ended)(void *arg, const struct settings *settings);
    void *ended_arg;
};

// ---- what there is to say ----

static struct change *add_change(struct settings *settings, enum call_kind kind, const char *what,
                                 const char *name)
{
    struct change *changes =
        realloc(settings->changes, (settings->count + 1) * sizeof(*settings->changes));

    if (!changes) {
        return NULL;
    }
    settings->changes = changes;
    struct change *change = &changes[settings->count];
    *change = (struct change){.settings = settings, .what = what, .name = strdup(name)};
    if (!change->name) {
        return NULL;
    }
    settings->count++;
    call_init(&change->call, kind);
    call_text(&change->call, name);
    return change;
}

// The section's settings with the environment's where it says nothing.
static void add_queue_json(struct buf *json, const struct config_queue *queue)
{
    int64_t hours = config_environment_number("QUEUE_RETENTION_HOURS");
    int64_t attempts = config_environment_number("MAX_RETRY_ATTEMPTS");
    const char *known = queue ? queue->settings_json : "{}";

    buf_add(json, known, strlen(known) - 1);
    if (hours && !(queue && queue->has_retention)) {
        buf_printf(json, "%s\"retention\":\"%lldh\"", json->len > 1 ? "," : "", (long long)hours);
    }
    if (attempts && !(queue && queue->has_max_attempts)) {
        buf_printf(json, "%s\"max_attempts\":%lld", json->len > 1 ? "," : "", (long long)attempts);
    }
    buf_puts(json, "}");
}

static bool add_queue(struct settings *settings, const char *name, const struct config_queue *queue)
{
    AUTO_BUF json;

    buf_init(&json, SETTINGS_MAX);
    add_queue_json(&json, queue);
    if (!queue && str_equal(buf_peek(&json), "{}")) {
        return true;
    }
    struct change *change = add_change(settings, CALL_SET_QUEUE, "queue", name);
    if (!change) {
        return false;
    }
    call_text(&change->call, buf_peek(&json));
    return true;
}

static bool add_retry(struct settings *settings, const struct config_retry *retry)
{
    struct change *change = add_change(settings, CALL_SET_RETRY, "retry", retry->kind);
    char number[40];

    if (!change) {
        return false;
    }
    call_number(&change->call, retry->max_attempts);
    call_ms(&change->call, retry->base_ms);
    snprintf(number, sizeof(number), "%.9g", retry->factor);
    call_text(&change->call, number);
    call_ms(&change->call, retry->cap_ms);
    snprintf(number, sizeof(number), "%.9g", retry->jitter);
    call_text(&change->call, number);
    return true;
}

static bool add_schedule(struct settings *settings, const struct config_schedule *schedule)
{
    struct change *change = add_change(settings, CALL_SCHEDULE, "schedule", schedule->name);

    if (!change) {
        return false;
    }
    call_text(&change->call, schedule->cron);
    call_text(&change->call, schedule->kind);
    call_text(&change->call, schedule->args);
    call_text(&change->call, schedule->queue);
    call_text(&change->call, schedule->timezone);
    call_text(&change->call, schedule->catch_up);
    call_bool(&change->call, schedule->active);
    call_number(&change->call, schedule->priority);
    return true;
}

static bool is_known(const struct settings *settings, const char *queue)
{
    for (size_t i = 0; i < settings->count; i++) {
        if (str_equal(settings->changes[i].what, "queue") &&
            str_equal(settings->changes[i].name, queue)) {
            return true;
        }
    }
    return false;
}

static bool collect(struct settings *settings, const struct config *config)
{
    bool good = true;

    for (size_t i = 0; good && i < config->queue_count; i++) {
        good = add_queue(settings, config->queues[i].name, &config->queues[i]);
    }
    // the queue of a worker with a database of its own is not in this one
    for (size_t i = 0; good && i < config->worker_count; i++) {
        const struct config_worker *worker = &config->workers[i];
        good = worker->dsn || is_known(settings, worker->queue) ||
               add_queue(settings, worker->queue, NULL);
    }
    for (size_t i = 0; good && i < config->retry_count; i++) {
        good = add_retry(settings, &config->retries[i]);
    }
    for (size_t i = 0; good && i < config->schedule_count; i++) {
        good = add_schedule(settings, &config->schedules[i]);
    }
    for (size_t i = 0; good && i < settings->count; i++) {
        good = call_status(&settings->changes[i].call, NULL) == 0;
    }
    return good;
}

// ---- the end ----

static void settings_free(struct settings *settings)
{
    for (size_t i = 0; i < settings->count; i++) {
        call_done(&settings->changes[i].call);
        free(settings->changes[i].name);
    }
    free(settings->changes);
    free(settings);
}

static void on_idle_closed(uv_handle_t *handle)
{
    struct settings *settings = handle->data;

    settings->ended(settings->ended_arg, settings);
    settings_free(settings);
}

static void on_link_closed(void *arg)
{
    struct settings *settings = arg;

    uv_close((uv_handle_t *)&settings->end, on_idle_closed);
}

static void on_end(uv_idle_t *idle)
{
    struct settings *settings = idle->data;

    uv_idle_stop(idle);
    link_close(settings->link, on_link_closed, settings);
}

void settings_stop(struct settings *settings)
{
    if (!settings->ending) {
        settings->ending = true;
        uv_idle_start(&settings->end, on_end);
    }
}

// ---- telling the database ----

static void log_refusal(const struct change *change, const struct mr_error *err)
{
    const struct log_field fields[] = {
        LOG_TEXT_FIELD(change->what, change->name),
        LOG_TEXT_FIELD("detail", err->detail[0] ? err->detail : NULL),
        LOG_TEXT_FIELD("hint", err->hint[0] ? err->hint : NULL),
    };

    log_put(LEVEL_ERROR, "settings.refused", fields, sizeof(fields) / sizeof(fields[0]),
            "the settings of %s %s were refused: %s", change->what, change->name, err->message);
}

static void finish(struct settings *settings)
{
    const struct log_field fields[] = {
        LOG_NUMBER_FIELD("applied", (int64_t)(settings->done - settings->refused - settings->left)),
        LOG_NUMBER_FIELD("refused", (int64_t)settings->refused),
    };

    log_put(LEVEL_INFO, "settings.applied", fields, sizeof(fields) / sizeof(fields[0]),
            "queues, retries and schedules of the file are in the database");
    settings_stop(settings);
}

static bool is_passing(const struct mr_error *err)
{
    enum mr_class class = mr_code_class(err->code);

    return class == MR_CLASS_TRANSIENT || class == MR_CLASS_CONFLICT || err->code == MR_EREADONLY;
}

static void answered(void *arg, PGresult *result, const struct mr_error *err)
{
    struct change *change = arg;
    struct settings *settings = change->settings;

    (void)result;
    change->status = CHANGE_WAITING;
    if (settings->ending) {
        return;
    }
    if (err && is_passing(err)) {
        wire_set_timer(link_wire(settings->link), clock_ms() + RETRY_MS);
        return;
    }
    if (err) {
        log_refusal(change, err);
        settings->refused++;
    }
    change->status = CHANGE_DONE;
    if (++settings->done == settings->count) {
        finish(settings);
    }
}

static void send_changes(void *arg);

// Schedules are another shard's.
static void leave_schedules(struct settings *settings)
{
    for (size_t i = 0; i < settings->count; i++) {
        struct change *change = &settings->changes[i];
        if (str_equal(change->what, "schedule") && change->status != CHANGE_DONE) {
            change->status = CHANGE_DONE;
            settings->done++;
            settings->left++;
        }
    }
}

static void told_shard(void *arg, PGresult *result, const struct mr_error *err)
{
    struct settings *settings = arg;
    struct shard_info info;
    struct mr_error why;

    if (settings->ending) {
        return;
    }
    if (err && is_passing(err)) {
        wire_set_timer(link_wire(settings->link), clock_ms() + RETRY_MS);
        return;
    }
    if (err || shard_info_read(result, &info, &why) || !info.enrolled) {
        log_put(LEVEL_ERROR, "settings.refused", NULL, 0,
                "a shard cannot be given its settings: %s",
                err ? err->message : "it is in no set; see `millrace shard add`");
        settings_stop(settings);
        return;
    }
    settings->asks_shard = false;
    if (__builtin_ctz(info.members) != info.number) {
        leave_schedules(settings);
    }
    if (settings->done == settings->count) {
        finish(settings);
        return;
    }
    send_changes(settings);
}

static void ask_shard(struct settings *settings)
{
    AUTO_CALL call;

    call_init(&call, CALL_SHARD);
    if (wire_send(link_wire(settings->link), &call, told_shard, settings, NULL)) {
        wire_set_timer(link_wire(settings->link), clock_ms() + RETRY_MS);
    }
}

static void send_changes(void *arg)
{
    struct settings *settings = arg;

    if (settings->asks_shard) {
        if (!settings->ending) {
            ask_shard(settings);
        }
        return;
    }
    for (size_t i = 0; i < settings->count && !settings->ending; i++) {
        struct change *change = &settings->changes[i];
        if (change->status != CHANGE_WAITING) {
            continue;
        }
        if (wire_send(link_wire(settings->link), &change->call, answered, change, NULL)) {
            wire_set_timer(link_wire(settings->link), clock_ms() + RETRY_MS);
            return;
        }
        change->status = CHANGE_SENT;
    }
}

int settings_apply(const struct config *config, const char *dsn, bool sharded, uv_loop_t *loop,
                   void (*ended)(void *arg, const struct settings *settings), void *arg,
                   struct settings **ret, struct mr_error *err)
{
    const struct link_options options = {
        .part = "settings",
        .dsn = dsn,
        .pooler = config->pooler,
    };
    struct settings *settings = calloc(1, sizeof(*settings));

    if (!settings || !collect(settings, config)) {
        if (settings) {
            settings_free(settings);
        }
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    if (settings->count == 0) {
        settings_free(settings);
        *ret = NULL;
        return 0;
    }
    const struct link_hooks hooks = {
        .connected = send_changes,
        .timer = send_changes,
        .arg = settings,
    };
    int code = link_new(&options, &hooks, loop, &settings->link, err);
    if (code) {
        settings_free(settings);
        return code;
    }
    settings->asks_shard = sharded;
    settings->ended = ended;
    settings->ended_arg = arg;
    uv_idle_init(loop, &settings->end);
    settings->end.data = settings;
    *ret = settings;
    return 0;
}
