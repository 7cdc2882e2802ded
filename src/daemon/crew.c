// SPDX-License-Identifier: PostgreSQL
//
// The workers of a configuration: see crew.h.

#include "daemon/crew.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "daemon/station.h"

// One worker of a configuration. Lives as long as its station or the wish to have one.
struct member {
    struct crew *crew;
    const struct config_worker *worker; // NULL: it leaves
    int64_t grace_ms;
    struct station *station; // NULL: it waits to be started again
    uv_timer_t restart;
    bool connected;
    bool closing;
    struct member *next;
};

struct crew {
    struct tally *tally; // or NULL
    uv_loop_t *loop;
    struct crew_hooks hooks;
    const struct config *config;
    struct member *members;
    mr_worker_counts ended; // what those who have ended did
    bool stopping;
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void add_counts(mr_worker_counts *to, const mr_worker_counts *from)
{
    to->claims += from->claims;
    to->claimed += from->claimed;
    to->completed += from->completed;
    to->failed += from->failed;
    to->requeued += from->requeued;
    to->released += from->released;
    to->lost += from->lost;
    to->reconnects += from->reconnects;
    to->running += from->running;
}

// ---- the end of a member ----

static void check_end(struct crew *crew)
{
    if (crew->stopping && !crew->members) {
        crew->hooks.ended(crew->hooks.arg);
    }
}

static void on_member_closed(uv_handle_t *handle)
{
    struct member *member = handle->data;
    struct crew *crew = member->crew;
    struct member **at = &crew->members;

    while (*at != member) {
        at = &(*at)->next;
    }
    *at = member->next;
    free(member);
    check_end(crew);
}

static void member_close(struct member *member)
{
    if (!member->closing) {
        member->closing = true;
        uv_close((uv_handle_t *)&member->restart, on_member_closed);
    }
}

// It leaves, as soon as its jobs allow.
static void member_leave(struct member *member)
{
    member->worker = NULL;
    if (member->station) {
        station_stop(member->station);
    } else {
        member_close(member);
    }
}

// ---- a member's station ----

static int member_start(struct member *member, const struct config *config, struct mr_error *err);

static void restart_later(struct member *member);

static void on_restart(uv_timer_t *timer)
{
    struct member *member = timer->data;
    struct mr_error err;

    if (member_start(member, member->crew->config, &err)) {
        const struct log_field fields[] = {LOG_TEXT_FIELD("worker", member->worker->name)};
        log_put(LEVEL_ERROR, "worker.not_started", fields, COUNT_OF(fields), "%s", err.message);
        restart_later(member);
    }
}

static void restart_later(struct member *member)
{
    uv_timer_start(&member->restart, on_restart, CREW_RESTART_MS, 0);
}

static void on_ended(void *arg, int code, const struct mr_error *err)
{
    struct member *member = arg;
    mr_worker_counts counts = MR_WORKER_COUNTS_INIT;

    (void)code; // the station has told the log
    (void)err;
    station_counts(member->station, &counts);
    counts.running = 0;
    add_counts(&member->crew->ended, &counts);
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("worker", station_name(member->station)),
        LOG_NUMBER_FIELD("completed", counts.completed),
        LOG_NUMBER_FIELD("failed", counts.failed),
        LOG_NUMBER_FIELD("requeued", counts.requeued),
        LOG_NUMBER_FIELD("released", counts.released),
        LOG_NUMBER_FIELD("lost", counts.lost),
    };
    bool leaves = member->crew->stopping || !member->worker;
    if (leaves) {
        log_put(LEVEL_INFO, "worker.ended", fields, COUNT_OF(fields), "ended");
    } else {
        log_put(LEVEL_INFO, "worker.ended", fields, COUNT_OF(fields),
                "ended, starting again in %d s", CREW_RESTART_MS / 1000);
    }
    member->station = NULL;
    if (leaves) {
        member_close(member);
    } else {
        restart_later(member);
    }
}

static void on_connected(void *arg)
{
    struct member *member = arg;

    member->connected = true;
    member->crew->hooks.connected(member->crew->hooks.arg);
}

static int member_start(struct member *member, const struct config *config, struct mr_error *err)
{
    struct station_options options;
    char name[CONFIG_WORKER_NAME_SIZE];

    config_worker_station(member->worker, config, name, &options);
    options.tally = member->crew->tally;
    int code = station_new(&options, member->crew->loop, &member->station, err);
    if (code) {
        mr_error_prefix(err, "worker %s", member->worker->name);
        return code;
    }
    station_on_end(member->station, on_ended, member);
    station_on_connected(member->station, on_connected, member);
    return 0;
}

// A new member, in the list.
static int member_new(struct crew *crew, const struct config *config,
                      const struct config_worker *worker, struct member **ret, struct mr_error *err)
{
    struct member *member = calloc(1, sizeof(*member));

    if (!member) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    member->crew = crew;
    member->worker = worker;
    member->grace_ms = worker->grace_ms;
    int code = member_start(member, config, err);
    if (code) {
        free(member);
        return code;
    }
    uv_timer_init(crew->loop, &member->restart);
    member->restart.data = member;
    member->next = crew->members;
    crew->members = member;
    *ret = member;
    return 0;
}

// ---- the crew ----

int crew_new(uv_loop_t *loop, const struct crew_hooks *hooks, struct tally *tally,
             struct crew **ret, struct mr_error *err)
{
    struct crew *crew = calloc(1, sizeof(*crew));

    if (!crew) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    crew->loop = loop;
    crew->hooks = *hooks;
    crew->tally = tally;
    *ret = crew;
    return 0;
}

void crew_free(struct crew *crew)
{
    free(crew);
}

static struct member *find(const struct crew *crew, const char *name)
{
    struct member *member = crew->members;

    while (member && !(member->worker && str_equal(member->worker->name, name))) {
        member = member->next;
    }
    return member;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? str_equal(a, b) : a == b;
}

// What a worker leaves to the file.
static bool same_file(const struct config *a, const struct config *b)
{
    return a && same_text(a->dsn, b->dsn) && a->pooler == b->pooler;
}

struct plan {
    struct member *kept; // goes on, or
    struct member *made; // is new
};

static void give_up(struct plan *plans, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (plans[i].made) {
            member_leave(plans[i].made);
        }
    }
}

// Finds out who goes on and starts who does not. On failure nothing has changed.
static int make_plans(struct crew *crew, const struct config *config, struct plan *plans,
                      struct mr_error *err)
{
    bool same = same_file(crew->config, config);

    for (size_t i = 0; i < config->worker_count; i++) {
        const struct config_worker *worker = &config->workers[i];
        struct member *present = find(crew, worker->name);
        if (present && same && config_worker_equal(present->worker, worker)) {
            plans[i].kept = present;
        }
    }
    for (size_t i = 0; i < config->worker_count; i++) {
        int code =
            plans[i].kept ? 0 : member_new(crew, config, &config->workers[i], &plans[i].made, err);
        if (code) {
            give_up(plans, i);
            return code;
        }
    }
    return 0;
}

static bool is_planned(const struct plan *plans, size_t count, const struct member *member)
{
    for (size_t i = 0; i < count; i++) {
        if (plans[i].kept == member || plans[i].made == member) {
            return true;
        }
    }
    return false;
}

int crew_apply(struct crew *crew, const struct config *config, struct mr_error *err)
{
    struct plan *plans = calloc(config->worker_count + 1, sizeof(*plans));

    if (!plans) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    int code = make_plans(crew, config, plans, err);
    if (code) {
        free(plans);
        return code;
    }
    for (struct member *member = crew->members; member; member = member->next) {
        if (member->worker && !is_planned(plans, config->worker_count, member)) {
            member_leave(member);
        }
    }
    for (size_t i = 0; i < config->worker_count; i++) {
        if (plans[i].kept) {
            plans[i].kept->worker = &config->workers[i];
        }
    }
    crew->config = config;
    free(plans);
    return 0;
}

int64_t crew_stop(struct crew *crew)
{
    int64_t grace_ms = 0;

    crew->stopping = true;
    for (struct member *member = crew->members; member; member = member->next) {
        grace_ms = member->grace_ms > grace_ms ? member->grace_ms : grace_ms;
        member_leave(member);
    }
    return grace_ms;
}

size_t crew_size(const struct crew *crew)
{
    size_t count = 0;

    for (const struct member *member = crew->members; member; member = member->next) {
        count++;
    }
    return count;
}

bool crew_connected(const struct crew *crew)
{
    for (const struct member *member = crew->members; member; member = member->next) {
        if (member->worker && !member->connected) {
            return false;
        }
    }
    return true;
}

void crew_counts(const struct crew *crew, mr_worker_counts *ret)
{
    *ret = crew->ended;
    for (const struct member *member = crew->members; member; member = member->next) {
        mr_worker_counts counts = MR_WORKER_COUNTS_INIT;
        if (member->station) {
            station_counts(member->station, &counts);
            add_counts(ret, &counts);
        }
    }
}

static void add_reason(struct buf *out, const char *worker, const char *why)
{
    char text[CONFIG_NAME_MAX + 64];

    snprintf(text, sizeof(text), "worker %.200s: %s", worker, why);
    buf_puts(out, out->len ? "," : "");
    json_add_string(out, text);
}

void crew_reasons(const struct crew *crew, struct buf *out)
{
    for (const struct member *member = crew->members; member; member = member->next) {
        if (!member->worker) {
            continue; // it leaves
        }
        if (!member->station) {
            add_reason(out, member->worker->name, "has failed and is started again soon");
        } else if (!station_healthy(member->station)) {
            add_reason(out, member->worker->name, "no answer of the database");
        } else if (station_breaker(member->station) != BREAKER_CLOSED) {
            add_reason(out, member->worker->name, "its breaker is open");
        }
    }
}

void crew_breakers(const struct crew *crew, void (*each)(void *arg, const char *worker, bool open),
                   void *arg)
{
    for (const struct member *member = crew->members; member; member = member->next) {
        if (member->worker && member->station) {
            each(arg, member->worker->name, station_breaker(member->station) != BREAKER_CLOSED);
        }
    }
}
