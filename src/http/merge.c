// SPDX-License-Identifier: PostgreSQL
//
// Answers of several shards as one: see merge.h.

#include "http/merge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

// ---- figures ----

// Members that say how bad it is: the largest counts.
static bool is_worst(const char *key)
{
    static const char *const keys[] = {"oldest_seconds", "p50", "p95", "p99", "lag_seconds"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (str_equal(key, keys[i])) {
            return true;
        }
    }
    return false;
}

// Members that are no figures.
static bool is_kept(const char *key)
{
    static const char *const keys[] = {"settings", "step_seconds", "priority", "part", "lane"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (str_equal(key, keys[i])) {
            return true;
        }
    }
    return false;
}

static int rank(const json_t *object)
{
    static const char *const ranks[] = {"OK", "NOTE", "WARNING", "CRITICAL"};
    const char *status = json_string_value(json_object_get(object, "status"));
    int found = -1;

    for (int i = 0; status && i < (int)(sizeof(ranks) / sizeof(ranks[0])); i++) {
        found = str_equal(status, ranks[i]) ? i : found;
    }
    return found;
}

static json_t *number(const char *key, const json_t *a, const json_t *b)
{
    double x = json_number_value(a), y = json_number_value(b);

    if (is_worst(key)) {
        return json_deep_copy(x < y ? b : a);
    }
    return json_is_integer(a) && json_is_integer(b)
               ? json_integer(json_integer_value(a) + json_integer_value(b))
               : json_real(x + y);
}

static json_t *find_queue(const json_t *list, const json_t *like)
{
    const json_t *name = json_object_get(like, "queue");
    json_t *entry = NULL;
    size_t i = 0;

    json_array_foreach(list, i, entry)
    {
        if (json_equal(json_object_get(entry, "queue"), name)) {
            return entry;
        }
    }
    return NULL;
}

static void merge_list(const char *key, json_t *into, const json_t *from)
{
    json_t *entry = NULL;
    size_t i = 0;

    json_array_foreach(from, i, entry)
    {
        json_t *same = str_equal(key, "queues") ? find_queue(into, entry) : NULL;
        if (same) {
            merge_figures(same, entry);
        } else {
            json_array_append_new(into, json_deep_copy(entry));
        }
    }
}

static void merge_member(json_t *into, const char *key, const json_t *value)
{
    json_t *mine = json_object_get(into, key);

    if (!mine || json_is_null(mine)) {
        json_object_set_new(into, key, json_deep_copy(value));
    } else if (is_kept(key)) {
        return;
    } else if (json_is_number(mine) && json_is_number(value)) {
        json_object_set_new(into, key, number(key, mine, value));
    } else if (json_is_boolean(mine) && json_is_true(value)) {
        json_object_set_new(into, key, json_true());
    } else if (json_is_object(mine) && json_is_object(value)) {
        merge_figures(mine, value);
    } else if (json_is_array(mine) && json_is_array(value)) {
        merge_list(key, mine, value);
    }
}

void merge_figures(json_t *into, const json_t *from)
{
    const char *key = NULL;
    json_t *value = NULL;

    if (rank(from) > rank(into)) {
        json_object_set(into, "status", json_object_get(from, "status"));
        json_object_set(into, "message", json_object_get(from, "message"));
    }
    json_object_foreach((json_t *)from, key, value)
    {
        merge_member(into, key, value);
    }
}

void merge_mark(json_t *value, int shard)
{
    const char *key = NULL;
    json_t *member = NULL, *entry = NULL;
    size_t i = 0;

    json_object_foreach(value, key, member)
    {
        json_array_foreach(member, i, entry)
        {
            if (json_is_object(entry) && !str_equal(key, "queues")) {
                json_object_set_new(entry, "shard", json_integer(shard));
            }
        }
    }
}

// ---- figures over time ----

static const char *const sums[] = {"enqueued", "completed", "failed", "available",
                                   "running",  "retrying",  "dead"};

enum { SUM_COUNT = sizeof(sums) / sizeof(sums[0]) };

// One answer, with what it has known so far.
struct story {
    const json_t *points;
    bool begun[SUM_COUNT];
};

static const json_t *point_of(const struct story *story, size_t ago)
{
    size_t count = json_array_size(story->points);

    return ago < count ? json_array_get(story->points, count - 1 - ago) : NULL;
}

static void add_sum(struct story *stories, size_t count, size_t ago, size_t which, json_t *into)
{
    bool any = false, all = true;
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(point_of(&stories[i], ago), sums[which]);
        stories[i].begun[which] = stories[i].begun[which] || json_is_number(value);
        any = any || json_is_number(value);
        all = all && (json_is_number(value) || !stories[i].begun[which]);
        sum += json_number_value(value);
    }
    if (any && all) {
        json_object_set_new(into, sums[which],
                            sum == (double)(json_int_t)sum ? json_integer((json_int_t)sum)
                                                           : json_real(sum));
    }
}

static void add_mean(const struct story *stories, size_t count, size_t ago, const char *name,
                     json_t *into)
{
    double sum = 0, weight = 0;

    for (size_t i = 0; i < count; i++) {
        const json_t *point = point_of(&stories[i], ago);
        const json_t *value = json_object_get(point, name);
        double ended = json_number_value(json_object_get(point, "completed")) +
                       json_number_value(json_object_get(point, "failed"));
        sum += json_is_number(value) ? json_number_value(value) * ended : 0;
        weight += json_is_number(value) ? ended : 0;
    }
    if (weight > 0) {
        json_object_set_new(into, name, json_real(sum / weight));
    }
}

static void add_worst(const struct story *stories, size_t count, size_t ago, const char *name,
                      json_t *into)
{
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(point_of(&stories[i], ago), name);
        if (json_is_object(value)) {
            merge_member(into, name, value);
        }
    }
}

static json_t *add_point(struct story *stories, size_t count, size_t ago)
{
    json_t *into = json_object();

    json_object_set(into, "at", json_object_get(point_of(&stories[0], ago), "at"));
    for (size_t which = 0; which < SUM_COUNT; which++) {
        add_sum(stories, count, ago, which, into);
    }
    add_mean(stories, count, ago, "wait_seconds", into);
    add_mean(stories, count, ago, "run_seconds", into);
    add_worst(stories, count, ago, "wait", into);
    add_worst(stories, count, ago, "run", into);
    return into;
}

json_t *merge_history(json_t *const *answers, size_t count)
{
    struct story *stories = calloc(count, sizeof(*stories));
    json_t *all = count ? json_copy(answers[0]) : NULL; // all but its points stays
    json_t *points = json_array();

    for (size_t i = 0; stories && i < count; i++) {
        stories[i].points = json_object_get(answers[i], "points");
    }
    for (size_t ago = stories ? json_array_size(stories[0].points) : 0; ago > 0; ago--) {
        json_array_append_new(points, add_point(stories, count, ago - 1));
    }
    json_object_set_new(all, "points", points);
    free(stories);
    return all;
}

// ---- pages ----

struct element {
    int shard;
    size_t place; // as it came
    struct json_slice text, by;
};

struct pages {
    struct element *list;
    size_t count, room;
    struct json_slice name; // of the list
    bool complete, has_complete, has_next, has_looked_at;
    int64_t looked_at;
    struct buf next;
    const char *by;
    int shard; // that is read
    bool out_of_memory;
};

struct wanted {
    const char *name;
    struct json_slice value;
};

static void on_wanted(void *arg, struct json_slice key, struct json_slice value)
{
    struct wanted *wanted = arg;

    if (json_slice_is(key, wanted->name)) {
        wanted->value = value;
    }
}

static void on_element(void *arg, struct json_slice value)
{
    struct pages *pages = arg;
    struct wanted by = {.name = pages->by};

    if (pages->count == pages->room) {
        size_t room = pages->room ? pages->room * 2 : 256;
        struct element *list = realloc(pages->list, room * sizeof(*list));
        pages->out_of_memory = pages->out_of_memory || !list;
        if (!list) {
            return;
        }
        pages->list = list;
        pages->room = room;
    }
    if (pages->by) {
        json_each_member(value, on_wanted, &by, NULL);
    }
    pages->list[pages->count] = (struct element){pages->shard, pages->count, value, by.value};
    pages->count++;
}

static void on_member(void *arg, struct json_slice key, struct json_slice value)
{
    struct pages *pages = arg;

    if (value.at[0] == '[') {
        pages->name = key;
        json_each_element(value, on_element, pages, NULL);
    } else if (json_slice_is(key, "complete")) {
        pages->has_complete = true;
        pages->complete = pages->complete && json_slice_is(value, "true");
    } else if (json_slice_is(key, "looked_at")) {
        pages->has_looked_at = true;
        pages->looked_at += strtoll(value.at, NULL, 10);
    } else if (json_slice_is(key, "next")) {
        pages->has_next = true;
        if (value.at[0] == '"') {
            buf_printf(&pages->next, "%ss%d:%.*s", pages->next.len ? "." : "", pages->shard,
                       (int)value.len - 2, value.at + 1);
        }
    }
}

// The newest first: timestamps of JSON compare as texts. Those of a shard stay in their order.
static int compare(const void *a, const void *b)
{
    const struct element *x = a, *y = b;
    size_t least = x->by.len < y->by.len ? x->by.len : y->by.len;
    int order = x->shard == y->shard || !least ? 0 : memcmp(y->by.at, x->by.at, least);

    return order ? order : x->place < y->place ? -1 : x->place > y->place;
}

static void add_element(const struct element *element, struct buf *out)
{
    size_t blanks = 1;

    if (element->text.at[0] != '{') {
        buf_add(out, element->text.at, element->text.len);
        return;
    }
    while (strchr(" \t\r\n", element->text.at[blanks])) {
        blanks++;
    }
    buf_printf(out, "{\"shard\":%d%s", element->shard, element->text.at[blanks] == '}' ? "" : ",");
    buf_add(out, element->text.at + 1, element->text.len - 1);
}

static void add_pages(const struct pages *pages, struct buf *out)
{
    buf_printf(out, "\"%.*s\":[", (int)pages->name.len, pages->name.at);
    for (size_t i = 0; i < pages->count; i++) {
        buf_puts(out, i ? "," : "");
        add_element(&pages->list[i], out);
    }
    buf_puts(out, "]");
    if (pages->has_complete) {
        buf_printf(out, ",\"complete\":%s", pages->complete ? "true" : "false");
    }
    if (pages->has_looked_at) {
        buf_printf(out, ",\"looked_at\":%" PRId64, pages->looked_at);
    }
    if (pages->has_next) {
        const char *quote = pages->next.len ? "\"" : "";
        buf_printf(out, ",\"next\":%s%s%s", quote,
                   pages->next.len ? buf_peek(&pages->next) : "null", quote);
    }
}

int merge_pages(const struct merge_page *from, size_t count, const char *by, struct buf *out,
                struct mr_error *err)
{
    struct pages pages = {.complete = true, .by = by};
    int code = 0;

    buf_init(&pages.next, 64 * 1024);
    for (size_t i = 0; code == 0 && i < count; i++) {
        pages.shard = from[i].shard;
        code = json_each_member(from[i].text, on_member, &pages, err);
    }
    if (code == 0 && pages.out_of_memory) {
        code = mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    if (code == 0) {
        if (pages.count > 1) {
            qsort(pages.list, pages.count, sizeof(*pages.list), compare);
        }
        add_pages(&pages, out);
        code = buf_status(out, err);
    }
    buf_done(&pages.next);
    free(pages.list);
    return code;
}

char *merge_cursor(const char *next, int shard)
{
    char name[8];
    size_t length = (size_t)snprintf(name, sizeof(name), "s%d:", shard);

    for (const char *at = next; *at; at += *at == '.') {
        size_t size = strcspn(at, ".");
        if (strncmp(at, name, length) == 0) {
            return strndup(at + length, size - length);
        }
        at += size;
    }
    return NULL;
}
