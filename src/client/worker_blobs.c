// SPDX-License-Identifier: PostgreSQL
//
// The worker's payload parts in a blob store: those of claimed jobs are read before the handler
// sees them, those of outcomes are written before the database is told. Either happens beside the
// worker's thread, which goes on with all other jobs meanwhile: see errand.h.

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/batch.h"
#include "client/parcel_json.h"
#include "client/worker_parts.h"

// ---- the store ----

static void wake(void *arg)
{
    struct worker *worker = arg;

    worker->transport->ops->wake(worker->transport);
}

// Opened when it is first needed; false: there is none. Why not, where that is a mistake, is told
// with the first job that needs it.
static bool has_depot(struct worker *worker)
{
    struct mr_error err;
    const struct depot_options options = {
        .address = worker->blobs[WORKER_BLOBS_ADDRESS],
        .credentials = {.access_key = worker->blobs[WORKER_BLOBS_ACCESS],
                        .secret_key = worker->blobs[WORKER_BLOBS_SECRET]},
    };

    if (!worker->depot_known) {
        worker->depot_known = true;
        if (depot_new(&options, &worker->depot, &err)) {
            worker_tell(worker, WORKER_STORE_DOWN, NULL, &err);
        }
    }
    if (worker->depot && !worker->errands) {
        worker->errands = errands_new(wake, worker);
    }
    return worker->depot && worker->errands;
}

void worker_blobs_collect(struct worker *worker)
{
    if (worker->errands) {
        errands_collect(worker->errands);
    }
}

void worker_blobs_done(struct worker *worker)
{
    if (worker->depot) {
        depot_stop(worker->depot);
    }
    errands_free(worker->errands);
    depot_free(worker->depot);
    for (int i = 0; i < WORKER_BLOBS_TEXTS; i++) {
        free(worker->blobs[i]);
    }
}

// ---- jobs that come ----

// A job that cannot be run as it is. One that is damaged never can be, by anybody; one whose store
// does not answer waits for a while, its attempt not counted.
void worker_settle_flaw(struct worker *worker, struct held_job *held, const struct mr_error *flaw,
                        bool object)
{
    AUTO_OUTCOME outcome;

    outcome_init(&outcome);
    switch (flaw->code) {
    case MR_EDAMAGED:
        worker_tell(worker, WORKER_UNREADABLE, held, flaw);
        outcome_fail(&outcome, flaw->message, 0, true);
        if (object) {
            outcome_damaged(&outcome);
        }
        break;
    case MR_ECONNECT:
    case MR_ECONFIG:
        if (!worker->store_down) {
            worker_tell(worker, WORKER_STORE_DOWN, held, flaw);
        }
        worker->store_down = true;
        outcome_snooze(&outcome,
                       worker->depot ? depot_pause_ms(worker->depot) : DEPOT_NONE_PAUSE_MS);
        break;
    default: outcome_release(&outcome); break;
    }
    worker_settle(worker, held, &outcome);
}

struct fetch {
    struct errand errand; // first
    struct worker *worker;
    struct lease *lease; // lives: its jobs are not settled
};

static void fetch_run(struct errand *errand)
{
    const struct fetch *fetch = (struct fetch *)errand;

    batch_fetch(fetch->lease->batch, fetch->worker->depot);
}

// Nobody waits for it any more, or it came too late to be started.
static bool settle_late(struct worker *worker, struct held_job *held)
{
    AUTO_OUTCOME outcome;

    outcome_init(&outcome);
    if (held->cancelled && !held->dropped) {
        outcome_cancel(&outcome);
    } else if (held->dropped || worker->stopping) {
        outcome_release(&outcome);
    } else {
        return false;
    }
    worker_settle(worker, held, &outcome);
    return true;
}

// Whether a job can be started; otherwise it has been settled.
static bool is_startable(struct worker *worker, struct held_job *held, size_t at)
{
    const mr_batch *batch = held->lease->batch;
    const struct mr_error *flaw = batch_flaw(batch, at);

    if (settle_late(worker, held)) {
        return false;
    }
    if (flaw) {
        worker_settle_flaw(worker, held, flaw, batch_flaw_is_object(batch, at));
        return false;
    }
    worker->store_down = false;
    return true;
}

// Jobs whose objects have come, or not. Without memory they are as they were, and go back.
static void arrived(struct worker *worker, struct lease *lease)
{
    struct held_job **helds = malloc((size_t)lease->count * sizeof(*helds));
    struct mr_error err = {.code = MR_ENOMEM};
    bool opened = helds && batch_open_away(lease->batch, &err) == 0;
    int count = 0;

    for (int i = 0; i < lease->count; i++) {
        struct held_job *held = &lease->helds[i];
        if (!held->fetching) {
            continue;
        }
        held->fetching = false;
        worker->fetching--;
        if (!opened) {
            worker_settle_flaw(worker, held, &err, true);
        } else if (is_startable(worker, held, (size_t)i)) {
            helds[count++] = held;
        }
    }
    if (count > 0) {
        worker->ops.start(worker->arg, helds, count);
    }
    free(helds);
}

static void fetch_done(struct errand *errand)
{
    struct fetch *fetch = (struct fetch *)errand;
    struct worker *worker = fetch->worker;
    struct lease *lease = fetch->lease;

    free(fetch);
    arrived(worker, lease);
}

static void fetch_drop(struct errand *errand)
{
    free(errand);
}

void worker_fetch(struct worker *worker, struct lease *lease)
{
    struct fetch *fetch = has_depot(worker) ? calloc(1, sizeof(*fetch)) : NULL;

    for (int i = 0; i < lease->count; i++) {
        if (batch_is_away(lease->batch, (size_t)i)) {
            lease->helds[i].fetching = true;
            worker->fetching++;
        }
    }
    if (fetch) {
        *fetch = (struct fetch){{NULL, fetch_run, fetch_done, fetch_drop}, worker, lease};
    }
    if (!fetch || !errands_add(worker->errands, &fetch->errand)) {
        free(fetch);
        arrived(worker, lease); // each says what it lacks
    }
}

// ---- outcomes that go ----

struct ship {
    struct errand errand; // first
    struct worker *worker;
    struct lease *lease; // lives: lease->shipping
    int64_t id;
    struct parcel parcel;
    struct outcome outcome; // as the handler told it
    struct buf coded;       // its members with references
    bool failed;
};

static void ship_free(struct ship *ship)
{
    parcel_done(&ship->parcel);
    outcome_done(&ship->outcome);
    buf_done(&ship->coded);
    free(ship);
}

static void ship_run(struct errand *errand)
{
    struct ship *ship = (struct ship *)errand;

    ship->failed = parcel_ship(&ship->parcel, ship->worker->depot, NULL) != 0;
}

// What cannot be an object now is written as it is: nothing is lost, and the row is larger.
static void ship_done(struct errand *errand)
{
    struct ship *ship = (struct ship *)errand;
    struct lease *lease = ship->lease;

    lease->shipping--;
    if (!lease->lost) {
        if (ship->failed) {
            worker_code_inline(ship->worker, &ship->outcome);
        } else {
            outcome_replace(&ship->outcome, ship->coded.data + 1, ship->coded.len - 2);
        }
        worker_add_entry(lease, ship->id, &ship->outcome);
    }
    ship_free(ship);
}

static void ship_drop(struct errand *errand)
{
    ship_free((struct ship *)errand);
}

static struct ship *ship_new(struct worker *worker, struct held_job *held, struct outcome *outcome)
{
    struct ship *ship = calloc(1, sizeof(*ship));

    if (ship) {
        ship->errand = (struct errand){NULL, ship_run, ship_done, ship_drop};
        ship->worker = worker;
        ship->lease = held->lease;
        ship->id = held->job->id;
        ship->parcel.offloads = true;
        outcome_init(&ship->outcome);
        outcome_take(&ship->outcome, outcome);
        buf_init(&ship->coded, OUTCOME_ENTRY_MAX);
    }
    return ship;
}

// Members are those of an object, without its braces.
static bool pack(struct ship *ship)
{
    AUTO_BUF object;

    buf_init(&object, OUTCOME_ENTRY_MAX);
    buf_printf(&object, "{%s}", buf_peek(&ship->outcome.members));
    return object.status == 0 &&
           parcel_json_pack(&ship->parcel, &ship->worker->policy,
                            (struct json_slice){object.data, object.len}, &ship->coded,
                            NULL) == 0 &&
           ship->parcel.object_count > 0;
}

bool worker_ship(struct worker *worker, struct held_job *held, struct outcome *outcome)
{
    const struct policy *policy = &worker->policy;

    if (policy->offload_above == 0 || outcome->members.len <= policy->offload_above ||
        outcome->kind == OUTCOME_COMPLETED || !has_depot(worker)) {
        return false;
    }
    worker_ask_policy(worker, clock_ms());
    struct ship *ship = ship_new(worker, held, outcome);
    if (!ship) {
        return false;
    }
    if (pack(ship) && errands_add(worker->errands, &ship->errand)) {
        ship->lease->shipping++;
        return true;
    }
    outcome_take(outcome, &ship->outcome);
    ship_free(ship);
    return false;
}
