// SPDX-License-Identifier: PostgreSQL
//
// A worker's jobs straight from PostgreSQL, on a wire: see transport.h.
//
// While nothing is to be done it registers as waiting and listens; where it cannot listen it polls.

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "client/batch.h"
#include "client/lease_state.h"
#include "client/transport.h"
#include "client/wire.h"
#include "client/worker_parts.h"

// A registration holds for five seconds: renewed a second before.
#define REGISTERED_MS 4000
// The longest name of a channel, with its zero byte.
#define CHANNEL_SIZE 64

struct transport_pg {
    struct transport transport; // first
    struct wire *wire;
    bool pooler, without_state;
    int64_t lease_ms, poll_ms;
    bool registering; // a request is under way
    char channel[CHANNEL_SIZE];
    int64_t registered_at_ms; // 0: not
    bool cannot_wait;         // the server refused: polling
    bool admitted;            // with ops.admit of the worker: since it was connected
    int shard;                // then: its number
};

static struct transport_pg *of(struct transport *transport)
{
    return (struct transport_pg *)transport;
}

static const struct transport_pg *of_const(const struct transport *transport)
{
    return (const struct transport_pg *)transport;
}

// ---- waiting for a wake-up ----

static void registered(void *arg, PGresult *result, const struct mr_error *err);

static void send_registration(struct transport_pg *pg)
{
    AUTO_CALL call;

    call_init(&call, CALL_WAIT_CHANNEL);
    call_text(&call, pg->transport.worker->queue);
    call_text(&call, pg->transport.worker->name);
    pg->registering = wire_send(pg->wire, &call, registered, pg, NULL) == 0;
}

static void listening(void *arg, PGresult *result, const struct mr_error *err)
{
    struct transport_pg *pg = arg;

    (void)result;
    if (err && err->code != MR_ECONNECT) {
        pg->cannot_wait = true;
    }
}

// The first answer names the channel: listen to it, register again, and then look once more.
static void listen_to(struct transport_pg *pg, const char *channel)
{
    size_t size = strlen(channel) + 1;

    if (size > sizeof(pg->channel)) {
        pg->cannot_wait = true;
        return;
    }
    memcpy(pg->channel, channel, size);
    AUTO_CALL call;
    call_init(&call, CALL_LISTEN);
    call_text(&call, channel);
    if (wire_send(pg->wire, &call, listening, pg, NULL) == 0) {
        send_registration(pg);
    }
}

static void registered(void *arg, PGresult *result, const struct mr_error *err)
{
    struct transport_pg *pg = arg;

    pg->registering = false;
    if (err) {
        pg->cannot_wait = pg->cannot_wait || err->code != MR_ECONNECT;
        return;
    }
    if (pg->pooler) {
        return;
    }
    if (!str_equal(pg->channel, PQgetvalue(result, 0, 0))) {
        listen_to(pg, PQgetvalue(result, 0, 0));
        return;
    }
    pg->registered_at_ms = clock_ms();
    worker_look(pg->transport.worker); // what came before the registration woke nobody
}

static void notified(void *arg, const char *channel)
{
    struct transport_pg *pg = arg;

    if (str_equal(channel, pg->channel)) {
        pg->registered_at_ms = 0;
        worker_notified(pg->transport.worker);
    }
}

static int64_t pg_wait(struct transport *transport, int64_t now_ms)
{
    struct transport_pg *pg = of(transport);
    bool waits = !pg->pooler && !pg->cannot_wait;

    if (waits && !pg->registering &&
        (pg->registered_at_ms == 0 || now_ms - pg->registered_at_ms >= REGISTERED_MS)) {
        pg->registered_at_ms = 0;
        send_registration(pg);
    }
    return now_ms + (waits ? WORKER_IDLE_MS : pg->poll_ms);
}

static void pg_ping(struct transport *transport)
{
    send_registration(of(transport));
}

// ---- claiming ----

static void claimed(void *arg, PGresult *result, const struct mr_error *err)
{
    struct transport_pg *pg = arg;
    struct worker *worker = pg->transport.worker;
    struct claim_answer answer = {0};
    struct mr_error wrong;
    mr_batch *batch = NULL;

    if (result) {
        struct batch_limit limit = batch_limit(result);
        answer.count = (int)batch_jobs_in(result);
        answer.limited = limit.name && str_equal(limit.name, "concurrency");
        answer.held_back = limit.name != NULL;
        answer.wait_ms = limit.wait_ms;
    }
    worker_claimed(worker, &answer, err);
    if (err || answer.count == 0) {
        return;
    }
    if (batch_take(wire_take_result(pg->wire, 0), worker->queue, &batch, &wrong)) {
        worker_fail(worker, &wrong);
        return;
    }
    if (worker->options.shard_leases && batch_of_shard(batch, pg->shard, &wrong)) {
        mr_batch_free(batch); // its jobs come back when the lease expires
        worker_claim_failed(worker, &wrong);
        return;
    }
    worker_take(worker, batch, batch_lease_ms(batch), NULL);
}

static bool pg_claim(struct transport *transport, int max_jobs)
{
    struct transport_pg *pg = of(transport);
    AUTO_CALL call;

    call_init(&call, CALL_CLAIM);
    call_text(&call, transport->worker->queue);
    call_text(&call, transport->worker->name);
    call_number(&call, max_jobs);
    call_ms(&call, pg->lease_ms);
    call_bool(&call, !pg->without_state);
    return wire_send(pg->wire, &call, claimed, pg, NULL) == 0;
}

// ---- heartbeats ----

struct beat {
    struct worker *worker;
    struct lease *lease;
};

// Each of the jobs that were cancelled.
static void tell_cancelled(const struct beat *beat, const PGresult *result)
{
    struct lease_state state;

    if (lease_state_read(result, &state, NULL)) {
        return; // the next heartbeat says it again
    }
    for (int i = 0; state.count > 0 && i < beat->lease->count; i++) {
        struct held_job *held = &beat->lease->helds[i];
        if (lease_state_has(&state, held->job->id)) {
            worker_job_cancelled(beat->worker, held);
        }
    }
    lease_state_done(&state);
}

static void beaten(void *arg, PGresult *result, const struct mr_error *err)
{
    struct beat beat = *(struct beat *)arg;

    free(arg);
    worker_beaten(beat.worker, beat.lease, err);
    if (!err && !beat.lease->lost) {
        tell_cancelled(&beat, result);
    }
}

static bool pg_beat(struct transport *transport, struct lease *lease)
{
    struct beat *beat = malloc(sizeof(*beat));
    AUTO_CALL call;

    call_init(&call, CALL_HEARTBEAT);
    call_text(&call, lease->text);
    call_null(&call);
    if (!beat) {
        return false;
    }
    *beat = (struct beat){transport->worker, lease};
    if (wire_send(of(transport)->wire, &call, beaten, beat, NULL)) {
        free(beat);
        return false;
    }
    return true;
}

// ---- outcomes ----

static void written(void *arg, PGresult *result, const struct mr_error *err)
{
    (void)result;
    worker_written(arg, err);
}

static void call_complete(struct call *call, const struct lease *lease)
{
    int64_t *ids = malloc((size_t)lease->sent.count * sizeof(*ids));
    size_t count = 0;

    call_init(call, CALL_COMPLETE);
    call_text(call, lease->text);
    for (const struct entry *entry = lease->sent.first; ids && entry; entry = entry->next) {
        ids[count++] = entry->id;
    }
    if (ids) {
        call_numbers(call, ids, count);
    } else {
        call->store.status = MR_ENOMEM;
    }
    call_null(call);
    free(ids);
}

static void call_finish(struct call *call, const struct lease *lease)
{
    AUTO_BUF text;

    buf_init(&text, CALL_SIZE_MAX);
    for (const struct entry *entry = lease->sent.first; entry; entry = entry->next) {
        buf_puts(&text, entry == lease->sent.first ? "[" : ",");
        outcome_print(&entry->outcome, entry->id, &text);
    }
    buf_puts(&text, "]");
    call_init(call, CALL_FINISH);
    call_text(call, lease->text);
    call_text(call, buf_peek(&text));
    if (text.status) {
        call->store.status = text.status;
    }
}

// All that are open, of one lease or of many.
static void call_whole(struct call *call, const struct write *write)
{
    const char *texts[WRITE_LEASES_MAX] = {0};

    call_init(call, write->count > 1 ? CALL_COMPLETE_MANY : CALL_COMPLETE);
    for (int i = 0; i < write->count; i++) {
        texts[i] = write->leases[i]->text;
    }
    if (write->count > 1) {
        call_texts(call, texts, (size_t)write->count);
    } else {
        call_text(call, texts[0]);
        call_null(call);
        call_null(call);
    }
}

static bool pg_write(struct transport *transport, struct write *write)
{
    const struct lease *first = write->leases[0];
    AUTO_CALL call;

    if (write->whole) {
        call_whole(&call, write);
    } else if (entry_list_plain(&first->sent)) {
        call_complete(&call, first);
    } else {
        call_finish(&call, first);
    }
    return wire_send(of(transport)->wire, &call, written, write, NULL) == 0;
}

static void reported(void *arg, PGresult *result, const struct mr_error *err)
{
    const struct transport_pg *pg = arg;

    (void)result;
    if (err) {
        worker_unreported(pg->transport.worker, err);
    }
}

static void pg_report(struct transport *transport, const struct held_job *held, double percent,
                      const char *note)
{
    AUTO_CALL call;

    call_init(&call, CALL_PROGRESS);
    call_text(&call, held->lease->text);
    call_number(&call, held->job->id);
    call_real(&call, percent);
    call_text(&call, note);
    wire_send(of(transport)->wire, &call, reported, transport, NULL); // no memory: it is left out
}

// ---- what the queue wants ----

static void policy_came(void *arg, PGresult *result, const struct mr_error *err)
{
    const struct transport_pg *pg = arg;

    if (!err && PQntuples(result) == 1) { // a schema from before there were policies has none
        worker_policy_told(pg->transport.worker, PQgetvalue(result, 0, 0));
    }
}

static bool pg_ask_policy(struct transport *transport)
{
    AUTO_CALL call;

    call_init(&call, CALL_PAYLOAD_POLICY);
    call_text(&call, transport->worker->queue);
    call_null(&call);
    return wire_send(of(transport)->wire, &call, policy_came, transport, NULL) == 0;
}

// ---- which shard it is ----

static void told_shard(void *arg, PGresult *result, const struct mr_error *err)
{
    struct transport_pg *pg = arg;
    struct worker *worker = pg->transport.worker;
    struct shard_info info;
    struct mr_error why;

    if (err) {
        if (err->code != MR_ECONNECT) {
            worker_claim_failed(worker, err);
            wire_reset(pg->wire); // asked again with the next connection
        }
        return;
    }
    if (shard_info_read(result, &info, &why) || worker->ops.admit(worker->arg, &info, &why)) {
        worker_fail(worker, &why);
        return;
    }
    pg->admitted = true;
    pg->shard = info.number;
}

static void ask_shard(struct transport_pg *pg)
{
    AUTO_CALL call;

    pg->admitted = false;
    call_init(&call, CALL_SHARD);
    if (wire_send(pg->wire, &call, told_shard, pg, NULL)) {
        wire_reset(pg->wire);
    }
}

// ---- the wire ----

static void wire_event(void *arg, enum wire_event event, const struct mr_error *err)
{
    struct transport_pg *pg = arg;

    switch (event) {
    case WIRE_CONNECTED:
        if (pg->transport.worker->ops.admit) {
            ask_shard(pg);
        }
        worker_is_connected(pg->transport.worker);
        return;
    case WIRE_LOST:
        pg->channel[0] = '\0';
        pg->registered_at_ms = 0;
        pg->cannot_wait = false; // the next may be another server
        worker_is_lost(pg->transport.worker, err);
        return;
    case WIRE_REFUSED: worker_is_refused(pg->transport.worker, err); return;
    }
}

static int pg_fd(const struct transport *transport)
{
    return wire_fd(of_const(transport)->wire);
}

static void pg_advance(struct transport *transport)
{
    wire_advance(of(transport)->wire);
}

static void pg_wake(struct transport *transport)
{
    wire_wake(of(transport)->wire);
}

static void pg_set_timer(struct transport *transport, int64_t at_ms)
{
    wire_set_timer(of(transport)->wire, at_ms);
}

static bool pg_connected(const struct transport *transport)
{
    return wire_connected(of_const(transport)->wire);
}

static bool pg_can_claim(const struct transport *transport)
{
    const struct transport_pg *pg = of_const(transport);

    return !pg->registering && pg_connected(transport) &&
           (pg->admitted || !transport->worker->ops.admit);
}

static int pg_pending(const struct transport *transport)
{
    return wire_pending(of_const(transport)->wire);
}

static int64_t pg_answered_at(const struct transport *transport)
{
    return wire_answered_at(of_const(transport)->wire);
}

static void pg_reset(struct transport *transport)
{
    wire_reset(of(transport)->wire);
}

static void pg_free(struct transport *transport)
{
    wire_free(of(transport)->wire);
    free(transport);
}

static const struct transport_ops pg_ops = {
    .free = pg_free,
    .fd = pg_fd,
    .advance = pg_advance,
    .wake = pg_wake,
    .set_timer = pg_set_timer,
    .connected = pg_connected,
    .can_claim = pg_can_claim,
    .pending = pg_pending,
    .answered_at = pg_answered_at,
    .reset = pg_reset,
    .claim = pg_claim,
    .beat = pg_beat,
    .write = pg_write,
    .report = pg_report,
    .wait = pg_wait,
    .ping = pg_ping,
    .ask_policy = pg_ask_policy,
};

int transport_pg_new(struct worker *worker, const struct worker_options *options,
                     struct transport **ret, struct mr_error *err)
{
    struct transport_pg *pg = calloc(1, sizeof(*pg));

    if (!pg) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    pg->transport = (struct transport){&pg_ops, worker};
    pg->pooler = options->pooler;
    pg->without_state = options->without_state;
    pg->lease_ms = options->lease_ms;
    pg->poll_ms = options->poll_ms;
    struct wire_options wire_options = {options->dsn, "millrace worker", options->pooler};
    struct wire_hooks hooks = {.event = wire_event, .notify = notified, .arg = pg};
    int code = wire_new(&wire_options, &hooks, &pg->wire, err);
    if (code) {
        free(pg);
        return code;
    }
    *ret = &pg->transport;
    return 0;
}
