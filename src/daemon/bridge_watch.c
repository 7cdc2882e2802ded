// SPDX-License-Identifier: PostgreSQL
//
// How far a bridge is behind, and what need not be remembered any more.

#include "base/clock.h"
#include "daemon/bridge_error.h"
#include "daemon/bridge_parts.h"

static void on_floor(void *arg, PGresult *result, const struct mr_error *err)
{
    struct bridge *bridge = arg;

    (void)result;
    bridge->step = STEP_NONE;
    bridge_go_on(bridge);
    if (err && bridge_fault_of(err) != FAULT_LOST && !bridge->ending) {
        bridge_tell(bridge, LEVEL_WARNING, "bridge.floor", "what is applied cannot be swept",
                    err->message, err->hint);
    }
}

void bridge_raise_floor(struct bridge *bridge)
{
    char floor[BRIDGE_ID_SIZE];
    AUTO_CALL call;

    call_init(&call, CALL_BRIDGE_FLOOR);
    bridge->floor_at_ms = clock_ms() + FLOOR_MS;
    if (!bridge_look_floor(&bridge->seen, floor)) {
        bridge_go_on(bridge);
        return;
    }
    bridge_call_source(&call, bridge);
    call_text(&call, floor);
    bridge_ask(bridge, STEP_FLOOR, &call, on_floor);
}

static void look_on(struct bridge *bridge);

static void on_looked(void *arg, const redisReply *reply, const struct mr_error *err)
{
    struct bridge *bridge = arg;

    if (err) {
        bridge->step = STEP_NONE;
        bridge_go_on(bridge);
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
        bridge_say(bridge, STEP_LOOK, argc, argv, 0, on_looked);
        return;
    }
    bridge->seen = bridge->look;
    bridge->has_look = true;
    bridge->step = STEP_NONE;
    bridge->look_at_ms = clock_ms() + LOOK_MS;
    bridge_go_on(bridge);
}

void bridge_look_now(struct bridge *bridge)
{
    bridge_look_init(&bridge->look);
    bridge->look_step = 0;
    look_on(bridge);
}
