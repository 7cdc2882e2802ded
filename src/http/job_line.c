// SPDX-License-Identifier: PostgreSQL
//
// A job as a producer writes it: see job_line.h.

#include "http/job_line.h"

#include <string.h>

#include "base/str.h"

// The longest name that figures are kept under.
#define JOB_NAME_MAX 200

static struct json_slice text_in(struct json_slice value)
{
    if (value.len < 2 || value.at[0] != '"' || memchr(value.at, '\\', value.len)) {
        return (struct json_slice){0};
    }
    return (struct json_slice){value.at + 1, value.len - 2};
}

static void on_member(void *arg, struct json_slice key, struct json_slice value)
{
    struct job_line *job = arg;

    job->spelled = job->spelled || memchr(key.at, '\\', key.len);
    if (json_slice_is(key, "kind")) {
        job->kind = text_in(value);
    } else if (json_slice_is(key, "queue")) {
        job->queue = text_in(value);
    } else if (json_slice_is(key, "meta")) {
        job->meta = value;
    } else if (json_slice_is(key, "unique_key")) {
        job->alone = true;
        job->unique_key = value;
    } else if (json_slice_is(key, "ordering_key")) {
        job->ordering_key = value;
    } else if (json_slice_is(key, "tenant")) {
        job->tenant = value;
    } else if (json_slice_is(key, "ref")) {
        job->ref = value;
    }
}

int job_line_read(struct json_slice text, struct job_line *ret, struct mr_error *err)
{
    *ret = (struct job_line){.text = text};
    return json_each_member(text, on_member, ret, err);
}

static void on_meta_member(void *arg, struct json_slice key, struct json_slice value)
{
    bool *found = arg;

    (void)value;
    *found = *found || json_slice_is(key, "traceparent");
}

// Where the members of an object begin: behind its brace.
static const char *inside(struct json_slice object)
{
    const char *brace = memchr(object.at, '{', object.len);

    return brace + 1;
}

static bool is_empty(const char *at)
{
    return at[strspn(at, " \t\r\n")] == '}';
}

// Put first, so that a member of the same name in other spelling, which comes later, wins.
void job_line_add(const struct job_line *job, const char *traceparent, struct buf *out)
{
    bool found = false;
    bool object = job->meta.len > 0 && job->meta.at[0] == '{';

    if (object) {
        json_each_member(job->meta, on_meta_member, &found, NULL);
    }
    if (!traceparent || found || (job->meta.len > 0 && !object)) {
        buf_add(out, job->text.at, job->text.len);
        return;
    }
    const char *at = inside(object ? job->meta : job->text);
    buf_add(out, job->text.at, (size_t)(at - job->text.at));
    buf_printf(out, object ? "\"traceparent\":\"%s\"%s" : "\"meta\":{\"traceparent\":\"%s\"}%s",
               traceparent, is_empty(at) ? "" : ",");
    buf_add(out, at, job->text.len - (size_t)(at - job->text.at));
}

static void copy_name(struct json_slice slice, const char *fallback, char ret[JOB_NAME_MAX + 1])
{
    struct json_slice from = slice.at ? slice : json_slice_of(fallback);
    size_t length = from.len < JOB_NAME_MAX ? from.len : JOB_NAME_MAX;

    memcpy(ret, from.at, length);
    ret[length] = '\0';
    str_trim_utf8(ret);
}

void job_line_count(struct json_slice queue, struct json_slice kind, struct tally *tally)
{
    char queue_name[JOB_NAME_MAX + 1], kind_name[JOB_NAME_MAX + 1];

    copy_name(queue, "default", queue_name);
    copy_name(kind, TALLY_OTHER, kind_name);
    tally_count(tally, queue_name, kind_name, TALLY_ENQUEUED, 1);
}
