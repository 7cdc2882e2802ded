// SPDX-License-Identifier: PostgreSQL
//
// Jobs of a stream that go to the database together: see chunk.h.

#include "http/chunk.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/shards.h"
#include "http/exchange.h"
#include "http/job_line.h"
#include "http/payloads.h"
#include "http/place.h"

enum fate { FATE_MISSING, FATE_UNKNOWN, FATE_IN };

// A job, whichever shard it is at.
struct entry {
    int64_t line;
    enum fate fate;
};

// The jobs of one shard.
struct load {
    struct chunk *chunk;
    struct site *site;
    struct buf jobs;                // an array, without its end until it is sent
    uint16_t *which;                // the entry of each
    size_t count, room;             // of these
    bool pinned, loose;             // some can go nowhere else, some can
    bool sent;                      // with the last round
    bool unknown;                   // what a queue wants with payloads is
    char queue[PAYLOADS_NAME_SIZE]; // that one
    int64_t enqueued;               // of all chunks
    struct mr_error err;            // of the last round; code 0: it took them
};

struct chunk {
    struct exchange *exchange;
    struct chunk_hooks hooks;
    struct site *chosen; // by the stream; NULL: all
    struct entry *entries;
    size_t count, room; // of these
    size_t bytes;       // of their lines
    bool full;
    uint32_t passed;       // sites that did not take theirs
    struct mr_error noted; // why; code 0
    struct load *asking;   // what a queue wants
    int left;              // calls that are not answered
    size_t load_count;
    struct load loads[];
};

static_assert(CHUNK_ALL_JOBS <= UINT16_MAX, "entries are numbered in 16 bits");

// ---- loads ----

static void load_clear(struct load *load)
{
    buf_done(&load->jobs);
    free(load->which);
    load->which = NULL;
    load->count = load->room = 0;
    load->pinned = load->loose = load->unknown = false;
    load->err.code = 0;
}

static struct load *load_of(struct chunk *chunk, const struct site *site)
{
    return &chunk->loads[chunk->chosen ? 0 : site->at];
}

// Notes an entry for the job that follows.
static int load_begin(struct load *load, size_t entry, bool pinned, struct mr_error *err)
{
    if (load->count == load->room) {
        size_t room = load->room ? load->room * 2 : 64;
        uint16_t *which = realloc(load->which, room * sizeof(*which));
        if (!which) {
            return mr_error_set(err, MR_ENOMEM, "out of memory");
        }
        load->which = which;
        load->room = room;
    }
    buf_puts(&load->jobs, load->count ? "," : "[");
    load->which[load->count++] = (uint16_t)entry;
    load->pinned = load->pinned || pinned;
    load->loose = load->loose || !pinned;
    return 0;
}

// What queues want with payloads is known for each shard.
static int load_put(struct load *load, const struct job_line *job, const char *traceparent,
                    struct buf *out, struct mr_error *err)
{
    struct exchange *exchange = load->chunk->exchange;
    char queue[PAYLOADS_NAME_SIZE];
    bool unknown = false;

    exchange->site = load->site;
    int code = payloads_add_job(exchange, job, traceparent, out, queue, &unknown, err);
    exchange->site = load->chunk->chosen;
    if (unknown) {
        load->unknown = true;
        memcpy(load->queue, queue, sizeof(queue));
    }
    return code;
}

static void count_job(void *arg, struct json_slice value)
{
    struct job_line job;

    if (job_line_read(value, &job, NULL) == 0) {
        job_line_count(job.queue, job.kind, arg);
    }
}

static struct json_slice load_text(const struct load *load)
{
    return (struct json_slice){load->jobs.data, load->jobs.len};
}

// ---- the beginning and the end ----

struct chunk *chunk_new(struct exchange *exchange, const struct chunk_hooks *hooks)
{
    struct http *http = exchange->http;
    size_t loads = exchange->site ? 1 : (size_t)http->site_count;
    size_t room = exchange->site ? CHUNK_JOBS : CHUNK_ALL_JOBS;
    struct chunk *chunk = calloc(1, sizeof(*chunk) + loads * sizeof(chunk->loads[0]));
    struct entry *entries = calloc(room, sizeof(*entries));

    if (!chunk || !entries) {
        free(chunk);
        free(entries);
        return NULL;
    }
    chunk->exchange = exchange;
    chunk->hooks = *hooks;
    chunk->chosen = exchange->site;
    chunk->entries = entries;
    chunk->room = room;
    chunk->load_count = loads;
    for (size_t i = 0; i < loads; i++) {
        chunk->loads[i].chunk = chunk;
        chunk->loads[i].site = exchange->site ? exchange->site : &http->sites[i];
        buf_init(&chunk->loads[i].jobs, CALL_SIZE_MAX);
    }
    return chunk;
}

void chunk_free(struct chunk *chunk)
{
    for (size_t i = 0; chunk && i < chunk->load_count; i++) {
        load_clear(&chunk->loads[i]);
    }
    if (chunk) {
        free(chunk->entries);
    }
    free(chunk);
}

// ---- taking jobs ----

// The entry of a line, which is missing until it is in.
static size_t add_entry(struct chunk *chunk, int64_t line, size_t bytes)
{
    chunk->entries[chunk->count] = (struct entry){line, FATE_MISSING};
    chunk->bytes += bytes;
    return chunk->count++;
}

int chunk_add(struct chunk *chunk, struct json_slice text, const char *traceparent, int64_t line,
              struct mr_error *err)
{
    struct exchange *exchange = chunk->exchange;
    size_t entry = add_entry(chunk, line, text.len);
    struct site *site = chunk->chosen;
    bool pinned = false;
    struct job_line job;
    int code = job_line_read(text, &job, err);

    if (code == 0) {
        code = chunk->chosen ? place_check(exchange, &job, err)
                             : place_line(exchange, &job, 0, &site, &pinned, err);
    }
    if (code) {
        return code;
    }
    struct load *load = load_of(chunk, site);
    code = load_begin(load, entry, pinned, err);
    code = code ? code : load_put(load, &job, traceparent, &load->jobs, err);
    chunk->full = chunk->count == chunk->room || chunk->bytes >= CHUNK_ALL_BYTES ||
                  load->count >= CHUNK_JOBS || load->jobs.len >= CHUNK_BYTES;
    return code;
}

bool chunk_is_full(const struct chunk *chunk)
{
    return chunk->full;
}

bool chunk_is_empty(const struct chunk *chunk)
{
    return chunk->count == 0;
}

// ---- what a queue wants with payloads ----

struct again {
    struct load *load;
    struct buf out;
    int jobs;
};

static void on_job_again(void *arg, struct json_slice value)
{
    struct again *again = arg;
    struct job_line job;

    buf_puts(&again->out, again->jobs++ ? "," : "[");
    if (job_line_read(value, &job, NULL) || load_put(again->load, &job, NULL, &again->out, NULL)) {
        again->out.status = again->out.status ? again->out.status : MR_ENOMEM;
    }
}

// It is known now: the jobs of the load once more. They have their traces.
void chunk_go_on(struct chunk *chunk)
{
    struct load *load = chunk->asking;
    struct again again = {.load = load};

    chunk->exchange->site = chunk->chosen;
    load->unknown = false;
    buf_init(&again.out, CALL_SIZE_MAX);
    buf_puts(&load->jobs, "]");
    json_each_element(load_text(load), on_job_again, &again, NULL);
    buf_done(&load->jobs);
    load->jobs = again.out;
    chunk_send(chunk);
}

// False: all is known.
static bool ask(struct chunk *chunk)
{
    for (size_t i = 0; i < chunk->load_count; i++) {
        struct load *load = &chunk->loads[i];
        if (load->unknown && load->jobs.status == 0) {
            chunk->asking = load;
            chunk->exchange->site = load->site; // until it is answered
            payloads_ask(chunk->exchange, load->queue, chunk->hooks.asked);
            return true;
        }
    }
    return false;
}

// ---- a round: every load that has jobs is sent ----

static void settle(struct chunk *chunk);

static void load_took(struct load *load, const PGresult *result)
{
    struct chunk *chunk = load->chunk;

    for (size_t i = 0; i < load->count; i++) {
        chunk->entries[load->which[i]].fate = FATE_IN;
    }
    load->enqueued += PQntuples(result);
    json_each_element(load_text(load), count_job, chunk->exchange->http->tally, NULL);
    load_clear(load);
}

static void load_answered(void *arg, PGresult *result, const struct mr_error *err)
{
    struct load *load = arg;
    struct chunk *chunk = load->chunk;

    if (err) {
        load->err = *err;
    } else {
        load_took(load, result);
    }
    if (--chunk->left == 0) {
        settle(chunk);
    }
}

static void load_send(struct load *load)
{
    struct mr_error *err = &load->err;
    AUTO_CALL call;

    err->code = 0;
    buf_puts(&load->jobs, "]");
    call_init(&call, CALL_API_ENQUEUE_JOBS);
    call_text_sized(&call, buf_peek(&load->jobs), load->jobs.len);
    int code = buf_status(&load->jobs, err);
    code = code ? code : site_check(load->site, err);
    code = code ? code
                : database_call(load->site->db, DATABASE_COMMON, &call, load_answered, load, err);
    load->sent = code == 0;
    load->chunk->left += load->sent;
}

void chunk_send(struct chunk *chunk)
{
    if (ask(chunk)) { // and comes back here
        return;
    }
    chunk->left = 1; // this
    for (size_t i = 0; i < chunk->load_count; i++) {
        if (chunk->loads[i].count > 0) {
            load_send(&chunk->loads[i]);
        }
    }
    if (--chunk->left == 0) {
        settle(chunk);
    }
}

// ---- what came of it ----

static bool has_failed(const struct load *load)
{
    return load->count > 0 && load->err.code;
}

// It may have taken them all the same.
static bool is_lost(const struct load *load)
{
    return load->sent && (load->err.code == MR_ECONNECT || load->err.code == MR_ETIMEOUT);
}

// Whether others may take what this shard has not.
static bool may_move(const struct load *load)
{
    bool passable = load->sent ? shards_passable(load->err.code) : load->err.code == MR_ECONNECT;

    return !load->chunk->chosen && passable && load->loose;
}

static void mark_lost(const struct load *load)
{
    for (size_t i = 0; i < load->count; i++) {
        load->chunk->entries[load->which[i]].fate = FATE_UNKNOWN;
    }
}

// A full queue is what a client can wait for; else the first says why.
static void note(struct mr_error *noted, const struct mr_error *why)
{
    if (noted->code == 0 || (why->code == MR_EFULL && noted->code != MR_EFULL)) {
        *noted = *why;
    }
}

// The jobs of a load that did not take them, on their way to others.
struct move {
    struct chunk *chunk;
    const uint16_t *which;
    size_t at;
    struct mr_error *err;
    int code;
};

static int move_one(struct move *move, struct json_slice value, size_t entry)
{
    struct chunk *chunk = move->chunk;
    struct site *site = NULL;
    bool pinned = false;
    struct job_line job;
    int code = job_line_read(value, &job, move->err);

    code =
        code ? code : place_line(chunk->exchange, &job, chunk->passed, &site, &pinned, move->err);
    if (code && !pinned && chunk->noted.code) {
        *move->err = chunk->noted;
    }
    code = code ? code : load_begin(load_of(chunk, site), entry, pinned, move->err);
    if (code) {
        mr_error_prefix(move->err, "line %" PRId64, chunk->entries[entry].line);
        return code;
    }
    buf_add(&load_of(chunk, site)->jobs, value.at, value.len);
    return 0;
}

static void on_moved(void *arg, struct json_slice value)
{
    struct move *move = arg;

    if (move->code == 0) {
        move->code = move_one(move, value, move->which[move->at++]);
    }
}

static int put_elsewhere(struct load *load, struct mr_error *err)
{
    struct buf jobs = load->jobs;
    uint16_t *which = load->which;
    struct move move = {.chunk = load->chunk, .which = which, .err = err};

    buf_init(&load->jobs, CALL_SIZE_MAX);
    load->which = NULL;
    load_clear(load);
    json_each_element((struct json_slice){jobs.data, jobs.len}, on_moved, &move, NULL);
    buf_done(&jobs);
    free(which);
    return move.code;
}

// What ends the stream; false: nothing does.
static bool find_failure(const struct chunk *chunk, struct mr_error *ret)
{
    for (size_t i = 0; i < chunk->load_count; i++) {
        const struct load *load = &chunk->loads[i];
        if (has_failed(load) && !may_move(load)) {
            *ret = load->err;
            if (!chunk->chosen) {
                mr_error_prefix(ret, "shard %d", site_number(load->site));
            }
            mr_error_prefix(ret, "lines %" PRId64 " to %" PRId64,
                            chunk->entries[load->which[0]].line,
                            chunk->entries[load->which[load->count - 1]].line);
            return true;
        }
    }
    return false;
}

// Parts of shards that have failed must not get what others put back: these come first.
static uint32_t pass_over(struct chunk *chunk)
{
    uint32_t failed = 0;

    for (size_t i = 0; i < chunk->load_count; i++) {
        if (has_failed(&chunk->loads[i])) {
            failed |= UINT32_C(1) << i;
            note(&chunk->noted, &chunk->loads[i].err);
        }
    }
    chunk->passed |= failed;
    return failed;
}

static int put_back(struct chunk *chunk, uint32_t failed, struct mr_error *err)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < chunk->load_count; i++) {
        if (failed >> i & 1) {
            code = put_elsewhere(&chunk->loads[i], err);
        }
    }
    return code;
}

static bool has_more(const struct chunk *chunk)
{
    size_t i = 0;

    while (i < chunk->load_count && chunk->loads[i].count == 0) {
        i++;
    }
    return i < chunk->load_count;
}

static void begin_anew(struct chunk *chunk)
{
    chunk->count = chunk->bytes = 0;
    chunk->full = false;
    chunk->passed = 0;
    chunk->noted.code = 0;
}

// All loads are answered.
static void settle(struct chunk *chunk)
{
    struct mr_error err;

    for (size_t i = 0; i < chunk->load_count; i++) {
        if (has_failed(&chunk->loads[i]) && is_lost(&chunk->loads[i])) {
            mark_lost(&chunk->loads[i]);
        }
    }
    if (find_failure(chunk, &err) || put_back(chunk, pass_over(chunk), &err)) {
        chunk->hooks.over(chunk->exchange, &err);
    } else if (has_more(chunk)) {
        chunk_send(chunk);
    } else {
        begin_anew(chunk);
        chunk->hooks.over(chunk->exchange, NULL);
    }
}

// ---- what is told ----

int64_t chunk_enqueued(const struct chunk *chunk)
{
    int64_t all = 0;

    for (size_t i = 0; i < chunk->load_count; i++) {
        all += chunk->loads[i].enqueued;
    }
    return all;
}

static void tell_lines(const struct chunk *chunk, const char *name, enum fate fate, struct buf *out)
{
    const char *comma = "";

    buf_printf(out, ",\"%s\":[", name);
    for (size_t i = 0; i < chunk->count; i++) {
        if (chunk->entries[i].fate == fate) {
            buf_printf(out, "%s%" PRId64, comma, chunk->entries[i].line);
            comma = ",";
        }
    }
    buf_puts(out, "]");
}

void chunk_tell(const struct chunk *chunk, bool failed, struct buf *out)
{
    if (chunk->chosen) {
        return;
    }
    if (failed) {
        tell_lines(chunk, "missing", FATE_MISSING, out);
        tell_lines(chunk, "unknown", FATE_UNKNOWN, out);
    }
    buf_puts(out, ",\"shards\":[");
    for (size_t i = 0; i < chunk->load_count; i++) {
        const struct load *load = &chunk->loads[i];
        buf_puts(out, i ? "," : "");
        site_describe(load->site, failed && has_failed(load) ? &load->err : NULL, out);
        out->len--; // inside of its brace
        buf_printf(out, ",\"enqueued\":%" PRId64 "}", load->enqueued);
    }
    buf_puts(out, "]");
}
