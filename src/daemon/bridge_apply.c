// SPDX-License-Identifier: PostgreSQL
//
// Applying the batch in hand, part by part, and acknowledging what is committed.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "daemon/bridge_error.h"
#include "daemon/bridge_parts.h"

static struct part *present_part(struct bridge *bridge)
{
    return &bridge->parts[bridge->part_count - 1];
}

static void part_applied(struct bridge *bridge)
{
    bridge->applied = *present_part(bridge);
    bridge->part_count--;
    bridge->lost = 0;
    bridge->bury[0] = '\0';
    bridge->bury_bare = false;
}

static void halve(struct bridge *bridge)
{
    struct part *part = present_part(bridge);
    size_t middle = part->from + (part->to - part->from) / 2;
    struct part first = {part->from, middle};

    part->from = middle;
    bridge->parts[bridge->part_count++] = first;
    bridge->lost = 0;
}

// An entry is alone and to blame.
static void blame_entry(struct bridge *bridge, const struct mr_error *err)
{
    const struct bridge_entry *entry = &bridge->batch.entries[present_part(bridge)->from];

    if (bridge->bury_bare) { // not even its id can be stored
        bridge_hold(bridge, "a dead letter cannot be written", err->message, err->hint);
        return;
    }
    if (bridge->bury[0]) {
        bridge->bury_bare = true;
        return;
    }
    snprintf(bridge->bury, sizeof(bridge->bury), "%.900s%s%s%s", err->message,
             err->sqlstate[0] ? " (SQLSTATE " : "", err->sqlstate, err->sqlstate[0] ? ")" : "");
    str_trim_utf8(bridge->bury);
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("bridge", bridge->config->name),
        LOG_TEXT_FIELD("stream", bridge->config->stream),
        LOG_TEXT_FIELD("entry", entry->id),
    };
    log_put(LEVEL_WARNING, "bridge.dead", fields, COUNT_OF(fields),
            "an entry cannot be applied and becomes a dead letter: %s", bridge->bury);
}

static void part_failed(struct bridge *bridge, const struct mr_error *err)
{
    struct part *part = present_part(bridge);
    enum bridge_fault fault = bridge_fault_of(err);

    bridge->lost += fault == FAULT_LOST;
    if (fault == FAULT_LOST && bridge->lost >= LOST_LIMIT) {
        fault = FAULT_ENTRY;
    }
    switch (fault) {
    case FAULT_LOST: return; // the same again, as soon as there is a connection
    case FAULT_TIMES:
        bridge_hold(bridge, "entries cannot be applied", err->message, err->hint);
        return;
    case FAULT_ENTRY:
        if (part->to - part->from > 1) {
            halve(bridge);
        } else {
            blame_entry(bridge, err);
        }
        return;
    }
}

static void on_applied(void *arg, PGresult *result, const struct mr_error *err)
{
    struct bridge *bridge = arg;

    bridge->step = STEP_NONE;
    bridge_go_on(bridge);
    if (bridge->ending) {
        return;
    }
    if (err) {
        part_failed(bridge, err);
        return;
    }
    bridge->figures.applied += atoll(PQgetvalue(result, 0, 0));
    bridge->figures.repeated += atoll(PQgetvalue(result, 0, 1));
    bridge->figures.dead += atoll(PQgetvalue(result, 0, 2));
    part_applied(bridge);
    bridge_went_well(bridge);
}

// The settings of the call: the configuration's, and why an entry is to be buried.
static void add_settings(struct call *call, const struct bridge *bridge, const char *bury)
{
    const char *known = bridge->config->settings_json;
    AUTO_BUF json;

    buf_init(&json, 64 * 1024);
    if (!bury) {
        call_text(call, known);
        return;
    }
    buf_add(&json, known, strlen(known) - 1);
    buf_puts(&json, known[1] == '}' ? "\"bury\":" : ",\"bury\":");
    json_add_string(&json, bury);
    buf_puts(&json, "}");
    call_text(call, buf_peek(&json));
}

// The present part without entries that are gone: those need nothing but to be acknowledged.
static size_t part_lists(struct bridge *bridge, const char **ids, const char **fields)
{
    const struct part *part = present_part(bridge);
    size_t count = 0;

    for (size_t i = part->from; i < part->to; i++) {
        const struct bridge_entry *entry = &bridge->batch.entries[i];
        if (!entry->gone) {
            ids[count] = entry->id;
            fields[count++] = bridge->bury_bare ? "{}" : entry->fields;
        }
    }
    return count;
}

// An entry that is too large to be passed on is never part of a call with others.
static const char *why_bury(struct bridge *bridge)
{
    struct part *part = present_part(bridge);
    size_t huge = part->from;

    while (huge < part->to && !bridge->batch.entries[huge].huge) {
        huge++;
    }
    if (huge == part->to) {
        return bridge->bury[0] ? bridge->bury : NULL;
    }
    if (part->to - part->from > 1) {
        struct part first = {part->from, huge > part->from ? huge : huge + 1};
        part->from = first.to;
        bridge->parts[bridge->part_count++] = first;
        return huge > first.from ? NULL : "the entry is larger than 64 MiB";
    }
    return "the entry is larger than 64 MiB";
}

void bridge_apply_part(struct bridge *bridge)
{
    const char *bury = why_bury(bridge);
    size_t most = present_part(bridge)->to - present_part(bridge)->from;
    const char **lists = calloc(2 * most, sizeof(*lists));
    AUTO_CALL call;

    call_init(&call, CALL_BRIDGE_APPLY);
    if (!lists) {
        bridge_hold(bridge, "entries cannot be applied", "out of memory", NULL);
        bridge_go_on(bridge);
        return;
    }
    size_t count = part_lists(bridge, lists, lists + most);
    if (count == 0) {
        part_applied(bridge);
        bridge_go_on(bridge);
    } else {
        bridge_call_source(&call, bridge);
        call_texts(&call, lists, count);
        call_json_array(&call, lists + most, count);
        call_bool(&call, bridge->contiguous);
        add_settings(&call, bridge, bury);
        bridge_ask(bridge, STEP_APPLY, &call, on_applied);
    }
    free(lists);
}

// ---- acknowledging ----

static void on_acknowledged(void *arg, const redisReply *reply, const struct mr_error *err)
{
    struct bridge *bridge = arg;
    // without its group there is nothing to acknowledge
    bool moot = reply && redis_reply_is(reply, "NOGROUP");

    if (!bridge_is_good(bridge, reply, err) && !moot) {
        return;
    }
    bridge->applied = (struct part){0, 0};
    bridge_went_well(bridge);
    if (bridge->part_count == 0) {
        bridge_drop_batch(bridge);
    }
}

void bridge_acknowledge(struct bridge *bridge)
{
    size_t count = bridge->applied.to - bridge->applied.from;
    const char **argv = calloc(count + 3, sizeof(*argv));

    if (!argv) {
        bridge_hold(bridge, "entries cannot be acknowledged", "out of memory", NULL);
        bridge_go_on(bridge);
        return;
    }
    argv[0] = "XACK";
    argv[1] = bridge->config->stream;
    argv[2] = bridge->config->group;
    for (size_t i = 0; i < count; i++) {
        argv[3 + i] = bridge->batch.entries[bridge->applied.from + i].id;
    }
    bridge_say(bridge, STEP_ACK, (int)(count + 3), argv, 0, on_acknowledged);
    free(argv);
}
