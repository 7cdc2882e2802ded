// SPDX-License-Identifier: PostgreSQL
//
// Payload parts of a move that are objects: see mover_parts.h.

#include "client/mover_parts.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "client/part.h"

// ---- arrays of bytea, as they come and go ----

// In front of the elements of an array of one dimension: dimensions, whether there are nulls, the
// type, the length, the lower bound; 4 bytes each, and so is each element's length, -1 for null.
enum { ARRAY_HEAD = 20, ARRAY_COUNT_AT = 12 };
#define COLUMN_MAX ((size_t)1000 * 1000 * 1000)

// Elements one after the other. data NULL: null.
struct reader {
    const char *at, *end;
    size_t left;
};

static uint32_t read_number(const char *at)
{
    uint32_t network;

    memcpy(&network, at, sizeof(network));
    return ntohl(network);
}

static void add_number(struct buf *out, uint32_t number)
{
    uint32_t network = htonl(number);

    buf_add(out, (const char *)&network, sizeof(network));
}

// An empty array has no dimension.
static void reader_init(struct reader *reader, const struct mover_column *column)
{
    bool any = column->size >= ARRAY_HEAD && read_number(column->data) == 1;

    *reader = (struct reader){column->data + (any ? ARRAY_HEAD : 0), column->data + column->size,
                              any ? read_number(column->data + ARRAY_COUNT_AT) : 0};
}

static bool reader_next(struct reader *reader, const void **ret_data, size_t *ret_size)
{
    if (reader->left == 0 || reader->end - reader->at < (ptrdiff_t)sizeof(uint32_t)) {
        return false;
    }
    uint32_t size = read_number(reader->at);
    reader->at += sizeof(uint32_t);
    reader->left--;
    *ret_data = size == UINT32_MAX ? NULL : reader->at;
    *ret_size = size == UINT32_MAX ? 0 : size;
    if (*ret_size > (size_t)(reader->end - reader->at)) {
        return false;
    }
    reader->at += *ret_size;
    return true;
}

static void add_element(struct buf *out, const void *data, size_t size)
{
    add_number(out, data ? (uint32_t)size : UINT32_MAX);
    buf_add(out, data ? data : "", size);
}

// ---- reading ----

static int want(struct parcel *parcel, const struct mover_column *column, struct mr_error *err)
{
    struct reader reader;
    const void *data;
    size_t size;
    int code = 0;

    reader_init(&reader, column);
    while (code == 0 && reader_next(&reader, &data, &size)) {
        code = parcel_want(parcel, data, size, err);
    }
    return code;
}

// A store in which nothing of that database is, is another one: what it does not have is not lost.
static int check_store(struct depot *from, const char *key, struct mr_error *err)
{
    char prefix[PART_KEY_MAX + 1];
    bool any = false;
    const char *slash = strchr(key, '/');

    snprintf(prefix, sizeof(prefix), "%.*s", (int)(slash ? slash + 1 - key : 0), key);
    int code = depot_has(from, prefix, &any, err);
    if (code || any) {
        return code;
    }
    mr_error_set(err, MR_ECONFIG, "it has no object of this database, and %.200s is to be there",
                 key);
    mr_error_hint(err, "Is MILLRACE_BLOBS, or --blobs, the store that the workers of this database "
                       "have? Jobs on their way wait; --give-back puts them back.");
    return MR_ECONFIG;
}

// What is wrong with the store stops the move; what is wrong with an object does not.
static int check_items(struct mover_parts *parts, struct depot *from, struct mr_error *err)
{
    bool checked = false;

    for (size_t i = 0; i < parts->parcel.object_count; i++) {
        const struct blob_item *item = &parts->parcel.objects[i];
        if (item->result == BLOB_CONFIG || blob_result_is_of_store(item->result)) {
            mr_error_set(err, item->result == BLOB_CONFIG ? MR_ECONFIG : MR_ECONNECT, "%s",
                         item->text);
            mr_error_hint(err, "%s", item->hint ? item->hint : "");
            return err->code;
        }
        int code = item->result == BLOB_MISSING && !checked ? check_store(from, item->key, err) : 0;
        if (code) {
            return code;
        }
        checked = checked || item->result == BLOB_MISSING;
        parts->unreadable += item->result != BLOB_OK;
    }
    return 0;
}

static int fetch(struct mover_parts *parts, const struct mover_column columns[MOVER_COLUMNS],
                 struct depot *from, struct mr_error *err)
{
    int code = 0;

    for (int i = 0; code == 0 && i < MOVER_COLUMNS; i++) {
        code = want(&parts->parcel, &columns[i], err);
    }
    if (code == 0 && parts->parcel.object_count > 0) {
        parcel_fetch(&parts->parcel, from);
        code = check_items(parts, from, err);
    }
    if (code) {
        mr_error_prefix(err, "the blob store of the database to move from");
    }
    return code;
}

// ---- writing ----

// A part becomes what its object holds, which is what would stand in the row; or another object.
static int replace(struct mover_parts *parts, struct parcel *out, const struct policy *policy,
                   const void **data, size_t *size, struct mr_error *err)
{
    const struct blob_item *item = parcel_object(&parts->parcel, *data, *size);

    if (!item) { // nothing to be read, or a reference that says nothing
        parts->unreadable += parcel_is_object(*data, *size);
        return 0;
    }
    if (item->result != BLOB_OK) {
        return 0;
    }
    *data = item->body;
    *size = item->size;
    return parcel_pack_stored(out, policy, data, size, err);
}

static int rebuild(struct mover_parts *parts, struct parcel *out, const struct policy *policy,
                   const struct mover_column *column, struct buf *ret, struct mr_error *err)
{
    struct reader reader;
    const void *data;
    size_t size;
    int code = 0;

    reader_init(&reader, column);
    buf_add(ret, column->data, ARRAY_HEAD);
    while (code == 0 && reader_next(&reader, &data, &size)) {
        code = replace(parts, out, policy, &data, &size, err);
        add_element(ret, data, size);
    }
    return code ? code : buf_status(ret, err);
}

static int put(struct parcel *out, struct depot *to, struct mr_error *err)
{
    int code = parcel_ship(out, to, err);

    if (code) {
        mr_error_prefix(err, "the blob store of the database to move to");
    }
    return code;
}

int mover_parts_carry(struct mover_parts *parts, const struct mover_column columns[MOVER_COLUMNS],
                      struct depot *from, struct depot *to, const struct policy *policy,
                      struct mr_error *err)
{
    AUTO_PARCEL out = {.offloads = to != NULL};
    int code = fetch(parts, columns, from, err);

    if (code || parts->parcel.object_count == 0) {
        return code;
    }
    for (int i = 0; code == 0 && i < MOVER_COLUMNS; i++) {
        code = rebuild(parts, &out, policy, &columns[i], &parts->columns[i], err);
    }
    return code ? code : put(&out, to, err);
}

void mover_parts_init(struct mover_parts *parts)
{
    *parts = (struct mover_parts){0};
    for (int i = 0; i < MOVER_COLUMNS; i++) {
        buf_init(&parts->columns[i], COLUMN_MAX);
    }
}

void mover_parts_done(struct mover_parts *parts)
{
    parcel_done(&parts->parcel);
    for (int i = 0; i < MOVER_COLUMNS; i++) {
        buf_done(&parts->columns[i]);
    }
}
