// SPDX-License-Identifier: PostgreSQL
//
// The consumer group of a bridge, where it is missing: the stream is asked for its last id, the
// database where to begin, then the group is made.

#include <stdio.h>

#include "base/str.h"
#include "daemon/bridge_error.h"
#include "daemon/bridge_parts.h"

static void on_made(void *arg, const redisReply *reply, const struct mr_error *err)
{
    struct bridge *bridge = arg;
    bool busy = reply && redis_reply_is(reply, "BUSYGROUP"); // another one was faster

    if (!busy && !bridge_is_good(bridge, reply, err)) {
        return;
    }
    bridge->step = STEP_NONE;
    bridge->group_missing = false;
    bridge->own_done = false;
    snprintf(bridge->own_after, sizeof(bridge->own_after), "0-0");
    if (!busy) {
        const struct log_field fields[] = {
            LOG_TEXT_FIELD("bridge", bridge->config->name),
            LOG_TEXT_FIELD("stream", bridge->config->stream),
            LOG_TEXT_FIELD("group", bridge->config->group),
            LOG_TEXT_FIELD("after", bridge->begin_after),
        };
        log_put(bridge->was_known ? LEVEL_WARNING : LEVEL_INFO, "bridge.group", fields,
                COUNT_OF(fields),
                bridge->was_known ? "the consumer group was gone and is made again"
                                  : "the consumer group is made");
    }
    bridge->begin_after[0] = '\0';
    bridge_went_well(bridge);
    bridge_go_on(bridge);
}

void bridge_make_group(struct bridge *bridge)
{
    const char *argv[] = {
        "XGROUP",  "CREATE", bridge->config->stream, bridge->config->group, bridge->begin_after,
        "MKSTREAM"};

    bridge_say(bridge, STEP_MAKE, COUNT_OF(argv), argv, 0, on_made);
}

static void on_begin(void *arg, PGresult *result, const struct mr_error *err)
{
    struct bridge *bridge = arg;

    bridge->step = STEP_NONE;
    bridge_go_on(bridge);
    if (err) {
        if (bridge_fault_of(err) != FAULT_LOST) {
            bridge_hold(bridge, "the group cannot be made", err->message, err->hint);
        }
        return;
    }
    bridge->was_known = !PQgetisnull(result, 0, 0);
    snprintf(bridge->begin_after, sizeof(bridge->begin_after), "%s",
             bridge->was_known          ? PQgetvalue(result, 0, 0)
             : bridge->config->from_new ? "$"
                                        : "0-0");
    if (str_equal(PQgetvalue(result, 0, 1), "t")) {
        bridge_tell(
            bridge, LEVEL_WARNING, "bridge.restarted",
            "the stream was started again: its ids are before those that were applied, which are "
            "forgotten",
            NULL, NULL);
    }
}

static void on_found(void *arg, const redisReply *reply, const struct mr_error *err)
{
    struct bridge *bridge = arg;
    bool none = reply && redis_reply_is(reply, "ERR no such key");
    char last[BRIDGE_ID_SIZE] = "0-0";
    AUTO_CALL call;

    call_init(&call, CALL_BRIDGE_BEGIN);
    if (!none && !bridge_is_good(bridge, reply, err)) {
        return;
    }
    const redisReply *id = none ? NULL : bridge_member(reply, "last-generated-id");
    if (id && id->type == REDIS_REPLY_STRING && id->len < sizeof(last)) {
        snprintf(last, sizeof(last), "%s", id->str);
    }
    bridge_call_source(&call, bridge);
    call_text(&call, last);
    bridge_ask(bridge, STEP_BEGIN, &call, on_begin);
}

void bridge_find_group(struct bridge *bridge)
{
    const char *argv[] = {"XINFO", "STREAM", bridge->config->stream};

    bridge_say(bridge, STEP_FIND, COUNT_OF(argv), argv, 0, on_found);
}
