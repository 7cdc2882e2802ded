// SPDX-License-Identifier: PostgreSQL
//
// The blob store on S3: opens it, writes and reads objects, a request for each. How requests are
// sent is in s3_wire.h, what answers mean in s3_fault.h and s3_answer.h.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "store/s3_fault.h"
#include "store/s3_parts.h"

struct s3 *s3_of(struct blob_store *store)
{
    return (struct s3 *)store;
}

// ---- puts and gets: a request for each item ----

// The next item that was not refused; NULL: none.
struct blob_item *s3_next_item(struct s3_many *many)
{
    while (many->next < many->count) {
        struct blob_item *item = &many->items[many->next++];
        if (item->result == BLOB_STOPPED) {
            return item;
        }
    }
    return NULL;
}

static void set_path(const struct s3_many *many, const struct blob_item *item,
                     struct s3_request *request)
{
    request->at = (size_t)(item - many->items);
    snprintf(request->path, sizeof(request->path), "%s%s", many->s3->address.prefix, item->key);
}

void s3_set_body(struct s3_request *request, const void *body, size_t size)
{
    request->body = body;
    request->body_size = size;
    sha256_hex(body ? body : "", size, request->body_sha256);
}

static bool next_put(void *arg, struct s3_request *request)
{
    struct s3_many *many = arg;
    struct blob_item *item = s3_next_item(many);

    if (!item) {
        return false;
    }
    request->method = S3_PUT;
    set_path(many, item, request);
    request->body = item->size ? item->data : "";
    request->body_size = item->size;
    if (!item->sha256[0]) {
        sha256_hex(request->body, item->size, item->sha256);
    }
    memcpy(request->body_sha256, item->sha256, sizeof(item->sha256));
    return true;
}

static bool next_get(void *arg, struct s3_request *request)
{
    struct s3_many *many = arg;
    struct blob_item *item = s3_next_item(many);

    if (!item) {
        return false;
    }
    request->method = S3_GET;
    set_path(many, item, request);
    s3_set_body(request, NULL, 0);
    request->answer_max = item->max;
    return true;
}

static void damaged(struct s3_request *request, const char *why)
{
    request->fault = (struct s3_fault){.result = BLOB_DAMAGED};
    snprintf(request->fault.text, sizeof(request->fault.text), "%s", why);
}

// Compares what was read with what the caller expects and with what the object says of itself.
static void judge_get(void *arg, struct s3_request *request)
{
    const struct s3_many *many = arg;
    const char *expected = many->items[request->at].sha256;
    const char *said = request->sha256;
    char sum[SHA256_HEX_SIZE];

    sha256_hex(request->answer ? request->answer : "", request->answer_size, sum);
    if (str_equal(sum, expected[0] ? expected : said) && (!said[0] || str_equal(sum, said))) {
        return;
    }
    if (!request->head.of_s3 && !said[0]) {
        s3_fault_of_stranger(request->status, &request->fault);
    } else if (!expected[0] && !said[0]) {
        damaged(request, "it has no checksum");
    } else {
        damaged(request, said[0] && !str_equal(sum, said)
                             ? "its content does not have the checksum that was stored with it"
                             : "its content does not have the checksum that was expected");
    }
}

void s3_set_result(struct blob_item *item, const struct s3_request *request)
{
    item->result = request->fault.result;
    item->status = request->status;
    item->attempts += request->attempts;
    item->hint = request->fault.hint;
    memcpy(item->text, request->fault.text, sizeof(item->text));
}

static void done_put(void *arg, struct s3_request *request)
{
    const struct s3_many *many = arg;

    s3_set_result(&many->items[request->at], request);
}

static void done_get(void *arg, struct s3_request *request)
{
    const struct s3_many *many = arg;
    struct blob_item *item = &many->items[request->at];

    if (request->fault.result == BLOB_OK && !request->answer) {
        request->answer = calloc(1, 1); // an empty one
        if (!request->answer) {
            request->fault = (struct s3_fault){.result = BLOB_TRANSIENT, .text = "out of memory"};
        }
    }
    s3_set_result(item, request);
    if (item->result == BLOB_OK) {
        item->body = request->answer;
        item->size = request->answer_size;
        request->answer = NULL;
    }
}

static int s3_put_many(struct blob_store *store, struct blob_item *items, size_t count,
                       struct mr_error *err)
{
    struct s3_many many = {.s3 = s3_of(store), .items = items, .count = count};
    struct s3_batch batch = {.next = next_put, .done = done_put, .arg = &many};

    (void)err;
    s3_wire_run(many.s3->wire, &batch, s3_wire_deadline(many.s3->wire));
    return 0;
}

static int s3_get_many(struct blob_store *store, struct blob_item *items, size_t count,
                       struct mr_error *err)
{
    struct s3_many many = {.s3 = s3_of(store), .items = items, .count = count};
    struct s3_batch batch = {.next = next_get, .judge = judge_get, .done = done_get, .arg = &many};

    (void)err;
    s3_wire_run(many.s3->wire, &batch, s3_wire_deadline(many.s3->wire));
    return 0;
}

// ---- life ----

static int s3_check_address(const char *text, struct mr_error *err)
{
    struct s3_address address;

    return s3_address_parse(text, &address, err);
}

static void s3_free(struct blob_store *store)
{
    s3_wire_free(s3_of(store)->wire);
    free(store);
}

static void s3_stop(struct blob_store *store)
{
    s3_wire_stop(s3_of(store)->wire);
}

static const char *s3_place(const struct blob_store *store)
{
    return ((const struct s3 *)store)->place;
}

static int s3_open(const char *address, const struct blob_credentials *credentials,
                   const struct blob_options *options, struct blob_store **ret,
                   struct mr_error *err)
{
    struct s3 *s3 = calloc(1, sizeof(*s3));

    if (!s3) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    s3->store.ops = &blob_s3;
    int code = s3_address_parse(address, &s3->address, err);
    code = code ? code : s3_wire_new(&s3->address, credentials, options, &s3->wire, err);
    if (code) {
        free(s3);
        return code;
    }
    s3_address_place(&s3->address, s3->place);
    *ret = &s3->store;
    return 0;
}

const struct blob_ops blob_s3 = {
    .scheme = "s3",
    .check_address = s3_check_address,
    .open = s3_open,
    .free = s3_free,
    .stop = s3_stop,
    .place = s3_place,
    .put_many = s3_put_many,
    .get_many = s3_get_many,
    .delete_many = s3_delete_many,
    .list = s3_list,
    .lifecycle = s3_lifecycle,
};
