// SPDX-License-Identifier: PostgreSQL
//
// From a request to the parameters of its call: see params.h.

#include "http/params.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

#define NUMBER_SIZE 32
#define FILTER_MAX  (64 * 1024)
#define TEXTS_MAX   16

// ---- the body's members ----

static void on_member(void *arg, struct json_slice key, struct json_slice value)
{
    struct params_members *members = arg;

    if (members->count == PARAMS_MEMBERS_MAX) {
        members->too_many = true;
        return;
    }
    members->list[members->count++] = (struct params_member){key, value};
}

static bool same(struct json_slice a, struct json_slice b)
{
    return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

static int check_members(const struct params *params, struct mr_error *err)
{
    const struct params_members *members = &params->members;

    for (size_t i = 0; i < members->count; i++) {
        struct json_slice key = members->list[i].key;
        char name[64];
        snprintf(name, sizeof(name), "%.*s", (int)(key.len < 60 ? key.len : 60), key.at);
        if (!route_takes(params->route, PARAM_MEMBER, name)) {
            mr_error_set(err, MR_EINVALID, "unknown member \"%s\"", name);
            mr_error_hint(err, "See /openapi.json for what the body may have.");
            return MR_EINVALID;
        }
        for (size_t j = 0; j < i; j++) {
            if (same(members->list[j].key, key)) {
                return mr_error_set(err, MR_EINVALID, "\"%s\" is given twice", name);
            }
        }
    }
    return members->too_many
               ? mr_error_set(err, MR_EINVALID, "more than %d members", PARAMS_MEMBERS_MAX)
               : 0;
}

static bool wants_members(const struct route *route)
{
    bool found = false;

    for (const struct param *param = route->params; param->source != PARAM_END; param++) {
        found = found || param->source == PARAM_MEMBER;
    }
    return found;
}

static int read_body(struct params *params, struct mr_error *err)
{
    if (params->body.len == 0) {
        return 0;
    }
    if (!wants_members(params->route)) {
        return json_check(params->body, err);
    }
    int code = json_each_member(params->body, on_member, &params->members, err);
    return code ? code : check_members(params, err);
}

static int check_query(const struct params *params, struct mr_error *err)
{
    bool filter = params->route->params[0].source == PARAM_FILTER;

    for (size_t i = 0; !filter && i < params->target->query_count; i++) {
        const char *name = params->target->query[i].name;
        if (!route_takes(params->route, PARAM_QUERY, name)) {
            mr_error_set(err, MR_EINVALID, "unknown name in the query: \"%s\"", name);
            mr_error_hint(err, "See /openapi.json for what the query may have.");
            return MR_EINVALID;
        }
    }
    return 0;
}

int params_read(struct params *params, struct mr_error *err)
{
    int code = check_query(params, err);

    params->members.count = 0;
    params->members.too_many = false;
    return code ? code : read_body(params, err);
}

struct json_slice params_member(const struct params *params, const char *name)
{
    const struct json_slice none = {0};
    struct json_slice found = none;

    for (size_t i = 0; i < params->members.count; i++) {
        const struct params_member *member = &params->members.list[i];
        if (json_slice_is(member->key, name)) {
            found = member->value;
        }
    }
    return json_slice_is(found, "null") ? none : found;
}

// ---- values ----

static int wrong_type(const struct param *param, const char *what, struct mr_error *err)
{
    return mr_error_set(err, MR_EINVALID, "\"%s\" has to be %s", param->name, what);
}

// Copies a whole number; false when it is none.
static bool copy_number(struct json_slice value, char ret[NUMBER_SIZE])
{
    int64_t number = 0;

    if (value.len == 0 || value.len >= NUMBER_SIZE) {
        return false;
    }
    memcpy(ret, value.at, value.len);
    ret[value.len] = '\0';
    return str_parse_int(ret, INT64_MIN, INT64_MAX, &number);
}

static bool is_number(struct json_slice value)
{
    return value.len > 0 && value.len < NUMBER_SIZE && strchr("-0123456789", value.at[0]);
}

static int add_text(const struct param *param, struct json_slice value, struct call *call,
                    struct mr_error *err)
{
    if (value.at[0] != '"') {
        return wrong_type(param, "a text", err);
    }
    if (!memchr(value.at, '\\', value.len)) {
        call_text_sized(call, value.at + 1, value.len - 2);
        return 0;
    }
    json_t *text = json_loadb(value.at, value.len, JSON_DECODE_ANY, NULL);
    if (!text) {
        return wrong_type(param, "a text without a zero character", err);
    }
    call_text(call, json_string_value(text));
    json_decref(text);
    return 0;
}

static int add_numbers(const struct param *param, struct json_slice value, struct call *call,
                       struct mr_error *err)
{
    AUTO_BUF list;

    buf_init(&list, CALL_SIZE_MAX);
    for (size_t i = 0; i < value.len; i++) {
        char c = value.at[i];
        if (!strchr("[]0123456789-, \t\r\n", c)) {
            return wrong_type(param, "an array of whole numbers", err);
        }
        buf_add(&list, c == '[' ? "{" : c == ']' ? "}" : &c, 1);
    }
    if (value.at[0] != '[' || buf_status(&list, err)) {
        return wrong_type(param, "an array of whole numbers", err);
    }
    call_text(call, buf_peek(&list));
    return 0;
}

static int add_texts(const struct param *param, struct json_slice value, struct call *call,
                     struct mr_error *err)
{
    const char *texts[TEXTS_MAX];
    size_t count = 0;
    json_t *list = value.at[0] == '[' ? json_loadb(value.at, value.len, 0, NULL) : NULL;
    bool good = list && json_array_size(list) <= TEXTS_MAX;

    for (; good && count < json_array_size(list); count++) {
        texts[count] = json_string_value(json_array_get(list, count));
        good = texts[count];
    }
    if (good) {
        call_texts(call, texts, count);
    }
    json_decref(list);
    return good ? 0 : wrong_type(param, "an array of a few texts", err);
}

static int add_seconds(const struct param *param, struct json_slice value, struct call *call,
                       struct mr_error *err)
{
    char text[NUMBER_SIZE + 16];

    if (!is_number(value)) {
        return wrong_type(param, "a number of seconds", err);
    }
    snprintf(text, sizeof(text), "%.*s seconds", (int)value.len, value.at);
    call_text(call, text);
    return 0;
}

// A value of JSON.
static int add_member(const struct param *param, struct json_slice value, struct call *call,
                      struct mr_error *err)
{
    char number[NUMBER_SIZE];

    switch (param->type) {
    case PARAM_TEXT: return add_text(param, value, call, err);
    case PARAM_NUMBERS: return add_numbers(param, value, call, err);
    case PARAM_TEXTS: return add_texts(param, value, call, err);
    case PARAM_SECONDS: return add_seconds(param, value, call, err);
    case PARAM_JSON: call_text_sized(call, value.at, value.len); return 0;
    case PARAM_NUMBER:
        if (!copy_number(value, number)) {
            return wrong_type(param, "a whole number", err);
        }
        call_text(call, number);
        return 0;
    case PARAM_REAL:
        if (!is_number(value)) {
            return wrong_type(param, "a number", err);
        }
        call_text_sized(call, value.at, value.len);
        return 0;
    case PARAM_BOOL:
        if (!json_slice_is(value, "true") && !json_slice_is(value, "false")) {
            return wrong_type(param, "true or false", err);
        }
        call_text_sized(call, value.at, value.len);
        return 0;
    }
    return 0;
}

// A value of the path or the query: a text, or a number.
static int add_plain(const struct param *param, const char *value, struct call *call,
                     struct mr_error *err)
{
    char number[NUMBER_SIZE];

    if (param->type == PARAM_NUMBER && !copy_number(json_slice_of(value), number)) {
        return wrong_type(param, "a whole number", err);
    }
    call_text(call, value);
    return 0;
}

// ---- the query as a filter ----

static bool is_digits(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text) && strlen(text) < 19 &&
           (text[0] != '0' || !text[1]);
}

// Numbers are numbers to the database where it takes one: what it filters by is text otherwise.
static int add_filter(const struct target *target, struct call *call, struct mr_error *err)
{
    static const char *const numbers[] = {"limit", "id"};
    AUTO_BUF json;

    buf_init(&json, FILTER_MAX);
    for (size_t i = 0; i < target->query_count; i++) {
        const struct target_pair *pair = &target->query[i];
        bool number = str_equal(pair->name, numbers[0]) || str_equal(pair->name, numbers[1]);
        buf_puts(&json, i ? "," : "");
        json_add_string(&json, pair->name);
        buf_puts(&json, ":");
        if (number && is_digits(pair->value)) {
            buf_puts(&json, pair->value);
        } else {
            json_add_string(&json, pair->value);
        }
    }
    AUTO_BUF object;
    buf_init(&object, FILTER_MAX + 2);
    buf_printf(&object, "{%s}", buf_peek(&json));
    call_text(call, buf_peek(&object));
    return buf_status(&json, err);
}

// ---- the whole ----

static int add_one(const struct params *params, const struct param *param, const char *variable,
                   struct call *call, struct mr_error *err)
{
    const char *plain = param->source == PARAM_PATH    ? variable
                        : param->source == PARAM_QUERY ? target_value(params->target, param->name)
                                                       : NULL;
    struct json_slice value = param->source == PARAM_MEMBER ? params_member(params, param->name)
                              : param->source == PARAM_BODY ? params->body
                                                            : (struct json_slice){0};

    if (param->source == PARAM_FILTER) {
        return add_filter(params->target, call, err);
    }
    if (plain) {
        return add_plain(param, plain, call, err);
    }
    if (value.len > 0) {
        return add_member(param, value, call, err);
    }
    if (param->required) {
        return mr_error_set(err, MR_EINVALID, param->name ? "\"%s\" is missing" : "no body",
                            param->name);
    }
    call_null(call);
    return 0;
}

int params_fill(const struct params *params, size_t count, struct call *call, struct mr_error *err)
{
    size_t variable = 0;

    for (size_t i = 0; i < count && params->route->params[i].source != PARAM_END; i++) {
        const struct param *param = &params->route->params[i];
        int code = add_one(params, param, params->variables[variable], call, err);
        variable += param->source == PARAM_PATH;
        if (code) {
            return code;
        }
    }
    return 0;
}

int params_number(const struct params *params, const char *name, int64_t min, int64_t max,
                  int64_t fallback, int64_t *ret, struct mr_error *err)
{
    const char *plain = target_value(params->target, name);
    struct json_slice value = plain ? json_slice_of(plain) : params_member(params, name);
    char number[NUMBER_SIZE];

    *ret = fallback;
    if (value.len == 0 && !plain) {
        return 0;
    }
    if (!copy_number(value, number) || !str_parse_int(number, min, max, ret)) {
        return mr_error_set(err, MR_EINVALID, "\"%s\" has to be a whole number from %lld to %lld",
                            name, (long long)min, (long long)max);
    }
    return 0;
}
