// SPDX-License-Identifier: PostgreSQL
//
// The parts of a relay: what they share. See relay.h for what it does, relay.c for the rules.

#ifndef MILLRACE_DAEMON_RELAY_PARTS_H
#define MILLRACE_DAEMON_RELAY_PARTS_H

#include "base/log.h"
#include "client/delivery.h"
#include "client/worker.h"
#include "daemon/link.h"
#include "daemon/relay.h"
#include "store/redis_pipe.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define RELAY_ANSWER_MS 30000
#define RELAY_TICK_MS   1000
// For so long after its last word a relay is believed to live.
#define RELAY_ALIVE_MS     10000
#define RELAY_SCAN_MS      30000
#define RELAY_SWEEP_MS     600000
#define RELAY_SETTING_MS   5000
#define RELAY_PAUSE_MIN_MS 200
#define RELAY_PAUSE_MAX_MS 10000

// Entries in one call of a script.
enum { RELAY_CHUNK = 500 };
enum { RELAY_BUCKETS = 4096 };

enum parcel_status {
    PARCEL_UNSENT,
    PARCEL_SENDING, // its XADD has no answer yet
    PARCEL_SENT,    // or its answer was lost: the next scan tells
};

// A job that the relay holds the lease of.
struct parcel {
    struct relay *relay;
    struct held_job *held; // NULL: it is settled, and only its XADD is waited for
    int64_t id;
    enum parcel_status status;
    char entry[DELIVERY_ENTRY_SIZE]; // empty: not known
    size_t bytes;
    int64_t scan; // the number of the last one that saw it, or that had begun when it was sent
    struct parcel *next_in_bucket;
    struct parcel *next, *prev; // all of them
};

// What is known of a lease beside its jobs.
struct consignment {
    const struct lease *lease;
    char first_outcome[DELIVERY_ENTRY_SIZE]; // empty: none yet
    struct consignment *next;
};

struct relay {
    struct relay_options options;
    const struct config_relay *config;
    struct relay_hooks hooks;
    struct worker *worker;
    struct redis_pipe *talker, *reader;
    struct link *link;
    uv_loop_t *loop;
    uv_poll_t worker_poll, talker_poll, reader_poll;
    uv_timer_t tick;
    int handles; // that are not closed yet
    char epoch[DELIVERY_EPOCH_SIZE];
    char jobs_key[DELIVERY_KEY_SIZE], outcomes_key[DELIVERY_KEY_SIZE];
    char worker_name[CONFIG_WORKER_NAME_SIZE];
    bool was_ready, stopping, ending;
    bool linked;   // the worker is connected to the database
    bool open;     // Redis has the stream, the group and the word that this relay lives
    bool wanted;   // the queue's transport is redis
    bool asked;    // the queue's transport was found out
    bool asking;   // is being
    bool looking;  // a look is under way
    bool was_open; // in this life
    // jobs
    struct parcel *buckets[RELAY_BUCKETS];
    struct parcel *parcels;
    int64_t held, unsent, sending, bytes;
    struct consignment *consignments;
    // outcomes
    bool reading;
    char after[DELIVERY_ENTRY_SIZE];
    struct estate *estate; // outcomes of a relay that is gone, which are being written; NULL
    // the scan
    int64_t scan; // its number
    bool scanning, scan_due;
    char scan_from[DELIVERY_ENTRY_SIZE + 1];
    char scan_until[DELIVERY_ENTRY_SIZE]; // outcomes to be heard before it counts; empty: none
    // taking entries from workers
    bool reclaiming;
    char reclaim_from[DELIVERY_ENTRY_SIZE];
    // times of clock_ms()
    int64_t look_at_ms, scan_at_ms, sweep_at_ms, setting_at_ms, reclaim_at_ms;
    int64_t paused_until_ms, pause_ms;
    bool behind; // more is pending than is to be warned of
    int64_t length, pending;
    struct http_relay figures;
    char trouble[MR_ERROR_MESSAGE_SIZE]; // as last told; empty: all is well
};

// ---- relay.c ----

void relay_tell(const struct relay *relay, enum log_level level, const char *event,
                const char *what, const char *why, const char *hint);
// Something is in the way: said once, tried again after a pause that grows.
void relay_hold(struct relay *relay, const char *what, const char *why, const char *hint);
void relay_went_well(struct relay *relay);
// Whether an answer of Redis's can be used; otherwise all that is to be done about it is done.
bool relay_is_good(struct relay *relay, const redisReply *reply, const struct mr_error *err);
// The key of the jobs is the first of every script's.
void relay_args(const struct relay *relay, struct redis_args *args);
void relay_check_end(struct relay *relay);

// ---- relay_send.c ----

struct parcel *relay_find(struct relay *relay, int64_t id);
// Says what became of the job; the parcel is gone afterwards.
void relay_settle(struct parcel *parcel, struct outcome *outcome);
int relay_room(void *arg);
void relay_start(void *arg, struct held_job *const *jobs, int count);
void relay_drop(void *arg, struct held_job *held);
void relay_cancel(void *arg, struct held_job *held);
void relay_over(void *arg, const struct lease *lease);
// Sends what is unsent, as far as that is possible now.
void relay_send(struct relay *relay);
// A parcel that is not in Redis any more goes out again.
void relay_send_again(struct parcel *parcel);
// Takes back what no worker has: all of it, or the younger half, which is sent again later.
void relay_withdraw(struct relay *relay, bool all);

// ---- relay_hear.c ----

// Waits for outcomes, unless it does.
void relay_hear(struct relay *relay);
void relay_trim(struct relay *relay);
// Writes down what the workers of a relay have said that is no more.
void relay_take_over(struct relay *relay, const char *epoch);
void relay_estate_free(struct estate *estate);

// ---- relay_look.c ----

void relay_look(struct relay *relay);
void relay_scan(struct relay *relay);
// The outcomes that were there at the end of the scan may have been heard by now.
void relay_scan_heard(struct relay *relay);
void relay_reclaim(struct relay *relay);
void relay_sweep(struct relay *relay);

#endif
