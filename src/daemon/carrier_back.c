// SPDX-License-Identifier: PostgreSQL
//
// The carrier's way back: objects are read, then their rows have the bytes again. See carrier.h.

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/carrier_parts.h"

// Columns of offload_due().
enum { DUE_ID, DUE_PART, DUE_KEY, DUE_SIZE, DUE_SHA256 };

static int look(struct carrier *carrier, PGresult **ret, struct mr_error *err)
{
    AUTO_CALL call;

    call_init(&call, CALL_OFFLOAD_DUE);
    call_number(&call, CARRIER_BATCH_JOBS);
    call_number(&call, CARRIER_BATCH_BYTES);
    return carrier_call(carrier, &call, ret, err);
}

static void fill_items(const PGresult *due, struct blob_item *items)
{
    for (int row = 0; row < PQntuples(due); row++) {
        long long size = atoll(PQgetvalue(due, row, DUE_SIZE));
        items[row].key = PQgetvalue(due, row, DUE_KEY);
        items[row].max = size > 0 && (size_t)size <= BLOB_SIZE_MAX ? (size_t)size : 0;
        if (PQgetlength(due, row, DUE_SHA256) == SHA256_HEX_SIZE - 1) {
            memcpy(items[row].sha256, PQgetvalue(due, row, DUE_SHA256), SHA256_HEX_SIZE);
        }
    }
}

// The rows from `first` on that are of one job, and whether the fate of each is known.
static int rows_of_job(const PGresult *due, int first, const struct blob_item *items,
                       bool *ret_known)
{
    int row = first;

    *ret_known = true;
    for (; row < PQntuples(due) &&
           strcmp(PQgetvalue(due, row, DUE_ID), PQgetvalue(due, first, DUE_ID)) == 0;
         row++) {
        *ret_known = *ret_known && !blob_result_is_of_store(items[row].result);
    }
    return row - first;
}

// The parameters of offload_restore(), a place for each part.
struct back {
    int64_t *ids;
    const char **parts;
    const char **keys;
    struct call_part *bodies;
    const char **errors; // "": none
    size_t count;
};

static bool back_init(struct back *back, size_t most)
{
    *back = (struct back){
        .ids = calloc(most, sizeof(*back->ids)),
        .parts = calloc(most, sizeof(*back->parts)),
        .keys = calloc(most, sizeof(*back->keys)),
        .bodies = calloc(most, sizeof(*back->bodies)),
        .errors = calloc(most, sizeof(*back->errors)),
    };
    return back->ids && back->parts && back->keys && back->bodies && back->errors;
}

static void back_done(struct back *back)
{
    free(back->ids);
    free(back->parts);
    free(back->keys);
    free(back->bodies);
    free(back->errors);
}

// What went wrong, with its name before what the store said.
static const char *tell_error(struct blob_item *item)
{
    char text[BLOB_TEXT_SIZE];

    snprintf(text, sizeof(text), "%s", item->text);
    snprintf(item->text, sizeof(item->text), "%s: %.*s", blob_result_name(item->result),
             BLOB_TEXT_SIZE - 16, text);
    return item->text;
}

static void back_add(struct back *back, const PGresult *due, int row, struct blob_item *item)
{
    size_t at = back->count++;

    back->ids[at] = atoll(PQgetvalue(due, row, DUE_ID));
    back->parts[at] = PQgetvalue(due, row, DUE_PART);
    back->keys[at] = item->key;
    if (item->result == BLOB_OK) {
        back->bodies[at] = (struct call_part){.data = item->body, .size = item->size};
        back->errors[at] = "";
    } else {
        back->errors[at] = tell_error(item);
    }
}

static void log_buried(const PGresult *answer)
{
    long long buried = atoll(PQgetvalue(answer, 0, 1));

    if (buried > 0) {
        log_put(LEVEL_ERROR, "blobs.buried", NULL, 0,
                "%lld jobs became dead letters: their payload is missing from the blob store, or "
                "damaged",
                buried);
    }
}

static int restore(struct carrier *carrier, const struct back *back, bool *ret_more,
                   struct mr_error *err)
{
    AUTO_RESULT *answer = NULL;
    AUTO_CALL call;

    call_init(&call, CALL_OFFLOAD_RESTORE);
    call_numbers(&call, back->ids, back->count);
    call_texts(&call, back->parts, back->count);
    call_texts(&call, back->keys, back->count);
    call_bytes_array(&call, back->bodies, back->count);
    call_texts(&call, back->errors, back->count);
    int code = call_status(&call, err);
    if (code == 0) {
        code = carrier_call(carrier, &call, &answer, err);
    }
    if (code == 0) {
        log_buried(answer);
        *ret_more = *ret_more || atoll(PQgetvalue(answer, 0, 0)) > 0;
    }
    return code;
}

// There may be more where some came back. What did not is asked for again by a later round.
static int tell(struct carrier *carrier, const PGresult *due, struct blob_item *items,
                bool *ret_more, struct mr_error *err)
{
    struct back back;
    bool known;
    int code = 0;

    if (!back_init(&back, (size_t)PQntuples(due))) {
        back_done(&back);
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    for (int row = 0, n; row < PQntuples(due); row += n) {
        n = rows_of_job(due, row, items, &known);
        for (int i = row; known && i < row + n; i++) {
            back_add(&back, due, i, &items[i]);
        }
    }
    if (back.count > 0) {
        code = restore(carrier, &back, ret_more, err);
    }
    back_done(&back);
    return code;
}

int carrier_back(struct carrier *carrier, bool *ret_more, struct mr_error *err)
{
    AUTO_RESULT *due = NULL;
    int code = look(carrier, &due, err);

    if (code || PQntuples(due) == 0) {
        return code;
    }
    size_t count = (size_t)PQntuples(due);
    struct blob_item *items = calloc(count, sizeof(*items));
    if (!items) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    fill_items(due, items);
    blob_get_many(carrier->store, items, count, err);
    carrier_store_failed(carrier, items, count);
    code = tell(carrier, due, items, ret_more, err);
    blob_items_done(items, count);
    free(items);
    return code;
}
