// SPDX-License-Identifier: PostgreSQL
//
// Answers of S3: see s3_answer.h.

#include "store/s3_answer.h"

#include <stdio.h>
#include <string.h>

#include "base/iso_time.h"
#include "base/str.h"
#include "store/s3_xml.h"

#define DAYS_MAX 1000000
#define KEY_SIZE 1100

// Copies a text, one line of it and no control characters.
static void copy(char *ret, size_t size, const char *text)
{
    snprintf(ret, size, "%s", text);
    str_trim_utf8(ret);
    for (char *at = ret; *at; at++) {
        *at = (unsigned char)*at < ' ' || *at == 0x7f ? ' ' : *at;
    }
}

// ---- errors ----

static bool on_error(void *arg, const char *path, const char *text)
{
    struct s3_error *error = arg;

    if (text && str_equal(path, "Error/Code")) {
        copy(error->code, sizeof(error->code), text);
    } else if (text && str_equal(path, "Error/Message")) {
        copy(error->message, sizeof(error->message), text);
    }
    return true;
}

bool s3_answer_error(const char *data, size_t size, struct s3_error *ret)
{
    struct s3_error error = {.code = ""};

    if (!s3_xml_read(data, size, on_error, &error) || !error.code[0]) {
        return false;
    }
    *ret = error;
    return true;
}

// ---- lists ----

struct listing {
    s3_entry_fn *on_entry;
    void *arg;
    bool is_list, has_truncated, truncated;
    char key[KEY_SIZE];
    int64_t size, modified_us; // -1: not seen
};

static bool end_entry(struct listing *list)
{
    bool good = list->key[0] && list->size >= 0 && list->modified_us >= 0 &&
                list->on_entry(list->arg, list->key, list->size, list->modified_us);

    list->key[0] = '\0';
    list->size = list->modified_us = -1;
    return good;
}

static bool read_flag(const char *text, bool *ret)
{
    *ret = str_equal(text, "true");
    return *ret || str_equal(text, "false");
}

static bool on_list(void *arg, const char *path, const char *text)
{
    struct listing *list = arg;
    const char *name = path + strlen("ListBucketResult");

    if (!str_starts(path, "ListBucketResult")) {
        return true;
    }
    list->is_list = true;
    if (str_equal(name, "/Contents")) {
        return end_entry(list);
    }
    if (!text) {
        return true;
    }
    if (str_equal(name, "/IsTruncated")) {
        list->has_truncated = true;
        return read_flag(text, &list->truncated);
    }
    if (str_equal(name, "/Contents/Key")) {
        return (size_t)snprintf(list->key, sizeof(list->key), "%s", text) < sizeof(list->key);
    }
    if (str_equal(name, "/Contents/Size")) {
        return str_parse_int(text, 0, INT64_MAX, &list->size);
    }
    return !str_equal(name, "/Contents/LastModified") ||
           iso_time_parse(text, &list->modified_us) == ISO_TIME_GOOD;
}

bool s3_answer_list(const char *data, size_t size, s3_entry_fn *on_entry, void *arg,
                    bool *ret_truncated)
{
    struct listing list = {.on_entry = on_entry, .arg = arg, .size = -1, .modified_us = -1};

    if (!s3_xml_read(data, size, on_list, &list) || !list.is_list || !list.has_truncated) {
        return false;
    }
    *ret_truncated = list.truncated;
    return true;
}

// ---- deletes ----

struct deletes {
    s3_undeleted_fn *on_undeleted;
    void *arg;
    bool is_result;
    char key[KEY_SIZE];
    struct s3_error error;
};

static bool on_deleted(void *arg, const char *path, const char *text)
{
    struct deletes *deletes = arg;

    deletes->is_result = deletes->is_result || str_equal(path, "DeleteResult");
    if (str_equal(path, "DeleteResult/Error")) {
        deletes->on_undeleted(deletes->arg, deletes->key, &deletes->error);
        deletes->key[0] = '\0';
        deletes->error = (struct s3_error){.code = ""};
    } else if (text && str_equal(path, "DeleteResult/Error/Key")) {
        return (size_t)snprintf(deletes->key, sizeof(deletes->key), "%s", text) <
               sizeof(deletes->key);
    } else if (text && str_equal(path, "DeleteResult/Error/Code")) {
        copy(deletes->error.code, sizeof(deletes->error.code), text);
    } else if (text && str_equal(path, "DeleteResult/Error/Message")) {
        copy(deletes->error.message, sizeof(deletes->error.message), text);
    }
    return true;
}

bool s3_answer_deleted(const char *data, size_t size, s3_undeleted_fn *on_undeleted, void *arg)
{
    struct deletes deletes = {.on_undeleted = on_undeleted, .arg = arg};

    return s3_xml_read(data, size, on_deleted, &deletes) && deletes.is_result;
}

// ---- rules ----

struct rules {
    const char *wanted; // prefix
    bool is_rules;
    int days; // of the best so far; 0: none
    // of the rule that is read
    bool enabled, covers;
    int64_t expires;
};

static void begin_rule(struct rules *rules)
{
    rules->enabled = false;
    rules->covers = true; // until something narrows it
    rules->expires = 0;
}

static void end_rule(struct rules *rules)
{
    if (rules->enabled && rules->covers && rules->expires > 0 &&
        (rules->days == 0 || rules->expires < rules->days)) {
        rules->days = (int)rules->expires;
    }
    begin_rule(rules);
}

// Tags and sizes say which objects a rule leaves alone.
static bool is_prefix(const char *name)
{
    return str_equal(name, "/Prefix") || str_equal(name, "/Filter/Prefix") ||
           str_equal(name, "/Filter/And/Prefix");
}

static bool on_rule(void *arg, const char *path, const char *text)
{
    struct rules *rules = arg;
    const char *name = path + strlen("LifecycleConfiguration/Rule");

    if (str_equal(path, "LifecycleConfiguration")) {
        rules->is_rules = true;
    } else if (!str_starts(path, "LifecycleConfiguration/Rule")) {
        return true;
    } else if (!*name) {
        end_rule(rules);
    } else if (text && str_equal(name, "/Status")) {
        rules->enabled = str_equal(text, "Enabled");
    } else if (text && is_prefix(name)) {
        rules->covers = rules->covers && str_starts(rules->wanted, text);
    } else if (text && str_equal(name, "/Expiration/Days")) {
        return str_parse_int(text, 1, DAYS_MAX, &rules->expires);
    } else if (str_starts(name, "/Filter/") && !str_equal(name, "/Filter/And")) {
        rules->covers = false;
    }
    return true;
}

bool s3_answer_lifecycle(const char *data, size_t size, const char *prefix, int *ret_days)
{
    struct rules rules = {.wanted = prefix};

    begin_rule(&rules);
    if (!s3_xml_read(data, size, on_rule, &rules) || !rules.is_rules) {
        return false;
    }
    *ret_days = rules.days;
    return true;
}
