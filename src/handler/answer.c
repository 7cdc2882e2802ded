// SPDX-License-Identifier: PostgreSQL
//
// What a handler in another language says about a job: see answer.h.
//
// Members are checked for their shape and passed on as they stand. What they mean (an interval,
// base64, a queue's name) is PostgreSQL's to judge, once.

#include "handler/answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_scan.h"
#include "base/str.h"

// The longest delay as a number of seconds: the thousand years that the SQL functions accept.
#define DELAY_MAX_S (1000.0 * 365 * 24 * 3600)
// The longest number that is read as one.
#define NUMBER_SIZE_MAX 64

enum member_kind {
    MEMBER_ANY,
    MEMBER_ID,
    MEMBER_WORD,
    MEMBER_BOOLEAN,
    MEMBER_INTERVAL, // text, or a number of seconds
    MEMBER_STRING,
    MEMBER_OBJECT,
    MEMBER_ARRAY,
};

#define OF(kind) (1u << OUTCOME_##kind)
#define OF_ALL   (~0u)

// What may stand in an answer, and in which.
static const struct member {
    const char *name;
    enum member_kind kind;
    unsigned outcomes;
} members[] = {
    {"id", MEMBER_ID, OF_ALL},
    {"outcome", MEMBER_WORD, OF_ALL},
    {"result", MEMBER_ANY, OF(COMPLETED)},
    {"error", MEMBER_ANY, OF(FAILED)},
    {"retry_in", MEMBER_INTERVAL, OF(FAILED)},
    {"retry", MEMBER_BOOLEAN, OF(FAILED)},
    {"delay", MEMBER_INTERVAL, OF(SNOOZED)},
    {"changes", MEMBER_OBJECT, OF(SNOOZED) | OF(REQUEUED)},
    {"state", MEMBER_STRING, OF(FAILED) | OF(SNOOZED) | OF(REQUEUED)},
    {"blob", MEMBER_STRING, OF(SNOOZED) | OF(REQUEUED)},
    {"clear", MEMBER_ARRAY, OF(SNOOZED) | OF(REQUEUED)},
};

enum { ID, OUTCOME, RESULT, ERROR, RETRY_IN, RETRY, DELAY, MEMBERS = 11 };
_Static_assert(sizeof(members) / sizeof(members[0]) == MEMBERS, "a name for each place");

static const struct {
    const char *word;
    enum outcome_kind kind;
} words[] = {
    {"completed", OUTCOME_COMPLETED}, {"failed", OUTCOME_FAILED},     {"snoozed", OUTCOME_SNOOZED},
    {"requeued", OUTCOME_REQUEUED},   {"released", OUTCOME_RELEASED},
};

struct answer {
    struct json_slice found[MEMBERS]; // at NULL: not there, or null
    enum outcome_kind kind;
    struct json_slice unknown; // a key
};

static bool has(const struct answer *answer, int member)
{
    return answer->found[member].at != NULL;
}

// Of a key that is there twice the last one counts, as in jsonb.
static void on_member(void *arg, struct json_slice key, struct json_slice value)
{
    struct answer *answer = arg;

    for (size_t i = 0; i < MEMBERS; i++) {
        if (json_slice_is(key, members[i].name)) {
            answer->found[i] = json_slice_is(value, "null") ? (struct json_slice){NULL, 0} : value;
            return;
        }
    }
    answer->unknown = key;
}

// ---- values ----

static bool read_number(struct json_slice slice, double *ret)
{
    char text[NUMBER_SIZE_MAX];

    if (!strchr("-0123456789", slice.at[0]) || slice.len >= sizeof(text)) {
        return false;
    }
    memcpy(text, slice.at, slice.len);
    text[slice.len] = '\0';
    *ret = strtod(text, NULL);
    return true;
}

static bool read_id(struct json_slice slice, int64_t *ret)
{
    char text[NUMBER_SIZE_MAX];

    if (slice.len >= sizeof(text)) {
        return false;
    }
    memcpy(text, slice.at, slice.len);
    text[slice.len] = '\0';
    return str_parse_int(text, 0, INT64_MAX, ret);
}

static bool is_interval(struct json_slice slice)
{
    double seconds = 0;

    return slice.at[0] == '"' ||
           (read_number(slice, &seconds) && seconds >= 0 && seconds <= DELAY_MAX_S);
}

// What is wrong with a member, in words that follow its name; NULL: nothing.
static const char *complaint(enum member_kind kind, struct json_slice slice)
{
    int64_t id = 0;

    switch (kind) {
    case MEMBER_ANY: return NULL;
    case MEMBER_ID: return read_id(slice, &id) ? NULL : "is not the number of a job";
    case MEMBER_WORD:
    case MEMBER_STRING: return slice.at[0] == '"' ? NULL : "is not a string";
    case MEMBER_BOOLEAN:
        return slice.at[0] == 't' || slice.at[0] == 'f' ? NULL : "is not true or false";
    case MEMBER_INTERVAL:
        return is_interval(slice) ? NULL : "is not an interval or a number of seconds";
    case MEMBER_OBJECT: return slice.at[0] == '{' ? NULL : "is not an object";
    case MEMBER_ARRAY: return slice.at[0] == '[' ? NULL : "is not an array";
    }
    return NULL;
}

// ---- the whole ----

static int read_outcome(struct answer *answer, struct mr_error *err)
{
    struct json_slice word = answer->found[OUTCOME];

    if (!word.at) {
        answer->kind = has(answer, ERROR) ? OUTCOME_FAILED : OUTCOME_COMPLETED;
        return 0;
    }
    word = (struct json_slice){word.at + 1, word.len - 2};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (json_slice_is(word, words[i].word)) {
            answer->kind = words[i].kind;
            return 0;
        }
    }
    return mr_error_set(err, MR_EINVALID, "unknown outcome \"%.*s\"",
                        word.len < 40 ? (int)word.len : 40, word.at);
}

static const char *word_of(enum outcome_kind kind)
{
    size_t i = 0;

    while (words[i].kind != kind) {
        i++;
    }
    return words[i].word;
}

static int check_shapes(const struct answer *answer, struct mr_error *err)
{
    for (size_t i = 0; i < MEMBERS; i++) {
        const char *why = answer->found[i].at ? complaint(members[i].kind, answer->found[i]) : NULL;
        if (why) {
            return mr_error_set(err, MR_EINVALID, "\"%s\" %s", members[i].name, why);
        }
    }
    if (answer->unknown.at) {
        return mr_error_set(err, MR_EINVALID, "unknown key \"%.*s\"",
                            answer->unknown.len < 40 ? (int)answer->unknown.len : 40,
                            answer->unknown.at);
    }
    return 0;
}

// Whether what is there fits the outcome: a delay that nobody will wait for is a mistake.
static int check_fit(const struct answer *answer, struct mr_error *err)
{
    for (size_t i = 0; i < MEMBERS; i++) {
        if (answer->found[i].at && !(members[i].outcomes & 1u << answer->kind)) {
            return mr_error_set(err, MR_EINVALID, "\"%s\" does not belong to the outcome %s",
                                members[i].name, word_of(answer->kind));
        }
    }
    if (answer->kind == OUTCOME_SNOOZED && !has(answer, DELAY)) {
        return mr_error_set(err, MR_EINVALID, "the outcome snoozed needs \"delay\"");
    }
    return 0;
}

// ---- the outcome ----

// A number is in seconds; nothing is due in no time.
static void add_interval(struct buf *out, struct json_slice value)
{
    double seconds = 0;

    if (!read_number(value, &seconds)) {
        buf_add(out, value.at, value.len);
        return;
    }
    long long ms = (long long)(seconds * 1000 + 0.5);
    buf_printf(out, "\"%lld ms\"", ms > 0 ? ms : 1);
}

static void add_members(const struct answer *answer, struct buf *out)
{
    for (size_t i = RESULT; i < MEMBERS; i++) {
        struct json_slice value = answer->found[i];
        if (!value.at) {
            continue;
        }
        buf_printf(out, "%s\"%s\":", out->len ? "," : "", members[i].name);
        if (members[i].kind == MEMBER_INTERVAL) {
            add_interval(out, value);
        } else {
            buf_add(out, value.at, value.len);
        }
    }
    if (answer->kind == OUTCOME_FAILED && !has(answer, ERROR)) {
        buf_printf(out, "%s\"error\":\"the handler gave no reason\"", out->len ? "," : "");
    }
}

static int read_answer(const char *text, size_t size, struct answer *answer, struct mr_error *err)
{
    int rc = json_each_member((struct json_slice){text, size}, on_member, answer, err);

    if (rc == 0) {
        rc = check_shapes(answer, err);
    }
    if (rc == 0) {
        rc = read_outcome(answer, err);
    }
    return rc ? rc : check_fit(answer, err);
}

int answer_parse(const char *text, size_t size, int64_t *ret_id, struct outcome *ret,
                 struct mr_error *err)
{
    struct answer answer = {0};
    int64_t id = -1;
    int rc = read_answer(text, size, &answer, err);

    if (rc) {
        return rc;
    }
    if (has(&answer, ID)) {
        read_id(answer.found[ID], &id);
    }
    *ret_id = id;
    outcome_done(ret);
    outcome_init(ret);
    ret->kind = answer.kind;
    ret->final = json_slice_is(answer.found[RETRY], "false");
    add_members(&answer, &ret->members);
    return buf_status(&ret->members, err);
}

static void on_key(void *arg, struct json_slice key, struct json_slice value)
{
    (void)value;
    if (json_slice_is(key, members[OUTCOME].name)) {
        *(bool *)arg = true;
    }
}

bool answer_is_meant(const char *text, size_t size)
{
    bool meant = false;

    return json_each_member((struct json_slice){text, size}, on_key, &meant, NULL) == 0 && meant;
}
