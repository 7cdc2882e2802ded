// SPDX-License-Identifier: PostgreSQL
//
// A worker's jobs by way of Redis, where a relay has put them: see transport.h and
// docs/delivery.md.
//
// 1. Two connections: one waits for jobs, the other says everything else.
// 2. A read brings jobs of several leases, perhaps of several relays; each lease becomes one of the
//    worker's. A relay that lives no more keeps no lease alive: its entries are not begun.
// 3. The worker's lease is the entry's time to be silent in; heartbeats and outcomes say whose the
//    entry is, and Redis decides (src/store/lua/delivery).

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "client/delivery.h"
#include "client/transport.h"
#include "client/worker_parts.h"
#include "store/redis_error.h"
#include "store/redis_pipe.h"

#define ANSWER_MS 30000
// For so long what was heard of a relay counts.
#define KNOWN_MS 1000
// After an answer that says that there is no stream to read from.
#define NOTHING_MS 500
// Until a relay has said otherwise.
#define RECLAIM_DEFAULT_MS 60000

struct transport_redis {
    struct transport transport; // first
    struct redis_pipe *reader, *talker;
    int epoll_fd, timer_fd, wake_fd;
    int64_t timer_at_ms;
    bool connected; // as last told
    bool claiming;
    int asked; // jobs, by the claim under way
    int64_t pause_until_ms;
    bool freeing;
    char jobs_key[DELIVERY_KEY_SIZE];
    bool own_done; // what was delivered to this consumer before the connection was read
    char own_after[DELIVERY_ENTRY_SIZE];
    // the relay that was heard of last
    char epoch[DELIVERY_EPOCH_SIZE];
    int64_t known_until_ms, reclaim_ms;
};

static struct transport_redis *of(struct transport *transport)
{
    return (struct transport_redis *)transport;
}

static const struct transport_redis *of_const(const struct transport *transport)
{
    return (const struct transport_redis *)transport;
}

// An error of Redis's in the worker's words. One that passes is none of the connection's: what was
// sent has not happened, and is sent again after a pause.
static void read_error(const struct redis_pipe *pipe, const redisReply *reply, struct mr_error *ret)
{
    if (redis_error_set(reply->str, redis_pipe_place(pipe), ret) == MR_ECONNECT) {
        ret->code = MR_ETIMEOUT;
    }
}

static void start_args(const struct transport_redis *redis, struct redis_args *args)
{
    redis_args_init(args);
    redis_args_key(args, redis->jobs_key);
}

// ---- what a read brought ----

// Entries of one lease.
struct consignment {
    struct load *load;
    mr_batch *batch;
    struct delivery *delivery;
    bool stale; // nobody keeps its lease alive, and the entries are gone
};

struct load {
    struct transport_redis *redis;
    int waiting; // for answers about relays
    int count;
    struct consignment consignments[];
};

static void load_free(struct load *load)
{
    for (int i = 0; i < load->count; i++) {
        mr_batch_free(load->consignments[i].batch);
        delivery_free(load->consignments[i].delivery);
    }
    free(load);
}

// Tells the worker, and hands over what is not stale.
static void load_end(struct load *load)
{
    struct transport_redis *redis = load->redis;
    struct worker *worker = redis->transport.worker;
    struct claim_answer answer = {0};

    redis->claiming = false;
    if (redis->freeing) {
        load_free(load);
        return;
    }
    for (int i = 0; i < load->count; i++) {
        const struct consignment *consignment = &load->consignments[i];
        answer.count +=
            consignment->delivery && !consignment->stale ? consignment->delivery->count : 0;
    }
    worker_claimed(worker, &answer, NULL);
    for (int i = 0; i < load->count; i++) {
        struct consignment consignment = load->consignments[i];
        if (consignment.delivery && !consignment.stale) {
            load->consignments[i] = (struct consignment){0};
            worker_take(worker, consignment.batch, redis->reclaim_ms, consignment.delivery);
        }
    }
    load_free(load);
}

static void load_answered(struct load *load)
{
    if (--load->waiting == 0) {
        load_end(load);
    }
}

// Without an answer it is taken for alive: the outcome is checked again anyway.
static void on_begun(void *arg, const redisReply *reply, const struct mr_error *err)
{
    struct consignment *consignment = arg;
    struct transport_redis *redis = consignment->load->redis;

    if (!err && reply->type == REDIS_REPLY_INTEGER) {
        consignment->stale = reply->integer <= 0;
        if (!consignment->stale) {
            memcpy(redis->epoch, consignment->delivery->epoch, sizeof(redis->epoch));
            redis->known_until_ms = clock_ms() + KNOWN_MS;
            redis->reclaim_ms = reply->integer;
        }
    }
    load_answered(consignment->load);
}

// Asks about the consignment's relay, unless it was heard of a moment ago.
static void consignment_begin(struct consignment *consignment)
{
    struct transport_redis *redis = consignment->load->redis;
    const struct delivery *delivery = consignment->delivery;
    AUTO_REDIS_ARGS args;

    start_args(redis, &args);
    if (!delivery ||
        (str_equal(redis->epoch, delivery->epoch) && clock_ms() < redis->known_until_ms)) {
        return;
    }
    redis_args_text(&args, delivery->epoch);
    for (int i = 0; i < delivery->count; i++) {
        redis_args_text(&args, delivery->items[i].entry);
    }
    if (redis_pipe_eval(redis->talker, "delivery/begin.lua", &args, ANSWER_MS, on_begun,
                        consignment, NULL) == 0) {
        consignment->load->waiting++;
    }
}

// What is in the stream and no job of a relay's is taken out: it would be in everybody's way.
static void drop_foreign(struct transport_redis *redis, const redisReply *entry)
{
    struct mr_error err;
    AUTO_REDIS_ARGS args;

    start_args(redis, &args);
    mr_error_set(&err, MR_EFOREIGN, "Redis at %s: %s has an entry that is no job",
                 redis_pipe_place(redis->talker), redis->jobs_key);
    mr_error_hint(&err, "It was removed. Another program writes to this key.");
    worker_tell(redis->transport.worker, WORKER_REFUSED, NULL, &err);
    if (entry->type == REDIS_REPLY_ARRAY && entry->elements > 0 &&
        entry->element[0]->type == REDIS_REPLY_STRING) {
        redis_args_text(&args, entry->element[0]->str);
        redis_pipe_eval(redis->talker, "delivery/drop.lua", &args, ANSWER_MS, NULL, NULL, NULL);
    }
}

static bool is_held(const struct transport_redis *redis, const char *entry)
{
    for (const struct lease *lease = redis->transport.worker->leases; lease; lease = lease->next) {
        for (int i = 0; i < lease->count; i++) {
            if (str_equal(lease->delivery->items[i].entry, entry)) {
                return true;
            }
        }
    }
    return false;
}

// Entries that can be jobs, in place; how many. Those of before a lost connection may be in hand.
static size_t sift(struct transport_redis *redis, const redisReply *entries, bool own)
{
    size_t count = 0;

    for (size_t i = 0; i < entries->elements; i++) {
        struct delivery_origin origin;
        redisReply *entry = entries->element[i];
        bool ended = own && entry->type == REDIS_REPLY_ARRAY && entry->elements == 2 &&
                     entry->element[1]->type == REDIS_REPLY_NIL;
        if (ended) {
            continue;
        }
        if (!delivery_read_origin(entry, &origin)) {
            drop_foreign(redis, entry);
        } else if (!own || !is_held(redis, origin.entry)) {
            entries->element[i] = entries->element[count];
            entries->element[count++] = entry;
        }
    }
    return count;
}

// How many of the entries from `from` on are of one lease.
static size_t same_lease(const redisReply *entries, size_t from, size_t count)
{
    struct delivery_origin first, next;
    size_t end = from + 1;

    delivery_read_origin(entries->element[from], &first);
    while (end < count && delivery_read_origin(entries->element[end], &next) &&
           str_equal(first.lease, next.lease) && str_equal(first.epoch, next.epoch)) {
        end++;
    }
    return end - from;
}

// False: out of memory; the entries come back when they have been silent for long enough.
static bool consignment_fill(struct consignment *consignment, const redisReply *entries,
                             size_t from, size_t count)
{
    const struct transport_redis *redis = consignment->load->redis;
    struct delivery_origin origin;

    delivery_read_origin(entries->element[from], &origin);
    consignment->delivery = delivery_new(origin.epoch, count);
    if (!consignment->delivery ||
        delivery_read_jobs(entries->element + from, count, redis->transport.worker->queue,
                           redis->reclaim_ms, &consignment->batch, NULL)) {
        delivery_free(consignment->delivery);
        consignment->delivery = NULL;
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        delivery_read_origin(entries->element[from + i], &origin);
        snprintf(consignment->delivery->items[i].entry, DELIVERY_ENTRY_SIZE, "%s", origin.entry);
    }
    return true;
}

// Takes the first `count` entries apart into leases.
static struct load *load_new(struct transport_redis *redis, const redisReply *entries, size_t count)
{
    struct load *load = calloc(1, sizeof(*load) + (count + 1) * sizeof(load->consignments[0]));

    if (!load) {
        return NULL;
    }
    load->redis = redis;
    for (size_t from = 0, size; from < count; from += size) {
        struct consignment *consignment = &load->consignments[load->count];
        size = same_lease(entries, from, count);
        consignment->load = load;
        load->count += consignment_fill(consignment, entries, from, size);
    }
    return load;
}

// ---- claiming ----

static void claim_ended(struct transport_redis *redis, const struct mr_error *err)
{
    const struct claim_answer nothing = {0};

    redis->claiming = false;
    worker_claimed(redis->transport.worker, &nothing, err);
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

// Where to go on among the entries that were delivered before the connection was made.
static void note_own(struct transport_redis *redis, const redisReply *entries)
{
    const redisReply *last =
        entries && entries->elements ? entries->element[entries->elements - 1] : NULL;

    if (last && last->type == REDIS_REPLY_ARRAY && last->elements == 2 &&
        last->element[0]->type == REDIS_REPLY_STRING) {
        snprintf(redis->own_after, sizeof(redis->own_after), "%s", last->element[0]->str);
    } else {
        redis->own_done = true;
    }
}

static bool send_read(struct transport_redis *redis);

static void on_read(void *arg, const redisReply *reply, const struct mr_error *err)
{
    struct transport_redis *redis = arg;
    bool own = !redis->own_done;
    struct mr_error refusal;

    if (err) {
        claim_ended(redis, err);
        return;
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        read_error(redis->reader, reply, &refusal);
        bool nothing = str_starts(reply->str, "NOGROUP") || str_starts(reply->str, "UNBLOCKED");
        redis->pause_until_ms = clock_ms() + NOTHING_MS; // the relay makes it
        claim_ended(redis, nothing ? NULL : &refusal);
        return;
    }
    const redisReply *entries = entries_of(reply);
    if (own) {
        note_own(redis, entries);
    }
    size_t count = entries ? sift(redis, entries, own) : 0;
    if (own && count == 0 && send_read(redis)) {
        return; // that was no look at what is new
    }
    struct load *load = count ? load_new(redis, entries, count) : NULL;
    if (!load) {
        claim_ended(redis, NULL);
        return;
    }
    load->waiting = 1;
    for (int i = 0; i < load->count; i++) {
        consignment_begin(&load->consignments[i]);
    }
    load_answered(load);
}

static bool send_read(struct transport_redis *redis)
{
    char count[16], block[16];
    const char *argv[] = {"XREADGROUP",
                          "GROUP",
                          DELIVERY_GROUP,
                          redis->transport.worker->name,
                          "COUNT",
                          count,
                          "BLOCK",
                          block,
                          "STREAMS",
                          redis->jobs_key,
                          redis->own_done ? ">" : redis->own_after};

    snprintf(count, sizeof(count), "%d", redis->asked);
    snprintf(block, sizeof(block), "%d", DELIVERY_BLOCK_MS);
    return redis_pipe_send(redis->reader, sizeof(argv) / sizeof(argv[0]), argv, NULL,
                           ANSWER_MS + DELIVERY_BLOCK_MS, on_read, redis, NULL) == 0;
}

static bool redis_claim(struct transport *transport, int max_jobs)
{
    struct transport_redis *redis = of(transport);

    redis->asked = max_jobs;
    redis->claiming = send_read(redis);
    return redis->claiming;
}

// A read waits by itself.
static int64_t redis_wait(struct transport *transport, int64_t now_ms)
{
    int64_t until_ms = of(transport)->pause_until_ms;

    return until_ms > now_ms ? until_ms : now_ms;
}

static void redis_ping(struct transport *transport)
{
    static const char *const argv[] = {"PING"};

    redis_pipe_send(of(transport)->talker, 1, argv, NULL, ANSWER_MS, NULL, NULL, NULL);
}

// The relay writes outcomes, as the queue wants them.
static bool redis_ask_policy(struct transport *transport)
{
    (void)transport;
    return false;
}

// ---- heartbeats ----

struct beat {
    struct transport_redis *redis;
    struct lease *lease;
    int count;
    int items[]; // of its delivery
};

static void not_ours(const struct transport_redis *redis, struct mr_error *ret)
{
    mr_error_set(ret, MR_ELEASE, "Redis at %s: the entry is not this worker's any more",
                 redis_pipe_place(redis->talker));
    mr_error_hint(ret, "It was silent for too long, or the relay has taken the job back: nothing "
                       "was written.");
}

// 0: somebody else's, 2: cancelled.
static void take_beat(const struct beat *beat, int item, int64_t answer)
{
    struct worker *worker = beat->redis->transport.worker;
    struct held_job *held = &beat->lease->helds[item];
    struct delivered *delivered = &beat->lease->delivery->items[item];
    struct mr_error err;

    if (answer == 0 && !delivered->ended && !held->settled && !held->dropped) {
        delivered->ended = true;
        not_ours(beat->redis, &err);
        worker_job_lost(worker, held, &err);
    } else if (answer == 2) {
        worker_job_cancelled(worker, held);
    }
}

static void on_beaten(void *arg, const redisReply *reply, const struct mr_error *err)
{
    struct beat *beat = arg;
    struct worker *worker = beat->redis->transport.worker;
    struct mr_error refusal;

    if (!err && reply->type == REDIS_REPLY_ERROR) {
        read_error(beat->redis->talker, reply, &refusal);
        err = &refusal;
    }
    worker_beaten(worker, beat->lease, err);
    for (int i = 0;
         !err && reply->type == REDIS_REPLY_ARRAY && i < beat->count && i < (int)reply->elements;
         i++) {
        take_beat(beat, beat->items[i], reply->element[i]->integer);
    }
    free(beat);
}

static bool redis_beat(struct transport *transport, struct lease *lease)
{
    struct transport_redis *redis = of(transport);
    struct beat *beat = malloc(sizeof(*beat) + (size_t)lease->count * sizeof(beat->items[0]));
    AUTO_REDIS_ARGS args;

    start_args(redis, &args);
    if (!beat) {
        return false;
    }
    *beat = (struct beat){redis, lease, 0};
    redis_args_text(&args, transport->worker->name);
    for (int i = 0; i < lease->count; i++) {
        if (!lease->delivery->items[i].ended) {
            redis_args_text(&args, lease->delivery->items[i].entry);
            beat->items[beat->count++] = i;
        }
    }
    if (redis_pipe_eval(redis->talker, "delivery/beat.lua", &args, ANSWER_MS, on_beaten, beat,
                        NULL)) {
        free(beat);
        return false;
    }
    return true;
}

// ---- outcomes ----

// The place of a job in its lease; outcomes come about in the order of the jobs.
static int item_of(const struct lease *lease, int64_t id, int after)
{
    for (int i = 1; i <= lease->count; i++) {
        int item = (after + i) % lease->count;
        if (lease->helds[item].job->id == id) {
            return item;
        }
    }
    return 0;
}

static void add_outcome(struct redis_args *args, const struct lease *lease, int item,
                        const char *word, const char *members)
{
    redis_args_text(args, lease->delivery->items[item].entry);
    redis_args_number(args, lease->helds[item].job->id);
    redis_args_text(args, lease->text);
    redis_args_text(args, word);
    redis_args_copy(args, members);
}

// What was not noted is somebody else's: it leaves the list, and is told.
static void take_answers(struct transport_redis *redis, struct lease *lease,
                         const redisReply *reply)
{
    struct entry_list all;
    struct mr_error err;
    struct entry *entry;
    int item = -1;

    entry_list_init(&all);
    entry_list_append(&all, &lease->sent);
    for (size_t i = 0; (entry = entry_list_pop(&all)); i++) {
        item = item_of(lease, entry->id, item);
        lease->delivery->items[item].ended = true;
        if (i < reply->elements && reply->element[i]->integer == 1) {
            entry_list_add(&lease->sent, entry);
            continue;
        }
        not_ours(redis, &err);
        worker_job_lost(redis->transport.worker, &lease->helds[item], &err);
        entry_free(entry);
    }
}

static void on_written(void *arg, const redisReply *reply, const struct mr_error *err)
{
    struct write *write = arg;
    struct transport_redis *redis = of(write->worker->transport);
    struct mr_error refusal;

    if (!err && reply->type == REDIS_REPLY_ERROR) {
        read_error(redis->talker, reply, &refusal);
        err = &refusal;
    }
    if (!err) {
        take_answers(redis, write->leases[0], reply);
    }
    worker_written(write, err);
}

static bool redis_write(struct transport *transport, struct write *write)
{
    struct transport_redis *redis = of(transport);
    const struct lease *lease = write->leases[0];
    int item = -1;
    AUTO_REDIS_ARGS args;

    start_args(redis, &args);
    redis_args_text(&args, lease->delivery->epoch);
    redis_args_text(&args, transport->worker->name);
    for (const struct entry *entry = lease->sent.first; entry; entry = entry->next) {
        item = item_of(lease, entry->id, item);
        add_outcome(&args, lease, item, delivery_word(&entry->outcome),
                    buf_peek(&entry->outcome.members));
    }
    return redis_pipe_eval(redis->talker, "delivery/finish.lua", &args, ANSWER_MS, on_written,
                           write, NULL) == 0;
}

// A report is sent once. Whether it arrived does not matter to the job.
static void redis_report(struct transport *transport, const struct held_job *held, double percent,
                         const char *note)
{
    struct transport_redis *redis = of(transport);
    const struct lease *lease = held->lease;
    AUTO_REDIS_ARGS args;
    AUTO_BUF members;

    start_args(redis, &args);
    buf_init(&members, 8 * WORKER_NOTE_MAX);
    buf_printf(&members, "\"percent\":%.17g", percent);
    if (note) {
        buf_puts(&members, ",\"note\":");
        json_add_string(&members, note);
    }
    redis_args_text(&args, lease->delivery->epoch);
    redis_args_text(&args, transport->worker->name);
    add_outcome(&args, lease, (int)(held - lease->helds), DELIVERY_PROGRESS, buf_peek(&members));
    redis_pipe_eval(redis->talker, "delivery/finish.lua", &args, ANSWER_MS, NULL, NULL, NULL);
}

// ---- the connections ----

static bool redis_connected(const struct transport *transport)
{
    const struct transport_redis *redis = of_const(transport);

    return redis_pipe_connected(redis->reader) && redis_pipe_connected(redis->talker);
}

static void on_event(struct transport_redis *redis, enum redis_pipe_event event,
                     const struct mr_error *err)
{
    struct worker *worker = redis->transport.worker;

    switch (event) {
    case REDIS_PIPE_CONNECTED:
        if (redis_connected(&redis->transport) && !redis->connected) {
            redis->connected = true;
            worker_is_connected(worker);
        }
        return;
    case REDIS_PIPE_LOST:
        if (redis->connected) {
            redis->connected = false;
            worker_is_lost(worker, err);
        }
        return;
    case REDIS_PIPE_REFUSED: worker_is_refused(worker, err); return;
    }
}

static void on_talker(void *arg, enum redis_pipe_event event, const struct mr_error *err)
{
    on_event(arg, event, err);
}

// What was read and did not arrive is read again.
static void on_reader(void *arg, enum redis_pipe_event event, const struct mr_error *err)
{
    struct transport_redis *redis = arg;

    if (event == REDIS_PIPE_CONNECTED) {
        redis->own_done = false;
        snprintf(redis->own_after, sizeof(redis->own_after), "0-0");
    }
    on_event(redis, event, err);
}

static int redis_fd(const struct transport *transport)
{
    return of_const(transport)->epoll_fd;
}

static void arm_timer(struct transport_redis *redis)
{
    struct itimerspec spec = {0};
    int64_t wait_ms = redis->timer_at_ms - clock_ms();

    if (redis->timer_at_ms) {
        wait_ms = wait_ms > 0 ? wait_ms : 0;
        spec.it_value.tv_sec = wait_ms / 1000;
        spec.it_value.tv_nsec = wait_ms % 1000 * 1000000 + 1; // 0 would be: never
    }
    timerfd_settime(redis->timer_fd, 0, &spec, NULL);
}

static void redis_advance(struct transport *transport)
{
    struct transport_redis *redis = of(transport);
    uint64_t count;

    while (read(redis->wake_fd, &count, sizeof(count)) > 0 ||
           read(redis->timer_fd, &count, sizeof(count)) > 0) {
    }
    redis_pipe_advance(redis->talker);
    redis_pipe_advance(redis->reader);
}

static void redis_wake(struct transport *transport)
{
    uint64_t one = 1;

    if (write(of(transport)->wake_fd, &one, sizeof(one)) < 0) {
        return; // full: it is awake
    }
}

static void redis_set_timer(struct transport *transport, int64_t at_ms)
{
    of(transport)->timer_at_ms = at_ms;
    arm_timer(of(transport));
}

static bool redis_can_claim(const struct transport *transport)
{
    return !of_const(transport)->claiming && redis_connected(transport);
}

static int redis_pending(const struct transport *transport)
{
    const struct transport_redis *redis = of_const(transport);

    return redis_pipe_pending(redis->reader) + redis_pipe_pending(redis->talker);
}

static int64_t redis_answered_at(const struct transport *transport)
{
    const struct transport_redis *redis = of_const(transport);
    int64_t reader_ms = redis_pipe_answered_at(redis->reader);
    int64_t talker_ms = redis_pipe_answered_at(redis->talker);

    return reader_ms > talker_ms ? reader_ms : talker_ms;
}

static void redis_reset(struct transport *transport)
{
    redis_pipe_reset(of(transport)->reader);
    redis_pipe_reset(of(transport)->talker);
}

static void redis_free(struct transport *transport)
{
    struct transport_redis *redis = of(transport);
    const int fds[] = {redis->epoll_fd, redis->timer_fd, redis->wake_fd};

    redis->freeing = true;
    redis_pipe_free(redis->talker);
    redis_pipe_free(redis->reader);
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
    free(redis);
}

static const struct transport_ops redis_ops = {
    .free = redis_free,
    .fd = redis_fd,
    .advance = redis_advance,
    .wake = redis_wake,
    .set_timer = redis_set_timer,
    .connected = redis_connected,
    .can_claim = redis_can_claim,
    .pending = redis_pending,
    .answered_at = redis_answered_at,
    .reset = redis_reset,
    .claim = redis_claim,
    .beat = redis_beat,
    .write = redis_write,
    .report = redis_report,
    .wait = redis_wait,
    .ping = redis_ping,
    .ask_policy = redis_ask_policy,
};

// ---- life ----

static int open_pipes(struct transport_redis *redis, const char *address, struct mr_error *err)
{
    const struct redis_pipe_hooks talker_hooks = {.event = on_talker, .arg = redis};
    const struct redis_pipe_hooks reader_hooks = {.event = on_reader, .arg = redis};
    const char *name = redis->transport.worker->name;
    struct redis_url url;
    int code = redis_url_parse(address, &url, err);

    if (code == 0) {
        code = redis_pipe_new(&url, name, &talker_hooks, &redis->talker, err);
    }
    return code ? code : redis_pipe_new(&url, name, &reader_hooks, &redis->reader, err);
}

static int open_descriptors(struct transport_redis *redis, struct mr_error *err)
{
    struct epoll_event event = {.events = EPOLLIN};

    redis->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    redis->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    redis->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const int fds[] = {redis->timer_fd, redis->wake_fd, redis_pipe_fd(redis->talker),
                       redis_pipe_fd(redis->reader)};
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
        if (epoll_ctl(redis->epoll_fd, EPOLL_CTL_ADD, fds[i], &event)) {
            return mr_error_set(err, MR_EIO, "cannot make a descriptor: %s", strerror(errno));
        }
    }
    return 0;
}

int transport_redis_new(struct worker *worker, const struct worker_options *options,
                        struct transport **ret, struct mr_error *err)
{
    struct transport_redis *redis = calloc(1, sizeof(*redis));

    if (!redis) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    redis->transport = (struct transport){&redis_ops, worker};
    redis->epoll_fd = redis->timer_fd = redis->wake_fd = -1;
    redis->reclaim_ms = RECLAIM_DEFAULT_MS;
    delivery_key(worker->queue, "jobs", redis->jobs_key);
    int code = open_pipes(redis, options->redis, err);
    code = code ? code : open_descriptors(redis, err);
    if (code) {
        redis_free(&redis->transport);
        return code;
    }
    *ret = &redis->transport;
    return 0;
}
