// SPDX-License-Identifier: PostgreSQL
//
// A bridge: see bridge.h.
//
// One thing at a time: read, apply, acknowledge; now and then look how far behind it is, and take
// over what a dead consumer left. Every answer only notes what it says; the next step is chosen in
// on_turn(), a turn of the loop of its own, so that nothing is closed inside of a callback.
//
// 1. An entry is acknowledged only after the transaction that applied it has committed.
// 2. What was applied is written in that transaction (bridge_apply), and asked there first: an
//    entry that comes again has no effect, whoever reads it and however often.
// 3. After each connect the consumer's own pending entries come first: those of a process that
//    was killed, and those whose acknowledgement was lost.
// 4. A batch that fails because of an entry is halved until that entry is alone; then it becomes a
//    dead letter. A batch that fails because of the times is held.

#include "daemon/bridge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "daemon/bridge_batch.h"
#include "daemon/bridge_error.h"
#include "daemon/bridge_look.h"
#include "daemon/link.h"
#include "store/redis_wire.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define ANSWER_MS    30000 // Redis, beside the time that a command waits by itself
#define PAUSE_MIN_MS 200
#define PAUSE_MAX_MS 10000
#define LOOK_MS      10000
#define FLOOR_MS     60000
// A read begins with few entries and asks for twice as many while they are small.
#define FIRST_COUNT 16
// The server was lost so often while the same entries were applied that they are to blame.
#define LOST_LIMIT 3
// Ranges that wait to be applied: none is empty, none has an entry of another.
#define PARTS_MAX CONFIG_BATCH_MAX

enum step {
    STEP_NONE, // nothing is under way
    STEP_OWN,  // reading the consumer's own pending entries
    STEP_TAKE, // taking over others'
    STEP_NEW,  // reading new ones
    STEP_APPLY,
    STEP_ACK,
    STEP_LOOK,
    STEP_FLOOR,
    STEP_FIND,  // the group is missing: asking Redis about the stream,
    STEP_BEGIN, // the database where to begin,
    STEP_MAKE,  // making the group
};

// Entries from..to-1 of the batch.
struct part {
    size_t from, to;
};

struct bridge {
    const struct config_bridge *config;
    struct bridge_hooks hooks;
    struct redis_wire *redis; // NULL: closed
    struct link *link;        // NULL: closed
    uv_timer_t turn, grace;
    int handles; // that are not closed yet
    enum step step;
    bool wired; // connected to Redis
    bool was_ready;
    bool stopping, ending;
    bool reset;           // the connection to Redis is to be made anew
    bool group_missing;
    char consumer[256];
    char place[REDIS_TEXT_MAX + 16];
    // the batch in hand
    struct bridge_batch batch;
    bool contiguous;
    struct part parts[PARTS_MAX]; // what is not applied yet, the next one last
    size_t part_count;
    struct part applied; // to be acknowledged
    int lost;            // connections, in a row, while the present part was applied
    char bury[MR_ERROR_MESSAGE_SIZE]; // why the present part, one entry, becomes a dead letter
    bool bury_bare;                   // without its fields: those cannot be stored
    // reading
    bool own_done;
    char own_after[BRIDGE_ID_SIZE];
    char take_after[BRIDGE_ID_SIZE];
    int64_t count; // to ask for
    // making the group
    char begin_after[BRIDGE_ID_SIZE];
    bool was_known;
    // times of clock_ms()
    int64_t look_at_ms, floor_at_ms, take_at_ms;
    int64_t paused_until_ms;
    int64_t pause_ms;
    struct bridge_look look, seen; // under way; complete
    int look_step;
    bool has_look;
    struct http_bridge figures;
    char trouble[MR_ERROR_MESSAGE_SIZE]; // as last told; empty: all is well
};

static void on_turn(uv_timer_t *timer);

static bool is_linked(const struct bridge *bridge)
{
    return wire_connected(link_wire(bridge->link));
}

// The next step is chosen with the next turn of the loop.
static void go_on(struct bridge *bridge)
{
    if (!bridge->ending) {
        uv_timer_start(&bridge->turn, on_turn, 0, 0);
    }
}

// ---- the log ----

static void tell(const struct bridge *bridge, enum log_level level, const char *event,
                 const char *what, const char *why, const char *hint)
{
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("bridge", bridge->config->name),
        LOG_TEXT_FIELD("stream", bridge->config->stream),
        LOG_TEXT_FIELD("hint", hint && hint[0] ? hint : NULL),
    };

    log_put(level, event, fields, COUNT_OF(fields), "%s%s%s", what, why ? ": " : "",
            why ? why : "");
}

// Something is in the way: said once, tried again after a pause that grows.
static void hold(struct bridge *bridge, const char *what, const char *why, const char *hint)
{
    char both[MR_ERROR_MESSAGE_SIZE];

    snprintf(both, sizeof(both), "%s: %s", what, why);
    str_trim_utf8(both);
    if (link_is_news(bridge->trouble, both)) {
        tell(bridge, LEVEL_WARNING, "bridge.held", what, why, hint);
    }
    bridge->figures.holds++;
    bridge->paused_until_ms = clock_ms() + bridge->pause_ms;
    bridge->pause_ms = bridge->pause_ms * 2 < PAUSE_MAX_MS ? bridge->pause_ms * 2 : PAUSE_MAX_MS;
}

static void went_well(struct bridge *bridge)
{
    bridge->pause_ms = PAUSE_MIN_MS;
    if (bridge->trouble[0]) {
        bridge->trouble[0] = '\0';
        tell(bridge, LEVEL_INFO, "bridge.recovered", "goes on", NULL, NULL);
    }
}

// ---- Redis ----

static void log_connected(const struct bridge *bridge)
{
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("bridge", bridge->config->name),
        LOG_TEXT_FIELD("redis", bridge->place),
        LOG_TEXT_FIELD("stream", bridge->config->stream),
        LOG_TEXT_FIELD("group", bridge->config->group),
        LOG_TEXT_FIELD("consumer", bridge->consumer),
    };

    log_put(LEVEL_INFO, "bridge.connected", fields, COUNT_OF(fields), "connected to Redis");
}

static void check_ready(struct bridge *bridge)
{
    if (!bridge->was_ready && bridge->wired && is_linked(bridge)) {
        bridge->was_ready = true;
        bridge->hooks.connected(bridge->hooks.arg);
    }
}

static void on_redis(void *arg, enum redis_event event, const struct mr_error *err)
{
    struct bridge *bridge = arg;

    bridge->wired = event == REDIS_CONNECTED_EVENT;
    switch (event) {
    case REDIS_CONNECTED_EVENT:
        bridge->own_done = false; // an acknowledgement may have been lost
        snprintf(bridge->own_after, sizeof(bridge->own_after), "0-0");
        log_connected(bridge);
        check_ready(bridge);
        break;
    case REDIS_LOST_EVENT:
        bridge->figures.reconnects++;
        link_is_news(bridge->trouble, err->message);
        tell(bridge, LEVEL_WARNING, "bridge.disconnected", "connecting again", err->message, NULL);
        break;
    case REDIS_REFUSED_EVENT:
        if (link_is_news(bridge->trouble, err->message)) {
            tell(bridge, LEVEL_WARNING, "bridge.unreachable", "still trying", err->message, NULL);
        }
        break;
    }
    go_on(bridge);
}

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
    hold(bridge, "Redis refuses", reply->str, hint);
}

// Whether an answer can be used; otherwise all that is to be done about it is done.
static bool is_good(struct bridge *bridge, const redisReply *reply, const struct mr_error *err)
{
    bridge->step = STEP_NONE;
    go_on(bridge);
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

static void say(struct bridge *bridge, enum step step, int argc, const char **argv, int64_t wait_ms,
                redis_answer_fn *answer)
{
    struct mr_error err;

    bridge->step = step;
    if (redis_wire_send(bridge->redis, argc, argv, NULL, ANSWER_MS + wait_ms, answer, bridge,
                        &err)) {
        bridge->step = STEP_NONE;
        hold(bridge, "cannot ask Redis", err.message, err.hint);
        go_on(bridge);
    }
}

// ---- the group ----

static void on_made(void *arg, const redisReply *reply, const struct mr_error *err)
{
    struct bridge *bridge = arg;
    bool busy = reply && redis_reply_is(reply, "BUSYGROUP"); // another one was faster

    if (!busy && !is_good(bridge, reply, err)) {
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
    went_well(bridge);
    go_on(bridge);
}

static void make_group(struct bridge *bridge)
{
    const char *argv[] = {"XGROUP",
                          "CREATE",
                          bridge->config->stream,
                          bridge->config->group,
                          bridge->begin_after,
                          "MKSTREAM"};

    say(bridge, STEP_MAKE, COUNT_OF(argv), argv, 0, on_made);
}

// ---- the database ----

static void call_source(struct call *call, const struct bridge *bridge)
{
    call_text(call, bridge->config->name);
    call_text(call, bridge->config->stream);
    call_text(call, bridge->config->group);
}

static void ask(struct bridge *bridge, enum step step, const struct call *call,
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

static void on_begin(void *arg, PGresult *result, const struct mr_error *err)
{
    struct bridge *bridge = arg;

    bridge->step = STEP_NONE;
    go_on(bridge);
    if (err) {
        if (bridge_fault_of(err) != FAULT_LOST) {
            hold(bridge, "the group cannot be made", err->message, err->hint);
        }
        return;
    }
    bridge->was_known = !PQgetisnull(result, 0, 0);
    snprintf(bridge->begin_after, sizeof(bridge->begin_after), "%s",
             bridge->was_known          ? PQgetvalue(result, 0, 0)
             : bridge->config->from_new ? "$"
                                        : "0-0");
    if (str_equal(PQgetvalue(result, 0, 1), "t")) {
        tell(bridge, LEVEL_WARNING, "bridge.restarted",
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
    if (!none && !is_good(bridge, reply, err)) {
        return;
    }
    const redisReply *id = none ? NULL : bridge_member(reply, "last-generated-id");
    if (id && id->type == REDIS_REPLY_STRING && id->len < sizeof(last)) {
        snprintf(last, sizeof(last), "%s", id->str);
    }
    call_source(&call, bridge);
    call_text(&call, last);
    ask(bridge, STEP_BEGIN, &call, on_begin);
}

static void find_stream(struct bridge *bridge)
{
    const char *argv[] = {"XINFO", "STREAM", bridge->config->stream};

    say(bridge, STEP_FIND, COUNT_OF(argv), argv, 0, on_found);
}

// ---- the batch ----

static void drop_batch(struct bridge *bridge)
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
        hold(bridge, "cannot use what Redis answers", err.message, err.hint);
        drop_batch(bridge);
        return false;
    }
    bridge->contiguous = contiguous;
    if (bridge->batch.count > 0) {
        divide_batch(bridge);
        adapt_count(bridge);
    }
    return true;
}

// ---- reading ----

static void on_read(void *arg, const redisReply *reply, const struct mr_error *err)
{
    struct bridge *bridge = arg;
    const redisReply *entries = NULL;
    struct mr_error wrong;
    bool own = bridge->step == STEP_OWN;

    if (!is_good(bridge, reply, err)) {
        return;
    }
    if (bridge_read_entries(reply, &entries, &wrong)) {
        hold(bridge, "cannot use what Redis answers", wrong.message, wrong.hint);
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
        went_well(bridge);
    }
}

static void read_stream(struct bridge *bridge, enum step step)
{
    const struct config_bridge *config = bridge->config;
    char count[24], block[24];
    bool own = step == STEP_OWN;
    const char *argv[] = {"XREADGROUP", "GROUP",  config->group, bridge->consumer, "COUNT",
                          count,        "BLOCK",  block,         "STREAMS",        config->stream,
                          own ? bridge->own_after : ">"};

    snprintf(count, sizeof(count), "%lld", (long long)bridge->count);
    snprintf(block, sizeof(block), "%lld", (long long)config->block_ms);
    say(bridge, step, COUNT_OF(argv), argv, own ? 0 : config->block_ms, on_read);
}

static void on_taken(void *arg, const redisReply *reply, const struct mr_error *err)
{
    struct bridge *bridge = arg;
    const redisReply *entries = NULL;
    struct mr_error wrong;

    if (!is_good(bridge, reply, err)) {
        return;
    }
    if (bridge_claimed_entries(reply, &entries, bridge->take_after, &wrong)) {
        hold(bridge, "cannot use what Redis answers", wrong.message, wrong.hint);
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

static void take_over(struct bridge *bridge)
{
    char idle[24], count[24];
    const char *argv[] = {"XAUTOCLAIM", bridge->config->stream, bridge->config->group,
                          bridge->consumer, idle, bridge->take_after, "COUNT", count};

    snprintf(idle, sizeof(idle), "%lld", (long long)bridge->config->reclaim_ms);
    snprintf(count, sizeof(count), "%lld", (long long)bridge->count);
    say(bridge, STEP_TAKE, COUNT_OF(argv), argv, 0, on_taken);
}

// ---- applying ----

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
        hold(bridge, "a dead letter cannot be written", err->message, err->hint);
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
    case FAULT_TIMES: hold(bridge, "entries cannot be applied", err->message, err->hint); return;
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
    go_on(bridge);
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
    went_well(bridge);
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

static void apply_part(struct bridge *bridge)
{
    const char *bury = why_bury(bridge);
    size_t most = present_part(bridge)->to - present_part(bridge)->from;
    const char **lists = calloc(2 * most, sizeof(*lists));
    AUTO_CALL call;

    call_init(&call, CALL_BRIDGE_APPLY);
    if (!lists) {
        hold(bridge, "entries cannot be applied", "out of memory", NULL);
        go_on(bridge);
        return;
    }
    size_t count = part_lists(bridge, lists, lists + most);
    if (count == 0) {
        part_applied(bridge);
        go_on(bridge);
    } else {
        call_source(&call, bridge);
        call_texts(&call, lists, count);
        call_json_array(&call, lists + most, count);
        call_bool(&call, bridge->contiguous);
        add_settings(&call, bridge, bury);
        ask(bridge, STEP_APPLY, &call, on_applied);
    }
    free(lists);
}

// ---- acknowledging ----

static void on_acknowledged(void *arg, const redisReply *reply, const struct mr_error *err)
{
    struct bridge *bridge = arg;
    // without its group there is nothing to acknowledge
    bool moot = reply && redis_reply_is(reply, "NOGROUP");

    if (!is_good(bridge, reply, err) && !moot) {
        return;
    }
    bridge->applied = (struct part){0, 0};
    went_well(bridge);
    if (bridge->part_count == 0) {
        drop_batch(bridge);
    }
}

static void acknowledge(struct bridge *bridge)
{
    size_t count = bridge->applied.to - bridge->applied.from;
    const char **argv = calloc(count + 3, sizeof(*argv));

    if (!argv) {
        hold(bridge, "entries cannot be acknowledged", "out of memory", NULL);
        go_on(bridge);
        return;
    }
    argv[0] = "XACK";
    argv[1] = bridge->config->stream;
    argv[2] = bridge->config->group;
    for (size_t i = 0; i < count; i++) {
        argv[3 + i] = bridge->batch.entries[bridge->applied.from + i].id;
    }
    say(bridge, STEP_ACK, (int)(count + 3), argv, 0, on_acknowledged);
    free(argv);
}

// ---- looking ----

static void on_floor(void *arg, PGresult *result, const struct mr_error *err)
{
    struct bridge *bridge = arg;

    (void)result;
    bridge->step = STEP_NONE;
    go_on(bridge);
    if (err && bridge_fault_of(err) != FAULT_LOST && !bridge->ending) {
        tell(bridge, LEVEL_WARNING, "bridge.floor", "what is applied cannot be swept", err->message,
             err->hint);
    }
}

static void raise_floor(struct bridge *bridge)
{
    char floor[BRIDGE_ID_SIZE];
    AUTO_CALL call;

    call_init(&call, CALL_BRIDGE_FLOOR);
    bridge->floor_at_ms = clock_ms() + FLOOR_MS;
    if (!bridge_look_floor(&bridge->seen, floor)) {
        go_on(bridge);
        return;
    }
    call_source(&call, bridge);
    call_text(&call, floor);
    ask(bridge, STEP_FLOOR, &call, on_floor);
}

static void look_on(struct bridge *bridge);

static void on_looked(void *arg, const redisReply *reply, const struct mr_error *err)
{
    struct bridge *bridge = arg;

    if (err) {
        bridge->step = STEP_NONE;
        go_on(bridge);
        return;
    }
    bridge_look_take(&bridge->look, bridge->look_step, bridge->config->group, reply);
    bridge->look_step++;
    look_on(bridge);
}

static void look_on(struct bridge *bridge)
{
    const char *argv[BRIDGE_LOOK_ARGS];
    char scratch[BRIDGE_LOOK_SCRATCH];
    int argc = bridge_look_command(&bridge->look, bridge->look_step, bridge->config->stream,
                                   bridge->config->group, argv, scratch);

    if (argc > 0) {
        say(bridge, STEP_LOOK, argc, argv, 0, on_looked);
        return;
    }
    bridge->seen = bridge->look;
    bridge->has_look = true;
    bridge->step = STEP_NONE;
    bridge->look_at_ms = clock_ms() + LOOK_MS;
    go_on(bridge);
}

static void look(struct bridge *bridge)
{
    bridge_look_init(&bridge->look);
    bridge->look_step = 0;
    look_on(bridge);
}

// ---- the end ----

static void on_closed(struct bridge *bridge)
{
    if (--bridge->handles == 0) {
        bridge->hooks.ended(bridge->hooks.arg);
    }
}

static void on_part_closed(void *arg)
{
    on_closed(arg);
}

static void on_handle_closed(uv_handle_t *handle)
{
    on_closed(handle->data);
}

static void log_end(const struct bridge *bridge)
{
    const struct log_field fields[] = {
        LOG_TEXT_FIELD("bridge", bridge->config->name),
        LOG_NUMBER_FIELD("applied", bridge->figures.applied),
        LOG_NUMBER_FIELD("repeated", bridge->figures.repeated),
        LOG_NUMBER_FIELD("dead", bridge->figures.dead),
        LOG_NUMBER_FIELD("reclaimed", bridge->figures.reclaimed),
    };

    log_put(LEVEL_INFO, "bridge.ended", fields, COUNT_OF(fields), "ended");
}

static void end(struct bridge *bridge)
{
    bridge->ending = true;
    log_end(bridge);
    bridge->handles = 4;
    uv_close((uv_handle_t *)&bridge->turn, on_handle_closed);
    uv_close((uv_handle_t *)&bridge->grace, on_handle_closed);
    redis_wire_close(bridge->redis, on_part_closed, bridge);
    link_close(bridge->link, on_part_closed, bridge);
    drop_batch(bridge);
}

// ---- the next step ----

// Behind what is in hand, in this order; the first one that is due.
static void choose(struct bridge *bridge)
{
    int64_t now_ms = clock_ms();

    if (bridge->group_missing && bridge->begin_after[0]) {
        make_group(bridge);
    } else if (bridge->group_missing) {
        find_stream(bridge);
    } else if (!bridge->own_done) {
        read_stream(bridge, STEP_OWN);
    } else if (now_ms >= bridge->look_at_ms) {
        look(bridge);
    } else if (now_ms >= bridge->floor_at_ms && bridge->has_look) {
        raise_floor(bridge);
    } else if (now_ms >= bridge->take_at_ms) {
        take_over(bridge);
    } else {
        read_stream(bridge, STEP_NEW);
    }
}

// A batch in hand comes first: what is applied is acknowledged, then the next part is applied. The
// database is asked whether it is there or not: its wire waits.
static void next_step(struct bridge *bridge)
{
    bool applied = bridge->applied.to > bridge->applied.from;

    if (applied && bridge->wired) {
        acknowledge(bridge);
    } else if (!applied && bridge->part_count > 0) {
        apply_part(bridge);
    } else if (!applied && bridge->wired) {
        choose(bridge);
    }
}

static bool is_done(const struct bridge *bridge)
{
    bool applied = bridge->applied.to > bridge->applied.from;

    return bridge->stopping &&
           (bridge->batch.count == 0 || !(applied ? bridge->wired : is_linked(bridge)));
}

static void on_turn(uv_timer_t *timer)
{
    struct bridge *bridge = timer->data;
    int64_t wait_ms = bridge->paused_until_ms - clock_ms();

    if (bridge->ending) {
        return;
    }
    if (bridge->reset) {
        bridge->reset = false;
        redis_wire_reset(bridge->redis, "the server is not the one that is meant");
        return;
    }
    if (bridge->step != STEP_NONE) {
        return;
    }
    if (is_done(bridge)) {
        end(bridge);
    } else if (wait_ms > 0) {
        uv_timer_start(&bridge->turn, on_turn, (uint64_t)wait_ms, 0);
    } else {
        next_step(bridge);
    }
}

static void on_grace(uv_timer_t *timer)
{
    end(timer->data);
}

void bridge_stop(struct bridge *bridge)
{
    if (bridge->stopping) {
        return;
    }
    bridge->stopping = true;
    uv_timer_start(&bridge->grace, on_grace, BRIDGE_GRACE_MS, 0);
    // A step under way ends by itself: a read within `block`. Others wait for a server.
    bool waits = (bridge->step == STEP_APPLY || bridge->step == STEP_FLOOR ||
                  bridge->step == STEP_BEGIN)
                     ? !is_linked(bridge)
                     : bridge->step != STEP_NONE && !bridge->wired;
    if (waits) {
        uv_timer_start(&bridge->grace, on_grace, 0, 0);
    }
    go_on(bridge);
}

// ---- life ----

static void on_linked(void *arg)
{
    struct bridge *bridge = arg;

    check_ready(bridge);
    go_on(bridge);
}

static void choose_consumer(struct bridge *bridge)
{
    if (bridge->config->consumer) {
        snprintf(bridge->consumer, sizeof(bridge->consumer), "%s", bridge->config->consumer);
    } else if (gethostname(bridge->consumer, sizeof(bridge->consumer) - 1)) {
        snprintf(bridge->consumer, sizeof(bridge->consumer), "localhost");
    }
}

static int open_parts(struct bridge *bridge, const char *dsn, bool pooler, uv_loop_t *loop,
                      struct mr_error *err)
{
    const struct config_bridge *config = bridge->config;
    const struct redis_hooks redis_hooks = {.event = on_redis, .arg = bridge};
    const struct link_hooks link_hooks = {.connected = on_linked, .arg = bridge};
    const struct link_options options = {
        .part = "bridge",
        .dsn = config->dsn ? config->dsn : dsn,
        .pooler = config->pooler || pooler,
    };
    struct redis_url url;
    char name[REDIS_TEXT_MAX];
    int code = redis_url_parse(config->redis, &url, err);

    if (code) {
        return code;
    }
    redis_url_place(&url, bridge->place, sizeof(bridge->place));
    snprintf(name, sizeof(name), "millrace-bridge-%s", config->name);
    code = link_new(&options, &link_hooks, loop, &bridge->link, err);
    return code ? code : redis_wire_new(&url, name, &redis_hooks, loop, &bridge->redis, err);
}

static void on_nothing(void *arg)
{
    (void)arg;
}

static void set_up(struct bridge *bridge)
{
    bridge->count = bridge->config->batch < FIRST_COUNT ? bridge->config->batch : FIRST_COUNT;
    bridge->pause_ms = PAUSE_MIN_MS;
    bridge->floor_at_ms = clock_ms() + FLOOR_MS;
    bridge->figures.name = bridge->config->name;
    snprintf(bridge->take_after, sizeof(bridge->take_after), "0-0");
    choose_consumer(bridge);
}

int bridge_new(const struct config_bridge *config, const char *dsn, bool pooler,
               const struct bridge_hooks *hooks, uv_loop_t *loop, struct bridge **ret,
               struct mr_error *err)
{
    struct bridge *bridge = calloc(1, sizeof(*bridge));

    if (!bridge) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    bridge->config = config;
    bridge->hooks = *hooks;
    set_up(bridge);
    int code = open_parts(bridge, dsn, pooler, loop, err);
    if (code) {
        if (bridge->link) {
            link_close(bridge->link, on_nothing, NULL);
        }
        free(bridge);
        return code;
    }
    uv_timer_init(loop, &bridge->turn);
    uv_timer_init(loop, &bridge->grace);
    bridge->turn.data = bridge->grace.data = bridge;
    *ret = bridge;
    return 0;
}

void bridge_free(struct bridge *bridge)
{
    free(bridge);
}

bool bridge_ready(const struct bridge *bridge)
{
    return bridge->was_ready;
}

const char *bridge_trouble(const struct bridge *bridge)
{
    return bridge->trouble[0] ? bridge->trouble : NULL;
}

void bridge_figures(const struct bridge *bridge, struct http_bridge *ret)
{
    *ret = bridge->figures;
    ret->connected = bridge->wired;
    ret->known = bridge->has_look;
    ret->lag = bridge->seen.lag;
    ret->pending = bridge->seen.pending;
    ret->length = bridge->seen.length;
    ret->lag_seconds = bridge_look_age(&bridge->seen);
}
