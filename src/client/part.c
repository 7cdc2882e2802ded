// SPDX-License-Identifier: PostgreSQL
//
// The form of coded payload parts: see part.h.

#include "client/part.h"

#include <endian.h>

#include "base/base64.h"
#include "base/json_scan.h"
#include "base/str.h"

// `{"$coded": "`, the signature in base64 as far as it does not depend on what follows, and the
// end. The server writes jsonb in this one form.
#define ARGS_HEAD      "{\"$coded\": \""
#define ARGS_SIGNATURE ARGS_HEAD "iU1SUA0KGg"
#define ARGS_TAIL      "\"}"
#define ARGS_KEY       "$coded"

static int damaged(struct mr_error *err, const char *what)
{
    mr_error_set(err, MR_EDAMAGED, "%s", what);
    mr_error_hint(err, "It was not written by Millrace, or was changed since; "
                       "docs/compression.md says what the bytes are.");
    return MR_EDAMAGED;
}

// ---- the header ----

static bool is_coding(char coding)
{
    return coding == PART_PLAIN || coding == PART_ZSTD || coding == PART_OBJECT;
}

int part_read(const void *data, size_t size, struct part *ret, struct mr_error *err)
{
    const char *bytes = data;
    uint64_t declared;

    if (!part_is_coded(data, size)) {
        return damaged(err, "the value has no signature");
    }
    if (size < PART_HEADER_SIZE) {
        return damaged(err, "the value ends within its header");
    }
    if (!is_coding(bytes[PART_SIGNATURE_SIZE])) {
        return damaged(err, "the value has an unknown coding");
    }
    memcpy(&declared, bytes + PART_SIGNATURE_SIZE + 1, sizeof(declared));
    declared = be64toh(declared);
    if (declared > PART_SIZE_MAX) {
        mr_error_set(err, MR_EDAMAGED, "the value declares %llu bytes, the limit is %zu",
                     (unsigned long long)declared, PART_SIZE_MAX);
        mr_error_hint(err, "It was not written by Millrace. Nothing was decoded.");
        return MR_EDAMAGED;
    }
    *ret = (struct part){
        .coding = (enum part_coding)bytes[PART_SIGNATURE_SIZE],
        .size = (size_t)declared,
        .body = bytes + PART_HEADER_SIZE,
        .body_size = size - PART_HEADER_SIZE,
    };
    if (ret->coding == PART_PLAIN && ret->size != ret->body_size) {
        return damaged(err, "the value has another size than it declares");
    }
    return 0;
}

void part_add_header(struct buf *out, enum part_coding coding, size_t size)
{
    char letter = (char)coding;
    uint64_t network = htobe64(size);

    buf_add(out, PART_SIGNATURE, PART_SIGNATURE_SIZE);
    buf_add(out, &letter, 1);
    buf_add(out, (const char *)&network, sizeof(network));
}

void part_add_plain(struct buf *out, const void *data, size_t size)
{
    part_add_header(out, PART_PLAIN, size);
    buf_add(out, data, size);
}

// ---- args ----

bool part_args_are_coded(const char *args)
{
    return args[0] == '{' && args[1] == '"' && str_starts(args, ARGS_SIGNATURE);
}

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t\n\r");
}

// Members of the same name count once, so that args of a single member have that name everywhere.
bool part_args_look_coded(const char *args)
{
    const char *at = skip_blanks(args);

    if (*at != '{') {
        return false;
    }
    at = skip_blanks(at + 1);
    if (*at != '"') {
        return false;
    }
    size_t length = strcspn(++at, "\"\\");
    return at[length] == '\\' ||
           (length == sizeof(ARGS_KEY) - 1 && memcmp(at, ARGS_KEY, length) == 0);
}

void part_add_args(struct buf *out, const void *value, size_t size)
{
    buf_puts(out, ARGS_HEAD);
    base64_add(out, value, size);
    buf_puts(out, ARGS_TAIL);
}

int part_read_args(const char *args, struct buf *out, struct mr_error *err)
{
    size_t head = sizeof(ARGS_HEAD) - 1, tail = sizeof(ARGS_TAIL) - 1, length = strlen(args);

    if (!part_args_are_coded(args) || length < head + tail ||
        strcmp(args + length - tail, ARGS_TAIL) != 0) {
        return damaged(err, "the args have another form than coded ones");
    }
    if (!base64_read(out, args + head, length - head - tail)) {
        return damaged(err, "the args are coded, and are not base64");
    }
    return buf_status(out, err);
}

// ---- objects ----

static bool is_key(const char *key, size_t length)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "!-_.*'()/=+,@:~%";

    return length > 0 && length <= PART_KEY_MAX && strspn(key, allowed) >= length;
}

static bool is_sum(const char *text, size_t length)
{
    return length == SHA256_HEX_SIZE - 1 && strspn(text, "0123456789abcdef") >= length;
}

int part_add_object(struct buf *out, size_t size, const struct part_object *object,
                    struct mr_error *err)
{
    if (!is_key(object->key, strlen(object->key))) {
        mr_error_set(err, MR_EUSAGE, "the key of an object may not be: %.100s", object->key);
        mr_error_hint(err, "Give 1 to %d letters, digits and !-_.*'()/=+,@:~%%.", PART_KEY_MAX);
        return MR_EUSAGE;
    }
    if (!is_sum(object->sha256, strlen(object->sha256))) {
        return mr_error_set(err, MR_EUSAGE, "the checksum of an object is not SHA-256 in hex");
    }
    part_add_header(out, PART_OBJECT, size);
    buf_printf(out, "{\"key\":\"%s\",\"size\":%zu,\"sha256\":\"%s\"}", object->key, object->size,
               object->sha256);
    return 0;
}

// What stands between the quotes of a string without escapes; nothing for anything else.
static struct json_slice unquote(struct json_slice value)
{
    if (value.len < 2 || value.at[0] != '"' || memchr(value.at, '\\', value.len)) {
        return (struct json_slice){0};
    }
    return (struct json_slice){value.at + 1, value.len - 2};
}

struct object_members {
    struct json_slice key, size, sha256;
};

static void on_member(void *arg, struct json_slice key, struct json_slice value)
{
    struct object_members *members = arg;

    if (json_slice_is(key, "key")) {
        members->key = unquote(value);
    } else if (json_slice_is(key, "size")) {
        members->size = value;
    } else if (json_slice_is(key, "sha256")) {
        members->sha256 = unquote(value);
    }
}

static bool read_size(struct json_slice text, size_t *ret)
{
    char digits[24];
    int64_t number;

    if (text.len == 0 || text.len >= sizeof(digits)) {
        return false;
    }
    memcpy(digits, text.at, text.len);
    digits[text.len] = '\0';
    if (!str_parse_int(digits, 0, PART_VALUE_MAX, &number)) {
        return false;
    }
    *ret = (size_t)number;
    return true;
}

int part_read_object(const struct part *part, struct part_object *ret, struct mr_error *err)
{
    struct object_members members = {0};
    struct json_slice text = {part->body, part->body_size};
    size_t size;

    if (part->coding != PART_OBJECT || json_each_member(text, on_member, &members, NULL) ||
        !members.key.at || !is_key(members.key.at, members.key.len) || !members.sha256.at ||
        !is_sum(members.sha256.at, members.sha256.len) || !read_size(members.size, &size)) {
        return damaged(err, "the value names no object");
    }
    *ret = (struct part_object){.size = size};
    memcpy(ret->key, members.key.at, members.key.len);
    memcpy(ret->sha256, members.sha256.at, members.sha256.len);
    return 0;
}
