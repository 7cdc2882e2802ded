// SPDX-License-Identifier: PostgreSQL
//
// What S3 tells of a bucket: which objects are in it, and after how many days it removes them
// itself.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "store/s3_answer.h"
#include "store/s3_fault.h"
#include "store/s3_parts.h"

#define QUERY_MAX 8192

// ---- one request ----

struct single {
    const char *query;
    size_t answer_max;
    void (*judge)(void *arg, struct s3_request *request);
    void *arg;
    bool begun;
    struct s3_fault fault; // what came of it
};

static bool next_single(void *arg, struct s3_request *request)
{
    struct single *single = arg;

    if (single->begun) {
        return false;
    }
    single->begun = true;
    request->method = S3_GET;
    request->query = single->query;
    request->answer_max = single->answer_max;
    s3_set_body(request, NULL, 0);
    return true;
}

static void judge_single(void *arg, struct s3_request *request)
{
    const struct single *single = arg;

    single->judge(single->arg, request);
}

static void done_single(void *arg, struct s3_request *request)
{
    struct single *single = arg;

    single->fault = request->fault;
}

static void ask(struct s3 *s3, struct single *single, int64_t deadline_ms)
{
    struct s3_batch batch = {
        .next = next_single, .judge = judge_single, .done = done_single, .arg = single};

    s3_wire_run(s3->wire, &batch, deadline_ms);
}

// ---- lists ----

struct listing {
    const char *prefix; // of the address
    struct blob_page page;
    char *last; // key, whoever's it is
    bool no_memory;
};

// Adds NAME=VALUE with everything escaped that a signature wants escaped.
static void add_query(struct buf *query, const char *name, const char *prefix, const char *value)
{
    buf_printf(query, "%s%s=", query->len ? "&" : "", name);
    for (int part = 0; part < 2; part++) {
        for (const char *at = part ? value : prefix; *at; at++) {
            bool plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                         (*at >= '0' && *at <= '9') || strchr("-_.~", *at);
            buf_printf(query, plain ? "%c" : "%%%02X", (unsigned char)*at);
        }
    }
}

// Keys that are none of ours are passed over.
static bool on_entry(void *arg, const char *key, int64_t size, int64_t modified_us)
{
    struct listing *list = arg;
    struct blob_page *page = &list->page;
    bool ours = str_starts(key, list->prefix) && blob_key_is_good(key + strlen(list->prefix));

    free(list->last);
    list->last = strdup(key);
    list->no_memory = list->no_memory || !list->last;
    if (!ours || list->no_memory) {
        return !list->no_memory;
    }
    char *own = strdup(key + strlen(list->prefix));
    if (!own || page->count >= BLOB_PAGE_MAX) {
        free(own);
        list->no_memory = list->no_memory || !own;
        return false;
    }
    page->entries[page->count++] =
        (struct blob_entry){.key = own, .size = size, .modified_us = modified_us};
    return true;
}

static void forget_entries(struct listing *list)
{
    for (size_t i = 0; i < list->page.count; i++) {
        free(list->page.entries[i].key);
    }
    list->page.count = 0;
}

static void judge_list(void *arg, struct s3_request *request)
{
    struct listing *list = arg;

    forget_entries(list);
    if (!s3_answer_list(request->answer, request->answer_size, on_entry, list, &list->page.more)) {
        s3_fault_of_stranger(request->status, &request->fault);
    }
}

// One page, which may have nothing of ours.
static void read_page(struct s3 *s3, const char *prefix, const char *after, bool after_is_whole,
                      int64_t deadline_ms, struct listing *list, struct s3_fault *ret)
{
    AUTO_BUF query;

    buf_init(&query, QUERY_MAX);
    add_query(&query, "list-type", "", "2");
    add_query(&query, "max-keys", "", "1000");
    add_query(&query, "prefix", s3->address.prefix, prefix);
    if (after) {
        add_query(&query, "start-after", after_is_whole ? "" : s3->address.prefix, after);
    }
    struct single single = {.query = buf_peek(&query),
                            .answer_max = S3_PAGE_ANSWER_MAX,
                            .judge = judge_list,
                            .arg = list};
    ask(s3, &single, deadline_ms);
    *ret = single.fault;
}

int s3_list(struct blob_store *store, const char *prefix, const char *after, struct blob_page *ret,
            struct mr_error *err)
{
    struct s3 *s3 = s3_of(store);
    struct listing list = {.prefix = s3->address.prefix};
    int64_t deadline_ms = s3_wire_deadline(s3->wire);
    struct s3_fault fault;
    int code = 0;

    list.page.entries = calloc(BLOB_PAGE_MAX, sizeof(struct blob_entry));
    if (!list.page.entries) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    read_page(s3, prefix, after, false, deadline_ms, &list, &fault);
    while (fault.result == BLOB_OK && list.page.more && list.page.count == 0 && list.last) {
        char *last = list.last;
        list.last = NULL;
        read_page(s3, prefix, last, true, deadline_ms, &list, &fault);
        free(last);
    }
    free(list.last);
    if (list.no_memory) {
        code = mr_error_set(err, MR_ENOMEM, "out of memory");
    } else if (fault.result != BLOB_OK) {
        code = blob_failure(store, "list", fault.result, fault.text, fault.hint, err);
    }
    if (code) {
        blob_page_done(&list.page);
        return code;
    }
    *ret = list.page;
    return 0;
}

// ---- rules ----

struct rules {
    const char *prefix;
    int days;
};

static bool ignore_entry(void *arg, const char *key, int64_t size, int64_t modified_us)
{
    (void)arg;
    (void)key;
    (void)size;
    (void)modified_us;
    return true;
}

// A store that does not know of rules answers a list, as if nobody had asked for them: Swift does.
static void judge_rules(void *arg, struct s3_request *request)
{
    struct rules *rules = arg;
    bool truncated;

    if (s3_answer_lifecycle(request->answer, request->answer_size, rules->prefix, &rules->days)) {
        return;
    }
    rules->days = BLOB_LIFECYCLE_UNKNOWN;
    if (!s3_answer_list(request->answer, request->answer_size, ignore_entry, NULL, &truncated)) {
        s3_fault_of_stranger(request->status, &request->fault);
    }
}

// What an answer that has no rules says about them.
static const struct {
    const char *code;
    int days;
} without_rules[] = {
    {"NoSuchLifecycleConfiguration", 0},
    {"NotImplemented", BLOB_LIFECYCLE_UNKNOWN},
    {"MethodNotAllowed", BLOB_LIFECYCLE_UNKNOWN},
    {"AccessDenied", BLOB_LIFECYCLE_UNKNOWN},
};

int s3_lifecycle(struct blob_store *store, int *ret_days, struct mr_error *err)
{
    struct s3 *s3 = s3_of(store);
    struct rules rules = {.prefix = s3->address.prefix};
    struct single single = {.query = "lifecycle=",
                            .answer_max = S3_PAGE_ANSWER_MAX,
                            .judge = judge_rules,
                            .arg = &rules};
    const struct s3_fault *fault = &single.fault;

    ask(s3, &single, s3_wire_deadline(s3->wire));
    for (size_t i = 0; i < sizeof(without_rules) / sizeof(without_rules[0]); i++) {
        if (str_equal(fault->code, without_rules[i].code)) {
            *ret_days = without_rules[i].days;
            return 0;
        }
    }
    if (fault->result != BLOB_OK) {
        return blob_failure(store, "read the rules of", fault->result, fault->text, fault->hint,
                            err);
    }
    *ret_days = rules.days;
    return 0;
}
