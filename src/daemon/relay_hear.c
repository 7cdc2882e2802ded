// SPDX-License-Identifier: PostgreSQL
//
// What workers say became of a relay's entries: see relay_parts.h.
//
// Outcomes stay in Redis until the database has them: a relay that is killed leaves them to another
// one, or to itself after a start, as long as the leases last.

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "daemon/relay_parts.h"

#define READ_COUNT "1000"
#define BLOCK_TEXT "1000"
#define BLOCK_MS   1000

// ---- its own ----

static void note_outcome(struct relay *relay, const struct lease *lease, const char *number)
{
    for (struct consignment *at = relay->consignments; at; at = at->next) {
        if (at->lease == lease && !at->first_outcome[0]) {
            snprintf(at->first_outcome, sizeof(at->first_outcome), "%s", number);
        }
    }
}

static void report(struct relay *relay, struct held_job *held, const char *members)
{
    AUTO_BUF object;

    buf_init(&object, 16 * WORKER_NOTE_MAX);
    buf_printf(&object, "{%s}", members);
    json_t *root = json_loadb(buf_peek(&object), object.len, 0, NULL);
    double percent = json_number_value(json_object_get(root, "percent"));
    worker_report(relay->worker, held, percent, json_string_value(json_object_get(root, "note")));
    json_decref(root);
}

static void count_outcome(struct relay *relay, const struct outcome *outcome)
{
    if (outcome->kind == OUTCOME_LOST) {
        relay->figures.lost++;
    } else {
        relay->figures.finished++;
    }
}

static void take_outcome(struct relay *relay, const struct delivery_outcome *told)
{
    struct parcel *parcel = relay_find(relay, told->id);
    AUTO_OUTCOME outcome;

    outcome_init(&outcome);
    if (!parcel || !str_equal(parcel->held->job->lease, told->lease)) {
        relay->figures.late++;
    } else if (str_equal(told->word, DELIVERY_PROGRESS)) {
        report(relay, parcel->held, told->members);
    } else {
        delivery_read_outcome(told->word, told->members, &outcome);
        note_outcome(relay, parcel->held->lease, told->number);
        count_outcome(relay, &outcome);
        relay_settle(parcel, &outcome);
    }
}

// [[key, entries]], or nothing after the time to wait.
static const redisReply *entries_of(const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 1 ||
        reply->element[0]->type != REDIS_REPLY_ARRAY || reply->element[0]->elements != 2 ||
        reply->element[0]->element[1]->type != REDIS_REPLY_ARRAY) {
        return NULL;
    }
    return reply->element[0]->element[1];
}

static void on_heard(void *arg, const redisReply *reply, const struct mr_error *err)
{
    struct relay *relay = arg;
    struct delivery_outcome told;

    relay->reading = false;
    if (relay->ending || !relay_is_good(relay, reply, err)) {
        return; // the next look reads again
    }
    const redisReply *entries = entries_of(reply);
    for (size_t i = 0; entries && i < entries->elements; i++) {
        if (delivery_read_report(entries->element[i], &told)) {
            snprintf(relay->after, sizeof(relay->after), "%s", told.number);
            take_outcome(relay, &told);
        }
    }
    relay_scan_heard(relay);
    relay_hear(relay);
    relay_check_end(relay);
}

void relay_hear(struct relay *relay)
{
    const char *const argv[] = {"XREAD",    "COUNT",   READ_COUNT,          "BLOCK",
                                BLOCK_TEXT, "STREAMS", relay->outcomes_key, relay->after};

    if (!relay->reading && relay->was_open && !relay->ending) {
        relay->reading = redis_pipe_send(relay->reader, COUNT_OF(argv), argv, NULL,
                                         RELAY_ANSWER_MS + BLOCK_MS, on_heard, relay, NULL) == 0;
    }
}

// Behind the first outcome that the database may not have.
static void trim_to(const struct relay *relay, char *ret)
{
    unsigned long long ms = 0, no = 0;

    ret[0] = '\0';
    for (const struct consignment *at = relay->consignments; at; at = at->next) {
        if (at->first_outcome[0] && (!ret[0] || delivery_compare(at->first_outcome, ret) < 0)) {
            memcpy(ret, at->first_outcome, DELIVERY_ENTRY_SIZE);
        }
    }
    if (!ret[0] && sscanf(relay->after, "%llu-%llu", &ms, &no) == 2) {
        snprintf(ret, DELIVERY_ENTRY_SIZE, "%llu-%llu", ms, no + 1);
    }
}

void relay_trim(struct relay *relay)
{
    char first[DELIVERY_ENTRY_SIZE];

    trim_to(relay, first);
    const char *const argv[] = {"XTRIM", relay->outcomes_key, "MINID", first};
    redis_pipe_send(relay->talker, COUNT_OF(argv), argv, NULL, RELAY_ANSWER_MS, NULL, NULL, NULL);
}

// ---- those of a relay that is no more ----

struct estate {
    struct relay *relay;
    char epoch[DELIVERY_EPOCH_SIZE];
    int waiting;             // for the database
    bool unreachable;        // it was: once more later
    struct redis_args given; // the outcomes that it has, for forget.lua
};

static void estate_end(struct estate *estate)
{
    estate->relay->estate = NULL;
    relay_estate_free(estate);
}

void relay_estate_free(struct estate *estate)
{
    if (estate) {
        redis_args_done(&estate->given);
        free(estate);
    }
}

static void estate_answered(struct estate *estate)
{
    if (--estate->waiting > 0) {
        return;
    }
    if (!estate->unreachable && !estate->relay->ending) {
        redis_pipe_eval(estate->relay->talker, "delivery/forget.lua", &estate->given,
                        RELAY_ANSWER_MS, NULL, NULL, NULL);
    }
    estate_end(estate);
}

// A lease that has ended meanwhile refuses it, and its job runs again: nothing else can be done.
static void on_inherited(void *arg, PGresult *result, const struct mr_error *err)
{
    struct estate *estate = arg;

    (void)result;
    if (err && err->code == MR_ECONNECT) {
        estate->unreachable = true;
    } else if (err) {
        estate->relay->figures.late++;
    } else {
        estate->relay->figures.inherited++;
    }
    estate_answered(estate);
}

static void inherit(struct estate *estate, const struct delivery_outcome *told)
{
    AUTO_OUTCOME outcome;
    AUTO_BUF text;
    AUTO_CALL call;

    outcome_init(&outcome);
    buf_init(&text, OUTCOME_ENTRY_MAX);
    call_init(&call, CALL_FINISH);
    redis_args_copy(&estate->given, told->number);
    delivery_read_outcome(told->word, told->members, &outcome);
    delivery_wrap(&outcome);
    if (str_equal(told->word, DELIVERY_PROGRESS) || outcome.kind == OUTCOME_ELSEWHERE) {
        return;
    }
    buf_puts(&text, "[");
    outcome_print(&outcome, told->id, &text);
    buf_puts(&text, "]");
    call_text(&call, told->lease);
    call_text(&call, buf_peek(&text));
    if (wire_send(link_wire(estate->relay->link), &call, on_inherited, estate, NULL) == 0) {
        estate->waiting++;
    } else {
        estate->unreachable = true;
    }
}

static void on_estate(void *arg, const redisReply *reply, const struct mr_error *err)
{
    struct estate *estate = arg;
    struct delivery_outcome told;

    if (err || reply->type != REDIS_REPLY_ARRAY || estate->relay->ending) {
        estate_end(estate);
        return;
    }
    estate->waiting = 1;
    for (size_t i = 0; i < reply->elements; i++) {
        if (delivery_read_report(reply->element[i], &told)) {
            inherit(estate, &told);
        }
    }
    estate_answered(estate);
}

void relay_take_over(struct relay *relay, const char *epoch)
{
    struct estate *estate = relay->estate ? NULL : calloc(1, sizeof(*estate));
    char part[DELIVERY_EPOCH_SIZE + 16], key[DELIVERY_KEY_SIZE];

    if (!estate || strlen(epoch) >= DELIVERY_EPOCH_SIZE) {
        free(estate);
        return;
    }
    estate->relay = relay;
    snprintf(estate->epoch, sizeof(estate->epoch), "%s", epoch);
    relay_args(relay, &estate->given);
    redis_args_copy(&estate->given, epoch);
    snprintf(part, sizeof(part), "outcomes:%s", epoch);
    delivery_key(relay->options.queue, part, key);
    const char *const argv[] = {"XRANGE", key, "-", "+", "COUNT", READ_COUNT};
    relay->estate = estate;
    if (redis_pipe_send(relay->talker, COUNT_OF(argv), argv, NULL, RELAY_ANSWER_MS, on_estate,
                        estate, NULL)) {
        estate_end(estate);
    }
}
