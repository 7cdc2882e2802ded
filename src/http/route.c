// SPDX-License-Identifier: PostgreSQL
//
// The routes: see route.h.

#include "http/route.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "http/api.h"

// clang-format off
// parameters that many have
#define JOB    {PARAM_PATH, "id", PARAM_NUMBER, true}
#define QUEUE  {PARAM_PATH, "queue", PARAM_TEXT, true}
#define LEASE  {PARAM_PATH, "lease", PARAM_TEXT, true}
#define NAME   {PARAM_PATH, "name", PARAM_TEXT, true}
#define FILTER {PARAM_FILTER, NULL, PARAM_JSON, false}
#define ID     {PARAM_MEMBER, "id", PARAM_NUMBER, true}
#define IDS    {PARAM_MEMBER, "ids", PARAM_NUMBERS, false}
#define STATE  {PARAM_MEMBER, "state", PARAM_TEXT, false}

const struct route routes[] = {
    // looking after the daemon
    {"GET", "/healthz", RIGHT_NONE, api_healthz, .status = 200},
    {"GET", "/readyz", RIGHT_NONE, api_readyz, .status = 200},
    {"GET", "/metrics", RIGHT_READ, api_metrics, .status = 200},
    {"GET", "/openapi.json", RIGHT_NONE, api_file, .status = 200},

    // the dashboard
    {"GET", "/", RIGHT_NONE, api_file, .status = 200},
    {"GET", "/app.js", RIGHT_NONE, api_file, .status = 200},
    {"GET", "/app.css", RIGHT_NONE, api_file, .status = 200},
    {"GET", "/core/{file}", RIGHT_NONE, api_file, .status = 200},
    {"GET", "/parts/{file}", RIGHT_NONE, api_file, .status = 200},
    {"GET", "/pages/{file}", RIGHT_NONE, api_file, .status = 200},
    {"GET", "/vendor/{file}", RIGHT_NONE, api_file, .status = 200},

    // jobs
    {"POST", "/api/v1/jobs", RIGHT_PRODUCE, api_enqueue, .place = PLACE_JOB, .status = 201, .body = true, .stream = true},
    {"GET", "/api/v1/jobs", RIGHT_READ, api_call, CALL_API_LIST_JOBS, {FILTER}, .place = PLACE_LIST, .status = 200},
    {"GET", "/api/v1/jobs/{id}", RIGHT_READ, api_call, CALL_API_JOB, {JOB}, .place = PLACE_ID, .status = 200},
    {"DELETE", "/api/v1/jobs/{id}", RIGHT_ADMIN, api_call, CALL_API_CANCEL, {JOB, {PARAM_QUERY, "reason",
     PARAM_TEXT, false}}, .place = PLACE_ID, .status = 200},
    {"POST", "/api/v1/jobs/{id}/pause", RIGHT_ADMIN, api_call, CALL_API_PAUSE_JOB, {JOB}, .place = PLACE_ID, .status = 200},
    {"POST", "/api/v1/jobs/{id}/resume", RIGHT_ADMIN, api_call, CALL_API_RESUME_JOB, {JOB}, .place = PLACE_ID, .status = 200},
    {"POST", "/api/v1/jobs/{id}/run", RIGHT_ADMIN, api_call, CALL_API_RUN_NOW, {JOB}, .place = PLACE_ID, .status = 200},
    {"POST", "/api/v1/jobs/{id}/change", RIGHT_ADMIN, api_call, CALL_API_CHANGE_JOB, {JOB, {PARAM_BODY, NULL,
     PARAM_JSON, true}}, .body = true, .place = PLACE_ID, .status = 200},
    {"GET", "/api/v1/jobs/{id}/outcome", RIGHT_READ, api_outcome, CALL_API_OUTCOME, {JOB, {PARAM_QUERY,
     "wait_ms", PARAM_NUMBER, false}}, .place = PLACE_ID, .status = 200},

    // queues
    {"GET", "/api/v1/overview", RIGHT_READ, api_call, CALL_API_OVERVIEW, {{PARAM_END}}, .place = PLACE_SUM, .status = 200},
    {"GET", "/api/v1/history", RIGHT_READ, api_call, CALL_API_HISTORY, {{PARAM_QUERY, "queue", PARAM_TEXT,
     false}, {PARAM_QUERY, "minutes", PARAM_NUMBER, false}}, .place = PLACE_SUM, .status = 200},
    {"GET", "/api/v1/queues", RIGHT_READ, api_call, CALL_API_QUEUES, {{PARAM_END}}, .place = PLACE_SUM, .status = 200},
    {"GET", "/api/v1/queues/{queue}", RIGHT_READ, api_call, CALL_API_QUEUE_STORY, {QUEUE}, .place = PLACE_SUM, .status = 200},
    {"PATCH", "/api/v1/queues/{queue}", RIGHT_ADMIN, api_call, CALL_API_CHANGE_QUEUE, {QUEUE, {PARAM_MEMBER,
     "settings", PARAM_JSON, false}, {PARAM_MEMBER, "paused", PARAM_BOOL, false}}, .body = true, .place = PLACE_EACH, .status = 200},
    {"DELETE", "/api/v1/queues/{queue}", RIGHT_ADMIN, api_call, CALL_API_DROP_QUEUE, {QUEUE}, .place = PLACE_EACH, .status = 200},
    {"POST", "/api/v1/queues/{queue}/purge", RIGHT_ADMIN, api_call, CALL_API_PURGE, {QUEUE}, .place = PLACE_EACH, .status = 200},

    // working
    {"POST", "/api/v1/queues/{queue}/claim", RIGHT_WORK, api_claim, CALL_API_CLAIM, {QUEUE, {PARAM_MEMBER,
     "worker", PARAM_TEXT, false}, {PARAM_MEMBER, "max_jobs", PARAM_NUMBER, false}, {PARAM_MEMBER, "lease_s",
     PARAM_SECONDS, false}, {PARAM_MEMBER, "with_state", PARAM_BOOL, false}, {PARAM_MEMBER, "wait_ms",
     PARAM_NUMBER, false}}, .body = true, .place = PLACE_TURN, .status = 200},
    {"POST", "/api/v1/leases/{lease}/complete", RIGHT_WORK, api_call, CALL_API_COMPLETE, {LEASE, IDS,
     {PARAM_MEMBER, "result", PARAM_JSON, false}}, .body = true, .place = PLACE_LEASE, .status = 200},
    {"POST", "/api/v1/leases/{lease}/fail", RIGHT_WORK, api_settle, CALL_API_FAIL, {LEASE, ID, {PARAM_MEMBER,
     "error", PARAM_TEXT, true}, {PARAM_MEMBER, "retry_in_s", PARAM_SECONDS, false}, {PARAM_MEMBER, "retry",
     PARAM_BOOL, false}, STATE}, .body = true, .place = PLACE_LEASE, .status = 200},
    {"POST", "/api/v1/leases/{lease}/requeue", RIGHT_WORK, api_settle, CALL_API_REQUEUE, {LEASE, ID,
     {PARAM_MEMBER, "changes", PARAM_JSON, false}, STATE, {PARAM_MEMBER, "blob", PARAM_TEXT, false},
     {PARAM_MEMBER, "clear", PARAM_TEXTS, false}}, .body = true, .place = PLACE_LEASE, .status = 200},
    {"POST", "/api/v1/leases/{lease}/release", RIGHT_WORK, api_call, CALL_API_RELEASE, {LEASE, IDS},
     .body = true, .place = PLACE_LEASE, .status = 200},
    {"POST", "/api/v1/leases/{lease}/heartbeat", RIGHT_WORK, api_call, CALL_API_HEARTBEAT, {LEASE,
     {PARAM_MEMBER, "extend_s", PARAM_SECONDS, false}}, .body = true, .place = PLACE_LEASE, .status = 200},
    {"POST", "/api/v1/leases/{lease}/finish", RIGHT_WORK, api_settle, CALL_API_FINISH, {LEASE, {PARAM_MEMBER,
     "outcomes", PARAM_JSON, true}}, .body = true, .place = PLACE_LEASE, .status = 200},
    {"POST", "/api/v1/leases/{lease}/progress", RIGHT_WORK, api_call, CALL_API_PROGRESS, {LEASE, ID,
     {PARAM_MEMBER, "percent", PARAM_REAL, true}, {PARAM_MEMBER, "note", PARAM_TEXT, false}}, .body = true,
     .place = PLACE_LEASE, .status = 200},

    // dead letters
    {"GET", "/api/v1/dead", RIGHT_READ, api_call, CALL_API_LIST_DEAD, {FILTER}, .place = PLACE_LIST, .status = 200},
    {"GET", "/api/v1/dead/groups", RIGHT_READ, api_call, CALL_API_DEAD_GROUPS, {{PARAM_QUERY, "queue",
     PARAM_TEXT, false}}, .place = PLACE_LIST, .status = 200},
    {"POST", "/api/v1/dead/replay", RIGHT_ADMIN, api_replay, CALL_API_REPLAY_ALL, {{PARAM_MEMBER, "queue",
     PARAM_TEXT, false}, {PARAM_MEMBER, "kind", PARAM_TEXT, false}, {PARAM_MEMBER, "error_like", PARAM_TEXT,
     false}, {PARAM_MEMBER, "max_jobs", PARAM_NUMBER, false}, {PARAM_MEMBER, "id", PARAM_NUMBER, false}, IDS},
     .body = true, .place = PLACE_EACH, .status = 200},
    {"POST", "/api/v1/dead/purge", RIGHT_ADMIN, api_call, CALL_API_PURGE_DEAD, {{PARAM_MEMBER, "queue",
     PARAM_TEXT, true}, {PARAM_MEMBER, "older_than_s", PARAM_SECONDS, false}}, .body = true, .place = PLACE_EACH, .status = 200},

    // schedules
    {"GET", "/api/v1/schedules", RIGHT_READ, api_call, CALL_API_LIST_SCHEDULES, {{PARAM_END}}, .place = PLACE_LIST, .status = 200},
    {"GET", "/api/v1/schedules/{name}", RIGHT_READ, api_call, CALL_API_SCHEDULE_STORY, {NAME}, .place = PLACE_FIRST, .status = 200},
    {"PUT", "/api/v1/schedules/{name}", RIGHT_ADMIN, api_call, CALL_API_SCHEDULE, {NAME, {PARAM_MEMBER, "cron",
     PARAM_TEXT, true}, {PARAM_MEMBER, "kind", PARAM_TEXT, true}, {PARAM_MEMBER, "args", PARAM_JSON, false},
     {PARAM_MEMBER, "queue", PARAM_TEXT, false}, {PARAM_MEMBER, "timezone", PARAM_TEXT, false}, {PARAM_MEMBER,
     "catch_up", PARAM_TEXT, false}, {PARAM_MEMBER, "active", PARAM_BOOL, false}, {PARAM_MEMBER, "priority",
     PARAM_NUMBER, false}}, .body = true, .place = PLACE_FIRST, .status = 200},
    {"DELETE", "/api/v1/schedules/{name}", RIGHT_ADMIN, api_call, CALL_API_UNSCHEDULE, {NAME}, .place = PLACE_FIRST, .status = 200},
    {"POST", "/api/v1/schedules/{name}/run", RIGHT_ADMIN, api_call, CALL_API_SCHEDULE_RUN, {NAME}, .place = PLACE_FIRST, .status = 200},
    {"POST", "/api/v1/schedules/{name}/enable", RIGHT_ADMIN, api_call, CALL_API_SCHEDULE_ENABLE, {NAME}, .place = PLACE_FIRST, .status = 200},
    {"POST", "/api/v1/schedules/{name}/disable", RIGHT_ADMIN, api_call, CALL_API_SCHEDULE_DISABLE, {NAME},
     .place = PLACE_FIRST, .status = 200},
    {"GET", "/api/v1/cron/next", RIGHT_READ, api_call, CALL_API_CRON_TIMES, {{PARAM_QUERY, "cron", PARAM_TEXT,
     true}, {PARAM_QUERY, "after", PARAM_TEXT, false}, {PARAM_QUERY, "timezone", PARAM_TEXT, false},
     {PARAM_QUERY, "times", PARAM_NUMBER, false}}, .place = PLACE_FIRST, .status = 200},

    // batches
    {"GET", "/api/v1/batches", RIGHT_READ, api_call, CALL_API_LIST_BATCHES, {FILTER}, .place = PLACE_LIST, .status = 200},
    {"GET", "/api/v1/batches/{id}", RIGHT_READ, api_call, CALL_API_BATCH, {JOB}, .place = PLACE_BATCH, .status = 200},
    {"POST", "/api/v1/batches", RIGHT_PRODUCE, api_call, CALL_API_BATCH_BEGIN, {{PARAM_MEMBER, "on_complete",
     PARAM_JSON, false}, {PARAM_MEMBER, "on_death", PARAM_JSON, false}, {PARAM_MEMBER, "label", PARAM_TEXT,
     false}, {PARAM_MEMBER, "on_end", PARAM_JSON, false}}, .place = PLACE_LABEL, .status = 201, .body = true},
    {"POST", "/api/v1/batches/{id}/jobs", RIGHT_PRODUCE, api_call, CALL_API_BATCH_ADD, {JOB, {PARAM_BODY, NULL,
     PARAM_JSON, true}}, .place = PLACE_BATCH, .status = 201, .body = true},
    {"POST", "/api/v1/batches/{id}/seal", RIGHT_PRODUCE, api_call, CALL_API_BATCH_SEAL, {JOB}, .place = PLACE_BATCH, .status = 200},

    // the whole
    {"GET", "/api/v1/workers", RIGHT_READ, api_call, CALL_API_LIST_WORKERS, {{PARAM_END}}, .place = PLACE_LIST, .status = 200},
    {"GET", "/api/v1/system", RIGHT_READ, api_system, CALL_API_SYSTEM, {{PARAM_END}}, .place = PLACE_APART, .status = 200},
    {"GET", "/api/v1/doctor", RIGHT_READ, api_call, CALL_API_DOCTOR, {{PARAM_END}}, .place = PLACE_APART, .status = 200},
    {"GET", "/api/v1/events", RIGHT_READ, api_events, .place = PLACE_SUM, .status = 200},
};
// clang-format on

const size_t route_count = sizeof(routes) / sizeof(routes[0]);

// Whether the parts of a target are those of a path; its variables take any one part each.
static bool matches(const char *path, const struct target *target,
                    const char *ret_variables[ROUTE_VARIABLES_MAX])
{
    size_t variables = 0;
    size_t part = 0;

    for (const char *at = path + 1; *at; part++) {
        size_t length = strcspn(at, "/");
        if (part == target->part_count) {
            return false;
        }
        if (*at == '{') {
            ret_variables[variables++] = target->parts[part];
        } else if (strlen(target->parts[part]) != length ||
                   memcmp(at, target->parts[part], length) != 0) {
            return false;
        }
        at += length;
        at += *at == '/';
    }
    return part == target->part_count;
}

const struct route *route_find(const char *method, const struct target *target,
                               const char *ret_variables[ROUTE_VARIABLES_MAX],
                               char ret_allow[ROUTE_ALLOW_MAX])
{
    const char *wanted = str_equal(method, "HEAD") ? "GET" : method;
    size_t used = 0;

    ret_allow[0] = '\0';
    for (size_t i = 0; i < route_count; i++) {
        if (!matches(routes[i].path, target, ret_variables)) {
            continue;
        }
        if (str_equal(routes[i].method, wanted)) {
            return &routes[i];
        }
        used += (size_t)snprintf(ret_allow + used, ROUTE_ALLOW_MAX - used, "%s%s", used ? ", " : "",
                                 routes[i].method);
    }
    return NULL;
}

bool route_takes(const struct route *route, enum param_source source, const char *name)
{
    for (const struct param *param = route->params; param->source != PARAM_END; param++) {
        if (param->source == source && str_equal(param->name, name)) {
            return true;
        }
    }
    return false;
}
