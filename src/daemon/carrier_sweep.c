// SPDX-License-Identifier: PostgreSQL
//
// What the carrier removes from the store: objects that no job names any more, and those that none
// ever named. See carrier.h.

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "daemon/carrier_parts.h"

// Columns of offload_doomed().
enum { DOOMED_NO, DOOMED_KEY };

static int tell_removed(struct carrier *carrier, const int64_t *numbers, size_t count,
                        int64_t orphans, struct mr_error *err)
{
    AUTO_RESULT *answer = NULL;
    AUTO_CALL call;

    call_init(&call, CALL_OFFLOAD_REMOVED);
    call_numbers(&call, numbers, count);
    call_number(&call, orphans);
    return carrier_call(carrier, &call, &answer, err);
}

static int look_for_doomed(struct carrier *carrier, PGresult **ret, struct mr_error *err)
{
    AUTO_CALL call;

    if (clock_ms() >= carrier->doom_again_ms) {
        carrier->doom_after = 0;
        carrier->doom_again_ms = clock_ms() + CARRIER_AGAIN_MS;
    }
    call_init(&call, CALL_OFFLOAD_DOOMED);
    call_number(&call, carrier->doom_after);
    return carrier_call(carrier, &call, ret, err);
}

static int remove_all(struct carrier *carrier, const PGresult *doomed, struct blob_item *items,
                      int64_t *numbers, bool *ret_more, struct mr_error *err)
{
    size_t count = (size_t)PQntuples(doomed);
    size_t gone = 0;

    for (size_t i = 0; i < count; i++) {
        items[i].key = PQgetvalue(doomed, (int)i, DOOMED_KEY);
    }
    blob_delete_many(carrier->store, items, count, err);
    bool failed = carrier_store_failed(carrier, items, count);
    for (size_t i = 0; i < count; i++) {
        if (items[i].result == BLOB_OK) {
            numbers[gone++] = atoll(PQgetvalue(doomed, (int)i, DOOMED_NO));
        }
    }
    int code = gone ? tell_removed(carrier, numbers, gone, 0, err) : 0;
    if (code == 0 && !failed) {
        carrier->doom_after = atoll(PQgetvalue(doomed, (int)count - 1, DOOMED_NO));
        *ret_more = true;
    }
    return code;
}

int carrier_remove_doomed(struct carrier *carrier, bool *ret_more, struct mr_error *err)
{
    AUTO_RESULT *doomed = NULL;
    int code = look_for_doomed(carrier, &doomed, err);

    if (code || PQntuples(doomed) == 0) {
        return code;
    }
    size_t count = (size_t)PQntuples(doomed);
    struct blob_item *items = calloc(count, sizeof(*items));
    int64_t *numbers = calloc(count, sizeof(*numbers));
    if (items && numbers) {
        code = remove_all(carrier, doomed, items, numbers, ret_more, err);
    } else {
        code = mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    free(items);
    free(numbers);
    return code;
}

// ---- orphans ----

// Which objects of a page are old enough and unknown to the database.
static int find_orphans(struct carrier *carrier, const struct blob_page *page, PGresult **ret,
                        struct mr_error *err)
{
    int64_t before_us = clock_wall_us() - carrier->orphan_ms * 1000;
    const char **keys = calloc(page->count, sizeof(*keys));
    size_t count = 0;
    AUTO_CALL call;

    call_init(&call, CALL_OFFLOAD_UNKNOWN);
    if (!keys) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < page->count; i++) {
        if (page->entries[i].modified_us < before_us) {
            keys[count++] = page->entries[i].key;
        }
    }
    call_texts(&call, keys, count);
    free(keys);
    int code = call_status(&call, err);
    return code ? code : carrier_call(carrier, &call, ret, err);
}

static int remove_orphans(struct carrier *carrier, const PGresult *unknown, struct mr_error *err)
{
    size_t count = (size_t)PQntuples(unknown);
    struct blob_item *items = calloc(count, sizeof(*items));
    int64_t gone = 0;

    if (!items) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        items[i].key = PQgetvalue(unknown, (int)i, 0);
    }
    blob_delete_many(carrier->store, items, count, err);
    carrier_store_failed(carrier, items, count);
    for (size_t i = 0; i < count; i++) {
        gone += items[i].result == BLOB_OK;
    }
    free(items);
    const struct log_field fields[] = {LOG_NUMBER_FIELD("objects", gone)};
    log_put(LEVEL_INFO, "blobs.orphans", fields, 1,
            "removed %lld objects of the blob store that no job names", (long long)gone);
    return gone ? tell_removed(carrier, NULL, 0, gone, err) : 0;
}

static int sweep_page(struct carrier *carrier, const struct blob_page *page, struct mr_error *err)
{
    AUTO_RESULT *unknown = NULL;
    int code = find_orphans(carrier, page, &unknown, err);

    if (code == 0 && PQntuples(unknown) > 0) {
        code = remove_orphans(carrier, unknown, err);
    }
    return code;
}

// One page a round: what is due goes first.
int carrier_sweep(struct carrier *carrier, bool *ret_more, struct mr_error *err)
{
    char prefix[CARRIER_HOME_SIZE + 1];
    AUTO_BLOB_PAGE page = {0};

    if (!carrier->sweeping && clock_ms() < carrier->sweep_at_ms) {
        return 0;
    }
    if (!carrier->sweeping) {
        carrier->sweeping = true;
        carrier->sweep_after[0] = '\0';
        carrier->sweep_at_ms = clock_ms() + carrier->sweep_ms;
    }
    snprintf(prefix, sizeof(prefix), "%s/", carrier->home);
    int code = blob_list(carrier->store, prefix,
                         carrier->sweep_after[0] ? carrier->sweep_after : NULL, &page, err);
    if (carrier_list_failed(carrier, code, err)) {
        return 0;
    }
    code = page.count ? sweep_page(carrier, &page, err) : 0;
    if (code == 0 && page.count) {
        snprintf(carrier->sweep_after, sizeof(carrier->sweep_after), "%s",
                 page.entries[page.count - 1].key);
    }
    carrier->sweeping = code == 0 && page.more;
    *ret_more = *ret_more || carrier->sweeping;
    return code;
}
