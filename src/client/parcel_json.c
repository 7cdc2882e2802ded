// SPDX-License-Identifier: PostgreSQL
//
// Payload parts in JSON texts: see parcel_json.h.
//
// A text is copied as it is up to a value that is to be replaced, then the other value, and so on:
// what is not looked at stays as it was written, to the byte.

#include "client/parcel_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"
#include "client/call.h"

// The signature in base64, as far as it does not depend on what follows.
#define SIGNATURE_BASE64 "iU1SUA0KGg"
// As much of a part as payload_face() shows.
#define FACE_MAX 16384

// Copying a text with some of its values replaced.
struct rewrite {
    struct parcel *parcel;
    const struct policy *policy;
    struct buf *out;
    const char *done; // up to here it is in `out`
    int code;
    bool object; // an object is the reason
    struct mr_error *err;
};

static bool has(struct json_slice text, const char *what)
{
    return memmem(text.at, text.len, what, strlen(what)) != NULL;
}

static void copy_until(struct rewrite *rewrite, const char *at)
{
    buf_add(rewrite->out, rewrite->done, (size_t)(at - rewrite->done));
    rewrite->done = at;
}

// Up to a value, which is replaced by what is appended next.
static void begin_instead(struct rewrite *rewrite, struct json_slice value)
{
    copy_until(rewrite, value.at);
    rewrite->done = value.at + value.len;
}

static void add_base64(struct buf *out, const void *data, size_t size)
{
    buf_puts(out, "\"");
    base64_add(out, data, size);
    buf_puts(out, "\"");
}

// ---- strings of base64 ----

// What a string says, where it may be base64: without blanks, the escapes that JSON has for ASCII
// read. False for other escapes.
static bool read_string(struct json_slice value, struct buf *out)
{
    const char *end = value.at + value.len - 1;

    for (const char *at = value.at + 1; at < end; at++) {
        char c = *at;
        if (c == '\\' && ++at < end) {
            static const char escapes[] = "/nrt", meant[] = "/   ";
            const char *known = strchr(escapes, *at);
            if (!known || !*known) {
                return false;
            }
            c = meant[known - escapes];
        }
        if (c != ' ') {
            buf_add(out, &c, 1);
        }
    }
    return true;
}

// The bytes of a string of base64. False: it is none, or there is no memory.
static bool read_bytes(struct json_slice value, struct buf *out)
{
    AUTO_BUF text;

    buf_init(&text, 2 * PART_VALUE_MAX);
    if (value.len < 2 || value.at[0] != '"') {
        return false;
    }
    if (!memchr(value.at, '\\', value.len)) {
        return base64_read(out, value.at + 1, value.len - 2) && out->status == 0;
    }
    return read_string(value, &text) && text.status == 0 &&
           base64_read(out, buf_peek(&text), text.len) && out->status == 0;
}

// ---- out ----

bool parcel_json_asks(struct json_slice object)
{
    return object.len > POLICY_COMPRESS_LEAST;
}

bool parcel_json_must(struct json_slice object)
{
    return has(object, SIGNATURE_BASE64) || has(object, "$coded");
}

static void pack_bytes(struct rewrite *rewrite, struct json_slice value)
{
    AUTO_BUF bytes;

    buf_init(&bytes, PART_VALUE_MAX);
    if (!read_bytes(value, &bytes) || bytes.len == 0) {
        return;
    }
    const void *data = bytes.data, *given = bytes.data;
    size_t size = bytes.len, objects = rewrite->parcel->object_count;
    rewrite->code = parcel_pack_bytes(rewrite->parcel, rewrite->policy, &data, &size, rewrite->err);
    if (rewrite->code == 0 && data != given) {
        begin_instead(rewrite, value);
        add_base64(rewrite->out, data, size);
    }
    if (rewrite->code == 0 && rewrite->parcel->object_count > objects) { // written later
        rewrite->code = parcel_keep(rewrite->parcel, &bytes, rewrite->err);
    }
}

static void pack_args(struct rewrite *rewrite, struct json_slice value)
{
    char *text = strndup(value.at, value.len);
    const char *args = text;

    if (!text) {
        rewrite->code = mr_error_set(rewrite->err, MR_ENOMEM, "out of memory");
        return;
    }
    rewrite->code = parcel_pack_args(rewrite->parcel, rewrite->policy, &args, rewrite->err);
    if (rewrite->code == 0 && args != text) {
        begin_instead(rewrite, value);
        buf_puts(rewrite->out, args);
    }
    free(text);
}

static void on_change(void *arg, struct json_slice key, struct json_slice value)
{
    struct rewrite *rewrite = arg;

    if (rewrite->code == 0 && json_slice_is(key, "args")) {
        pack_args(rewrite, value);
    }
}

static void on_outcome(void *arg, struct json_slice value);

static void on_part(void *arg, struct json_slice key, struct json_slice value)
{
    struct rewrite *rewrite = arg;

    if (rewrite->code) {
        return;
    }
    if (json_slice_is(key, "state") || json_slice_is(key, "blob")) {
        pack_bytes(rewrite, value);
    } else if (json_slice_is(key, "args")) {
        pack_args(rewrite, value);
    } else if (json_slice_is(key, "changes") && value.at[0] == '{') {
        json_each_member(value, on_change, rewrite, NULL);
    } else if (json_slice_is(key, "outcomes") && value.at[0] == '[') {
        json_each_element(value, on_outcome, rewrite, NULL);
    }
}

static void on_outcome(void *arg, struct json_slice value)
{
    if (value.at[0] == '{') {
        json_each_member(value, on_part, arg, NULL);
    }
}

int parcel_json_pack(struct parcel *parcel, const struct policy *policy, struct json_slice object,
                     struct buf *out, struct mr_error *err)
{
    struct rewrite rewrite = {parcel, policy, out, object.at, 0, false, err};
    bool worth = policy_codes(policy) && parcel_json_asks(object);

    if (worth || parcel_json_must(object)) {
        json_each_member(object, on_part, &rewrite, NULL);
    }
    copy_until(&rewrite, object.at + object.len);
    return rewrite.code ? rewrite.code : buf_status(out, err);
}

// ---- in: claims ----

bool parcel_json_is_coded(struct json_slice text)
{
    return has(text, SIGNATURE_BASE64);
}

static void open_bytes(struct rewrite *rewrite, const char *name, struct json_slice value)
{
    AUTO_BUF bytes;

    buf_init(&bytes, PART_VALUE_MAX);
    if (!str_starts(value.at, "\"" SIGNATURE_BASE64) || !read_bytes(value, &bytes)) {
        return;
    }
    const void *data = bytes.data;
    size_t size = bytes.len;
    rewrite->code = parcel_open_bytes(rewrite->parcel, &data, &size, rewrite->err);
    if (rewrite->code) {
        rewrite->object = parcel_is_object(bytes.data, bytes.len);
        mr_error_prefix(rewrite->err, "%s cannot be %s", name,
                        rewrite->code == MR_EDAMAGED ? "decoded" : "read");
    } else if (data != bytes.data) {
        begin_instead(rewrite, value);
        add_base64(rewrite->out, data, size);
    }
}

static void open_args(struct rewrite *rewrite, struct json_slice value)
{
    if (!part_args_are_coded(value.at)) {
        return;
    }
    char *text = strndup(value.at, value.len);
    const char *args = text;
    rewrite->code = text ? parcel_open_args(rewrite->parcel, &args, rewrite->err)
                         : mr_error_set(rewrite->err, MR_ENOMEM, "out of memory");
    if (rewrite->code) {
        mr_error_prefix(rewrite->err, "args cannot be decoded");
    } else if (args != text) {
        begin_instead(rewrite, value);
        buf_puts(rewrite->out, args);
    }
    free(text);
}

struct claimed {
    struct rewrite rewrite;
    int64_t id;
};

static void on_claimed_part(void *arg, struct json_slice key, struct json_slice value)
{
    struct claimed *job = arg;

    if (json_slice_is(key, "id")) {
        job->id = strtoll(value.at, NULL, 10);
    } else if (job->rewrite.code) {
        return;
    } else if (json_slice_is(key, "state")) {
        open_bytes(&job->rewrite, "state", value);
    } else if (json_slice_is(key, "blob")) {
        open_bytes(&job->rewrite, "blob", value);
    } else if (json_slice_is(key, "args")) {
        open_args(&job->rewrite, value);
    }
}

struct claim {
    struct parcel *parcel;
    struct buf *out;
    parcel_flaw_fn *on_flaw;
    void *arg;
    size_t jobs;
};

// The job goes into a buffer of its own first: whether all of it can be read is known at its end.
static void on_claimed_job(void *arg, struct json_slice value)
{
    struct claim *claim = arg;
    struct mr_error flaw;
    AUTO_BUF text;

    buf_init(&text, CALL_SIZE_MAX);
    struct claimed job = {{claim->parcel, NULL, &text, value.at, 0, false, &flaw}, 0};
    json_each_member(value, on_claimed_part, &job, NULL);
    copy_until(&job.rewrite, value.at + value.len);
    int code = job.rewrite.code ? job.rewrite.code : buf_status(&text, &flaw);
    if (code) {
        claim->on_flaw(claim->arg, job.id, &flaw, job.rewrite.object);
        return;
    }
    buf_puts(claim->out, claim->jobs++ ? ", " : "");
    buf_add(claim->out, text.data, text.len);
}

struct claims {
    struct rewrite rewrite;
    struct claim claim;
};

static void on_claim_member(void *arg, struct json_slice key, struct json_slice value)
{
    struct claims *claims = arg;

    if (json_slice_is(key, "jobs") && value.at[0] == '[') {
        begin_instead(&claims->rewrite, value);
        buf_puts(claims->rewrite.out, "[");
        json_each_element(value, on_claimed_job, &claims->claim, NULL);
        buf_puts(claims->rewrite.out, "]");
    }
}

struct want {
    struct parcel *parcel;
    int code;
    struct mr_error *err;
};

static void on_wanted_part(void *arg, struct json_slice key, struct json_slice value)
{
    struct want *want = arg;
    AUTO_BUF bytes;

    buf_init(&bytes, PART_VALUE_MAX);
    if (want->code == 0 && (json_slice_is(key, "state") || json_slice_is(key, "blob")) &&
        str_starts(value.at, "\"" SIGNATURE_BASE64) && read_bytes(value, &bytes)) {
        want->code = parcel_want(want->parcel, bytes.data, bytes.len, want->err);
    }
}

static void on_wanted_job(void *arg, struct json_slice value)
{
    json_each_member(value, on_wanted_part, arg, NULL);
}

static void on_wanted_member(void *arg, struct json_slice key, struct json_slice value)
{
    if (json_slice_is(key, "jobs") && value.at[0] == '[') {
        json_each_element(value, on_wanted_job, arg, NULL);
    }
}

int parcel_json_want_claim(struct parcel *parcel, struct json_slice text, struct mr_error *err)
{
    struct want want = {parcel, 0, err};

    json_each_member(text, on_wanted_member, &want, NULL);
    return want.code;
}

int parcel_json_open_claim(struct parcel *parcel, struct json_slice text, parcel_flaw_fn *on_flaw,
                           void *arg, struct buf *out, size_t *ret_jobs, struct mr_error *err)
{
    struct claims claims = {{parcel, NULL, out, text.at, 0, false, err},
                            {parcel, out, on_flaw, arg, 0}};
    int code = json_each_member(text, on_claim_member, &claims, err);

    if (code) {
        return code;
    }
    copy_until(&claims.rewrite, text.at + text.len);
    *ret_jobs = claims.claim.jobs;
    return buf_status(out, err);
}

// ---- in: stories and pages ----

struct face {
    struct json_slice bytes, stored, coding, format, value;
};

static void on_face_member(void *arg, struct json_slice key, struct json_slice value)
{
    struct face *face = arg;
    const struct {
        const char *name;
        struct json_slice *slice;
    } members[] = {
        {"bytes", &face->bytes},   {"stored", &face->stored}, {"coding", &face->coding},
        {"format", &face->format}, {"value", &face->value},
    };

    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        if (json_slice_is(key, members[i].name)) {
            *members[i].slice = value;
        }
    }
}

// Bytes as text, whole characters of it. False: they are none.
static bool add_face_text(struct buf *out, const char *data, size_t size)
{
    AUTO_BUF text;

    buf_init(&text, FACE_MAX);
    if (memchr(data, '\0', size)) {
        return false;
    }
    buf_add(&text, data, size);
    if (size == FACE_MAX && text.data) {
        str_trim_utf8(text.data);
    }
    if (utf8_wrong(buf_peek(&text))) {
        return false;
    }
    buf_puts(out, "\"text\", \"value\": ");
    json_add_string(out, buf_peek(&text));
    return true;
}

static void add_face_hex(struct buf *out, const char *data, size_t size)
{
    buf_puts(out, "\"hex\", \"value\": \"");
    for (size_t i = 0; i < size; i++) {
        buf_printf(out, "%02x", (unsigned char)data[i]);
    }
    buf_puts(out, "\"");
}

static void add_face_value(struct buf *out, const char *data, size_t size)
{
    bool cut = size > FACE_MAX;

    buf_printf(out, ", \"cut\": %s, \"format\": ", cut ? "true" : "false");
    if (!cut && json_check((struct json_slice){data, size}, NULL) == 0) {
        buf_puts(out, "\"json\", \"value\": ");
        buf_add(out, data, size);
    } else if (!add_face_text(out, data, cut ? FACE_MAX : size)) {
        add_face_hex(out, data, cut ? FACE_MAX : size);
    }
}

static void show_part(struct rewrite *rewrite, struct json_slice value)
{
    struct face face = {0};
    AUTO_BUF bytes;

    buf_init(&bytes, PART_VALUE_MAX);
    if (json_each_member(value, on_face_member, &face, NULL) ||
        !json_slice_is(face.format, "\"coded\"") || !json_slice_is(face.coding, "\"zstd\"") ||
        !face.value.at || !read_bytes(face.value, &bytes)) {
        return;
    }
    const void *data = bytes.data;
    size_t size = bytes.len;
    int code = parcel_open_bytes(rewrite->parcel, &data, &size, NULL);
    begin_instead(rewrite, value);
    buf_printf(rewrite->out, "{\"bytes\": %.*s, \"stored\": %.*s, \"coding\": \"zstd\"",
               (int)face.bytes.len, face.bytes.at, (int)face.stored.len, face.stored.at);
    if (code) {
        buf_puts(rewrite->out, ", \"damaged\": true");
    } else {
        add_face_value(rewrite->out, data, size);
    }
    buf_puts(rewrite->out, "}");
}

static void on_shown_job(void *arg, struct json_slice value);

static void on_shown(void *arg, struct json_slice key, struct json_slice value)
{
    struct rewrite *rewrite = arg;

    if (json_slice_is(key, "args")) {
        open_args(rewrite, value);
        rewrite->code = 0; // it is left as it is
    } else if ((json_slice_is(key, "state") || json_slice_is(key, "blob")) && value.at[0] == '{') {
        show_part(rewrite, value);
    } else if (json_slice_is(key, "jobs") && value.at[0] == '[') {
        json_each_element(value, on_shown_job, rewrite, NULL);
    }
}

static void on_shown_job(void *arg, struct json_slice value)
{
    if (value.at[0] == '{') {
        json_each_member(value, on_shown, arg, NULL);
    }
}

int parcel_json_show(struct json_slice text, struct buf *out, struct mr_error *err)
{
    AUTO_PARCEL parcel = {0};
    struct mr_error ignored;
    struct rewrite rewrite = {&parcel, NULL, out, text.at, 0, false, &ignored};

    if (parcel_json_is_coded(text)) {
        json_each_member(text, on_shown, &rewrite, NULL);
    }
    copy_until(&rewrite, text.at + text.len);
    return buf_status(out, err);
}
