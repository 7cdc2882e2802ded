// SPDX-License-Identifier: PostgreSQL
//
// The workers of a configuration: see crew.h.

#include "daemon/crew.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "client/conn.h"
#include "client/dsn_list.h"
#include "daemon/station.h"

// One worker of a configuration, on one database: where there are several shards, one on each.
// Lives as long as its station or the wish to have one.
struct member {
    struct crew *crew;
    const struct config_worker *worker; // NULL: it leaves
    char *dsn;                          // of its shard; NULL: there is one database
    struct station_share *share;        // with the members of the other shards; NULL
    int address;                        // in it
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

static void share_drop(struct station_share *share)
{
    if (share && --share->users == 0) {
        free(share);
    }
}

static void member_free(struct member *member)
{
    share_drop(member->share);
    free(member->dsn);
    free(member);
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
    member_free(member);
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
    if (member->share) {
        options.worker.dsn = options.handler.dsn = member->dsn;
        options.share = member->share;
        options.address = member->address;
    }
    int code = station_new(&options, member->crew->loop, &member->station, err);
    if (code) {
        mr_error_prefix(err, "worker %s", member->worker->name);
        return code;
    }
    station_on_end(member->station, on_ended, member);
    station_on_connected(member->station, on_connected, member);
    return 0;
}

// A new member, in the list. `dsn` is that of its shard, with what it shares; both NULL for the
// only database.
static int member_new(struct crew *crew, const struct config *config,
                      const struct config_worker *worker, const char *dsn,
                      struct station_share *share, int address, struct mr_error *err)
{
    struct member *member = calloc(1, sizeof(*member));

    if (!member || (dsn && !(member->dsn = strdup(dsn)))) {
        free(member);
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    member->crew = crew;
    member->worker = worker;
    member->grace_ms = worker->grace_ms;
    member->share = share;
    member->address = address;
    if (share) {
        share->users++;
    }
    int code = member_start(member, config, err);
    if (code) {
        member_free(member);
        return code;
    }
    uv_timer_init(crew->loop, &member->restart);
    member->restart.data = member;
    member->next = crew->members;
    crew->members = member;
    return 0;
}

// ---- a worker's members ----

static void leave_all(const struct crew *crew, const struct config_worker *worker)
{
    for (struct member *member = crew->members; member; member = member->next) {
        if (member->worker == worker) {
            member_leave(member);
        }
    }
}

static int hire_on_shards(struct crew *crew, const struct config *config,
                          const struct config_worker *worker, const struct dsn_list *list,
                          struct mr_error *err)
{
    struct station_share *share = calloc(1, sizeof(*share));
    int code = 0;

    if (!share) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    share->users = 1; // us
    share->set.count = list->count;
    for (int i = 0; code == 0 && i < list->count; i++) {
        code = member_new(crew, config, worker, list->items[i], share, i, err);
    }
    if (code) {
        leave_all(crew, worker);
    }
    share_drop(share);
    return code;
}

// A member for each database that the worker serves. On failure there is none.
static int hire(struct crew *crew, const struct config *config, const struct config_worker *worker,
                struct mr_error *err)
{
    const char *dsn = conn_shards_dsn(worker->dsn ? worker->dsn : config->dsn);
    struct dsn_list list;

    if (!dsn) {
        return member_new(crew, config, worker, NULL, NULL, 0, err);
    }
    int code = dsn_list_parse(dsn, &list, err);
    if (code == 0) {
        code = hire_on_shards(crew, config, worker, &list, err);
        dsn_list_done(&list);
    }
    return code;
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
    const struct config_worker *kept; // whose members go on; NULL: it is new
};

static void give_up(const struct crew *crew, const struct config *config, const struct plan *plans,
                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!plans[i].kept) {
            leave_all(crew, &config->workers[i]);
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
        const struct member *present = find(crew, worker->name);
        if (present && same && config_worker_equal(present->worker, worker)) {
            plans[i].kept = present->worker;
        }
    }
    for (size_t i = 0; i < config->worker_count; i++) {
        int code = plans[i].kept ? 0 : hire(crew, config, &config->workers[i], err);
        if (code) {
            give_up(crew, config, plans, i);
            return code;
        }
    }
    return 0;
}

// Members of a worker that goes on get its new section; NULL: it does not go on.
static const struct config_worker *planned(const struct config *config, const struct plan *plans,
                                           const struct member *member)
{
    for (size_t i = 0; i < config->worker_count; i++) {
        if (plans[i].kept ? plans[i].kept == member->worker
                          : member->worker == &config->workers[i]) {
            return &config->workers[i];
        }
    }
    return NULL;
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
        const struct config_worker *next = member->worker ? planned(config, plans, member) : NULL;
        if (next) {
            member->worker = next;
        } else if (member->worker) {
            member_leave(member);
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

// Of several shards one is enough: what a worker is asked for is being done.
static bool any_connected(const struct crew *crew, const struct config_worker *worker)
{
    for (const struct member *member = crew->members; member; member = member->next) {
        if (member->worker == worker && member->connected) {
            return true;
        }
    }
    return false;
}

bool crew_connected(const struct crew *crew)
{
    for (const struct member *member = crew->members; member; member = member->next) {
        if (member->worker && !any_connected(crew, member->worker)) {
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

static const char *reason_of(const struct member *member)
{
    if (!member->station) {
        return "has failed and is started again soon";
    }
    if (!station_healthy(member->station)) {
        return "no answer of the database";
    }
    return station_breaker(member->station) != BREAKER_CLOSED ? "its breaker is open" : NULL;
}

// A worker whose shards are not all in trouble does its work.
static bool any_well(const struct crew *crew, const struct config_worker *worker)
{
    for (const struct member *member = crew->members; member; member = member->next) {
        if (member->worker == worker && !reason_of(member)) {
            return true;
        }
    }
    return false;
}

void crew_reasons(const struct crew *crew, struct buf *out)
{
    for (const struct member *member = crew->members; member; member = member->next) {
        if (member->worker && member->address == 0 && !any_well(crew, member->worker)) {
            add_reason(out, member->worker->name, reason_of(member));
        }
    }
}

static bool any_open(const struct crew *crew, const struct config_worker *worker)
{
    for (const struct member *member = crew->members; member; member = member->next) {
        if (member->worker == worker && member->station &&
            station_breaker(member->station) != BREAKER_CLOSED) {
            return true;
        }
    }
    return false;
}

// One for each worker, however many shards it serves.
void crew_breakers(const struct crew *crew, void (*each)(void *arg, const char *worker, bool open),
                   void *arg)
{
    for (const struct member *member = crew->members; member; member = member->next) {
        if (member->worker && member->address == 0 && (member->station || member->share)) {
            each(arg, member->worker->name, any_open(crew, member->worker));
        }
    }
}
