// SPDX-License-Identifier: PostgreSQL
//
// The worker's claiming, waiting and ending: see worker.h.

#include "client/worker.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "client/batch.h"
#include "client/worker_parts.h"

// After the grace period outcomes have this long to be written.
#define LAST_WRITES_MS 5000
// How long free slots may wait for more of them.
#define GATHER_MS 10
// A lease that the server reports as shorter is still beaten no faster than for this.
#define LEASE_MIN_MS 3

void worker_tell(struct worker *worker, enum worker_event event, const struct held_job *held,
                 const struct mr_error *err)
{
    if (worker->ops.event) {
        worker->ops.event(worker->arg, event, held, err);
    }
}

// NOLINTNEXTLINE(readability-non-const-parameter): the builtin writes it
void worker_count(int64_t *counter, int64_t by)
{
    __atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}

int64_t worker_pause(int64_t *pause_ms)
{
    int64_t now_ms = *pause_ms ? *pause_ms : WORKER_PAUSE_FIRST_MS;

    *pause_ms = now_ms * 2 < WORKER_PAUSE_MAX_MS ? now_ms * 2 : WORKER_PAUSE_MAX_MS;
    return now_ms;
}

void worker_fail(struct worker *worker, const struct mr_error *err)
{
    if (worker->err.code == 0) {
        worker->err = *err;
        worker_tell(worker, WORKER_FAILED, NULL, err);
    }
    worker_stop(worker);
}

// ---- waiting for a wake-up ----

void worker_notified(struct worker *worker)
{
    worker->claim_at_ms = clock_ms() + worker->options.batch_wait_ms;
}

void worker_look(struct worker *worker)
{
    worker->claim_at_ms = 0;
}

// Nothing is to be done: when to look again.
static void wait_for_jobs(struct worker *worker)
{
    worker->claim_at_ms = worker->transport->ops->wait(worker->transport, clock_ms());
}

// A limit of the queue left nothing. Whoever ends a job claims again at once, so this is for what
// others leave: it looks at longer and longer intervals, or when the rate allows it again.
static void wait_for_limit(struct worker *worker, int64_t wait_ms)
{
    if (wait_ms == 0) {
        wait_ms = worker->held_back_ms ? worker->held_back_ms : worker->options.poll_ms;
        worker->held_back_ms = wait_ms * 2;
    }
    worker->held_back = true;
    worker->claim_at_ms = clock_ms() + (wait_ms < WORKER_IDLE_MS ? wait_ms : WORKER_IDLE_MS);
}

// ---- claiming ----

// Jobs that came too late to be started.
static void give_back(struct worker *worker, struct lease *lease)
{
    for (int i = 0; i < lease->count; i++) {
        AUTO_OUTCOME outcome;
        outcome_init(&outcome);
        outcome_release(&outcome);
        worker_settle(worker, &lease->helds[i], &outcome);
    }
}

static void start_jobs(struct worker *worker, struct lease *lease)
{
    struct held_job **helds = malloc((size_t)lease->count * sizeof(*helds));
    int count = 0;

    lease->next = worker->leases;
    if (worker->leases) {
        worker->leases->prev = lease;
    }
    worker->leases = lease;
    worker_count(&worker->counts.running, lease->count);
    if (worker->stopping || !helds) {
        give_back(worker, lease);
        free(helds);
        return;
    }
    for (int i = 0; i < lease->count; i++) {
        const struct mr_error *flaw = batch_flaw(lease->batch, (size_t)i);
        if (flaw) {
            worker_settle_flaw(worker, &lease->helds[i], flaw, false);
        } else if (!batch_is_away(lease->batch, (size_t)i)) {
            helds[count++] = &lease->helds[i];
        }
    }
    if (count > 0) {
        worker->ops.start(worker->arg, helds, count);
    }
    if (batch_away(lease->batch) > 0) {
        worker_fetch(worker, lease);
    }
    free(helds);
}

void worker_take(struct worker *worker, mr_batch *batch, int64_t lease_ms,
                 struct delivery *delivery)
{
    struct lease *lease =
        lease_new(batch, lease_ms > LEASE_MIN_MS ? lease_ms : LEASE_MIN_MS, clock_ms(), delivery);

    if (!lease) { // its jobs come back when it expires
        worker->claim_at_ms = clock_ms() + worker_pause(&worker->claim_pause_ms);
        return;
    }
    worker_count(&worker->counts.claims, 1);
    worker_count(&worker->counts.claimed, lease->count);
    start_jobs(worker, lease);
}

void worker_claim_failed(struct worker *worker, const struct mr_error *err)
{
    worker->claim_at_ms = clock_ms() + worker_pause(&worker->claim_pause_ms);
    switch (mr_code_class(err->code)) {
    case MR_CLASS_TRANSIENT:
    case MR_CLASS_CONFLICT:
    case MR_CLASS_NONE:
        if (err->code != MR_ECONNECT) {
            worker_tell(worker, WORKER_REFUSED, NULL, err);
        }
        return;
    case MR_CLASS_REJECTED:
    case MR_CLASS_CONFIG:
    case MR_CLASS_INTERNAL:
        // a standby: the primary may be at another address of the dsn by now
        if (err->code == MR_EREADONLY) {
            worker_tell(worker, WORKER_REFUSED, NULL, err);
            worker->transport->ops->reset(worker->transport);
        } else if (err->code == MR_EDATABASE || err->code == MR_ENOMEM) {
            worker_tell(worker, WORKER_REFUSED, NULL, err);
        } else {
            worker_fail(worker, err);
        }
        return;
    }
}

static int pop_asked(struct worker *worker)
{
    int asked = worker->asked[0];

    worker->claiming--;
    memmove(worker->asked, worker->asked + 1, sizeof(worker->asked) - sizeof(worker->asked[0]));
    return asked;
}

void worker_claimed(struct worker *worker, const struct claim_answer *answer,
                    const struct mr_error *err)
{
    int asked = pop_asked(worker);

    if (err) {
        worker->flowing = false;
        worker_claim_failed(worker, err);
        return;
    }
    worker->claim_pause_ms = 0;
    worker->flowing = answer->count == asked;
    worker->limited = answer->limited;
    worker->held_back = false;
    if (answer->count == 0 && answer->held_back) {
        wait_for_limit(worker, answer->wait_ms);
        return;
    }
    worker->held_back_ms = 0;
    if (answer->count == 0) {
        if (worker->options.until_empty && !worker->leases && !worker->claiming) {
            worker_stop(worker);
        } else {
            wait_for_jobs(worker);
        }
        return;
    }
    // a claim that was not full may wait for more to come together
    worker->claim_at_ms = answer->count < worker->options.batch && worker->options.batch_wait_ms > 0
                              ? clock_ms() + worker->options.batch_wait_ms
                              : 0;
}

static void send_claim(struct worker *worker, int max_jobs)
{
    if (worker->transport->ops->claim(worker->transport, max_jobs)) {
        worker->asked[worker->claiming++] = max_jobs;
        worker->asked_at_ms = clock_ms();
    }
}

// Outcomes that cannot be written are kept: then no more jobs are taken.
static bool is_stuck(const struct worker *worker)
{
    for (const struct lease *lease = worker->leases; lease; lease = lease->next) {
        if (lease->write_pause_ms > 0 && (lease->ready.count > 0 || lease->unclear.count > 0)) {
            return true;
        }
    }
    return false;
}

static bool may_claim(const struct worker *worker)
{
    return !worker->stopping && worker->claiming < (worker->flowing ? WORKER_CLAIMS_MAX : 1) &&
           worker->transport->ops->can_claim(worker->transport) && !is_stuck(worker);
}

// Jobs that are on their way, perhaps, or wait for their payload.
static int asked_for(const struct worker *worker)
{
    int asked = worker->fetching;

    for (int i = 0; i < worker->claiming; i++) {
        asked += worker->asked[i];
    }
    return asked;
}

// Where jobs are short, their slots become free one after the other: a claim for each would be
// dear, so it waits a moment until half of what one claim can bring is free; all of it, where the
// handler has another batch to work on meanwhile.
static bool is_worth(struct worker *worker, int room, int64_t now_ms)
{
    int64_t running = worker->counts.running - worker->fetching + asked_for(worker);
    int64_t all = room + running;
    int64_t whole = all < worker->options.batch ? all : worker->options.batch;

    if (running == 0 || worker->limited || room >= (all >= 2 * whole ? whole : (whole + 1) / 2)) {
        return true;
    }
    if (worker->room_since_ms == 0) {
        worker->room_since_ms = now_ms;
    }
    return now_ms - worker->room_since_ms >= GATHER_MS;
}

static void claim(struct worker *worker, int64_t now_ms)
{
    if (!may_claim(worker)) {
        return;
    }
    int room = worker->ops.room(worker->arg) - asked_for(worker);
    if (worker->limited && worker->options.slots > 0) {
        int64_t free_slots =
            worker->options.slots - worker->counts.running - (asked_for(worker) - worker->fetching);
        room = free_slots < room ? (int)free_slots : room;
    }
    int batch = worker->options.batch;
    worker->full = room <= 0;
    if (!worker->full && now_ms >= worker->claim_at_ms && is_worth(worker, room, now_ms)) {
        worker->room_since_ms = 0;
        send_claim(worker, room < batch ? room : batch);
    }
}

static bool is_connected(const struct worker *worker)
{
    return worker->transport->ops->connected(worker->transport);
}

// When it has been silent for so long that it says something.
static int64_t ping_at(const struct worker *worker)
{
    return worker->transport->ops->answered_at(worker->transport) + worker->options.health_ms / 3;
}

static bool is_quiet(const struct worker *worker)
{
    return worker->transport->ops->pending(worker->transport) == 0 && !worker->stopping;
}

// A worker whose handler is full says nothing for long; it is to be known that it lives.
static void ping(struct worker *worker, int64_t now_ms)
{
    if (is_quiet(worker) && now_ms >= ping_at(worker)) {
        worker->transport->ops->ping(worker->transport);
    }
}

int worker_on_the_way(const struct worker *worker)
{
    return clock_ms() - worker->asked_at_ms < WORKER_ANSWER_MS ? asked_for(worker) : 0;
}

// ---- the whole ----

void worker_is_connected(struct worker *worker)
{
    if (worker->claim_pause_ms == 0) {
        worker->claim_at_ms = 0;
    }
    // answered before any claim is: no outcome is written without knowing it
    worker->policy_asked_ms = 0;
    worker_ask_policy(worker, clock_ms());
    worker_tell(worker, WORKER_CONNECTED, NULL, NULL);
}

void worker_is_lost(struct worker *worker, const struct mr_error *err)
{
    worker->cannot_report = false; // the next may be another server
    worker_count(&worker->counts.reconnects, 1);
    worker_tell(worker, WORKER_DISCONNECTED, NULL, err);
}

void worker_is_refused(struct worker *worker, const struct mr_error *err)
{
    worker_tell(worker, WORKER_UNREACHABLE, NULL, err);
}

static int64_t earlier(int64_t a_ms, int64_t b_ms)
{
    return a_ms == 0 || (b_ms != 0 && b_ms < a_ms) ? b_ms : a_ms;
}

// The grace period and the time for the last writes are over.
static bool is_late(const struct worker *worker)
{
    return worker->let_go && clock_ms() >= worker->stop_at_ms + LAST_WRITES_MS;
}

static void set_timer(struct worker *worker)
{
    int64_t at_ms = 0;

    if (is_connected(worker)) {
        at_ms = worker_write_at(worker);
        if (is_quiet(worker)) {
            at_ms = earlier(at_ms, ping_at(worker));
        }
        if (may_claim(worker) && !worker->full) {
            int64_t gathered_ms = worker->room_since_ms ? worker->room_since_ms + GATHER_MS : 0;
            at_ms = earlier(at_ms,
                            worker->claim_at_ms > gathered_ms ? worker->claim_at_ms : gathered_ms);
        }
    }
    if (worker->stopping && !is_late(worker)) {
        at_ms = earlier(at_ms, worker->stop_at_ms + (worker->let_go ? LAST_WRITES_MS : 0));
    }
    worker->transport->ops->set_timer(worker->transport, at_ms);
}

// Sends what is due. True when something was sent.
static bool work(struct worker *worker)
{
    int64_t now_ms = clock_ms();
    int pending = worker->transport->ops->pending(worker->transport);

    worker_blobs_collect(worker);
    bool idle = !worker->leases;
    worker_sweep(worker);
    if (worker->options.until_empty && !idle && !worker->leases) {
        worker->claim_at_ms = 0; // that may have been the last
    }
    if (worker->stopping && !worker->let_go && now_ms >= worker->stop_at_ms) {
        worker->let_go = true;
        for (struct lease *lease = worker->leases; lease; lease = lease->next) {
            worker_release(worker, lease);
        }
    }
    if (is_connected(worker)) {
        if (worker_write(worker, now_ms) && worker->held_back) {
            worker->claim_at_ms = 0; // what has ended has left room
        }
        claim(worker, now_ms);
        ping(worker, now_ms);
    }
    set_timer(worker);
    return worker->transport->ops->pending(worker->transport) > pending;
}

void worker_advance(struct worker *worker)
{
    if (worker->advancing) {
        return;
    }
    worker->advancing = true;
    worker->woken = false;
    do {
        worker->transport->ops->advance(worker->transport);
    } while (work(worker));
    worker->advancing = false;
}

int worker_fd(const struct worker *worker)
{
    return worker->transport->ops->fd(worker->transport);
}

void worker_wake(struct worker *worker)
{
    worker->transport->ops->wake(worker->transport);
}

void worker_stop(struct worker *worker)
{
    if (!worker->stopping) {
        worker->stopping = true;
        worker->stop_at_ms = clock_ms() + worker->options.grace_ms;
        worker_wake(worker);
    }
}

static bool has_unwritten(const struct worker *worker)
{
    for (const struct lease *lease = worker->leases; lease; lease = lease->next) {
        if (lease->writing || lease->shipping || lease->ready.count || lease->unclear.count) {
            return true;
        }
        for (int i = 0; i < lease->count; i++) {
            if (!lease->helds[i].settled && !lease->helds[i].dropped) {
                return true;
            }
        }
    }
    return false;
}

bool worker_done(const struct worker *worker)
{
    if (!worker->stopping) {
        return false;
    }
    if (is_late(worker)) {
        return true;
    }
    return !worker->claiming && !has_unwritten(worker);
}

int worker_result(const struct worker *worker, struct mr_error *err)
{
    if (worker->err.code && err) {
        *err = worker->err;
    }
    return worker->err.code;
}

bool worker_healthy(const struct worker *worker)
{
    return worker->err.code == 0 && !worker->stopping && is_connected(worker) &&
           clock_ms() - worker->transport->ops->answered_at(worker->transport) <
               worker->options.health_ms;
}

void worker_counts(const struct worker *worker, mr_worker_counts *ret)
{
    const mr_worker_counts *counts = &worker->counts;

    ret->claims = __atomic_load_n(&counts->claims, __ATOMIC_RELAXED);
    ret->claimed = __atomic_load_n(&counts->claimed, __ATOMIC_RELAXED);
    ret->completed = __atomic_load_n(&counts->completed, __ATOMIC_RELAXED);
    ret->failed = __atomic_load_n(&counts->failed, __ATOMIC_RELAXED);
    ret->requeued = __atomic_load_n(&counts->requeued, __ATOMIC_RELAXED);
    ret->released = __atomic_load_n(&counts->released, __ATOMIC_RELAXED);
    ret->lost = __atomic_load_n(&counts->lost, __ATOMIC_RELAXED);
    ret->reconnects = __atomic_load_n(&counts->reconnects, __ATOMIC_RELAXED);
    ret->running = __atomic_load_n(&counts->running, __ATOMIC_RELAXED);
}

static int check_options(const struct worker_options *options, struct mr_error *err)
{
    static const int batch_max = 10000;

    if (options->batch < 1 || options->batch > batch_max) {
        mr_error_set(err, MR_EUSAGE, "batch must be from 1 to %d, not %d", batch_max,
                     options->batch);
        mr_error_hint(err, "The default is 100.");
        return MR_EUSAGE;
    }
    if (str_empty(options->queue) || str_empty(options->name) || options->poll_ms < 1 ||
        options->grace_ms < 0 || options->health_ms < 1) {
        mr_error_set(err, MR_EUSAGE, "a worker needs a queue, a name and positive times");
        mr_error_hint(err, "Give a queue, and intervals of at least a millisecond.");
        return MR_EUSAGE;
    }
    return 0;
}

// False: copied.
static bool copy_blobs(struct worker *worker, const struct depot_options *from)
{
    const char *const texts[WORKER_BLOBS_TEXTS] = {
        [WORKER_BLOBS_ADDRESS] = from->address,
        [WORKER_BLOBS_ACCESS] = from->credentials.access_key,
        [WORKER_BLOBS_SECRET] = from->credentials.secret_key,
    };

    for (int i = 0; i < WORKER_BLOBS_TEXTS; i++) {
        if (texts[i] && !(worker->blobs[i] = strdup(texts[i]))) {
            return true;
        }
    }
    return false;
}

int worker_new(const struct worker_options *options, const struct worker_ops *ops, void *arg,
               struct worker **ret, struct mr_error *err)
{
    struct worker *worker = NULL;
    int code = check_options(options, err);

    if (code) {
        return code;
    }
    worker = calloc(1, sizeof(*worker));
    if (!worker) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    pthread_mutex_init(&worker->reports_lock, NULL);
    if (!(worker->queue = strdup(options->queue)) || !(worker->name = strdup(options->name))) {
        worker_free(worker);
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    if (copy_blobs(worker, &options->blobs)) {
        worker_free(worker);
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    worker->options = *options;
    worker->ops = *ops;
    worker->arg = arg;
    code = (options->redis ? transport_redis_new : transport_pg_new)(worker, options,
                                                                     &worker->transport, err);
    if (code) {
        worker_free(worker);
        return code;
    }
    *ret = worker;
    return 0;
}

void worker_free(struct worker *worker)
{
    if (!worker) {
        return;
    }
    worker_blobs_done(worker);
    if (worker->transport) {
        worker->transport->ops->free(worker->transport);
    }
    for (struct lease *lease = worker->leases, *next; lease; lease = next) {
        next = lease->next;
        lease_free(lease);
    }
    pthread_mutex_destroy(&worker->reports_lock);
    parcel_done(&worker->parcel);
    free(worker->queue);
    free(worker->name);
    free(worker);
}
