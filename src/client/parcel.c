// SPDX-License-Identifier: PostgreSQL
//
// Coding and decoding the parts of a job: see parcel.h.

#include "client/parcel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/json_scan.h"
#include "base/str.h"

struct parcel_value {
    struct parcel_value *next;
    char *data;
};

void parcel_done(struct parcel *parcel)
{
    for (struct parcel_value *value = parcel->values, *next; value; value = next) {
        next = value->next;
        free(value->data);
        free(value);
    }
    part_zstd_done(&parcel->zstd);
    blob_items_done(parcel->objects, parcel->object_count);
    free(parcel->objects);
    *parcel = (struct parcel){0};
}

// Takes over `data`, also on failure.
static int keep(struct parcel *parcel, char *data, struct mr_error *err)
{
    struct parcel_value *value = malloc(sizeof(*value));

    if (!value || !data) {
        free(value);
        free(data);
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    *value = (struct parcel_value){parcel->values, data};
    parcel->values = value;
    return 0;
}

int parcel_keep(struct parcel *parcel, struct buf *buf, struct mr_error *err)
{
    char *data = buf->data;
    int code = buf_status(buf, err);

    if (code == 0) {
        code = keep(parcel, data, err);
        buf->data = NULL;
    }
    buf_done(buf);
    return code;
}

// ---- out ----

bool parcel_asks(const char *args, size_t state_size, size_t blob_size)
{
    return state_size > POLICY_COMPRESS_LEAST || blob_size > POLICY_COMPRESS_LEAST ||
           (args && strnlen(args, POLICY_COMPRESS_LEAST + 1) > POLICY_COMPRESS_LEAST);
}

static bool is_large(const struct policy *policy, size_t size)
{
    return policy && policy->compress_above > 0 && size > policy->compress_above;
}

// Appends what is to be written instead of an original; nothing, if that is the original.
static int pack(struct parcel *parcel, const struct policy *policy, const void *data, size_t size,
                bool must, struct buf *out, struct mr_error *err)
{
    bool pays = false;
    int code =
        is_large(policy, size) ? part_zstd_add(&parcel->zstd, out, data, size, &pays, err) : 0;

    if (code || pays || !must) {
        return code;
    }
    if (size > PART_SIZE_MAX) {
        mr_error_set(err, MR_EINVALID, "%zu bytes that begin like a coded part are too many", size);
        mr_error_hint(err, "At most %zu such bytes can be wrapped.", PART_SIZE_MAX);
        return MR_EINVALID;
    }
    part_add_plain(out, data, size);
    return buf_status(out, err);
}

// ---- out: objects ----

// One more, all zero; its place is good until the next one.
static struct blob_item *add_object(struct parcel *parcel, struct mr_error *err)
{
    size_t count = parcel->object_count;

    if ((count & (count - 1)) == 0) { // 0, and powers of two: it is full
        struct blob_item *grown =
            realloc(parcel->objects, (count ? 2 * count : 1) * sizeof(*grown));
        if (!grown) {
            mr_error_set(err, MR_ENOMEM, "out of memory");
            return NULL;
        }
        parcel->objects = grown;
    }
    parcel->objects[count] = (struct blob_item){0};
    parcel->object_count++;
    return &parcel->objects[count];
}

// HOME/DAY/new-RANDOM: whoever writes an object does not know its job yet.
static int make_key(const char *home, char *ret, size_t size, struct mr_error *err)
{
    unsigned char random[16];
    time_t now = time(NULL);
    struct tm day;

    if (getrandom(random, sizeof(random), 0) != sizeof(random) || !gmtime_r(&now, &day)) {
        return mr_error_set(err, MR_EIO, "no random bytes for the name of an object");
    }
    int length = snprintf(ret, size, "%s/%04d%02d%02d/new-", home, day.tm_year + 1900,
                          day.tm_mon + 1, day.tm_mday);
    for (size_t i = 0; i < sizeof(random); i++) {
        length += snprintf(ret + length, size - (size_t)length, "%02x", random[i]);
    }
    return 0;
}

// The row gets the reference; `size` is that of the original.
static int add_reference(struct parcel *parcel, const struct policy *policy, size_t original,
                         const void **data, size_t *size, struct mr_error *err)
{
    struct part_object object = {.size = *size};
    struct blob_item *item = add_object(parcel, err);
    struct buf value;
    int code;

    if (!item) {
        return MR_ENOMEM;
    }
    if ((code = make_key(policy->home, object.key, sizeof(object.key), err))) {
        parcel->object_count--;
        return code;
    }
    sha256_hex(*data, *size, object.sha256);
    char *key = strdup(object.key);
    *item = (struct blob_item){.key = key, .data = *data, .size = *size};
    memcpy(item->sha256, object.sha256, sizeof(item->sha256));
    buf_init(&value, PART_VALUE_MAX);
    if ((code = keep(parcel, key, err)) ||
        (code = part_add_object(&value, original, &object, err))) {
        buf_done(&value);
        return code;
    }
    *data = value.data;
    *size = value.len;
    return parcel_keep(parcel, &value, err);
}

static bool is_object_size(const struct parcel *parcel, const struct policy *policy, size_t size)
{
    return parcel->offloads && !parcel->inline_only && policy && policy->offload_above > 0 &&
           policy->home[0] && size > policy->offload_above && size <= PART_VALUE_MAX;
}

int parcel_ship(struct parcel *parcel, struct depot *depot, struct mr_error *err)
{
    if (parcel->object_count == 0) {
        return 0;
    }
    int code = depot_put(depot, parcel->objects, parcel->object_count, err);
    parcel->object_count = 0;
    return code;
}

void parcel_pack_again(struct parcel *parcel)
{
    parcel_done(parcel);
    parcel->inline_only = true;
}

static int pack_coded(struct parcel *parcel, const struct policy *policy, const void **data,
                      size_t *size, struct mr_error *err)
{
    struct buf value;
    bool must = part_is_coded(*data, *size);

    if (!must && !is_large(policy, *size)) {
        return 0;
    }
    buf_init(&value, PART_VALUE_MAX);
    int code = pack(parcel, policy, *data, *size, must, &value, err);
    if (code || value.len == 0) {
        buf_done(&value);
        return code;
    }
    *data = value.data;
    *size = value.len;
    return parcel_keep(parcel, &value, err);
}

int parcel_pack_bytes(struct parcel *parcel, const struct policy *policy, const void **data,
                      size_t *size, struct mr_error *err)
{
    size_t original = *size;

    if (!*data) {
        return 0;
    }
    int code = pack_coded(parcel, policy, data, size, err);
    if (code || original > PART_SIZE_MAX || !is_object_size(parcel, policy, *size)) {
        return code;
    }
    return add_reference(parcel, policy, original, data, size, err);
}

int parcel_pack_stored(struct parcel *parcel, const struct policy *policy, const void **data,
                       size_t *size, struct mr_error *err)
{
    struct part part = {.size = *size};
    int code = part_is_coded(*data, *size) ? part_read(*data, *size, &part, err) : 0;

    if (code || part.size > PART_SIZE_MAX || !is_object_size(parcel, policy, *size)) {
        return code;
    }
    return add_reference(parcel, policy, part.size, data, size, err);
}

// Whether the server would take it for jsonb, as far as that can be told here: what is coded it
// does not see. The rest is left to it, to be taken or refused as ever.
static bool is_safe_json(const char *args, size_t size)
{
    return !memmem(args, size, "\\u0000", 6) && !memmem(args, size, "\\ud", 3) &&
           !memmem(args, size, "\\uD", 3) && json_check((struct json_slice){args, size}, NULL) == 0;
}

static bool may_code_args(const struct policy *policy, const char *args, size_t size, bool must)
{
    if (!must && !is_large(policy, size)) {
        return false;
    }
    return !(policy && policy->args_max && size > policy->args_max) && is_safe_json(args, size);
}

// Base64 takes a third more: it may not pay when all is done.
static int code_args(struct parcel *parcel, const char *value, size_t value_size, bool must,
                     const char **args, size_t size, struct mr_error *err)
{
    struct buf text;

    buf_init(&text, 2 * PART_VALUE_MAX);
    part_add_args(&text, value, value_size);
    if (!must && text.len > size - size / 10) {
        buf_done(&text);
        return 0;
    }
    *args = text.data;
    return parcel_keep(parcel, &text, err);
}

int parcel_pack_args(struct parcel *parcel, const struct policy *policy, const char **args,
                     struct mr_error *err)
{
    bool must = *args && part_args_look_coded(*args);
    AUTO_BUF value;

    buf_init(&value, PART_VALUE_MAX);
    if (!*args || (!must && !policy)) {
        return 0;
    }
    size_t size = strlen(*args);
    if (!may_code_args(policy, *args, size, must)) {
        return 0;
    }
    int code = pack(parcel, policy, *args, size, must, &value, err);
    return code || value.len == 0 ? code
                                  : code_args(parcel, value.data, value.len, must, args, size, err);
}

int parcel_pack_job(struct parcel *parcel, const struct policy *policy, mr_job_spec *job,
                    struct mr_error *err)
{
    int code;

    if ((code = parcel_pack_args(parcel, policy, &job->args, err)) ||
        (code = parcel_pack_bytes(parcel, policy, &job->state, &job->state_size, err)) ||
        (code = parcel_pack_bytes(parcel, policy, &job->blob, &job->blob_size, err))) {
        return code;
    }
    return 0;
}

// ---- in ----

static int too_much(struct mr_error *err)
{
    mr_error_set(err, MR_ELIMIT, "the parts of one claim are more than %zu bytes",
                 PARCEL_DECODED_MAX);
    mr_error_hint(err, "Claim fewer jobs at a time.");
    return MR_ELIMIT;
}

// The first is always decoded: a job that never was would never run.
static bool has_room(const struct parcel *parcel, size_t size)
{
    return parcel->decoded == 0 || parcel->decoded + size <= PARCEL_DECODED_MAX;
}

static int open_zstd(struct parcel *parcel, const struct part *part, const void **data,
                     size_t *size, struct mr_error *err)
{
    char *original = NULL;

    if (!has_room(parcel, part->size)) {
        return too_much(err);
    }
    int code = part_zstd_read(&parcel->zstd, part, &original, err);
    if (code || (code = keep(parcel, original, err))) {
        return code;
    }
    parcel->decoded += part->size;
    *data = original;
    *size = part->size;
    return 0;
}

// ---- in: objects ----

// They are mostly asked for in the order in which they were noted.
static const struct blob_item *find_object(struct parcel *parcel, const char *key)
{
    for (size_t i = 0; i < parcel->object_count; i++) {
        size_t at = (parcel->object_next + i) % parcel->object_count;
        if (str_equal(parcel->objects[at].key, key)) {
            parcel->object_next = at + 1;
            return &parcel->objects[at];
        }
    }
    return NULL;
}

bool parcel_is_object(const void *data, size_t size)
{
    return data && part_is_coded(data, size) && size > PART_HEADER_SIZE &&
           ((const char *)data)[PART_SIGNATURE_SIZE] == PART_OBJECT;
}

bool parcel_has_object(const mr_claimed_job *job)
{
    return parcel_is_object(job->state, job->state_size) ||
           parcel_is_object(job->blob, job->blob_size);
}

// `decoded` is what they will take, until they are opened.
int parcel_want(struct parcel *parcel, const void *data, size_t size, struct mr_error *err)
{
    struct part_object object;
    struct part part;

    if (!parcel_is_object(data, size) || part_read(data, size, &part, NULL) ||
        part_read_object(&part, &object, NULL) || !has_room(parcel, object.size)) {
        return 0; // opening says what is wrong with it
    }
    char *key = strdup(object.key);
    int code = keep(parcel, key, err);
    if (code) {
        return code;
    }
    struct blob_item *item = add_object(parcel, err);
    if (!item) {
        return MR_ENOMEM;
    }
    *item = (struct blob_item){.key = key, .max = object.size, .result = BLOB_CONFIG};
    memcpy(item->sha256, object.sha256, sizeof(item->sha256));
    parcel->decoded += object.size;
    return 0;
}

int parcel_want_job(struct parcel *parcel, const mr_claimed_job *job, struct mr_error *err)
{
    int code = parcel_want(parcel, job->state, job->state_size, err);

    return code ? code : parcel_want(parcel, job->blob, job->blob_size, err);
}

const struct blob_item *parcel_object(struct parcel *parcel, const void *data, size_t size)
{
    struct part_object object;
    struct part part;

    if (!parcel_is_object(data, size) || part_read(data, size, &part, NULL) ||
        part_read_object(&part, &object, NULL)) {
        return NULL;
    }
    return find_object(parcel, object.key);
}

void parcel_fetch(struct parcel *parcel, struct depot *depot)
{
    if (depot && parcel->object_count > 0) {
        depot_get(depot, parcel->objects, parcel->object_count);
    }
}

static int no_store(const char *key, struct mr_error *err)
{
    mr_error_set(err, MR_ECONFIG, "it is object %.200s of a blob store, and none is configured",
                 key);
    mr_error_hint(err, "Set MILLRACE_BLOBS, or blobs of the configuration or of mr_conn_options, "
                       "to the store's address.");
    return MR_ECONFIG;
}

// What went wrong with reading an object: of the store, or of the object itself.
static int object_error(const struct blob_item *item, struct mr_error *err)
{
    int code = item->result == BLOB_CONFIG             ? MR_ECONFIG
               : blob_result_is_of_store(item->result) ? MR_ECONNECT
                                                       : MR_EDAMAGED;

    if (item->text[0] == '\0') { // never asked for
        return no_store(item->key, err);
    }
    mr_error_set(err, code, "object %.200s: %s: %s", item->key, blob_result_name(item->result),
                 item->text);
    if (item->hint) {
        mr_error_hint(err, "%s", item->hint);
    }
    return code;
}

static int wrong_object(const char *key, struct mr_error *err)
{
    mr_error_set(err, MR_EDAMAGED, "object %.200s has another form than its reference says", key);
    mr_error_hint(err, "It was not written by Millrace, or for another part.");
    return MR_EDAMAGED;
}

// An object holds what would stand in the row, coded or not.
static int open_object(struct parcel *parcel, const struct part *part, const void **data,
                       size_t *size, struct mr_error *err)
{
    struct part_object object;
    struct part inner;
    int code = part_read_object(part, &object, err);

    if (code) {
        return code;
    }
    const struct blob_item *item = find_object(parcel, object.key);
    if (!item) {
        return parcel->decoded > 0 ? too_much(err) : no_store(object.key, err);
    }
    if (item->result != BLOB_OK) {
        return object_error(item, err);
    }
    *data = item->body;
    *size = item->size;
    if (!part_is_coded(*data, *size)) {
        return *size == part->size ? 0 : wrong_object(object.key, err);
    }
    if ((code = part_read(*data, *size, &inner, err))) {
        return code;
    }
    if (inner.coding == PART_OBJECT || inner.size != part->size) {
        return wrong_object(object.key, err);
    }
    if (inner.coding == PART_ZSTD) {
        return open_zstd(parcel, &inner, data, size, err);
    }
    *data = inner.body;
    *size = inner.size;
    return 0;
}

int parcel_open_bytes(struct parcel *parcel, const void **data, size_t *size, struct mr_error *err)
{
    struct part part;

    if (!*data || !part_is_coded(*data, *size)) {
        return 0;
    }
    int code = part_read(*data, *size, &part, err);
    if (code) {
        return code;
    }
    switch (part.coding) {
    case PART_PLAIN:
        *data = part.body;
        *size = part.size;
        return 0;
    case PART_ZSTD: return open_zstd(parcel, &part, data, size, err);
    case PART_OBJECT: return open_object(parcel, &part, data, size, err);
    }
    return MR_EINTERNAL;
}

// Args are one line everywhere. In JSON a line break can only stand between values.
static void make_one_line(char *text)
{
    for (char *at = text; (at = strpbrk(at, "\r\n")); at++) {
        *at = ' ';
    }
}

// Args are a string: both the buffer and an original that was expanded have a zero byte behind
// them.
int parcel_open_args(struct parcel *parcel, const char **args, struct mr_error *err)
{
    struct buf value;
    const void *data;
    size_t size;

    if (!*args || !part_args_are_coded(*args)) {
        return 0;
    }
    buf_init(&value, PART_VALUE_MAX);
    int code = part_read_args(*args, &value, err);
    data = value.data;
    size = value.len;
    if (code == 0) {
        code = parcel_keep(parcel, &value, err);
    }
    buf_done(&value);
    if (code || (code = parcel_open_bytes(parcel, &data, &size, err))) {
        return code;
    }
    if (json_check((struct json_slice){data, size}, NULL)) {
        mr_error_set(err, MR_EDAMAGED, "what is decoded is not JSON");
        mr_error_hint(err, "It was not written by Millrace.");
        return MR_EDAMAGED;
    }
    make_one_line((char *)data); // it lies in memory of the parcel's
    *args = data;
    return 0;
}

bool parcel_is_coded(const mr_claimed_job *job)
{
    return (job->state && part_is_coded(job->state, job->state_size)) ||
           (job->blob && part_is_coded(job->blob, job->blob_size)) ||
           (job->args && part_args_are_coded(job->args));
}

static int in_part(int code, const char *name, struct mr_error *err)
{
    if (code == MR_EDAMAGED || code == MR_ECONFIG || code == MR_ECONNECT) {
        mr_error_prefix(err, "%s cannot be %s", name, code == MR_EDAMAGED ? "decoded" : "read");
    }
    return code;
}

int parcel_open_job(struct parcel *parcel, mr_claimed_job *job, struct mr_error *err)
{
    mr_claimed_job open = *job;
    int code;

    if ((code = in_part(parcel_open_args(parcel, &open.args, err), "args", err)) ||
        (code = in_part(parcel_open_bytes(parcel, &open.state, &open.state_size, err), "state",
                        err)) ||
        (code =
             in_part(parcel_open_bytes(parcel, &open.blob, &open.blob_size, err), "blob", err))) {
        return code;
    }
    *job = open;
    return 0;
}
