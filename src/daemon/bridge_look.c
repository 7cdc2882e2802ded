// SPDX-License-Identifier: PostgreSQL
//
// How far behind: see bridge_look.h.
//
// The order of the steps matters: what was delivered is asked before what is pending, so that an
// entry that was delivered and is not pending has been acknowledged.

#include "daemon/bridge_look.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

void bridge_look_init(struct bridge_look *look)
{
    *look = (struct bridge_look){.lag = -1, .excess = look->excess, .pending = -1};
}

// ---- reading values ----

static void take_number(const redisReply *value, int64_t *ret)
{
    if (value && value->type == REDIS_REPLY_INTEGER) {
        *ret = value->integer;
    }
}

static void take_id(const redisReply *value, char ret[BRIDGE_ID_SIZE])
{
    if (value && value->type == REDIS_REPLY_STRING && value->len < BRIDGE_ID_SIZE) {
        snprintf(ret, BRIDGE_ID_SIZE, "%s", value->str);
    }
}

static bool parse_id(const char *id, uint64_t *ret_ms, uint64_t *ret_seq)
{
    return sscanf(id, "%" SCNu64 "-%" SCNu64, ret_ms, ret_seq) == 2;
}

// ---- the steps ----

static void take_stream(struct bridge_look *look, const char *group, const redisReply *reply)
{
    (void)group;
    take_number(bridge_member(reply, "length"), &look->length);
    take_id(bridge_member(reply, "last-generated-id"), look->last);
}

// Redis 7 knows the lag; it does not when entries were deleted, and 6.2 has no such field. Then it
// is none, or the whole stream at most.
static void take_groups(struct bridge_look *look, const char *group, const redisReply *reply)
{
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
        const redisReply *row = reply->element[i];
        const redisReply *name = bridge_member(row, "name");
        if (!name || name->type != REDIS_REPLY_STRING || !str_equal(name->str, group)) {
            continue;
        }
        take_id(bridge_member(row, "last-delivered-id"), look->delivered);
        look->lag = -1;
        take_number(bridge_member(row, "lag"), &look->lag);
        if (look->lag < 0) {
            look->excess = 0;
            look->lag = str_equal(look->delivered, look->last) ? 0 : look->length;
        }
    }
}

// [count, first, last, consumers]
static void take_pending(struct bridge_look *look, const char *group, const redisReply *reply)
{
    (void)group;
    look->first_pending[0] = '\0';
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements >= 2) {
        take_number(reply->element[0], &look->pending);
        take_id(reply->element[1], look->first_pending);
    }
}

static void take_time(struct bridge_look *look, const char *group, const redisReply *reply)
{
    (void)group;
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 && reply->element[0]->str &&
        reply->element[1]->str) {
        look->now_ms = strtoll(reply->element[0]->str, NULL, 10) * 1000 +
                       strtoll(reply->element[1]->str, NULL, 10) / 1000;
    }
}

// Redis counts what a group has read in memory, and an append-only file does not keep that count
// whole: after a restart the lag can be too high for ever. Whenever nothing is left to read, it
// shows by how much.
static void settle_lag(struct bridge_look *look)
{
    if (look->lag < 0) {
        return;
    }
    if (str_equal(look->delivered, look->last) && !look->first_waiting[0]) {
        look->excess = look->lag;
    } else if (look->lag < look->excess) {
        look->excess = 0; // another Redis, or another group of that name
    }
    look->lag -= look->excess;
}

static void take_waiting(struct bridge_look *look, const char *group, const redisReply *reply)
{
    (void)group;
    look->first_waiting[0] = '\0';
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
        reply->element[0]->type == REDIS_REPLY_ARRAY && reply->element[0]->elements > 0) {
        take_id(reply->element[0]->element[0], look->first_waiting);
    }
    settle_lag(look);
}

// Words in capitals stand for what differs.
static const struct {
    const char *words[BRIDGE_LOOK_ARGS + 1];
    void (*take)(struct bridge_look *look, const char *group, const redisReply *reply);
} steps[] = {
    {{"XINFO", "STREAM", "KEY"}, take_stream},
    {{"XINFO", "GROUPS", "KEY"}, take_groups},
    {{"XPENDING", "KEY", "GROUP"}, take_pending},
    {{"TIME"}, take_time},
    {{"XRANGE", "KEY", "AFTER", "+", "COUNT", "1"}, take_waiting},
};

#define STEP_COUNT (int)(sizeof(steps) / sizeof(steps[0]))

int bridge_look_command(const struct bridge_look *look, int step, const char *stream,
                        const char *group, const char *argv[BRIDGE_LOOK_ARGS], char *scratch)
{
    int count = 0;

    if (step >= STEP_COUNT) {
        return 0;
    }
    snprintf(scratch, BRIDGE_LOOK_SCRATCH, "(%s", look->delivered[0] ? look->delivered : "0-0");
    for (const char *const *word = steps[step].words; *word; word++) {
        argv[count++] = str_equal(*word, "KEY")     ? stream
                        : str_equal(*word, "GROUP") ? group
                        : str_equal(*word, "AFTER") ? scratch
                                                    : *word;
    }
    return count;
}

void bridge_look_take(struct bridge_look *look, int step, const char *group,
                      const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ERROR) {
        steps[step].take(look, group, reply);
    }
}

// ---- what it means ----

static bool is_before(const char *a, const char *b)
{
    uint64_t a_ms = 0, a_seq = 0, b_ms = 0, b_seq = 0;

    return parse_id(a, &a_ms, &a_seq) && parse_id(b, &b_ms, &b_seq) &&
           (a_ms < b_ms || (a_ms == b_ms && a_seq < b_seq));
}

double bridge_look_age(const struct bridge_look *look)
{
    const char *oldest = look->first_pending[0] ? look->first_pending : look->first_waiting;
    uint64_t ms = 0, seq = 0;

    if (oldest[0] && look->first_waiting[0] && is_before(look->first_waiting, oldest)) {
        oldest = look->first_waiting;
    }
    if (!oldest[0] || !parse_id(oldest, &ms, &seq) || look->now_ms <= 0 ||
        ms >= (uint64_t)look->now_ms) {
        return 0;
    }
    return (double)((uint64_t)look->now_ms - ms) / 1000.0;
}

bool bridge_look_floor(const struct bridge_look *look, char ret[BRIDGE_ID_SIZE])
{
    uint64_t ms = 0, seq = 0;

    bool known = look->pending == 0 || (look->pending > 0 && look->first_pending[0]);

    if (!known || !look->delivered[0] || !parse_id(look->delivered, &ms, &seq)) {
        return false;
    }
    if (look->first_pending[0] && !is_before(look->delivered, look->first_pending)) {
        snprintf(ret, BRIDGE_ID_SIZE, "%s", look->first_pending);
        return true;
    }
    // the id after the one that was delivered last
    if (seq == UINT64_MAX) {
        return false;
    }
    snprintf(ret, BRIDGE_ID_SIZE, "%" PRIu64 "-%" PRIu64, ms, seq + 1);
    return true;
}
