// SPDX-License-Identifier: PostgreSQL
//
// The worker's writing: outcomes and heartbeats. See worker.h, and lease.h for the three lists
// that an outcome passes through.

#include <stdlib.h>

#include "base/clock.h"
#include "client/parcel_json.h"
#include "client/worker_parts.h"

// Outcomes written in one call.
enum { ENTRIES_MAX = 1000 };

// Where outcomes are large, fewer of them go into one call: the server reads all of a call's at
// once, and at most 256 MB. One alone may be larger.
#define ENTRIES_SIZE_MAX ((size_t)16 * 1024 * 1024)

// While other jobs run or are on their way, a lease that has ended waits this long for company: a
// commit waits for the disk, for one lease as long as for ten. Where jobs are plenty it waits
// longer: the next claims stand in line behind that commit.
#define COMPANY_MS         5
#define COMPANY_FLOWING_MS 20

// ---- heartbeats ----

// A job whose payload is still on its way is known to nobody.
static void tell_dropped(struct worker *worker, struct held_job *held)
{
    if (worker->ops.drop && !held->fetching) {
        worker->ops.drop(worker->arg, held);
    }
}

// Void: nobody waits for its jobs any more.
static void lease_lose(struct worker *worker, struct lease *lease, const struct mr_error *err)
{
    lease->lost = true;
    worker_count(&worker->counts.lost, 1);
    worker_tell(worker, WORKER_LEASE_LOST, &lease->helds[0], err);
    entry_list_done(&lease->ready);
    entry_list_done(&lease->unclear);
    for (int i = 0; i < lease->count; i++) {
        struct held_job *held = &lease->helds[i];
        if (!held->settled && !held->dropped) {
            held->dropped = true;
            lease->dropped++;
            tell_dropped(worker, held);
        }
    }
}

// Outcomes that cannot be written for the moment need the lease as jobs do.
static bool needs_beats(const struct lease *lease)
{
    return (lease->open > lease->dropped || lease->ready.count > 0 || lease->unclear.count > 0 ||
            lease->shipping > 0) &&
           !lease->lost && !lease->beating;
}

void worker_job_cancelled(struct worker *worker, struct held_job *held)
{
    if (worker->ops.cancel && !held->settled && !held->dropped && !held->cancelled) {
        held->cancelled = true;
        if (!held->fetching) {
            worker->ops.cancel(worker->arg, held);
        }
    }
}

void worker_job_lost(struct worker *worker, struct held_job *held, const struct mr_error *err)
{
    worker_count(&worker->counts.lost, 1);
    worker_tell(worker, WORKER_LEASE_LOST, held, err);
    if (!held->settled && !held->dropped) {
        held->dropped = true;
        held->lease->dropped++;
        tell_dropped(worker, held);
    }
}

void worker_beaten(struct worker *worker, struct lease *lease, const struct mr_error *err)
{
    lease->beating = false;
    lease->beat_at_ms = clock_ms() + lease->length_ms / (err ? 10 : 3);
    if (err && err->code == MR_ELEASE && needs_beats(lease)) {
        lease_lose(worker, lease, err);
    }
}

static void send_beat(struct worker *worker, struct lease *lease)
{
    lease->beating = worker->transport->ops->beat(worker->transport, lease);
}

// ---- what a write was about, and its answer ----

static void count_entries(struct worker *worker, const struct entry_list *list)
{
    for (const struct entry *entry = list->first; entry; entry = entry->next) {
        switch (entry->outcome.kind) {
        case OUTCOME_COMPLETED: worker_count(&worker->counts.completed, 1); break;
        case OUTCOME_FAILED: worker_count(&worker->counts.failed, 1); break;
        case OUTCOME_SNOOZED:
        case OUTCOME_REQUEUED: worker_count(&worker->counts.requeued, 1); break;
        case OUTCOME_RELEASED: worker_count(&worker->counts.released, 1); break;
        case OUTCOME_LOST: worker_count(&worker->counts.lost, 1); break;
        case OUTCOME_ELSEWHERE: break;
        }
    }
}

// What was sent goes back to the front of a list, so that outcomes that were in one request stay
// together.
static void take_back(struct lease *lease, struct entry_list *list)
{
    entry_list_append(&lease->sent, list);
    entry_list_append(list, &lease->sent);
}

static const struct held_job *held_of(const struct lease *lease, int64_t id)
{
    for (int i = 0; i < lease->count; i++) {
        if (lease->helds[i].job->id == id) {
            return &lease->helds[i];
        }
    }
    return NULL;
}

// The server will never accept this outcome: the job fails with the refusal as its error. If even
// that is refused the job is left to the end of its lease.
static void refused(struct worker *worker, struct lease *lease, const struct mr_error *err)
{
    struct entry *entry = entry_list_pop(&lease->sent);

    worker_tell(worker, WORKER_REFUSED, held_of(lease, entry->id), err);
    if (entry->replaced) {
        entry_free(entry);
        return;
    }
    AUTO_BUF text;
    buf_init(&text, sizeof(err->message) + 64);
    buf_printf(&text, "the outcome was refused: %s", err->message);
    outcome_fail(&entry->outcome, buf_peek(&text), 0, false);
    entry->replaced = true;
    entry_list_add(&lease->ready, entry);
    lease->alone = true;
}

static void write_failed(const struct write *write, struct lease *lease, const struct mr_error *err)
{
    struct worker *worker = write->worker;
    struct entry_list *home = write->unclear ? &lease->unclear : &lease->ready;

    if (lease->lost) { // a heartbeat has told it while this was under way
        entry_list_done(&lease->sent);
    } else if (err->code == MR_ECONNECT) {
        take_back(lease, &lease->unclear);
    } else if (err->code == MR_ELEASE || err->code == MR_EUNKNOWN) {
        if (write->count > 1) { // which of them it is shows when each goes alone
            take_back(lease, home);
            lease->alone = true;
        } else if (write->unclear) { // written before, or lost: the next heartbeat tells
            entry_list_done(&lease->sent);
            lease->one_by_one -= lease->one_by_one > 0;
            lease->beat_at_ms = 0;
            worker_count(&worker->counts.lost, 1);
            worker_tell(worker, WORKER_LEASE_LOST, &lease->helds[0], err);
        } else { // void, or one of the jobs was finished elsewhere: a heartbeat tells, then each
            lease->one_by_one = lease->sent.count;
            take_back(lease, &lease->unclear);
            lease->beat_at_ms = 0;
        }
    } else if (mr_code_class(err->code) == MR_CLASS_REJECTED) {
        if (lease->sent.count > 1) {
            lease->one_by_one = lease->sent.count;
            take_back(lease, home);
        } else {
            refused(worker, lease, err);
        }
    } else {
        take_back(lease, home);
        lease->write_after_ms = clock_ms() + worker_pause(&lease->write_pause_ms);
        worker_tell(worker, WORKER_REFUSED, &lease->helds[0], err);
    }
}

void worker_written(struct write *write, const struct mr_error *err)
{
    for (int i = 0; i < write->count; i++) {
        struct lease *lease = write->leases[i];
        lease->writing = false;
        if (err) {
            write_failed(write, lease, err);
            continue;
        }
        count_entries(write->worker, &lease->sent);
        entry_list_done(&lease->sent);
        lease->write_pause_ms = 0;
        lease->one_by_one -= lease->one_by_one > 0;
    }
    free(write);
}

static struct write *write_new(struct worker *worker, int count)
{
    struct write *write = calloc(1, sizeof(*write) + (size_t)count * sizeof(write->leases[0]));

    if (write) {
        write->worker = worker;
        write->count = count;
    }
    return write;
}

// Without memory the outcomes stay where they are, and the next round tries again.
static void send_write(struct write *write)
{
    struct transport *transport = write->worker->transport;

    if (transport->ops->write(transport, write)) {
        for (int i = 0; i < write->count; i++) {
            write->leases[i]->writing = true;
        }
        return;
    }
    for (int i = 0; i < write->count; i++) {
        struct lease *lease = write->leases[i];
        take_back(lease, write->unclear ? &lease->unclear : &lease->ready);
        lease->write_after_ms = clock_ms() + WORKER_PAUSE_FIRST_MS;
    }
    free(write);
}

// ---- outcomes of one lease ----

// Moves up to `max` entries from `from` to those that are sent, and not more than fit together.
static void pick(struct lease *lease, struct entry_list *from, int max)
{
    size_t size = 0;

    for (int i = 0; i < max && from->first; i++) {
        size += from->first->outcome.members.len;
        if (i > 0 && size > ENTRIES_SIZE_MAX) {
            return;
        }
        entry_list_add(&lease->sent, entry_list_pop(from));
    }
}

static void write_some(struct worker *worker, struct lease *lease, struct entry_list *from)
{
    struct write *write = write_new(worker, 1);

    if (!write) {
        return;
    }
    write->unclear = from == &lease->unclear;
    write->leases[0] = lease;
    pick(lease, from, lease->one_by_one > 0 ? 1 : ENTRIES_MAX);
    send_write(write);
}

// ---- which leases, and when ----

// When the outcomes of a lease are to be written.
static int64_t due_at(const struct worker *worker, const struct lease *lease)
{
    bool more = worker->counts.running > 0 || (worker->flowing && worker->claiming > 0);

    if (worker->stopping || worker->limited || lease->unclear.count > 0 || !more ||
        lease->ready.count >= ENTRIES_MAX) {
        return lease->ready_since_ms;
    }
    if (lease->open > 0) {
        return lease->ready_since_ms + WORKER_FLUSH_MS;
    }
    return lease->ready_since_ms + (worker->flowing ? COMPANY_FLOWING_MS : COMPANY_MS);
}

static bool is_due(const struct worker *worker, const struct lease *lease, int64_t now_ms)
{
    return lease->ready.count > 0 && now_ms >= due_at(worker, lease);
}

static bool can_write(const struct lease *lease, int64_t now_ms)
{
    return !lease->lost && !lease->writing && now_ms >= lease->write_after_ms;
}

// All of its jobs completed with nothing to say: can be written with others in one call.
static bool is_whole(const struct lease *lease)
{
    return !lease->alone && !lease->delivery && lease->ready.count == lease->count &&
           lease->one_by_one == 0 && entry_list_plain(&lease->ready);
}

static void write_group(struct worker *worker, struct lease *const *leases, int count)
{
    struct write *write = write_new(worker, count);

    if (!write) {
        return;
    }
    write->whole = true;
    for (int i = 0; i < count; i++) {
        write->leases[i] = leases[i];
        entry_list_append(&leases[i]->sent, &leases[i]->ready);
    }
    send_write(write);
}

bool worker_write(struct worker *worker, int64_t now_ms)
{
    struct lease *group[WRITE_LEASES_MAX];
    int count = 0;
    bool any_due = false, wrote = false;

    worker_send_reports(worker, now_ms);
    for (struct lease *lease = worker->leases; lease; lease = lease->next) {
        if (needs_beats(lease) && now_ms >= lease->beat_at_ms) {
            send_beat(worker, lease);
        }
        if (!can_write(lease, now_ms)) {
            continue;
        }
        bool due = is_due(worker, lease, now_ms);
        if (lease->unclear.count) {
            write_some(worker, lease, &lease->unclear);
            wrote = true;
        } else if (is_whole(lease) && count < WRITE_LEASES_MAX) {
            group[count++] = lease;
            any_due = any_due || due;
        } else if (due && !is_whole(lease)) {
            write_some(worker, lease, &lease->ready);
            wrote = true;
        }
    }
    // one that has to go takes along those that would have waited
    if (any_due) {
        write_group(worker, group, count);
    }
    return any_due || wrote;
}

static int64_t earlier(int64_t a_ms, int64_t b_ms)
{
    return a_ms == 0 || b_ms < a_ms ? b_ms : a_ms;
}

int64_t worker_write_at(struct worker *worker)
{
    int64_t at_ms = worker_reports_at(worker);

    for (const struct lease *lease = worker->leases; lease; lease = lease->next) {
        if (needs_beats(lease)) {
            at_ms = earlier(at_ms, lease->beat_at_ms);
        }
        if (lease->lost || lease->writing || (!lease->ready.count && !lease->unclear.count)) {
            continue;
        }
        int64_t due_ms = due_at(worker, lease);
        due_ms = due_ms > lease->write_after_ms ? due_ms : lease->write_after_ms;
        at_ms = earlier(at_ms, due_ms ? due_ms : 1);
    }
    return at_ms;
}

void worker_sweep(struct worker *worker)
{
    struct lease *next;

    for (struct lease *lease = worker->leases; lease; lease = next) {
        next = lease->next;
        if (lease_over(lease)) {
            *(lease->prev ? &lease->prev->next : &worker->leases) = next;
            if (next) {
                next->prev = lease->prev;
            }
            if (worker->ops.over) {
                worker->ops.over(worker->arg, lease);
            }
            lease_free(lease);
        }
    }
}

// ---- outcomes from the handler ----

void worker_policy_told(struct worker *worker, const char *policy)
{
    policy_read(policy, &worker->policy, NULL);
}

void worker_ask_policy(struct worker *worker, int64_t now_ms)
{
    if (worker->policy_asked_ms && now_ms - worker->policy_asked_ms < POLICY_MS) {
        return;
    }
    if (worker->transport->ops->ask_policy(worker->transport)) {
        worker->policy_asked_ms = now_ms;
    }
}

// Members are those of an object, without its braces.
static void code_members(struct worker *worker, struct outcome *outcome)
{
    struct buf coded;
    AUTO_BUF object;

    buf_init(&object, OUTCOME_ENTRY_MAX);
    buf_init(&coded, OUTCOME_ENTRY_MAX);
    buf_printf(&object, "{%s}", buf_peek(&outcome->members));
    if (object.status == 0 &&
        parcel_json_pack(&worker->parcel, &worker->policy,
                         (struct json_slice){object.data, object.len}, &coded, NULL) == 0) {
        outcome_replace(outcome, coded.data + 1, coded.len - 2);
    }
    buf_done(&coded);
    parcel_done(&worker->parcel);
}

// State, blob and args that the job is to have from now on, as its queue wants them. What fails
// here is written as it is.
void worker_code_inline(struct worker *worker, struct outcome *outcome)
{
    struct json_slice members = {buf_peek(&outcome->members), outcome->members.len};

    if (outcome->kind == OUTCOME_COMPLETED || members.len == 0) {
        return;
    }
    bool asks = parcel_json_asks(members);
    if (asks) {
        worker_ask_policy(worker, clock_ms());
    }
    if ((asks && policy_codes(&worker->policy)) || parcel_json_must(members)) {
        code_members(worker, outcome);
    }
}

void worker_add_entry(struct lease *lease, int64_t id, struct outcome *outcome)
{
    struct entry *entry = calloc(1, sizeof(*entry));

    if (!entry) { // the job comes back when its lease ends
        outcome_done(outcome);
        outcome_init(outcome);
        return;
    }
    entry->id = id;
    outcome_init(&entry->outcome);
    outcome_take(&entry->outcome, outcome);
    if (!lease->ready.count) {
        lease->ready_since_ms = clock_ms();
    }
    entry_list_add(&lease->ready, entry);
}

void worker_release(struct worker *worker, struct lease *lease)
{
    for (int i = 0; i < lease->count; i++) {
        struct held_job *held = &lease->helds[i];

        if (held->settled || held->dropped) {
            continue;
        }
        held->dropped = true;
        lease->dropped++;
        AUTO_OUTCOME outcome;
        outcome_init(&outcome);
        outcome_release(&outcome);
        worker_add_entry(lease, held->job->id, &outcome);
        tell_dropped(worker, held);
    }
}

void worker_settle(struct worker *worker, struct held_job *held, struct outcome *outcome)
{
    struct lease *lease = held->lease;

    worker_end_report(worker, held, clock_ms(), outcome->kind != OUTCOME_ELSEWHERE);
    held->settled = true;
    lease->open--;
    worker_count(&worker->counts.running, -1);
    if (held->dropped) {
        lease->dropped--;
        outcome_done(outcome);
        outcome_init(outcome);
    } else if (outcome->kind == OUTCOME_ELSEWHERE) {
        worker_count(outcome->failed ? &worker->counts.failed : &worker->counts.completed, 1);
        lease->alone = true;   // "all that are open" is not what this worker knows any more
        if (lease->delivery) { // the relay does not know yet
            worker_add_entry(lease, held->job->id, outcome);
        }
    } else if (lease->delivery) { // the relay codes it, once
        worker_add_entry(lease, held->job->id, outcome);
    } else if (!worker_ship(worker, held, outcome)) {
        worker_code_inline(worker, outcome);
        worker_add_entry(lease, held->job->id, outcome);
    }
    if (!worker->advancing && !worker->woken) {
        worker->woken = true;
        worker->transport->ops->wake(worker->transport);
    }
}
