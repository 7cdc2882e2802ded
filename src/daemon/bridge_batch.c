// SPDX-License-Identifier: PostgreSQL
//
// Entries of a stream: see bridge_batch.h.

#include "daemon/bridge_batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/str.h"

// ---- text and bytes ----

// How many bytes follow the first one of a character, and the least and largest that the second
// may be; -1: no character begins so.
static int follow(unsigned char first, unsigned char *ret_least, unsigned char *ret_most)
{
    static const struct {
        unsigned char from, to, least, most;
        int follow;
    } shapes[] = {
        {0x01, 0x7f, 0, 0, 0},       {0xc2, 0xdf, 0x80, 0xbf, 1}, {0xe0, 0xe0, 0xa0, 0xbf, 2},
        {0xe1, 0xec, 0x80, 0xbf, 2}, {0xed, 0xed, 0x80, 0x9f, 2}, {0xee, 0xef, 0x80, 0xbf, 2},
        {0xf0, 0xf0, 0x90, 0xbf, 3}, {0xf1, 0xf3, 0x80, 0xbf, 3}, {0xf4, 0xf4, 0x80, 0x8f, 3},
    };

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (first >= shapes[i].from && first <= shapes[i].to) {
            *ret_least = shapes[i].least;
            *ret_most = shapes[i].most;
            return shapes[i].follow;
        }
    }
    return -1;
}

bool bridge_is_text(const char *data, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)data;

    for (size_t i = 0; i < size;) {
        unsigned char least = 0, most = 0;
        int rest = follow(bytes[i++], &least, &most);
        if (rest < 0 || (size_t)rest > size - i) {
            return false;
        }
        for (; rest > 0; rest--, i++) {
            if (bytes[i] < least || bytes[i] > most) {
                return false;
            }
            least = 0x80;
            most = 0xbf;
        }
    }
    return true;
}

static void add_base64(struct buf *out, const redisReply *value)
{
    base64_add(out, value->str, value->len);
}

// hiredis puts a zero byte behind each string.
static void add_value(struct buf *out, const redisReply *value)
{
    if (bridge_is_text(value->str, value->len)) {
        json_add_string(out, value->str);
        return;
    }
    buf_puts(out, "{\"base64\":\"");
    add_base64(out, value);
    buf_puts(out, "\"}");
}

static void add_name(struct buf *out, const redisReply *name)
{
    if (bridge_is_text(name->str, name->len)) {
        json_add_string(out, name->str);
        return;
    }
    buf_puts(out, "\"base64:");
    add_base64(out, name);
    buf_puts(out, "\"");
}

// ---- fields ----

// A pair of an entry, for sorting: by name, those of one name in their order.
struct pair {
    const redisReply *name, *value;
    size_t at;
};

static int compare_names(const redisReply *a, const redisReply *b)
{
    size_t shorter = a->len < b->len ? a->len : b->len;
    int order = memcmp(a->str, b->str, shorter);

    return order ? order : (a->len > b->len) - (a->len < b->len);
}

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *left = a, *right = b;
    int order = compare_names(left->name, right->name);

    return order ? order : (left->at > right->at) - (left->at < right->at);
}

static void add_pairs(struct buf *out, const struct pair *pairs, size_t count)
{
    buf_puts(out, "{");
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && compare_names(pairs[i].name, pairs[next].name) == 0;) {
            next++;
        }
        buf_puts(out, i ? "," : "");
        add_name(out, pairs[i].name);
        buf_puts(out, next > i + 1 ? ":[" : ":");
        for (size_t j = i; j < next; j++) {
            buf_puts(out, j > i ? "," : "");
            add_value(out, pairs[j].value);
        }
        buf_puts(out, next > i + 1 ? "]" : "");
    }
    buf_puts(out, "}");
}

static bool is_string(const redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_STRING;
}

bool bridge_fields_json(const redisReply *fields, struct buf *out)
{
    size_t count = fields->type == REDIS_REPLY_ARRAY ? (size_t)fields->elements : 1;
    struct pair *pairs = count % 2 ? NULL : calloc(count / 2 + 1, sizeof(*pairs));
    bool good = pairs;

    for (size_t i = 0; good && i < count; i += 2) {
        pairs[i / 2] = (struct pair){fields->element[i], fields->element[i + 1], i};
        good = is_string(pairs[i / 2].name) && is_string(pairs[i / 2].value);
    }
    if (good) {
        qsort(pairs, count / 2, sizeof(*pairs), compare_pairs);
        add_pairs(out, pairs, count / 2);
    }
    free(pairs);
    return good;
}

// ---- entries ----

void bridge_batch_done(struct bridge_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        free(batch->entries[i].fields);
    }
    free(batch->entries);
    *batch = (struct bridge_batch){0};
}

static int not_entries(struct mr_error *err)
{
    return mr_error_set(err, MR_EINVALID, "Redis gave an answer that has no entries of a stream");
}

static size_t bytes_of(const redisReply *fields)
{
    size_t bytes = 0;

    for (size_t i = 0; i < fields->elements; i++) {
        bytes += fields->element[i]->len;
    }
    return bytes;
}

static int take_fields(struct bridge_entry *entry, const redisReply *fields, struct mr_error *err)
{
    AUTO_BUF json;

    buf_init(&json, BRIDGE_ENTRY_MAX);
    if (!bridge_fields_json(fields, &json)) {
        return not_entries(err);
    }
    if (json.status == MR_ELIMIT) {
        buf_done(&json);
        buf_init(&json, BRIDGE_ENTRY_MAX);
        buf_printf(&json, "{\"bytes\":%zu}", bytes_of(fields));
        entry->huge = true;
    }
    int code = buf_status(&json, err);
    if (code == 0) {
        entry->size = json.len;
        entry->fields = json.data;
        json.data = NULL;
    }
    return code;
}

// [id, fields], or [id, nil] of an entry that was deleted while it was pending.
static int take_entry(struct bridge_entry *entry, const redisReply *reply, struct mr_error *err)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || !is_string(reply->element[0]) ||
        reply->element[0]->len >= BRIDGE_ID_SIZE) {
        return not_entries(err);
    }
    snprintf(entry->id, sizeof(entry->id), "%s", reply->element[0]->str);
    if (reply->element[1]->type == REDIS_REPLY_NIL) {
        entry->gone = true;
        return 0;
    }
    return take_fields(entry, reply->element[1], err);
}

int bridge_batch_add(struct bridge_batch *batch, const redisReply *entries, struct mr_error *err)
{
    if (entries->type != REDIS_REPLY_ARRAY) {
        return not_entries(err);
    }
    size_t room = batch->count + entries->elements + 1;
    struct bridge_entry *more = realloc(batch->entries, room * sizeof(*more));
    if (!more) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    batch->entries = more;
    for (size_t i = 0; i < entries->elements; i++) {
        struct bridge_entry *entry = &more[batch->count];
        *entry = (struct bridge_entry){.size = 0};
        // Redis 6.2 has nil for an entry that is gone, without its id: it stays pending
        int code = entries->element[i]->type == REDIS_REPLY_NIL
                       ? 0
                       : take_entry(entry, entries->element[i], err);
        if (code) {
            return code;
        }
        batch->bytes += entry->size;
        batch->count += entry->id[0] != '\0';
    }
    return 0;
}

int bridge_read_entries(const redisReply *reply, const redisReply **ret, struct mr_error *err)
{
    *ret = NULL;
    if (reply->type == REDIS_REPLY_NIL) {
        return 0;
    }
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 1 ||
        reply->element[0]->type != REDIS_REPLY_ARRAY || reply->element[0]->elements != 2) {
        return not_entries(err);
    }
    *ret = reply->element[0]->element[1];
    return 0;
}

int bridge_claimed_entries(const redisReply *reply, const redisReply **ret,
                           char ret_next[BRIDGE_ID_SIZE], struct mr_error *err)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 2 || !is_string(reply->element[0]) ||
        reply->element[0]->len >= BRIDGE_ID_SIZE) {
        return not_entries(err);
    }
    snprintf(ret_next, BRIDGE_ID_SIZE, "%s", reply->element[0]->str);
    *ret = reply->element[1];
    return 0;
}

const redisReply *bridge_member(const redisReply *list, const char *name)
{
    if (list->type != REDIS_REPLY_ARRAY) {
        return NULL;
    }
    for (size_t i = 0; i + 1 < list->elements; i += 2) {
        if (is_string(list->element[i]) && str_equal(list->element[i]->str, name)) {
            return list->element[i + 1];
        }
    }
    return NULL;
}
