// SPDX-License-Identifier: PostgreSQL
//
// The jobs of a relay on their way into Redis, and back: see relay_parts.h.

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "daemon/relay_parts.h"

// XADDs without an answer at once: what a full Redis can refuse in one go.
#define SENDING_MAX  2000
#define CANCELLED_MS "86400000"

// ---- parcels ----

static struct parcel **bucket_of(struct relay *relay, int64_t id)
{
    return &relay->buckets[(uint64_t)id % RELAY_BUCKETS];
}

struct parcel *relay_find(struct relay *relay, int64_t id)
{
    struct parcel *parcel = *bucket_of(relay, id);

    while (parcel && parcel->id != id) {
        parcel = parcel->next_in_bucket;
    }
    return parcel;
}

// The one function that moves a parcel between its states, so that the counts hold.
static void set_status(struct parcel *parcel, enum parcel_status status)
{
    struct relay *relay = parcel->relay;

    relay->unsent -= parcel->status == PARCEL_UNSENT;
    relay->sending -= parcel->status == PARCEL_SENDING;
    parcel->status = status;
    relay->unsent += status == PARCEL_UNSENT;
    relay->sending += status == PARCEL_SENDING;
}

static struct parcel *parcel_new(struct relay *relay, struct held_job *held)
{
    struct parcel *parcel = calloc(1, sizeof(*parcel));
    struct parcel **bucket = bucket_of(relay, held->job->id);

    if (!parcel) {
        return NULL;
    }
    parcel->relay = relay;
    parcel->held = held;
    parcel->id = held->job->id;
    parcel->bytes = delivery_job_size(held->job);
    parcel->next_in_bucket = *bucket;
    *bucket = parcel;
    parcel->next = relay->parcels;
    if (parcel->next) {
        parcel->next->prev = parcel;
    }
    relay->parcels = parcel;
    relay->held++;
    relay->unsent++;
    relay->bytes += (int64_t)parcel->bytes;
    held->user = parcel;
    return parcel;
}

static void parcel_unlink(struct parcel *parcel)
{
    struct relay *relay = parcel->relay;
    struct parcel **at = bucket_of(relay, parcel->id);

    while (*at != parcel) {
        at = &(*at)->next_in_bucket;
    }
    *at = parcel->next_in_bucket;
    *(parcel->prev ? &parcel->prev->next : &relay->parcels) = parcel->next;
    if (parcel->next) {
        parcel->next->prev = parcel->prev;
    }
    relay->held--;
    relay->bytes -= (int64_t)parcel->bytes;
}

// One whose XADD is under way is freed by its answer.
static void parcel_end(struct parcel *parcel)
{
    parcel_unlink(parcel);
    parcel->held = NULL;
    if (parcel->status != PARCEL_SENDING) {
        set_status(parcel, PARCEL_SENT);
        free(parcel);
    }
}

void relay_settle(struct parcel *parcel, struct outcome *outcome)
{
    struct held_job *held = parcel->held;
    struct worker *worker = parcel->relay->worker;

    parcel_end(parcel);
    worker_settle(worker, held, outcome);
}

static void settle_released(struct parcel *parcel)
{
    AUTO_OUTCOME outcome;

    outcome_init(&outcome);
    outcome_release(&outcome);
    relay_settle(parcel, &outcome);
}

static void settle_cancelled(struct parcel *parcel)
{
    AUTO_OUTCOME outcome;

    outcome_init(&outcome);
    outcome_cancel(&outcome);
    relay_settle(parcel, &outcome);
}

// ---- what the worker asks for ----

int relay_room(void *arg)
{
    const struct relay *relay = arg;
    int64_t room = relay->config->in_flight - relay->held;

    if (!relay->open || !relay->wanted || relay->stopping || relay->unsent > 0 ||
        clock_ms() < relay->paused_until_ms || relay->bytes >= relay->config->max_bytes) {
        return 0;
    }
    return room > 0 ? (int)room : 0;
}

static void note_lease(struct relay *relay, const struct lease *lease)
{
    struct consignment *consignment = calloc(1, sizeof(*consignment));

    if (consignment) { // without it outcomes are trimmed a little early: they are in memory
        consignment->lease = lease;
        consignment->next = relay->consignments;
        relay->consignments = consignment;
    }
}

void relay_start(void *arg, struct held_job *const *jobs, int count)
{
    struct relay *relay = arg;

    note_lease(relay, jobs[0]->lease);
    for (int i = 0; i < count; i++) {
        if (!parcel_new(relay, jobs[i])) {
            AUTO_OUTCOME outcome;
            outcome_init(&outcome);
            outcome_release(&outcome);
            worker_settle(relay->worker, jobs[i], &outcome);
        }
    }
    relay_send(relay);
}

void relay_over(void *arg, const struct lease *lease)
{
    struct relay *relay = arg;

    for (struct consignment **at = &relay->consignments; *at; at = &(*at)->next) {
        if ((*at)->lease == lease) {
            struct consignment *gone = *at;
            *at = gone->next;
            free(gone);
            return;
        }
    }
}

// ---- sending ----

static void drop_entry(struct relay *relay, const char *entry)
{
    AUTO_REDIS_ARGS args;

    relay_args(relay, &args);
    redis_args_text(&args, entry);
    redis_pipe_eval(relay->talker, "delivery/drop.lua", &args, RELAY_ANSWER_MS, NULL, NULL, NULL);
}

// Full: what nobody has begun makes room for what workers have to say.
static void refused(struct relay *relay, struct parcel *parcel, const redisReply *reply)
{
    bool full = str_starts(reply->str, "OOM");

    if (parcel->held) {
        set_status(parcel, PARCEL_UNSENT);
    }
    if (clock_ms() >= relay->paused_until_ms) { // the first of many
        relay_is_good(relay, reply, NULL);
        if (full) {
            relay_withdraw(relay, false);
        }
    }
}

static void on_added(void *arg, const redisReply *reply, const struct mr_error *err)
{
    struct parcel *parcel = arg;
    struct relay *relay = parcel->relay;
    bool gone = !parcel->held;

    if (err) { // whether it is there shows in the scan after the next connection
        set_status(parcel, PARCEL_SENT);
    } else if (reply->type == REDIS_REPLY_ERROR) {
        refused(relay, parcel, reply);
    } else {
        set_status(parcel, PARCEL_SENT);
        if (gone) {
            drop_entry(relay, reply->str);
        } else {
            snprintf(parcel->entry, sizeof(parcel->entry), "%s", reply->str);
            relay->figures.sent++;
        }
    }
    if (gone) {
        set_status(parcel, PARCEL_SENT);
        free(parcel);
    }
}

// False: not now.
static bool send_one(struct parcel *parcel)
{
    struct relay *relay = parcel->relay;
    const char **argv = NULL;
    size_t *sizes = NULL;
    AUTO_REDIS_ARGS args;

    redis_args_init(&args);
    redis_args_text(&args, "XADD");
    redis_args_text(&args, relay->jobs_key);
    redis_args_text(&args, "*");
    delivery_add_job(&args, parcel->held->job, relay->epoch);
    if (redis_args_words(&args, 0, &argv, &sizes, NULL)) {
        return false;
    }
    int code = redis_pipe_send(relay->talker, (int)args.count, argv, sizes, RELAY_ANSWER_MS,
                               on_added, parcel, NULL);
    free(argv);
    free(sizes);
    if (code == 0) {
        parcel->entry[0] = '\0';
        parcel->scan = relay->scan; // one that is under way may have passed its place
        set_status(parcel, PARCEL_SENDING);
    }
    return code == 0;
}

void relay_send(struct relay *relay)
{
    if (!relay->open || clock_ms() < relay->paused_until_ms) {
        return;
    }
    struct parcel *last = relay->unsent > 0 ? relay->parcels : NULL;
    while (last && last->next) { // the oldest first
        last = last->next;
    }
    for (; last && relay->unsent > 0 && relay->sending < SENDING_MAX; last = last->prev) {
        if (last->status == PARCEL_UNSENT && !send_one(last)) {
            return;
        }
    }
}

void relay_send_again(struct parcel *parcel)
{
    parcel->relay->figures.resent++;
    set_status(parcel, PARCEL_UNSENT);
}

// ---- taking back ----

// The lease is void, or the grace period is over.
void relay_drop(void *arg, struct held_job *held)
{
    struct parcel *parcel = held->user;
    AUTO_OUTCOME outcome;

    (void)arg;
    outcome_init(&outcome);
    if (parcel->entry[0]) {
        drop_entry(parcel->relay, parcel->entry);
    }
    relay_settle(parcel, &outcome);
}

struct withdrawal {
    struct relay *relay;
    bool cancelled; // its jobs were
    bool for_good;
    int count;
    int64_t ids[RELAY_CHUNK];
};

static void take_back(const struct withdrawal *withdrawal, struct parcel *parcel)
{
    if (withdrawal->cancelled) {
        settle_cancelled(parcel);
    } else if (withdrawal->for_good) {
        settle_released(parcel);
    } else {
        set_status(parcel, PARCEL_UNSENT);
    }
}

static void on_withdrawn(void *arg, const redisReply *reply, const struct mr_error *err)
{
    struct withdrawal *withdrawal = arg;

    for (int i = 0; !err && reply->type == REDIS_REPLY_ARRAY && i < withdrawal->count &&
                    i < (int)reply->elements;
         i++) {
        struct parcel *parcel = relay_find(withdrawal->relay, withdrawal->ids[i]);
        if (reply->element[i]->integer == 1 && parcel && parcel->status == PARCEL_SENT) {
            take_back(withdrawal, parcel);
        }
    }
    relay_check_end(withdrawal->relay);
    free(withdrawal);
}

static void send_withdrawal(struct withdrawal *withdrawal)
{
    struct relay *relay = withdrawal->relay;
    AUTO_REDIS_ARGS args;

    relay_args(relay, &args);
    for (int i = 0; i < withdrawal->count; i++) {
        redis_args_text(&args, relay_find(relay, withdrawal->ids[i])->entry);
    }
    if (redis_pipe_eval(relay->talker, "delivery/withdraw.lua", &args, RELAY_ANSWER_MS,
                        on_withdrawn, withdrawal, NULL)) {
        free(withdrawal);
    }
}

static struct withdrawal *withdrawal_new(struct relay *relay, bool for_good)
{
    struct withdrawal *withdrawal = calloc(1, sizeof(*withdrawal));

    if (withdrawal) {
        withdrawal->relay = relay;
        withdrawal->for_good = for_good;
    }
    return withdrawal;
}

void relay_withdraw(struct relay *relay, bool all)
{
    int64_t left = all ? relay->held : (relay->held + 1) / 2;
    struct withdrawal *withdrawal = NULL;
    struct parcel *next;

    for (struct parcel *parcel = relay->parcels; parcel && left > 0; parcel = next, left--) {
        next = parcel->next;
        if (parcel->status == PARCEL_UNSENT && all) {
            settle_released(parcel);
            continue;
        }
        if (parcel->status != PARCEL_SENT || !parcel->entry[0] ||
            (!withdrawal && !(withdrawal = withdrawal_new(relay, all)))) {
            continue;
        }
        withdrawal->ids[withdrawal->count++] = parcel->id;
        if (withdrawal->count == RELAY_CHUNK) {
            send_withdrawal(withdrawal);
            withdrawal = NULL;
        }
    }
    if (withdrawal) {
        send_withdrawal(withdrawal);
    }
}

// Whoever runs it hears of it with the next heartbeat; if nobody does, it is taken back.
static void note_cancelled(struct relay *relay, const char *entry)
{
    char key[DELIVERY_KEY_SIZE];

    delivery_key(relay->options.queue, "cancelled", key);
    const char *const add[] = {"SADD", key, entry};
    const char *const expire[] = {"PEXPIRE", key, CANCELLED_MS};
    redis_pipe_send(relay->talker, 3, add, NULL, RELAY_ANSWER_MS, NULL, NULL, NULL);
    redis_pipe_send(relay->talker, 3, expire, NULL, RELAY_ANSWER_MS, NULL, NULL, NULL);
}

void relay_cancel(void *arg, struct held_job *held)
{
    struct relay *relay = arg;
    struct parcel *parcel = held->user;

    if (parcel->status == PARCEL_UNSENT) {
        settle_cancelled(parcel);
        return;
    }
    struct withdrawal *withdrawal = parcel->entry[0] ? withdrawal_new(relay, true) : NULL;
    if (withdrawal) {
        note_cancelled(relay, parcel->entry);
        withdrawal->cancelled = true;
        withdrawal->ids[withdrawal->count++] = parcel->id;
        send_withdrawal(withdrawal);
    }
}
