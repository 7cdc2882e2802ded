// SPDX-License-Identifier: PostgreSQL
//
// Jobs on Redis, looking and dead letters: see redis_queue.h.

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/iso_time.h"
#include "base/json.h"
#include "base/str.h"
#include "store/redis_queue_parts.h"

#define LIST_BYTES_MAX (512 * 1024 * 1024)
#define LIST_LIMIT_MAX 200

// What dead_list.lua answers, and its columns.
enum { LIST_COMPLETE, LIST_LETTERS, LIST_FIELDS };
enum {
    LETTER_ID,
    LETTER_KIND,
    LETTER_CAUSE,
    LETTER_FAILURE,
    LETTER_ATTEMPT,
    LETTER_MAX_ATTEMPTS,
    LETTER_LOST,
    LETTER_TENANT,
    LETTER_REF,
    LETTER_CREATED,
    LETTER_DIED,
    LETTER_ARGS,
    LETTER_META,
    LETTER_FIELDS,
};

enum letter_form { FORM_PLAIN, FORM_STRING, FORM_TIME };

static const struct {
    const char *name;
    enum letter_form form;
} letter_fields[LETTER_FIELDS] = {
    [LETTER_ID] = {"id", FORM_PLAIN},
    [LETTER_KIND] = {"kind", FORM_STRING},
    [LETTER_CAUSE] = {"cause", FORM_STRING},
    [LETTER_FAILURE] = {"error", FORM_STRING},
    [LETTER_ATTEMPT] = {"attempt", FORM_PLAIN},
    [LETTER_MAX_ATTEMPTS] = {"max_attempts", FORM_PLAIN},
    [LETTER_LOST] = {"lost", FORM_PLAIN},
    [LETTER_TENANT] = {"tenant", FORM_STRING},
    [LETTER_REF] = {"ref", FORM_STRING},
    [LETTER_CREATED] = {"created_at", FORM_TIME},
    [LETTER_DIED] = {"died_at", FORM_TIME},
    [LETTER_ARGS] = {"args", FORM_PLAIN},
    [LETTER_META] = {"meta", FORM_PLAIN},
};

// Reads an array of whole numbers.
static int read_numbers(struct redis_link *link, const redisReply *reply, int64_t *ret,
                        size_t count, mr_error *err)
{
    bool good = reply->type == REDIS_REPLY_ARRAY && reply->elements == count;

    for (size_t i = 0; good && i < count; i++) {
        good = queue_number_of(reply->element[i], &ret[i]) == 0;
    }
    return good ? 0 : redis_link_strange(link, err);
}

static void begin_args(struct redis_args *args, const char *queue)
{
    char key[QUEUE_KEY_SIZE];

    queue_key(queue, key);
    redis_args_init(args);
    redis_args_key(args, key);
}

// Runs a script that answers with numbers; MR_EUNKNOWN where it knows no such queue.
static int ask_numbers(struct redis_link *link, const char *script, const struct redis_args *args,
                       const char *queue, int64_t *ret, size_t count, mr_error *err)
{
    redisReply *reply = NULL;
    int code = redis_args_eval(args, link, script, &reply, err);

    if (code) {
        return code;
    }
    code = queue_is_refusal(reply, "MRNEW") ? queue_refuse_unknown(queue, err)
                                            : read_numbers(link, reply, ret, count, err);
    freeReplyObject(reply);
    return code;
}

// A queue that somebody asks for: no name that is too long, or empty, is one.
static int check_known(const char *queue, mr_error *err)
{
    int code = queue_check_utf8(queue, err);

    if (code) {
        return code;
    }
    return queue[0] && strlen(queue) <= QUEUE_NAME_MAX ? 0 : queue_refuse_unknown(queue, err);
}

// ---- looking ----

int redis_queue_stats(struct redis_link *link, const char *queue, struct redis_queue_stats *ret,
                      mr_error *err)
{
    AUTO_REDIS_ARGS args;
    int64_t numbers[4] = {0};
    int code = queue_check_utf8(queue, err);

    redis_args_init(&args);
    if (code == 0 && queue[0] && strlen(queue) <= QUEUE_NAME_MAX) {
        begin_args(&args, queue);
        code = ask_numbers(link, "queue/stats.lua", &args, queue, numbers, 4, err);
    }
    if (code == 0) {
        *ret = (struct redis_queue_stats){numbers[0], numbers[1], numbers[2], numbers[3]};
    }
    return code;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int redis_queue_names(struct redis_link *link, char ***ret, size_t *ret_count, mr_error *err)
{
    const char *const argv[] = {"HGETALL", QUEUE_REGISTRY};
    redisReply *reply = NULL;
    int code = redis_link_ask(link, 2, argv, NULL, &reply, err);

    if (code) {
        return code;
    }
    char **names = calloc(reply->elements + 1, sizeof(*names));
    size_t count = 0;
    bool good = names != NULL;
    for (size_t i = 0; good && i + 1 < reply->elements; i += 2) {
        if (str_starts(reply->element[i]->str, "queue:")) {
            names[count] = strdup(reply->element[i]->str + strlen("queue:"));
            good = names[count++] != NULL;
        }
    }
    freeReplyObject(reply);
    if (!good) {
        while (names && count > 0) {
            free(names[--count]);
        }
        free(names);
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    qsort(names, count, sizeof(*names), by_name);
    *ret = names;
    *ret_count = count;
    return 0;
}

// ---- dead letters ----

static void add_value(struct buf *out, enum letter_form form, const redisReply *value)
{
    char time[ISO_TIME_SIZE];
    int64_t us = 0;

    if (value->type != REDIS_REPLY_STRING) {
        buf_puts(out, "null");
        return;
    }
    switch (form) {
    case FORM_PLAIN: buf_puts(out, value->str); return;
    case FORM_STRING: json_add_string(out, value->str); return;
    case FORM_TIME:
        queue_number_of(value, &us);
        iso_time_print(us, time);
        json_add_string(out, time);
        return;
    }
}

static void add_letter(struct buf *out, const char *queue, const redisReply *letter)
{
    buf_puts(out, "{\"queue\":");
    json_add_string(out, queue);
    for (int i = 0; i < LETTER_FIELDS; i++) {
        buf_printf(out, ",\"%s\":", letter_fields[i].name);
        if (i == LETTER_ARGS && letter->element[i]->type != REDIS_REPLY_STRING) {
            buf_puts(out, "{}");
        } else {
            add_value(out, letter_fields[i].form, letter->element[i]);
        }
    }
    buf_puts(out, "}");
}

static int add_letters(struct redis_link *link, struct buf *out, const char *queue,
                       const redisReply *reply, mr_error *err)
{
    const redisReply *letters = NULL;
    int64_t complete = 0;

    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == LIST_FIELDS) {
        letters = reply->element[LIST_LETTERS];
    }
    if (!letters || letters->type != REDIS_REPLY_ARRAY ||
        queue_number_of(reply->element[LIST_COMPLETE], &complete)) {
        return redis_link_strange(link, err);
    }
    buf_puts(out, "{\"jobs\":[");
    for (size_t i = 0; i < letters->elements; i++) {
        const redisReply *letter = letters->element[i];
        if (letter->type != REDIS_REPLY_ARRAY || letter->elements != LETTER_FIELDS) {
            return redis_link_strange(link, err);
        }
        buf_puts(out, i ? "," : "");
        add_letter(out, queue, letter);
    }
    buf_printf(out, "],\"complete\":%s}", complete ? "true" : "false");
    return buf_status(out, err);
}

int redis_queue_list_dead(struct redis_link *link, const char *queue, const char *kind, int limit,
                          char **ret, mr_error *err)
{
    AUTO_REDIS_ARGS args;
    AUTO_BUF out;
    redisReply *reply = NULL;
    int code;

    redis_args_init(&args);
    buf_init(&out, LIST_BYTES_MAX);
    if ((code = check_known(queue, err)) || (code = queue_check_utf8(kind, err)) ||
        (code = queue_check_number("limit", limit, 1, LIST_LIMIT_MAX, err))) {
        return code;
    }
    begin_args(&args, queue);
    redis_args_text(&args, kind ? kind : "");
    redis_args_number(&args, limit);
    if ((code = redis_args_eval(&args, link, "queue/dead_list.lua", &reply, err))) {
        return code;
    }
    code = queue_is_refusal(reply, "MRNEW") ? queue_refuse_unknown(queue, err)
                                            : add_letters(link, &out, queue, reply, err);
    freeReplyObject(reply);
    if (code == 0 && !(*ret = strdup(buf_peek(&out)))) {
        code = mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    return code;
}

static int no_letter(int64_t id, mr_error *err)
{
    mr_error_set(err, MR_EUNKNOWN, "there is no dead letter %" PRId64, id);
    mr_error_sqlstate(err, "MR003");
    mr_error_hint(err, "It may have been replayed or removed already; see `millrace dead list`.");
    return MR_EUNKNOWN;
}

// The queue that an id belongs to, by its number. *ret is the caller's.
static int find_queue(struct redis_link *link, int64_t id, char **ret, mr_error *err)
{
    char field[32];
    const char *const argv[] = {"HGET", QUEUE_REGISTRY, field};
    redisReply *reply = NULL;

    snprintf(field, sizeof(field), "number:%" PRId64, id / QUEUE_IDS);
    int code = redis_link_ask(link, 3, argv, NULL, &reply, err);
    if (code) {
        return code;
    }
    if (reply->type != REDIS_REPLY_STRING) {
        code = no_letter(id, err);
    } else if (!(*ret = strdup(reply->str))) {
        code = mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    freeReplyObject(reply);
    return code;
}

// What dead_replay.lua answers.
enum { REPLAY_DONE, REPLAY_PASSED, REPLAY_MORE, REPLAY_UNTIL, REPLAY_FIELDS };

int redis_queue_replay(struct redis_link *link, int64_t id, mr_error *err)
{
    AUTO_REDIS_ARGS args;
    int64_t numbers[REPLAY_FIELDS];
    char *queue = NULL;
    int code = find_queue(link, id, &queue, err);

    redis_args_init(&args);
    if (code) {
        return code;
    }
    begin_args(&args, queue);
    redis_args_number(&args, id);
    for (int i = 0; i < 4; i++) {
        redis_args_text(&args, i == 1 || i == 2 ? "0" : "");
    }
    code = ask_numbers(link, "queue/dead_replay.lua", &args, queue, numbers, REPLAY_FIELDS, err);
    if (code == MR_EUNKNOWN || (code == 0 && numbers[REPLAY_DONE] == 0)) {
        code = no_letter(id, err);
    }
    free(queue);
    return code;
}

// `most` jobs at most, `passed` of the oldest left out; the time at which it began is in *until.
static int replay_some(struct redis_link *link, const char *queue, const char *kind, int64_t most,
                       int64_t passed, const char *until, int64_t *ret, mr_error *err)
{
    AUTO_REDIS_ARGS args;

    begin_args(&args, queue);
    redis_args_text(&args, "");
    redis_args_text(&args, kind ? kind : "");
    redis_args_number(&args, most);
    redis_args_number(&args, passed);
    redis_args_text(&args, until);
    return ask_numbers(link, "queue/dead_replay.lua", &args, queue, ret, REPLAY_FIELDS, err);
}

int redis_queue_replay_all(struct redis_link *link, const char *queue, const char *kind,
                           int64_t max_jobs, int64_t *ret, mr_error *err)
{
    int64_t numbers[REPLAY_FIELDS] = {0};
    int64_t done = 0, passed = 0;
    char until[24] = "";
    int code;

    if ((code = check_known(queue, err)) || (code = queue_check_utf8(kind, err))) {
        return code;
    }
    do {
        int64_t most = max_jobs ? max_jobs - done : INT32_MAX;
        if ((code = replay_some(link, queue, kind, most, passed, until, numbers, err))) {
            return code;
        }
        done += numbers[REPLAY_DONE];
        passed += numbers[REPLAY_PASSED];
        snprintf(until, sizeof(until), "%" PRId64, numbers[REPLAY_UNTIL]);
    } while (numbers[REPLAY_MORE]);
    *ret = done;
    return 0;
}

// What dead_purge.lua answers.
enum { PURGE_DONE, PURGE_MORE, PURGE_UNTIL, PURGE_FIELDS };

int redis_queue_purge_dead(struct redis_link *link, const char *queue, int64_t older_ms,
                           int64_t *ret, mr_error *err)
{
    int64_t numbers[PURGE_FIELDS] = {0};
    int64_t done = 0;
    char until[24] = "";
    int code;

    if ((code = check_known(queue, err)) || (code = queue_check_ms("older_than", older_ms, err))) {
        return code;
    }
    do {
        AUTO_REDIS_ARGS args;
        begin_args(&args, queue);
        redis_args_number(&args, older_ms);
        redis_args_text(&args, until);
        code = ask_numbers(link, "queue/dead_purge.lua", &args, queue, numbers, PURGE_FIELDS, err);
        if (code) {
            return code;
        }
        done += numbers[PURGE_DONE];
        snprintf(until, sizeof(until), "%" PRId64, numbers[PURGE_UNTIL]);
    } while (numbers[PURGE_MORE]);
    *ret = done;
    return 0;
}
