// SPDX-License-Identifier: PostgreSQL
//
// How a relay keeps Redis and what it holds together: see relay_parts.h.
//
// 1. Each second it says that it lives, and makes the stream and the group where they are missing.
// 2. A scan goes through the stream. A job that the relay holds and that is not in there, and whose
//    outcome has not come by the end of the scan, is sent again: Redis has lost it.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "daemon/relay_parts.h"

#define CONSUMER_IDLE_MS 3600000

// ---- the look ----

static void warn(struct relay *relay)
{
    int64_t most = relay->config->warn;
    bool behind = most > 0 && relay->pending > most;
    char text[96];

    if (behind != relay->behind) {
        relay->behind = behind;
        snprintf(text, sizeof(text), "%lld entries are with workers and not acknowledged",
                 (long long)relay->pending);
        relay_tell(relay, behind ? LEVEL_WARNING : LEVEL_INFO, "relay.pending", text, NULL,
                   behind ? "Are the workers fast enough, and alive? See XINFO CONSUMERS." : NULL);
    }
}

static void opened(struct relay *relay, bool unknown, bool made)
{
    bool lost = relay->was_open && (unknown || made);

    if (lost) {
        relay_tell(relay, LEVEL_WARNING, "relay.forgotten",
                   "Redis does not know this relay any more: what it has lost is sent again", NULL,
                   "It was emptied, or restarted without its append-only file.");
        snprintf(relay->after, sizeof(relay->after), "0-0");
    }
    if (unknown || made) {
        relay->scan_due = true;
    }
    relay->open = relay->was_open = true;
}

static void on_looked(void *arg, const redisReply *reply, const struct mr_error *err)
{
    struct relay *relay = arg;

    relay->looking = false;
    if (!relay_is_good(relay, reply, err)) {
        relay->open = false;
        return;
    }
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 5) {
        return;
    }
    bool first = !relay->open;
    opened(relay, reply->element[0]->integer, reply->element[1]->integer);
    relay->length = reply->element[2]->integer;
    relay->pending = reply->element[3]->integer;
    warn(relay);
    const redisReply *dead = reply->element[4];
    if (dead->type == REDIS_REPLY_ARRAY && dead->elements > 0) {
        relay_take_over(relay, dead->element[random() % (long)dead->elements]->str);
    }
    if (relay->unsent == 0) {
        relay_went_well(relay);
    }
    relay_hear(relay);
    if (first) {
        worker_wake(relay->worker);
        relay_check_end(relay);
    }
}

void relay_look(struct relay *relay)
{
    AUTO_REDIS_ARGS args;

    relay_args(relay, &args);
    redis_args_text(&args, relay->epoch);
    redis_args_number(&args, RELAY_ALIVE_MS);
    redis_args_number(&args, relay->config->reclaim_ms);
    relay->look_at_ms = clock_ms() + RELAY_TICK_MS;
    relay->looking = redis_pipe_eval(relay->talker, "delivery/look.lua", &args, RELAY_ANSWER_MS,
                                     on_looked, relay, NULL) == 0;
}

// ---- the scan ----

static void scan_on(struct relay *relay);

static void take_seen(struct relay *relay, const redisReply *found)
{
    for (size_t i = 0; i + 2 < found->elements; i += 3) {
        int64_t id = 0;
        str_parse_int(found->element[i + 1]->str, 1, INT64_MAX, &id);
        struct parcel *parcel = relay_find(relay, id);
        if (parcel && str_equal(parcel->held->job->lease, found->element[i + 2]->str)) {
            parcel->scan = relay->scan;
            if (parcel->status == PARCEL_SENT && !parcel->entry[0]) {
                snprintf(parcel->entry, sizeof(parcel->entry), "%s", found->element[i]->str);
            }
        }
    }
}

static void on_scanned(void *arg, const redisReply *reply, const struct mr_error *err)
{
    struct relay *relay = arg;

    relay->scanning = false;
    if (!relay_is_good(relay, reply, err) || reply->type != REDIS_REPLY_ARRAY ||
        reply->elements != 3) {
        relay->scan_due = true; // from the beginning
        return;
    }
    take_seen(relay, reply->element[2]);
    if (reply->element[0]->str[0]) {
        snprintf(relay->scan_from, sizeof(relay->scan_from), "%s", reply->element[0]->str);
        scan_on(relay);
        return;
    }
    snprintf(relay->scan_until, sizeof(relay->scan_until), "%s", reply->element[1]->str);
    relay_scan_heard(relay);
}

static void scan_on(struct relay *relay)
{
    AUTO_REDIS_ARGS args;

    relay_args(relay, &args);
    redis_args_text(&args, relay->epoch);
    redis_args_text(&args, relay->scan_from);
    redis_args_number(&args, RELAY_CHUNK);
    relay->scanning = redis_pipe_eval(relay->talker, "delivery/scan.lua", &args, RELAY_ANSWER_MS,
                                      on_scanned, relay, NULL) == 0;
    relay->scan_due = !relay->scanning;
}

void relay_scan(struct relay *relay)
{
    relay->scan++;
    relay->scan_at_ms = clock_ms() + RELAY_SCAN_MS;
    relay->scan_until[0] = '\0';
    snprintf(relay->scan_from, sizeof(relay->scan_from), "-");
    scan_on(relay);
}

void relay_scan_heard(struct relay *relay)
{
    int64_t missing = 0;

    if (!relay->scan_until[0] || delivery_compare(relay->after, relay->scan_until) < 0) {
        return;
    }
    relay->scan_until[0] = '\0';
    for (struct parcel *parcel = relay->parcels; parcel; parcel = parcel->next) {
        if (parcel->status == PARCEL_SENT && parcel->scan < relay->scan) {
            relay_send_again(parcel);
            missing++;
        }
    }
    if (missing > 0) {
        const struct log_field fields[] = {
            LOG_TEXT_FIELD("relay", relay->config->name),
            LOG_TEXT_FIELD("queue", relay->options.queue),
            LOG_NUMBER_FIELD("jobs", missing),
        };
        log_put(LEVEL_WARNING, "relay.resent", fields, COUNT_OF(fields),
                "jobs are not in Redis any more and are sent again");
        relay_send(relay);
    }
}

// ---- entries of workers that are silent ----

static void on_reclaimed(void *arg, const redisReply *reply, const struct mr_error *err)
{
    struct relay *relay = arg;

    relay->reclaiming = false;
    if (!relay_is_good(relay, reply, err) || reply->type != REDIS_REPLY_ARRAY ||
        reply->elements != 2) {
        return;
    }
    snprintf(relay->reclaim_from, sizeof(relay->reclaim_from), "%s", reply->element[0]->str);
    if (!str_equal(relay->reclaim_from, "0-0")) {
        relay->reclaim_at_ms = 0;
    }
    if (reply->element[1]->integer > 0) {
        const struct log_field fields[] = {
            LOG_TEXT_FIELD("relay", relay->config->name),
            LOG_TEXT_FIELD("queue", relay->options.queue),
            LOG_NUMBER_FIELD("jobs", reply->element[1]->integer),
        };
        log_put(LEVEL_WARNING, "relay.reclaimed", fields, COUNT_OF(fields),
                "took jobs from workers that were silent for too long");
    }
}

void relay_reclaim(struct relay *relay)
{
    AUTO_REDIS_ARGS args;

    relay_args(relay, &args);
    redis_args_number(&args, relay->config->reclaim_ms);
    redis_args_text(&args, relay->reclaim_from);
    redis_args_number(&args, RELAY_CHUNK);
    relay->reclaim_at_ms = clock_ms() + relay->config->reclaim_ms / 4;
    relay->reclaiming = redis_pipe_eval(relay->talker, "delivery/reclaim.lua", &args,
                                        RELAY_ANSWER_MS, on_reclaimed, relay, NULL) == 0;
}

void relay_sweep(struct relay *relay)
{
    AUTO_REDIS_ARGS args;

    relay_args(relay, &args);
    redis_args_number(&args, CONSUMER_IDLE_MS);
    relay->sweep_at_ms = clock_ms() + RELAY_SWEEP_MS;
    redis_pipe_eval(relay->talker, "delivery/sweep.lua", &args, RELAY_ANSWER_MS, NULL, NULL, NULL);
}
