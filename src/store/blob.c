// SPDX-License-Identifier: PostgreSQL
//
// Blob stores: see blob.h. What holds for every kind of store is checked here.

#include "store/blob.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

static const struct blob_ops *const kinds[] = {&blob_s3};
#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

// ---- results ----

static const struct {
    const char *name;
    int code;
    bool of_store;
} results[] = {
    [BLOB_OK] = {"ok", 0, false},
    [BLOB_TRANSIENT] = {"transient", MR_ECONNECT, true},
    [BLOB_STOPPED] = {"stopped", MR_EIO, true},
    [BLOB_CONFIG] = {"config", MR_ECONFIG, true},
    [BLOB_REJECTED] = {"rejected", MR_EINVALID, false},
    [BLOB_MISSING] = {"missing", MR_EUNKNOWN, false},
    [BLOB_DAMAGED] = {"damaged", MR_EDAMAGED, false},
};

bool blob_result_is_of_store(enum blob_result result)
{
    return results[result].of_store;
}

const char *blob_result_name(enum blob_result result)
{
    return results[result].name;
}

// ---- keys ----

static bool is_key_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("-_.~/", c));
}

static bool is_key_part(const char *part, size_t size)
{
    return size > 0 && !(size == 1 && part[0] == '.') && !(size == 2 && memcmp(part, "..", 2) == 0);
}

bool blob_key_is_good(const char *key)
{
    const char *part = key;

    for (const char *at = key;; at++) {
        if (*at == '/' || !*at) {
            if (!is_key_part(part, (size_t)(at - part))) {
                return false;
            }
            part = at + 1;
        }
        if (!*at || !is_key_character(*at)) {
            return !*at && at - key <= BLOB_KEY_MAX;
        }
    }
}

// ---- open and close ----

static int find_kind(const char *address, const struct blob_ops **ret, struct mr_error *err)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        size_t size = strlen(kinds[i]->scheme);
        if (strncmp(address, kinds[i]->scheme, size) == 0 && str_starts(address + size, "://")) {
            *ret = kinds[i];
            return 0;
        }
    }
    mr_error_set(err, MR_ECONFIG, "not the address of a blob store: it does not begin with s3://");
    mr_error_hint(err, "Write s3://BUCKET[/PREFIX][?endpoint=http://HOST:PORT&region=R&"
                       "style=path|host&ca=FILE].");
    return MR_ECONFIG;
}

int blob_check_address(const char *address, struct mr_error *err)
{
    const struct blob_ops *ops = NULL;
    int code = find_kind(address, &ops, err);

    return code ? code : ops->check_address(address, err);
}

static int complete_credentials(const struct blob_credentials *given, struct blob_credentials *ret,
                                struct mr_error *err)
{
    *ret = given ? *given : (struct blob_credentials){.access_key = NULL};
    if (!ret->access_key && !ret->secret_key) {
        ret->access_key = getenv("AWS_ACCESS_KEY_ID");
        ret->secret_key = getenv("AWS_SECRET_ACCESS_KEY");
        ret->session_token = ret->session_token ? ret->session_token : getenv("AWS_SESSION_TOKEN");
    }
    ret->session_token = str_empty(ret->session_token) ? NULL : ret->session_token;
    if (str_empty(ret->access_key) || str_empty(ret->secret_key)) {
        mr_error_set(err, MR_ECONFIG, "the blob store has no keys");
        mr_error_hint(err, "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or blobs_access_key "
                           "and blobs_secret_key in the configuration.");
        return MR_ECONFIG;
    }
    return 0;
}

// A time, or a number, within its limits; 0 is the default.
static bool complete(int64_t *value, int64_t fallback, int64_t most)
{
    *value = *value ? *value : fallback;
    return *value > 0 && *value <= most;
}

static int complete_options(const struct blob_options *given, struct blob_options *ret,
                            struct mr_error *err)
{
    *ret = given ? *given : (struct blob_options){.parallel = 0};
    int64_t parallel = ret->parallel, attempts = ret->attempts;

    if (!complete(&parallel, BLOB_PARALLEL, BLOB_PARALLEL_MAX) ||
        !complete(&attempts, BLOB_ATTEMPTS, BLOB_ATTEMPTS_MAX) ||
        !complete(&ret->connect_timeout_ms, BLOB_CONNECT_MS, BLOB_TIMEOUT_MAX_MS) ||
        !complete(&ret->idle_timeout_ms, BLOB_IDLE_TIMEOUT_MS, BLOB_TIMEOUT_MAX_MS) ||
        !complete(&ret->call_timeout_ms, BLOB_CALL_TIMEOUT_MS, BLOB_TIMEOUT_MAX_MS)) {
        return mr_error_set(err, MR_EUSAGE, "an option of the blob store is out of its range");
    }
    ret->parallel = (int)parallel;
    ret->attempts = (int)attempts;
    return 0;
}

int blob_open(const char *address, const struct blob_credentials *credentials,
              const struct blob_options *options, struct blob_store **ret, struct mr_error *err)
{
    const struct blob_ops *ops = NULL;
    struct blob_credentials whole_credentials;
    struct blob_options whole_options;
    int code = find_kind(address, &ops, err);

    code = code ? code : complete_credentials(credentials, &whole_credentials, err);
    code = code ? code : complete_options(options, &whole_options, err);
    return code ? code : ops->open(address, &whole_credentials, &whole_options, ret, err);
}

void blob_free(struct blob_store *store)
{
    if (store) {
        store->ops->free(store);
    }
}

void blob_stop(struct blob_store *store)
{
    store->ops->stop(store);
}

const char *blob_place(const struct blob_store *store)
{
    return store->ops->place(store);
}

// ---- objects ----

enum verb {
    VERB_PUT,
    VERB_GET,
    VERB_DELETE,
};

static const char *const verb_names[] = {
    [VERB_PUT] = "write",
    [VERB_GET] = "read",
    [VERB_DELETE] = "remove",
};

static bool is_sum(const char *text)
{
    return strspn(text, "0123456789abcdef") == SHA256_HEX_SIZE - 1 && !text[SHA256_HEX_SIZE - 1];
}

// NULL where it can be sent.
static const char *refusal(enum verb verb, const struct blob_item *item)
{
    bool sum_given = verb != VERB_DELETE && item->sha256[0];

    if (!item->key || !blob_key_is_good(item->key)) {
        return "its key is not made of A-Z a-z 0-9 - _ . ~ and single /, or is too long";
    }
    if (verb == VERB_PUT && item->size > BLOB_SIZE_MAX) {
        return "it is larger than 1 GB";
    }
    if (verb == VERB_GET && item->max > BLOB_SIZE_MAX) {
        return "more than 1 GB is allowed for it";
    }
    return sum_given && !is_sum(item->sha256) ? "its checksum is not 64 lower-case digits" : NULL;
}

// Forgets what an earlier call has left, and refuses what is never sent.
static size_t reset(enum verb verb, struct blob_item *items, size_t count)
{
    size_t good = 0;

    for (size_t i = 0; i < count; i++) {
        struct blob_item *item = &items[i];
        const char *why = refusal(verb, item);

        item->body = verb == VERB_GET ? NULL : item->body;
        item->status = 0;
        item->attempts = 0;
        item->hint = NULL;
        item->result = why ? BLOB_REJECTED : BLOB_STOPPED;
        snprintf(item->text, sizeof(item->text), "%s", why ? why : "");
        good += !why;
    }
    return good;
}

// The first item that failed speaks for all.
static int report(const struct blob_store *store, enum verb verb, const struct blob_item *items,
                  size_t count, struct mr_error *err)
{
    const struct blob_item *first = NULL;
    size_t failed = 0;

    for (size_t i = 0; i < count; i++) {
        if (items[i].result != BLOB_OK) {
            first = first ? first : &items[i];
            failed++;
        }
    }
    if (!first) {
        return 0;
    }
    mr_error_set(err, results[first->result].code, "cannot %s %.*s: %s", verb_names[verb],
                 BLOB_KEY_MAX, first->key ? first->key : "an object", first->text);
    mr_error_detail(err, "%zu of %zu objects failed, in %s.", failed, count, blob_place(store));
    mr_error_hint(err, "%s", first->hint ? first->hint : "");
    return results[first->result].code;
}

static int run(struct blob_store *store, enum verb verb, struct blob_item *items, size_t count,
               struct mr_error *err)
{
    int code = 0;

    if (reset(verb, items, count) > 0) {
        switch (verb) {
        case VERB_PUT: code = store->ops->put_many(store, items, count, err); break;
        case VERB_GET: code = store->ops->get_many(store, items, count, err); break;
        case VERB_DELETE: code = store->ops->delete_many(store, items, count, err); break;
        }
    }
    return code ? code : report(store, verb, items, count, err);
}

int blob_put_many(struct blob_store *store, struct blob_item *items, size_t count,
                  struct mr_error *err)
{
    return run(store, VERB_PUT, items, count, err);
}

int blob_get_many(struct blob_store *store, struct blob_item *items, size_t count,
                  struct mr_error *err)
{
    return run(store, VERB_GET, items, count, err);
}

int blob_delete_many(struct blob_store *store, struct blob_item *items, size_t count,
                     struct mr_error *err)
{
    return run(store, VERB_DELETE, items, count, err);
}

void blob_items_done(struct blob_item *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(items[i].body);
        items[i].body = NULL;
    }
}

int blob_failure(const struct blob_store *store, const char *what, enum blob_result result,
                 const char *text, const char *hint, struct mr_error *err)
{
    mr_error_set(err, results[result].code, "cannot %s %s: %s", what, blob_place(store), text);
    mr_error_hint(err, "%s", hint ? hint : "");
    return results[result].code;
}

// ---- what is there ----

// What a key may begin with: a key, or one with / behind it.
static bool is_prefix(const char *text)
{
    char key[BLOB_KEY_MAX + 2];
    size_t size = strlen(text);

    if (size == 0 || size > BLOB_KEY_MAX) {
        return size == 0;
    }
    memcpy(key, text, size + 1);
    key[size - (size > 1 && key[size - 1] == '/')] = '\0';
    return blob_key_is_good(key);
}

int blob_list(struct blob_store *store, const char *prefix, const char *after,
              struct blob_page *ret, struct mr_error *err)
{
    if (!is_prefix(prefix) || (after && !blob_key_is_good(after))) {
        return mr_error_set(err, MR_EUSAGE, "cannot list objects: not the beginning of a key");
    }
    return store->ops->list(store, prefix, after, ret, err);
}

void blob_page_done(struct blob_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        free(page->entries[i].key);
    }
    free(page->entries);
    *page = (struct blob_page){.entries = NULL};
}

// ---- for `doctor` ----

int blob_lifecycle(struct blob_store *store, int *ret_days, struct mr_error *err)
{
    return store->ops->lifecycle(store, ret_days, err);
}

static int find_probe(struct blob_store *store, const char *key, struct mr_error *err)
{
    struct blob_page page = {.entries = NULL};
    int code = blob_list(store, key, NULL, &page, err);
    size_t count = page.count;

    blob_page_done(&page);
    if (code == 0 && count != 1) {
        mr_error_set(err, MR_ECONFIG, "an object that was written to %s is not in its list",
                     blob_place(store));
        mr_error_hint(err, "Look at the endpoint in the address: what answers there is not S3.");
        return MR_ECONFIG;
    }
    return code;
}

int blob_probe(struct blob_store *store, struct mr_error *err)
{
    static const char text[] = "millrace looks whether it can write here\n";
    char key[BLOB_KEY_MAX];
    struct mr_error later;

    snprintf(key, sizeof(key), "millrace-probe/%ld-%" PRId64, (long)getpid(), clock_wall_us());
    struct blob_item item = {.key = key, .data = text, .size = strlen(text), .max = strlen(text)};
    int code = blob_put_many(store, &item, 1, err);
    if (code) {
        return code;
    }
    code = blob_get_many(store, &item, 1, err);
    blob_items_done(&item, 1);
    code = code ? code : find_probe(store, key, err);
    int deleted = blob_delete_many(store, &item, 1, code ? &later : err);
    return code ? code : deleted;
}
