// SPDX-License-Identifier: PostgreSQL
//
// The parts of a bridge: what they share. See bridge.h for what it does, bridge.c for the rules.

#ifndef MILLRACE_DAEMON_BRIDGE_PARTS_H
#define MILLRACE_DAEMON_BRIDGE_PARTS_H

#include "base/log.h"
#include "daemon/bridge.h"
#include "daemon/bridge_batch.h"
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
    bool reset; // the connection to Redis is to be made anew
    bool group_missing;
    char consumer[256];
    char place[REDIS_TEXT_MAX + 16];
    // the batch in hand
    struct bridge_batch batch;
    bool contiguous;
    struct part parts[PARTS_MAX]; // what is not applied yet, the next one last
    size_t part_count;
    struct part applied;              // to be acknowledged
    int lost;                         // connections, in a row, while the present part was applied
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

// ---- bridge.c ----

// The next step is chosen with the next turn of the loop.
void bridge_go_on(struct bridge *bridge);

void bridge_tell(const struct bridge *bridge, enum log_level level, const char *event,
                 const char *what, const char *why, const char *hint);
// Something is in the way: said once, tried again after a pause that grows.
void bridge_hold(struct bridge *bridge, const char *what, const char *why, const char *hint);
void bridge_went_well(struct bridge *bridge);

// ---- bridge_talk.c: saying something to Redis, asking the database ----

// Begins a step; its answer comes to `answer`, with the bridge as its argument.
void bridge_say(struct bridge *bridge, enum step step, int argc, const char **argv, int64_t wait_ms,
                redis_answer_fn *answer);
// Ends the step. Whether its answer can be used; otherwise all that is to be done about it is done.
bool bridge_is_good(struct bridge *bridge, const redisReply *reply, const struct mr_error *err);

// The first three parameters of every call: bridge, stream, group.
void bridge_call_source(struct call *call, const struct bridge *bridge);
void bridge_ask(struct bridge *bridge, enum step step, const struct call *call,
                wire_answer_fn *answer);

// ---- bridge_group.c ----

void bridge_find_group(struct bridge *bridge);
void bridge_make_group(struct bridge *bridge);

// ---- bridge_read.c ----

// STEP_OWN or STEP_NEW.
void bridge_read(struct bridge *bridge, enum step step);
void bridge_take_over(struct bridge *bridge);
void bridge_drop_batch(struct bridge *bridge);

// ---- bridge_apply.c ----

void bridge_apply_part(struct bridge *bridge);
void bridge_acknowledge(struct bridge *bridge);

// ---- bridge_watch.c ----

void bridge_look_now(struct bridge *bridge);
void bridge_raise_floor(struct bridge *bridge);

#endif
