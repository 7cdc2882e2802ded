// SPDX-License-Identifier: PostgreSQL
//
// Makes one call of the blob store and prints what came of it:
//
//   blob_driver [NAME=VALUE...] WORD [ARGUMENT...]
//
// The address is in MILLRACE_BLOBS, keys in the environment. Names: parallel, attempts, connect,
// idle, call (milliseconds), access_key, secret_key, stop (milliseconds after which another thread
// stops the store). Words: see `words` below. A line for each object, `KEY RESULT STATUS ATTEMPTS`,
// with
// `: TEXT` where it failed; then `code CODE CLASS: MESSAGE`, `detail: ...` and `hint: ...` for a
// call that failed. The exit status is 0 in each of these cases.

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "store/blob.h"

static struct blob_options options;
static struct blob_credentials credentials;
static int64_t stop_ms;

static void fail(const char *what)
{
    fprintf(stderr, "blob_driver: %s\n", what);
    exit(2);
}

// ---- printing ----

static void print_code(int code, const struct mr_error *err)
{
    if (code) {
        printf("code %d %d: %s\n", err->code, (int)err->error_class, err->message);
        if (err->detail[0]) {
            printf("detail: %s\n", err->detail);
        }
        if (err->hint[0]) {
            printf("hint: %s\n", err->hint);
        }
    }
}

static void print_items(const struct blob_item *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        printf("%s %s %ld %d%s%s\n", items[i].key, blob_result_name(items[i].result),
               items[i].status, items[i].attempts, items[i].text[0] ? ": " : "", items[i].text);
    }
}

// How many of each result, where there are too many to name.
static void print_counts(const struct blob_item *items, size_t count)
{
    for (int result = BLOB_OK; result <= BLOB_DAMAGED; result++) {
        size_t found = 0;
        for (size_t i = 0; i < count; i++) {
            found += items[i].result == (enum blob_result)result;
        }
        if (found) {
            printf("%s %zu\n", blob_result_name((enum blob_result)result), found);
        }
    }
}

// ---- words ----

// KEY=TEXT...
static void put(struct blob_store *store, int argc, char **argv)
{
    struct blob_item *items = calloc((size_t)argc, sizeof(*items));
    struct mr_error err;

    for (int i = 0; i < argc; i++) {
        char *text = strchr(argv[i], '=');
        *text++ = '\0';
        items[i] = (struct blob_item){.key = argv[i], .data = text, .size = strlen(text)};
    }
    int code = blob_put_many(store, items, (size_t)argc, &err);
    print_items(items, (size_t)argc);
    print_code(code, &err);
    free(items);
}

// KEY SHA256 TEXT: with a checksum of the caller's.
static void put_as(struct blob_store *store, int argc, char **argv)
{
    struct blob_item item = {.key = argv[0], .data = argv[2], .size = strlen(argv[2])};
    struct mr_error err;

    (void)argc;
    snprintf(item.sha256, sizeof(item.sha256), "%s", argv[1]);
    int code = blob_put_many(store, &item, 1, &err);
    print_items(&item, 1);
    print_code(code, &err);
}

static void get_with(struct blob_store *store, const char *key, size_t max, const char *sum)
{
    struct blob_item item = {.key = key, .max = max};
    struct mr_error err;

    snprintf(item.sha256, sizeof(item.sha256), "%s", sum);
    int code = blob_get_many(store, &item, 1, &err);
    print_items(&item, 1);
    if (item.body) {
        printf("%zu bytes: %.60s\n", item.size, item.body);
    }
    print_code(code, &err);
    blob_items_done(&item, 1);
}

// KEY [MAX [SHA256]]
static void get(struct blob_store *store, int argc, char **argv)
{
    get_with(store, argv[0], argc > 1 ? (size_t)atoll(argv[1]) : 1000, argc > 2 ? argv[2] : "");
}

static void delete (struct blob_store *store, int argc, char **argv)
{
    struct blob_item *items = calloc((size_t)argc, sizeof(*items));
    struct mr_error err;

    for (int i = 0; i < argc; i++) {
        items[i].key = argv[i];
    }
    int code = blob_delete_many(store, items, (size_t)argc, &err);
    print_items(items, (size_t)argc);
    print_code(code, &err);
    free(items);
}

// What the nth of many objects holds: each is another.
static char *make_body(size_t at, size_t size)
{
    char *body = malloc(size + 1);

    for (size_t i = 0; i < size; i++) {
        body[i] = (char)((i * 31 + i / 251 + at * 7) & 0xff);
    }
    return body;
}

static struct blob_item *make_items(const char *prefix, size_t count)
{
    struct blob_item *items = calloc(count + 1, sizeof(*items));

    for (size_t i = 0; i < count; i++) {
        char *key = NULL;
        if (asprintf(&key, "%s%06zu", prefix, i) < 0) {
            fail("out of memory");
        }
        items[i].key = key;
    }
    return items;
}

static void free_items(struct blob_item *items, size_t count)
{
    blob_items_done(items, count);
    for (size_t i = 0; i < count; i++) {
        free((char *)items[i].key);
        free((void *)items[i].data);
    }
    free(items);
}

// PREFIX COUNT SIZE
static void put_many(struct blob_store *store, int argc, char **argv)
{
    size_t count = (size_t)atoll(argv[1]), size = (size_t)atoll(argv[2]);
    struct blob_item *items = make_items(argv[0], count);
    struct mr_error err;

    (void)argc;
    for (size_t i = 0; i < count; i++) {
        items[i].data = make_body(i, size);
        items[i].size = size;
    }
    int code = blob_put_many(store, items, count, &err);
    print_counts(items, count);
    print_code(code, &err);
    free_items(items, count);
}

// PREFIX COUNT SIZE: compares them with what put_many has written.
static void get_many(struct blob_store *store, int argc, char **argv)
{
    size_t count = (size_t)atoll(argv[1]), size = (size_t)atoll(argv[2]), same = 0;
    struct blob_item *items = make_items(argv[0], count);
    struct mr_error err;

    (void)argc;
    for (size_t i = 0; i < count; i++) {
        items[i].max = size;
    }
    int code = blob_get_many(store, items, count, &err);
    print_counts(items, count);
    for (size_t i = 0; i < count; i++) {
        char *body = make_body(i, size);
        same += items[i].body && items[i].size == size && memcmp(items[i].body, body, size) == 0;
        free(body);
    }
    printf("same %zu\n", same);
    print_code(code, &err);
    free_items(items, count);
}

// PREFIX COUNT
static void delete_many(struct blob_store *store, int argc, char **argv)
{
    size_t count = (size_t)atoll(argv[1]);
    struct blob_item *items = make_items(argv[0], count);
    struct mr_error err;

    (void)argc;
    int code = blob_delete_many(store, items, count, &err);
    print_counts(items, count);
    print_code(code, &err);
    free_items(items, count);
}

// [PREFIX [AFTER]]: one page.
static void list(struct blob_store *store, int argc, char **argv)
{
    int64_t now_us = clock_wall_us();
    struct blob_page page = {.entries = NULL};
    struct mr_error err;
    int code = blob_list(store, argc > 0 ? argv[0] : "", argc > 1 ? argv[1] : NULL, &page, &err);

    for (size_t i = 0; i < page.count; i++) {
        int64_t age_us = now_us - page.entries[i].modified_us;
        printf("%s %" PRId64 " %s\n", page.entries[i].key, page.entries[i].size,
               age_us < INT64_C(3600000000) && age_us > INT64_C(-3600000000) ? "new" : "old");
    }
    printf("%s", page.more ? "more\n" : "");
    print_code(code, &err);
    blob_page_done(&page);
}

// [PREFIX]: all pages, whose keys are in order and none twice.
static void list_all(struct blob_store *store, int argc, char **argv)
{
    char after[BLOB_KEY_MAX + 1] = "";
    size_t count = 0, pages = 0;
    bool more = true;
    struct mr_error err;
    int code = 0;

    while (more && code == 0) {
        struct blob_page page = {.entries = NULL};
        code = blob_list(store, argc > 0 ? argv[0] : "", after[0] ? after : NULL, &page, &err);
        for (size_t i = 0; i < page.count; i++) {
            if (strcmp(page.entries[i].key, after) <= 0) {
                fail("not in order");
            }
            snprintf(after, sizeof(after), "%s", page.entries[i].key);
        }
        count += page.count;
        pages++;
        more = page.more;
        blob_page_done(&page);
    }
    printf("%zu in %zu pages\n", count, pages);
    print_code(code, &err);
}

static void lifecycle(struct blob_store *store, int argc, char **argv)
{
    struct mr_error err;
    int days = 0;
    int code = blob_lifecycle(store, &days, &err);

    (void)argc;
    (void)argv;
    if (code == 0) {
        printf("days %d\n", days);
    }
    print_code(code, &err);
}

static void probe(struct blob_store *store, int argc, char **argv)
{
    struct mr_error err;
    int code = blob_probe(store, &err);

    (void)argc;
    (void)argv;
    printf("%s", code ? "" : "good\n");
    print_code(code, &err);
}

static const struct {
    const char *name;
    int least; // arguments
    void (*run)(struct blob_store *store, int argc, char **argv);
} words[] = {
    {"put", 1, put},           {"put_as", 3, put_as},
    {"get", 1, get},           {"delete", 1, delete},
    {"put_many", 3, put_many}, {"get_many", 3, get_many},
    {"list", 0, list},         {"delete_many", 2, delete_many},
    {"list_all", 0, list_all}, {"lifecycle", 0, lifecycle},
    {"probe", 0, probe},
};

// ---- the call ----

static bool set_number(const char *name, int64_t value)
{
    if (str_equal(name, "parallel")) {
        options.parallel = (int)value;
    } else if (str_equal(name, "attempts")) {
        options.attempts = (int)value;
    } else if (str_equal(name, "connect")) {
        options.connect_timeout_ms = value;
    } else if (str_equal(name, "idle")) {
        options.idle_timeout_ms = value;
    } else if (str_equal(name, "call")) {
        options.call_timeout_ms = value;
    } else if (str_equal(name, "stop")) {
        stop_ms = value;
    } else {
        return false;
    }
    return true;
}

static bool set_option(char *text)
{
    char *value = strchr(text, '=');

    if (!value) {
        return false;
    }
    *value++ = '\0';
    if (str_equal(text, "access_key")) {
        credentials.access_key = value;
    } else if (str_equal(text, "secret_key")) {
        credentials.secret_key = value;
    } else if (!set_number(text, atoll(value))) {
        fail("unknown option");
    }
    return true;
}

static void *stop_later(void *arg)
{
    usleep((useconds_t)stop_ms * 1000);
    blob_stop(arg);
    return NULL;
}

static void run(int argc, char **argv)
{
    struct blob_store *store = NULL;
    struct mr_error err;
    pthread_t thread = 0;
    int code = blob_open(getenv("MILLRACE_BLOBS"), &credentials, &options, &store, &err);

    if (code) {
        print_code(code, &err);
        return;
    }
    if (stop_ms && pthread_create(&thread, NULL, stop_later, store)) {
        fail("no thread");
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (str_equal(words[i].name, argv[0]) && argc > words[i].least) {
            words[i].run(store, argc - 1, argv + 1);
            if (stop_ms) {
                pthread_join(thread, NULL);
            }
            blob_free(store);
            return;
        }
    }
    fail("unknown word");
}

int main(int argc, char **argv)
{
    int at = 1;

    while (at < argc && set_option(argv[at])) {
        at++;
    }
    if (at == argc || !getenv("MILLRACE_BLOBS")) {
        fail("no word, or no address in MILLRACE_BLOBS");
    }
    run(argc - at, argv + at);
    return 0;
}
