// SPDX-License-Identifier: PostgreSQL
//
// Reading entries, new ones, one's own and those of others, into the batch in hand.

#include <stdio.h>

#include "base/clock.h"
#include "base/str.h"
#include "daemon/bridge_parts.h"

void bridge_drop_batch(struct bridge *bridge)
{
    bridge_batch_done(&bridge->batch);
    bridge->part_count = 0;
    bridge->applied = (struct part){0, 0};
    bridge->lost = 0;
    bridge->bury[0] = '\0';
    bridge->bury_bare = false;
}

// Calls of a bounded size, the first on top.
static void divide_batch(struct bridge *bridge)
{
    size_t to = bridge->batch.count;

    while (to > 0) {
        size_t from = to, bytes = 0;
        while (from > 0 && (from == to || bytes < BRIDGE_CALL_MAX)) {
            from--;
            bytes += bridge->batch.entries[from].size;
        }
        bridge->parts[bridge->part_count++] = (struct part){from, to};
        to = from;
    }
}

// Twice as many the next time, or as many as make a call.
static void adapt_count(struct bridge *bridge)
{
    size_t count = bridge->batch.count;
    int64_t room = (int64_t)(BRIDGE_CALL_MAX / (bridge->batch.bytes / (count ? count : 1) + 1)) + 1;
    int64_t next = bridge->count * 2;

    next = next < room ? next : room;
    bridge->count = next < bridge->config->batch ? next : bridge->config->batch;
}

static bool take_entries(struct bridge *bridge, const redisReply *entries, bool contiguous)
{
    struct mr_error err;

    if (entries && bridge_batch_add(&bridge->batch, entries, &err)) {
        bridge_hold(bridge, "cannot use what Redis answers", err.message, err.hint);
        bridge_drop_batch(bridge);
        return false;
    }
    bridge->contiguous = contiguous;
    if (bridge->batch.count > 0) {
        divide_batch(bridge);
        adapt_count(bridge);
    }
    return true;
}

static void on_read(void *arg, const redisReply *reply, const struct mr_error *err)
{
    struct bridge *bridge = arg;
    const redisReply *entries = NULL;
    struct mr_error wrong;
    bool own = bridge->step == STEP_OWN;

    if (!bridge_is_good(bridge, reply, err)) {
        return;
    }
    if (bridge_read_entries(reply, &entries, &wrong)) {
        bridge_hold(bridge, "cannot use what Redis answers", wrong.message, wrong.hint);
        return;
    }
    if (!take_entries(bridge, entries, !own)) {
        return;
    }
    if (own && bridge->batch.count == 0) {
        bridge->own_done = true;
    } else if (own) {
        const struct bridge_entry *last = &bridge->batch.entries[bridge->batch.count - 1];
        snprintf(bridge->own_after, sizeof(bridge->own_after), "%s", last->id);
        bridge->figures.reclaimed += (int64_t)bridge->batch.count;
    }
    if (bridge->batch.count == 0) {
        bridge_went_well(bridge);
    }
}

void bridge_read(struct bridge *bridge, enum step step)
{
    const struct config_bridge *config = bridge->config;
    char count[24], block[24];
    bool own = step == STEP_OWN;
    const char *argv[] = {"XREADGROUP",
                          "GROUP",
                          config->group,
                          bridge->consumer,
                          "COUNT",
                          count,
                          "BLOCK",
                          block,
                          "STREAMS",
                          config->stream,
                          own ? bridge->own_after : ">"};

    snprintf(count, sizeof(count), "%lld", (long long)bridge->count);
    snprintf(block, sizeof(block), "%lld", (long long)config->block_ms);
    bridge_say(bridge, step, COUNT_OF(argv), argv, own ? 0 : config->block_ms, on_read);
}

static void on_taken(void *arg, const redisReply *reply, const struct mr_error *err)
{
    struct bridge *bridge = arg;
    const redisReply *entries = NULL;
    struct mr_error wrong;

    if (!bridge_is_good(bridge, reply, err)) {
        return;
    }
    if (bridge_claimed_entries(reply, &entries, bridge->take_after, &wrong)) {
        bridge_hold(bridge, "cannot use what Redis answers", wrong.message, wrong.hint);
        return;
    }
    take_entries(bridge, entries, false);
    bridge->figures.reclaimed += (int64_t)bridge->batch.count;
    if (str_equal(bridge->take_after, "0-0")) {
        bridge->take_at_ms = clock_ms() + bridge->config->reclaim_ms / 2;
    }
    if (bridge->batch.count > 0) {
        const struct log_field fields[] = {
            LOG_TEXT_FIELD("bridge", bridge->config->name),
            LOG_NUMBER_FIELD("entries", (int64_t)bridge->batch.count),
        };
        log_put(LEVEL_INFO, "bridge.reclaimed", fields, COUNT_OF(fields),
                "took over entries that another consumer left");
    }
}

void bridge_take_over(struct bridge *bridge)
{
    char idle[24], count[24];
    const char *argv[] = {"XAUTOCLAIM",
                          bridge->config->stream,
                          bridge->config->group,
                          bridge->consumer,
                          idle,
                          bridge->take_after,
                          "COUNT",
                          count};

    snprintf(idle, sizeof(idle), "%lld", (long long)bridge->config->reclaim_ms);
    snprintf(count, sizeof(count), "%lld", (long long)bridge->count);
    bridge_say(bridge, STEP_TAKE, COUNT_OF(argv), argv, 0, on_taken);
}
