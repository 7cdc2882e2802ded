// SPDX-License-Identifier: PostgreSQL
//
// What a bridge says to its two servers: see bridge_parts.h.

#include "daemon/bridge_parts.h"

// What Redis refuses, and what helps.
static const struct {
    const char *word;
    const char *hint;
    bool reset; // another server may be the one that is meant
} refusals[] = {
    {"LOADING", "Redis reads its data from disk; this passes.", false},
    {"OOM", "Redis is at its maxmemory: raise it, or trim streams.", false},
    {"READONLY", "This server is a replica now; the address is looked up again.", true},
    {"MASTERDOWN", "This server is a replica without its master.", true},
    {"CLUSTERDOWN", NULL, false},
    {"MOVED", "The stream is on another node of the cluster: give that node's address.", false},
    {"MISCONF", "Redis cannot write its data to disk.", false},
    {"NOAUTH", "Give user and password in the address: redis://USER:PASSWORD@HOST.", false},
    {"NOPERM", "The user of Redis needs the stream's key, and the commands of streams.", false},
    {"WRONGTYPE", "The key holds something else than a stream.", false},
    {"ERR unknown command", "Redis 6.2 or later is needed.", false},
};

static void refused(struct bridge *bridge, const redisReply *reply)
{
    const char *hint = NULL;

    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        if (redis_reply_is(reply, refusals[i].word)) {
            hint = refusals[i].hint;
            bridge->reset = refusals[i].reset;
        }
    }
    bridge_hold(bridge, "Redis refuses", reply->str, hint);
}

// Whether an answer can be used; otherwise all that is to be done about it is done.
bool bridge_is_good(struct bridge *bridge, const redisReply *reply, const struct mr_error *err)
{
    bridge->step = STEP_NONE;
    bridge_go_on(bridge);
    if (err) { // on_redis() is told
        return false;
    }
    if (redis_reply_is(reply, "UNBLOCKED")) { // the stream or the server changed: read again
        return false;
    }
    if (redis_reply_is(reply, "NOGROUP")) {
        bridge->group_missing = true;
        return false;
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        refused(bridge, reply);
        return false;
    }
    return true;
}

void bridge_say(struct bridge *bridge, enum step step, int argc, const char **argv, int64_t wait_ms,
                redis_answer_fn *answer)
{
    struct mr_error err;

    bridge->step = step;
    if (redis_wire_send(bridge->redis, argc, argv, NULL, ANSWER_MS + wait_ms, answer, bridge,
                        &err)) {
        bridge->step = STEP_NONE;
        bridge_hold(bridge, "cannot ask Redis", err.message, err.hint);
        bridge_go_on(bridge);
    }
}

void bridge_call_source(struct call *call, const struct bridge *bridge)
{
    call_text(call, bridge->config->name);
    call_text(call, bridge->config->stream);
    call_text(call, bridge->config->group);
}

void bridge_ask(struct bridge *bridge, enum step step, const struct call *call,
                wire_answer_fn *answer)
{
    struct mr_error err;
    int code = call_status(call, &err);

    bridge->step = step;
    code = code ? code : wire_send(link_wire(bridge->link), call, answer, bridge, &err);
    if (code) {
        answer(bridge, NULL, &err);
    }
}
