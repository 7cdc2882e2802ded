// SPDX-License-Identifier: PostgreSQL
//
// Jobs and outcomes in Redis: see delivery.h.

#include "client/delivery.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_scan.h"
#include "base/str.h"
#include "client/batch.h"
#include "client/parcel_json.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
// What an entry takes beside what is in it, as measured.
#define ENTRY_OVERHEAD 200

void delivery_key(const char *queue, const char *part, char *ret)
{
    snprintf(ret, DELIVERY_KEY_SIZE, "mr:delivery:{%s}:%s", queue, part);
}

struct delivery *delivery_new(const char *epoch, size_t count)
{
    struct delivery *delivery = calloc(1, sizeof(*delivery) + count * sizeof(delivery->items[0]));

    if (delivery) {
        snprintf(delivery->epoch, sizeof(delivery->epoch), "%s", epoch);
        delivery->count = (int)count;
    }
    return delivery;
}

void delivery_free(struct delivery *delivery)
{
    free(delivery);
}

// ---- a job as an entry ----

static void add_text(struct redis_args *args, const char *name, const char *value)
{
    if (value) {
        redis_args_text(args, name);
        redis_args_text(args, value);
    }
}

static void add_bytes(struct redis_args *args, const char *name, const void *data, size_t size)
{
    if (data) {
        redis_args_text(args, name);
        redis_args_bytes(args, data, size);
    }
}

static void add_number(struct redis_args *args, const char *name, int64_t number)
{
    redis_args_text(args, name);
    redis_args_number(args, number);
}

void delivery_add_job(struct redis_args *args, const mr_claimed_job *job, const char *epoch)
{
    add_text(args, "relay", epoch);
    add_text(args, "lease", job->lease);
    add_number(args, "id", job->id);
    add_number(args, "attempt", job->attempt);
    add_number(args, "max_attempts", job->max_attempts);
    add_number(args, "priority", job->priority);
    add_number(args, "created_us", job->created_at_us);
    add_number(args, "timeout_ms", job->timeout_ms);
    add_text(args, "kind", job->kind);
    add_text(args, "source", job->source);
    add_text(args, "args", job->args);
    add_text(args, "meta", job->meta);
    add_text(args, "tenant", job->tenant);
    add_text(args, "ref", job->ref);
    add_bytes(args, "state", job->state, job->state_size);
    add_bytes(args, "blob", job->blob, job->blob_size);
}

size_t delivery_job_size(const mr_claimed_job *job)
{
    const char *const texts[] = {job->lease, job->kind,   job->source, job->args,
                                 job->meta,  job->tenant, job->ref};
    size_t size = ENTRY_OVERHEAD + job->state_size + job->blob_size;

    for (size_t i = 0; i < COUNT(texts); i++) {
        size += texts[i] ? strlen(texts[i]) : 0;
    }
    return size;
}

// ---- an entry as a job ----

// The fields of [number, [field, value ...]]; NULL: it has another form.
static const redisReply *fields_of(const redisReply *entry)
{
    if (entry->type != REDIS_REPLY_ARRAY || entry->elements != 2 ||
        entry->element[0]->type != REDIS_REPLY_STRING ||
        entry->element[1]->type != REDIS_REPLY_ARRAY || entry->element[1]->elements % 2) {
        return NULL;
    }
    for (size_t i = 0; i < entry->element[1]->elements; i++) {
        if (entry->element[1]->element[i]->type != REDIS_REPLY_STRING) {
            return NULL;
        }
    }
    return entry->element[1];
}

static const redisReply *find_field(const redisReply *fields, const char *name)
{
    for (size_t i = 0; i + 1 < fields->elements; i += 2) {
        if (str_equal(fields->element[i]->str, name)) {
            return fields->element[i + 1];
        }
    }
    return NULL;
}

static const char *find_text(const redisReply *fields, const char *name)
{
    const redisReply *field = find_field(fields, name);

    return field ? field->str : NULL;
}

static int64_t find_number(const redisReply *fields, const char *name)
{
    const char *text = find_text(fields, name);
    int64_t number = 0;

    return text && str_parse_int(text, INT64_MIN, INT64_MAX, &number) ? number : 0;
}

bool delivery_read_origin(const redisReply *entry, struct delivery_origin *ret)
{
    const redisReply *fields = fields_of(entry);

    if (!fields) {
        return false;
    }
    *ret = (struct delivery_origin){
        .entry = entry->element[0]->str,
        .epoch = find_text(fields, "relay"),
        .lease = find_text(fields, "lease"),
        .id = find_number(fields, "id"),
    };
    return ret->epoch && ret->lease && ret->id > 0 && find_text(fields, "kind") &&
           strlen(ret->epoch) < DELIVERY_EPOCH_SIZE && strlen(ret->entry) < DELIVERY_ENTRY_SIZE;
}

// Copies the values of all entries behind each other.
struct arena {
    size_t used;
    char data[];
};

static size_t values_size(const redisReply *fields)
{
    size_t size = 0;

    for (size_t i = 1; i < fields->elements; i += 2) {
        size += (size_t)fields->element[i]->len + 1;
    }
    return size;
}

static const char *keep(struct arena *arena, const redisReply *fields, const char *name,
                        size_t *ret_size)
{
    const redisReply *field = find_field(fields, name);

    if (!field) {
        return NULL;
    }
    char *copy = memcpy(arena->data + arena->used, field->str, (size_t)field->len + 1);
    arena->used += (size_t)field->len + 1;
    if (ret_size) {
        *ret_size = (size_t)field->len;
    }
    return copy;
}

static void read_job(struct arena *arena, const redisReply *fields, mr_claimed_job *job)
{
    *job = (mr_claimed_job){
        .id = find_number(fields, "id"),
        .attempt = (int)find_number(fields, "attempt"),
        .max_attempts = (int)find_number(fields, "max_attempts"),
        .priority = (int)find_number(fields, "priority"),
        .created_at_us = find_number(fields, "created_us"),
        .timeout_ms = find_number(fields, "timeout_ms"),
        .kind = keep(arena, fields, "kind", NULL),
        .source = keep(arena, fields, "source", NULL),
        .args = keep(arena, fields, "args", NULL),
        .meta = keep(arena, fields, "meta", NULL),
        .tenant = keep(arena, fields, "tenant", NULL),
        .ref = keep(arena, fields, "ref", NULL),
    };
    job->state = keep(arena, fields, "state", &job->state_size);
    job->blob = keep(arena, fields, "blob", &job->blob_size);
    job->args = job->args ? job->args : "{}";
}

int delivery_read_jobs(redisReply *const *entries, size_t count, const char *queue,
                       int64_t lease_ms, mr_batch **ret, struct mr_error *err)
{
    size_t size = strlen(queue) + 1;
    mr_claimed_job *jobs = NULL;

    for (size_t i = 0; i < count; i++) {
        size += values_size(entries[i]->element[1]);
    }
    struct arena *arena = malloc(sizeof(*arena) + size);
    if (!arena) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    memcpy(arena->data, queue, strlen(queue) + 1);
    arena->used = strlen(queue) + 1;
    int code = batch_of(count, lease_ms, arena, free, ret, &jobs, err);
    if (code) {
        return code;
    }
    const char *lease = keep(arena, entries[0]->element[1], "lease", NULL);
    int64_t until_us = clock_wall_us() + lease_ms * 1000;
    for (size_t i = 0; i < count; i++) {
        read_job(arena, entries[i]->element[1], &jobs[i]);
        jobs[i].lease = lease;
        jobs[i].queue = arena->data;
        jobs[i].lease_until_us = until_us;
    }
    return 0;
}

// ---- outcomes ----

static const struct {
    const char *word;
    enum outcome_kind kind;
    bool failed;
} words[] = {
    {"completed", OUTCOME_COMPLETED, false}, {"failed", OUTCOME_FAILED, false},
    {"snoozed", OUTCOME_SNOOZED, false},     {"requeued", OUTCOME_REQUEUED, false},
    {"released", OUTCOME_RELEASED, false},   {"lost", OUTCOME_LOST, false},
    {"elsewhere", OUTCOME_ELSEWHERE, false}, {"elsewhere_failed", OUTCOME_ELSEWHERE, true},
};

const char *delivery_word(const struct outcome *outcome)
{
    for (size_t i = 0; i < COUNT(words); i++) {
        if (words[i].kind == outcome->kind &&
            (outcome->kind != OUTCOME_ELSEWHERE || words[i].failed == outcome->failed)) {
            return words[i].word;
        }
    }
    return "failed";
}

// Whether the members make an object.
static bool is_json(const char *members)
{
    AUTO_BUF object;

    buf_init(&object, OUTCOME_ENTRY_MAX);
    buf_printf(&object, "{%s}", members);
    return object.status == 0 &&
           json_check((struct json_slice){object.data, object.len}, NULL) == 0;
}

void delivery_read_outcome(const char *word, const char *members, struct outcome *ret)
{
    for (size_t i = 0; i < COUNT(words); i++) {
        if (str_equal(words[i].word, word) && is_json(members)) {
            outcome_complete(ret, NULL);
            ret->kind = words[i].kind;
            ret->failed = words[i].failed;
            buf_puts(&ret->members, members);
            return;
        }
    }
    outcome_fail(ret, "what its worker wrote to Redis cannot be read as an outcome", 0, false);
}

void delivery_wrap(struct outcome *outcome)
{
    AUTO_PARCEL parcel = {0};
    AUTO_BUF object, coded;

    buf_init(&object, OUTCOME_ENTRY_MAX);
    buf_init(&coded, OUTCOME_ENTRY_MAX);
    buf_printf(&object, "{%s}", buf_peek(&outcome->members));
    struct json_slice members = {buf_peek(&object), object.len};
    if (object.status == 0 && parcel_json_must(members) &&
        parcel_json_pack(&parcel, NULL, members, &coded, NULL) == 0) {
        outcome_replace(outcome, coded.data + 1, coded.len - 2);
    }
}

bool delivery_read_report(const redisReply *entry, struct delivery_outcome *ret)
{
    const redisReply *fields = fields_of(entry);

    if (!fields) {
        return false;
    }
    *ret = (struct delivery_outcome){
        .number = entry->element[0]->str,
        .id = find_number(fields, "id"),
        .lease = find_text(fields, "lease"),
        .word = find_text(fields, "word"),
        .members = find_text(fields, "members"),
    };
    return ret->lease && ret->word && ret->members;
}

int delivery_compare(const char *a, const char *b)
{
    uint64_t a_ms = 0, a_no = 0, b_ms = 0, b_no = 0;

    sscanf(a, "%" SCNu64 "-%" SCNu64, &a_ms, &a_no);
    sscanf(b, "%" SCNu64 "-%" SCNu64, &b_ms, &b_no);
    if (a_ms != b_ms) {
        return a_ms < b_ms ? -1 : 1;
    }
    return a_no < b_no ? -1 : a_no > b_no;
}
