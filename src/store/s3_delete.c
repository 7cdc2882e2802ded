// SPDX-License-Identifier: PostgreSQL
//
// Removing objects from S3, a thousand with a request. The answer names those that could not be
// removed; what it does not name is gone.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/md5.h"
#include "base/str.h"
#include "store/s3_answer.h"
#include "store/s3_fault.h"
#include "store/s3_parts.h"

// <Object><Key>KEY</Key></Object> for each key, and what is around them.
#define DELETE_BODY_MAX ((size_t)BLOB_PAGE_MAX * (S3_PATH_SIZE + 64) + 256)

// Keys that go with one request.
struct chunk {
    struct blob_item *items[BLOB_PAGE_MAX];
    size_t count;
    struct buf body;
    struct buf md5;
};

struct deletion {
    struct s3_many many;
    struct chunk *chunks;
    size_t chunk_count;
    size_t next;
};

static void write_delete(const struct s3 *s3, struct chunk *chunk)
{
    unsigned char sum[MD5_SIZE];

    buf_init(&chunk->body, DELETE_BODY_MAX);
    buf_init(&chunk->md5, 64);
    buf_puts(&chunk->body, "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Delete "
                           "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Quiet>true</Quiet>");
    for (size_t i = 0; i < chunk->count; i++) {
        buf_printf(&chunk->body, "<Object><Key>%s%s</Key></Object>", s3->address.prefix,
                   chunk->items[i]->key);
    }
    buf_puts(&chunk->body, "</Delete>");
    md5_sum(chunk->body.data, chunk->body.len, sum);
    base64_add(&chunk->md5, sum, sizeof(sum));
}

static bool next_delete(void *arg, struct s3_request *request)
{
    struct deletion *deletion = arg;

    if (deletion->next >= deletion->chunk_count) {
        return false;
    }
    struct chunk *chunk = &deletion->chunks[deletion->next];
    write_delete(deletion->many.s3, chunk);
    request->method = S3_POST;
    request->query = "delete=";
    s3_set_body(request, buf_peek(&chunk->body), chunk->body.len);
    request->content_md5 = buf_peek(&chunk->md5);
    request->answer_max = S3_PAGE_ANSWER_MAX;
    request->laborious = true;
    request->at = deletion->next++;
    return true;
}

struct undeleted {
    const struct s3 *s3;
    struct chunk *chunk;
};

static bool is_key_of(const struct s3 *s3, const struct blob_item *item, const char *key)
{
    const char *prefix = s3->address.prefix;

    return str_starts(key, prefix) && str_equal(item->key, key + strlen(prefix));
}

static void on_undeleted(void *arg, const char *key, const struct s3_error *error)
{
    const struct undeleted *undeleted = arg;
    struct s3_fault fault;

    s3_fault_of_error(error, &fault);
    for (size_t i = 0; i < undeleted->chunk->count; i++) {
        struct blob_item *item = undeleted->chunk->items[i];
        if (fault.result != BLOB_MISSING && is_key_of(undeleted->s3, item, key)) {
            item->result = fault.result;
            item->hint = fault.hint;
            memcpy(item->text, fault.text, sizeof(item->text));
        }
    }
}

static void ignore_undeleted(void *arg, const char *key, const struct s3_error *error)
{
    (void)arg;
    (void)key;
    (void)error;
}

static void judge_delete(void *arg, struct s3_request *request)
{
    (void)arg;
    if (!s3_answer_deleted(request->answer, request->answer_size, ignore_undeleted, NULL)) {
        s3_fault_of_stranger(request->status, &request->fault);
    }
}

static void done_delete(void *arg, struct s3_request *request)
{
    struct deletion *deletion = arg;
    struct chunk *chunk = &deletion->chunks[request->at];
    struct undeleted undeleted = {.s3 = deletion->many.s3, .chunk = chunk};

    for (size_t i = 0; i < chunk->count; i++) {
        s3_set_result(chunk->items[i], request);
    }
    if (request->fault.result == BLOB_OK) {
        s3_answer_deleted(request->answer, request->answer_size, on_undeleted, &undeleted);
    }
    buf_done(&chunk->body);
    buf_done(&chunk->md5);
}

// Cuts what is not done yet into chunks; how many there are.
static size_t cut_chunks(struct deletion *deletion)
{
    struct s3_many *many = &deletion->many;
    struct blob_item *item;
    size_t at = 0;

    many->next = 0;
    deletion->next = 0;
    deletion->chunks[0].count = 0;
    while ((item = s3_next_item(many))) {
        if (deletion->chunks[at].count == BLOB_PAGE_MAX) {
            deletion->chunks[++at].count = 0;
        }
        deletion->chunks[at].items[deletion->chunks[at].count++] = item;
    }
    deletion->chunk_count = at + (deletion->chunks[at].count > 0);
    return deletion->chunk_count;
}

// Single keys that the store could not remove for now come again; how many.
static size_t reopen(struct s3_many *many, int attempts)
{
    size_t count = 0;

    for (size_t i = 0; i < many->count; i++) {
        struct blob_item *item = &many->items[i];
        if (item->result == BLOB_TRANSIENT && item->status == 200 && item->attempts < attempts) {
            item->result = BLOB_STOPPED;
            count++;
        }
    }
    return count;
}

int s3_delete_many(struct blob_store *store, struct blob_item *items, size_t count,
                   struct mr_error *err)
{
    struct s3 *s3 = s3_of(store);
    struct deletion deletion = {.many = {.s3 = s3, .items = items, .count = count}};
    struct s3_batch batch = {
        .next = next_delete, .judge = judge_delete, .done = done_delete, .arg = &deletion};
    int64_t deadline_ms = s3_wire_deadline(s3->wire);
    int attempts = s3_wire_attempts(s3->wire);

    deletion.chunks = calloc((count + BLOB_PAGE_MAX - 1) / BLOB_PAGE_MAX, sizeof(struct chunk));
    if (!deletion.chunks) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    for (int round = 1; cut_chunks(&deletion) > 0; round++) {
        s3_wire_run(s3->wire, &batch, deadline_ms);
        if (s3_wire_is_stopped(s3->wire) || clock_ms() >= deadline_ms ||
            reopen(&deletion.many, attempts) == 0) {
            break;
        }
        s3_wire_pause(s3->wire, round, deadline_ms);
    }
    free(deletion.chunks);
    return 0;
}
