// SPDX-License-Identifier: PostgreSQL
//
// Which of several shards a request is about: see place.h.

#include "http/place.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "client/shards.h"
#include "http/api.h"
#include "http/exchange.h"
#include "http/job_line.h"

// ---- by the head ----

// Takes `shard` out of the query. *ret: -1 where it is not given.
static int take_shard(struct target *target, int *ret, struct mr_error *err)
{
    int64_t number = -1;
    size_t kept = 0;
    bool good = true;

    for (size_t i = 0; i < target->query_count; i++) {
        if (str_equal(target->query[i].name, "shard")) {
            good = str_parse_int(target->query[i].value, 0, SHARD_NUMBERS - 1, &number);
        } else {
            target->query[kept++] = target->query[i];
        }
    }
    target->query_count = kept;
    *ret = (int)number;
    return good ? 0
                : mr_error_set(err, MR_EINVALID, "\"shard\" has to be a whole number from 0 to %d",
                               SHARD_NUMBERS - 1);
}

// `what` has the id in the path.
static int by_id(struct exchange *exchange, const char *what, struct mr_error *err)
{
    int64_t id = 0;

    if (!str_parse_int(exchange->variables[0], INT64_MIN, INT64_MAX, &id)) {
        exchange->site = &exchange->http->sites[0]; // it will be told that this is no number
        return 0;
    }
    int number = shard_of_id(id);
    if (number < 0) {
        mr_error_set(err, MR_EUNKNOWN, "%s %lld does not exist", what, (long long)id);
        mr_error_sqlstate(err, "MR003");
        return MR_EUNKNOWN;
    }
    return sites_find(exchange->http, number, &exchange->site, err);
}

static int by_lease(struct exchange *exchange, struct mr_error *err)
{
    int number = shard_of_lease(exchange->variables[0], &exchange->variables[0]);
    int code = number < 0 ? MR_EUNKNOWN : sites_find(exchange->http, number, &exchange->site, err);

    if (code == MR_EUNKNOWN) {
        mr_error_set(err, MR_ELEASE, "the lease is lost: it names no shard");
        mr_error_sqlstate(err, "MR001");
        mr_error_hint(err, "On several shards a lease begins with the number of its shard, as "
                           "s2:...; give it as the claim did.");
        return MR_ELEASE;
    }
    return code;
}

static int by_label(struct exchange *exchange, struct mr_error *err);

static int find(struct exchange *exchange, int shard, struct mr_error *err)
{
    struct http *http = exchange->http;
    struct site **site = &exchange->site;

    switch (exchange->route->place) {
    case PLACE_NONE: return 0;
    case PLACE_ID: return by_id(exchange, "job", err);
    case PLACE_LEASE: return by_lease(exchange, err);
    case PLACE_FIRST:
        return shard < 0 ? sites_first(http, site, err) : sites_find(http, shard, site, err);
    case PLACE_BATCH:
        return shard < 0 ? by_id(exchange, "batch", err) : sites_find(http, shard, site, err);
    case PLACE_LABEL:
        return shard < 0 ? by_label(exchange, err) : sites_find(http, shard, site, err);
    case PLACE_JOB:
    case PLACE_TURN:
    case PLACE_SUM:
    case PLACE_LIST:
    case PLACE_APART:
    case PLACE_EACH: return shard < 0 ? 0 : sites_find(http, shard, site, err);
    }
    return 0;
}

bool place(struct exchange *exchange)
{
    struct mr_error err;
    int shard = -1;

    if (exchange->site || exchange->route->place == PLACE_NONE) {
        return true;
    }
    int code = take_shard(&exchange->target, &shard, &err);
    code = code ? code : find(exchange, shard, &err);
    if (code == 0 && exchange->site && exchange->route->run != api_events) {
        code = site_check(exchange->site, &err);
    }
    if (code) {
        exchange_fail(exchange, &err);
    }
    return code == 0;
}

void place_and_run(struct exchange *exchange)
{
    if (place(exchange)) {
        exchange->route->run(exchange);
    }
}

// ---- by the jobs ----

// What decides about one job; texts are freed with wish_done().
struct wish {
    char *texts[4]; // tenant, ordering_key, unique_key, ref
    struct shard_keys keys;
};

// A value of JSON as the database takes it for a text; NULL: none.
static int read_text(struct json_slice value, char **ret, struct mr_error *err)
{
    if (!value.at || json_slice_is(value, "null")) {
        return 0;
    }
    if (value.at[0] == '"') {
        json_t *text = json_loadb(value.at, value.len, JSON_DECODE_ANY, NULL);
        if (!text) {
            return mr_error_set(err, MR_EINVALID, "a key has a zero character");
        }
        *ret = strdup(json_string_value(text));
        json_decref(text);
    } else {
        *ret = strndup(value.at, value.len);
    }
    return *ret ? 0 : mr_error_set(err, MR_ENOMEM, "out of memory");
}

static void wish_done(struct wish *wish)
{
    for (size_t i = 0; i < sizeof(wish->texts) / sizeof(wish->texts[0]); i++) {
        free(wish->texts[i]);
    }
}

static int wish_read(const struct job_line *job, struct wish *ret, struct mr_error *err)
{
    const struct json_slice values[] = {job->tenant, job->ordering_key, job->unique_key, job->ref};
    int code = 0;

    *ret = (struct wish){0};
    if (job->spelled) {
        mr_error_set(err, MR_EINVALID, "a name of the job is written with escapes");
        mr_error_hint(err, "On several shards names have to be plain: a key may be among them.");
        return MR_EINVALID;
    }
    for (size_t i = 0; code == 0 && i < sizeof(values) / sizeof(values[0]); i++) {
        code = read_text(values[i], &ret->texts[i], err);
    }
    ret->keys = (struct shard_keys){ret->texts[0], ret->texts[1], ret->texts[2], ret->texts[3]};
    if (code) {
        wish_done(ret);
    }
    return code;
}

// What decides about all jobs of a request.
struct wishes {
    const struct shard_set *set;
    char *key;   // that they go by; NULL: none has one
    bool pinned; // they can go nowhere else
    struct mr_error *err;
    int code;
};

static int belongs(const struct wishes *wishes, const char *key)
{
    return shard_set_pin(wishes->set, key).number;
}

static int many_shards(struct mr_error *err)
{
    mr_error_set(err, MR_EINVALID, "the jobs of the array belong to different shards");
    mr_error_hint(err, "An array is one transaction, on one shard. Send an array for each tenant "
                       "or key, or the jobs one by one.");
    return MR_EINVALID;
}

static void wishes_add(void *arg, struct json_slice value)
{
    struct wishes *wishes = arg;
    struct job_line job;
    struct wish wish;

    if (wishes->code || (wishes->code = job_line_read(value, &job, wishes->err)) ||
        (wishes->code = wish_read(&job, &wish, wishes->err))) {
        return;
    }
    const char *key = shard_key_of(&wish.keys);
    wishes->pinned = wishes->pinned || shard_keys_pin(&wish.keys);
    if (key && !wishes->key) {
        wishes->key = strdup(key);
    } else if (key && belongs(wishes, key) != belongs(wishes, wishes->key)) {
        wishes->code = many_shards(wishes->err);
    }
    wish_done(&wish);
}

static int refuse_pinned(int number, struct mr_error *err)
{
    mr_error_prefix(err, "the job's key belongs to shard %d", number);
    mr_error_hint(err, "A job with a unique_key, an ordering_key or an Idempotency-Key is not put "
                       "elsewhere, where it would be a second one, or out of order. Try again when "
                       "the shard takes jobs.");
    return err->code;
}

// The site of a key that can go nowhere else. `held`: a job has it there, so that it stays though
// the shard drains.
static int pinned_site(struct http *http, int number, bool held, struct site **ret,
                       struct mr_error *err)
{
    struct site *site = NULL;
    int code = sites_find(http, number, &site, err);

    if (code == 0) {
        code = held ? site_check(site, err) : site_check_open(site, err);
    }
    if (code) {
        return refuse_pinned(number, err);
    }
    *ret = site;
    return 0;
}

static int find_pinned(struct http *http, const char *key, struct site **ret, struct mr_error *err)
{
    struct shard_pin pin = shard_set_pin(&http->set, key);

    if (pin.number < 0 || pin.previous != pin.number) {
        mr_error_set(err, MR_ECONNECT,
                     "the key moves from shard %d to another: a shard joins or drains",
                     pin.previous);
        mr_error_hint(err, "Send jobs with keys one by one and without an Idempotency-Key, or try "
                           "again when `millrace shard list` shows no shard that joins or drains.");
        return MR_ECONNECT;
    }
    return pinned_site(http, pin.number, false, ret, err);
}

// ---- a key that moves ----

// While a shard joins or drains, the one where the key was before is asked whether it holds it
// still.
struct question {
    struct exchange *exchange;
    struct shard_pin pin;
};

static void on_holds(void *arg, PGresult *result, const struct mr_error *err)
{
    struct question *question = arg;
    struct exchange *exchange = question->exchange;
    struct shard_pin pin = question->pin;
    struct mr_error why = {0};

    free(question);
    if (err) {
        why = *err;
        refuse_pinned(pin.previous, &why);
    } else {
        bool held = PQntuples(result) == 1 && PQgetvalue(result, 0, 0)[0] == 't';
        exchange->pinned = true;
        pinned_site(exchange->http, held || pin.number < 0 ? pin.previous : pin.number, held,
                    &exchange->site, &why);
    }
    if (why.code) {
        exchange_fail(exchange, &why);
        return;
    }
    exchange->placed = true;
    exchange->route->run(exchange);
}

static void on_queue(void *arg, struct json_slice key, struct json_slice value)
{
    struct json_slice *queue = arg;

    if (json_slice_is(key, "queue")) {
        *queue = value;
    }
}

static int send_holds(struct exchange *exchange, const struct wish *wish, const char *queue,
                      struct shard_pin pin, struct mr_error *err)
{
    struct question *question = malloc(sizeof(*question));
    struct site *site = NULL;
    AUTO_CALL call;

    call_init(&call, CALL_SHARD_HOLDS);
    call_text(&call, queue);
    call_text(&call, wish->keys.unique_key);
    call_text(&call, wish->keys.ordering_key);
    if (!question) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    *question = (struct question){exchange, pin};
    int code = sites_find(exchange->http, pin.previous, &site, err);
    code = code ? code : site_check(site, err);
    code = code ? code : database_call(site->db, DATABASE_COMMON, &call, on_holds, question, err);
    if (code) {
        free(question);
        return refuse_pinned(pin.previous, err);
    }
    return 0;
}

static int ask_holds(struct exchange *exchange, struct shard_pin pin, struct mr_error *err)
{
    struct json_slice body = {buf_peek(&exchange->body), exchange->body.len}, queue = {0};
    struct job_line job;
    struct wish wish;
    char *name = NULL;
    int code = job_line_read(body, &job, err);

    code = code ? code : json_each_member(body, on_queue, &queue, err);
    code = code ? code : read_text(queue, &name, err);
    code = code ? code : wish_read(&job, &wish, err);
    if (code == 0) {
        code = send_holds(exchange, &wish, name ? name : "default", pin, err);
        wish_done(&wish);
    }
    free(name);
    return code;
}

// Whether a single job has a key that moves; it goes on when the other shard has answered.
static bool moves(const struct exchange *exchange, const struct wishes *wishes,
                  struct shard_pin *ret)
{
    const char *body = buf_peek(&exchange->body);

    if (!wishes->pinned || exchange->site || body[strspn(body, " \t\r\n")] == '[') {
        return false;
    }
    *ret = shard_set_pin(wishes->set, wishes->key);
    return ret->previous >= 0 && ret->previous != ret->number;
}

// ---- placing ----

// The first in the order of the key, or in turn, that takes jobs and was not tried.
static int find_open(struct http *http, const char *key, uint32_t tried_sites, struct site **ret,
                     struct mr_error *err)
{
    int order[SHARD_NUMBERS] = {0};
    unsigned first = key ? 0 : http->turn++;
    struct mr_error why, noted = {0};

    for (int i = 0; i < http->site_count; i++) {
        order[i] = (int)((first + (unsigned)i) % (unsigned)http->site_count);
    }
    if (key) {
        shard_set_order(&http->set, key, order);
    }
    for (int i = 0; i < http->site_count; i++) {
        struct site *site = &http->sites[order[i]];
        bool tried = tried_sites >> order[i] & 1;
        if (!tried && site_check_open(site, &why) == 0) {
            *ret = site;
            return 0;
        }
        noted = tried || noted.code ? noted : why;
    }
    if (!noted.code) {
        mr_error_set(&noted, MR_ECONNECT, "no shard takes the job");
    }
    *err = noted;
    return noted.code;
}

static void on_label(void *arg, struct json_slice key, struct json_slice value)
{
    struct json_slice *label = arg;

    if (json_slice_is(key, "label")) {
        *label = value;
    }
}

// A batch and its jobs are at one shard: those of a label together. What is no object is refused
// there.
static int by_label(struct exchange *exchange, struct mr_error *err)
{
    struct json_slice body = {buf_peek(&exchange->body), exchange->body.len}, label = {0};
    char *text = NULL;

    json_each_member(body, on_label, &label, NULL);
    int code = read_text(label, &text, err);
    code = code ? code : find_open(exchange->http, text, 0, &exchange->site, err);
    free(text);
    return code;
}

static int check_chosen(struct exchange *exchange, const struct wishes *wishes,
                        struct mr_error *err)
{
    int number = site_number(exchange->site);

    exchange->pinned = true;
    if (wishes->pinned && belongs(wishes, wishes->key) != number) {
        mr_error_set(err, MR_EINVALID, "the job's key belongs to shard %d, not to shard %d",
                     belongs(wishes, wishes->key), number);
        mr_error_hint(err, "Leave shard=N out: a job with a key goes where it belongs.");
        return MR_EINVALID;
    }
    return site_check_open(exchange->site, err);
}

static int read_wishes(const struct exchange *exchange, struct wishes *wishes, struct mr_error *err)
{
    struct json_slice body = {buf_peek(&exchange->body), exchange->body.len};

    *wishes = (struct wishes){.set = &exchange->http->set, .err = err};
    if (body.at[strspn(body.at, " \t\r\n")] != '[') {
        wishes_add(wishes, body);
        return wishes->code;
    }
    int code = json_each_element(body, wishes_add, wishes, err);
    return code ? code : wishes->code;
}

bool place_jobs(struct exchange *exchange, const char *key)
{
    struct wishes wishes;
    struct shard_pin pin;
    struct mr_error err;
    bool later = false;

    if (!sites_several(exchange->http) || exchange->placed) {
        return true;
    }
    int code = read_wishes(exchange, &wishes, &err);
    const char *by = wishes.key ? wishes.key : key;
    bool pinned = wishes.pinned || key;
    if (code == 0 && !key && moves(exchange, &wishes, &pin)) {
        code = ask_holds(exchange, pin, &err);
        later = true;
    } else if (code == 0 && exchange->site) {
        code = check_chosen(exchange, &wishes, &err);
    } else if (code == 0) {
        exchange->pinned = pinned;
        code = pinned ? find_pinned(exchange->http, by, &exchange->site, &err)
                      : find_open(exchange->http, by, exchange->tried, &exchange->site, &err);
    }
    free(wishes.key);
    exchange->placed = code == 0 && !later;
    if (code) {
        exchange_fail(exchange, &err);
    }
    return code == 0 && !later;
}

int place_check(const struct exchange *exchange, const struct job_line *job, struct mr_error *err)
{
    struct wish wish;

    if (!sites_several(exchange->http)) {
        return 0;
    }
    int code = wish_read(job, &wish, err);
    if (code) {
        return code;
    }
    int number = shard_keys_pin(&wish.keys)
                     ? shard_set_pin(&exchange->http->set, shard_key_of(&wish.keys)).number
                     : site_number(exchange->site);
    wish_done(&wish);
    if (number != site_number(exchange->site)) {
        mr_error_set(err, MR_EINVALID, "the job's key belongs to shard %d, not to shard %d", number,
                     site_number(exchange->site));
        mr_error_hint(err, "Send jobs with a unique_key or an ordering_key in a stream of their "
                           "shard, or without a stream.");
        return MR_EINVALID;
    }
    return 0;
}

int place_line(const struct exchange *exchange, const struct job_line *job, uint32_t tried,
               struct site **ret, bool *ret_pinned, struct mr_error *err)
{
    struct wish wish;
    int code = wish_read(job, &wish, err);

    if (code) {
        return code;
    }
    const char *key = shard_key_of(&wish.keys);
    *ret_pinned = shard_keys_pin(&wish.keys);
    code = *ret_pinned ? find_pinned(exchange->http, key, ret, err)
                       : find_open(exchange->http, key, tried, ret, err);
    wish_done(&wish);
    return code;
}

bool place_again(struct exchange *exchange, const struct mr_error *err, bool sent)
{
    bool passable = sent ? shards_passable(err->code) : err->code == MR_ECONNECT;
    struct wishes wishes;
    struct mr_error why;

    if (!sites_several(exchange->http) || exchange->pinned || !passable) {
        return false;
    }
    exchange->tried |= UINT32_C(1) << exchange->site->at;
    bool found = read_wishes(exchange, &wishes, &why) == 0 &&
                 find_open(exchange->http, wishes.key, exchange->tried, &exchange->site, &why) == 0;
    free(wishes.key);
    return found;
}
