// SPDX-License-Identifier: PostgreSQL
//
// Coding and decoding the parts of a job: see parcel.h.

#include "client/parcel.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_scan.h"

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

int parcel_pack_bytes(struct parcel *parcel, const struct policy *policy, const void **data,
                      size_t *size, struct mr_error *err)
{
    struct buf value;
    bool must = *data && part_is_coded(*data, *size);

    if (!*data || (!must && !is_large(policy, *size))) {
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

static int no_store(struct mr_error *err)
{
    mr_error_set(err, MR_EDAMAGED, "it is in a blob store, and this version reads none");
    mr_error_hint(err, "Upgrade the program that reads it.");
    return MR_EDAMAGED;
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
    case PART_OBJECT: return no_store(err);
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
    if (code == MR_EDAMAGED) {
        mr_error_prefix(err, "%s cannot be decoded", name);
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
