// SPDX-License-Identifier: PostgreSQL
//
// The carrier's way out: parts are written as objects, then their rows name them. See carrier.h.

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "daemon/carrier_parts.h"

// Columns of offload_take().
enum { TAKE_NO, TAKE_PLACE, TAKE_ID, TAKE_PART, TAKE_KEY, TAKE_BODY };

#define STORED_MAX ((size_t)16 * 1024 * 1024)

static int64_t number_at(const PGresult *result, int row, int column)
{
    uint64_t network;

    memcpy(&network, PQgetvalue(result, row, column), sizeof(network));
    return (int64_t)be64toh(network);
}

static int take(struct carrier *carrier, PGresult **ret, struct mr_error *err)
{
    AUTO_CALL call;

    call_init(&call, CALL_OFFLOAD_TAKE);
    call_number(&call, carrier->out_after);
    call_number(&call, CARRIER_BATCH_JOBS);
    call_number(&call, CARRIER_BATCH_BYTES);
    return carrier_call(carrier, &call, ret, err);
}

static void fill_items(const PGresult *taken, struct blob_item *items)
{
    for (int row = 0; row < PQntuples(taken); row++) {
        items[row].key = PQgetvalue(taken, row, TAKE_KEY);
        items[row].data = PQgetvalue(taken, row, TAKE_BODY);
        items[row].size = (size_t)PQgetlength(taken, row, TAKE_BODY);
    }
}

static void add_stored(struct buf *out, const PGresult *taken, int row,
                       const struct blob_item *item)
{
    buf_puts(out, out->len > 1 ? ",{\"place\":" : "{\"place\":");
    json_add_string(out, PQgetvalue(taken, row, TAKE_PLACE));
    buf_printf(out, ",\"id\":%lld,\"part\":", (long long)number_at(taken, row, TAKE_ID));
    json_add_string(out, PQgetvalue(taken, row, TAKE_PART));
    buf_puts(out, ",\"key\":");
    json_add_string(out, item->key);
    buf_puts(out, ",\"sha256\":");
    json_add_string(out, item->sha256);
    buf_puts(out, "}");
}

// The rows from `first` on that are of one job, and whether all of them were stored.
static int rows_of_job(const PGresult *taken, int first, const struct blob_item *items,
                       bool *ret_stored)
{
    int row = first;

    *ret_stored = true;
    for (; row < PQntuples(taken) &&
           number_at(taken, row, TAKE_NO) == number_at(taken, first, TAKE_NO);
         row++) {
        *ret_stored = *ret_stored && items[row].result == BLOB_OK;
    }
    return row - first;
}

// Objects that nobody needs go at once; what cannot be removed now is an orphan for the sweep.
static void remove_spare(struct carrier *carrier, const PGresult *spare)
{
    size_t count = (size_t)PQntuples(spare);
    struct blob_item *items = count ? calloc(count, sizeof(*items)) : NULL;
    struct mr_error err;

    for (size_t i = 0; items && i < count; i++) {
        items[i].key = PQgetvalue(spare, (int)i, 0);
    }
    if (items) {
        blob_delete_many(carrier->store, items, count, &err);
    }
    free(items);
}

static int tell(struct carrier *carrier, const PGresult *taken, const struct blob_item *items,
                struct mr_error *err)
{
    AUTO_RESULT *spare = NULL;
    AUTO_BUF stored;
    AUTO_CALL call;
    bool whole;

    buf_init(&stored, STORED_MAX);
    call_init(&call, CALL_OFFLOAD_DONE);
    buf_puts(&stored, "[");
    for (int row = 0, n; row < PQntuples(taken); row += n) {
        n = rows_of_job(taken, row, items, &whole);
        for (int i = row; whole && i < row + n; i++) {
            add_stored(&stored, taken, i, &items[i]);
        }
    }
    buf_puts(&stored, "]");
    int code = buf_status(&stored, err);
    if (code) {
        return code;
    }
    call_text(&call, buf_peek(&stored));
    code = carrier_call(carrier, &call, &spare, err);
    if (code == 0) {
        remove_spare(carrier, spare);
    }
    return code;
}

static void log_refused(const struct blob_item *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (items[i].result != BLOB_OK && !blob_result_is_of_store(items[i].result)) {
            const struct log_field fields[] = {
                LOG_TEXT_FIELD("object", items[i].key),
                LOG_TEXT_FIELD("hint", items[i].hint),
            };
            log_put(LEVEL_WARNING, "blobs.refused", fields, 2,
                    "the blob store does not take a payload, which stays where it is: %s",
                    items[i].text);
        }
    }
}

static int carry(struct carrier *carrier, const PGresult *taken, bool *ret_more,
                 struct mr_error *err)
{
    size_t count = (size_t)PQntuples(taken);
    struct blob_item *items = calloc(count, sizeof(*items));

    if (!items) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    fill_items(taken, items);
    blob_put_many(carrier->store, items, count, err);
    bool failed = carrier_store_failed(carrier, items, count);
    log_refused(items, count);
    int code = tell(carrier, taken, items, err);
    if (code == 0 && !failed) {
        carrier->out_after = number_at(taken, (int)count - 1, TAKE_NO);
        *ret_more = true;
    }
    free(items);
    return code;
}

int carrier_out(struct carrier *carrier, bool *ret_more, struct mr_error *err)
{
    AUTO_RESULT *taken = NULL;

    if (clock_ms() >= carrier->out_again_ms) {
        carrier->out_after = 0;
        carrier->out_again_ms = clock_ms() + CARRIER_AGAIN_MS;
    }
    int code = take(carrier, &taken, err);
    if (code || PQntuples(taken) == 0) {
        return code;
    }
    return carry(carrier, taken, ret_more, err);
}
