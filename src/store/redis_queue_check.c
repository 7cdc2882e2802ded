// SPDX-License-Identifier: PostgreSQL
//
// What a job on Redis may look like, in the words of sql/internal/check.sql and check_job.sql. See
// redis_queue.h.

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/iso_time.h"
#include "base/json_scan.h"
#include "base/str.h"
#include "base/utf8.h"
#include "store/redis_queue_parts.h"

#define TEXT_MAX     1000
#define PRIORITY_MAX 99
#define ATTEMPTS_MAX 32000
#define ARGS_BYTES   INT64_C(1048576)
#define PART_BYTES   INT64_C(67108864)
// A thousand years as PostgreSQL compares intervals: a year has 360 days.
#define MS_MAX         (INT64_C(1000) * 360 * 24 * 60 * 60 * 1000)
#define LEASE_SHOWN    80
#define NAME_SHOWN     200
#define TIME_MAX_US    INT64_C(3093527980800000000) // 100000-01-01
#define INVALID        "22023"
#define WRONG_TEXT     "22P02"
#define WRONG_ENCODING "22021"

// ---- refusing ----

int queue_refuse(mr_error *err, const char *sqlstate, const char *hint, const char *format, ...)
{
    char message[MR_ERROR_MESSAGE_SIZE];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    mr_error_set(err, MR_EINVALID, "%s", message);
    mr_error_sqlstate(err, sqlstate);
    mr_error_hint(err, "%s", hint);
    return MR_EINVALID;
}

// The first `most` characters in quotes, as SQL writes them.
static void add_quoted(struct buf *out, const char *text, int most)
{
    bool has_backslash = strchr(text, '\\') != NULL;
    int seen = 0;

    buf_puts(out, has_backslash ? "E'" : "'");
    for (const char *c = text; *c; c++) {
        seen += ((unsigned char)*c & 0xc0) != 0x80;
        if (seen > most) {
            break;
        }
        if (*c == '\'' || *c == '\\') {
            buf_add(out, c, 1);
        }
        buf_add(out, c, 1);
    }
    buf_puts(out, "'");
}

int queue_refuse_lease(const char *lease, mr_error *err)
{
    AUTO_BUF quoted;

    buf_init(&quoted, MR_ERROR_MESSAGE_SIZE);
    add_quoted(&quoted, lease, LEASE_SHOWN);
    mr_error_set(err, MR_ELEASE, "lease %s is lost", buf_peek(&quoted));
    mr_error_sqlstate(err, "MR001");
    mr_error_detail(err, "The token is wrong, its jobs were rescued after it expired, or they are "
                         "finished already.");
    mr_error_hint(err, "Nothing was changed. Drop the work and claim again; for long jobs call "
                       "heartbeat() before the lease expires.");
    return MR_ELEASE;
}

int queue_refuse_unknown(const char *queue, mr_error *err)
{
    AUTO_BUF quoted;

    buf_init(&quoted, MR_ERROR_MESSAGE_SIZE);
    add_quoted(&quoted, queue, NAME_SHOWN);
    mr_error_set(err, MR_EUNKNOWN, "queue %s does not exist", buf_peek(&quoted));
    mr_error_sqlstate(err, "MR003");
    mr_error_hint(err, "`millrace status` lists those there are; enqueue makes a new one.");
    return MR_EUNKNOWN;
}

// ---- texts ----

// As many bytes as the first of them promises, as PostgreSQL shows them.
static int refuse_bytes(const char *at, mr_error *err)
{
    unsigned char lead = (unsigned char)*at;
    int width = (lead & 0xe0) == 0xc0   ? 2
                : (lead & 0xf0) == 0xe0 ? 3
                : (lead & 0xf8) == 0xf0 ? 4
                                        : 1;
    AUTO_BUF shown;

    buf_init(&shown, MR_ERROR_MESSAGE_SIZE);
    for (int i = 0; i < width && at[i]; i++) {
        buf_printf(&shown, "%s0x%02x", i ? " " : "", (unsigned char)at[i]);
    }
    return queue_refuse(err, WRONG_ENCODING, "Texts are UTF-8.",
                        "invalid byte sequence for encoding \"UTF8\": %s", buf_peek(&shown));
}

int queue_check_utf8(const char *text, mr_error *err)
{
    const char *at = text ? utf8_wrong(text) : NULL;

    return at ? refuse_bytes(at, err) : 0;
}

int queue_check_name(const char *what, const char *name, mr_error *err)
{
    char hint[MR_ERROR_HINT_SIZE];
    int code = queue_check_utf8(name, err);

    if (code) {
        return code;
    }
    if (name[0] == '\0') {
        snprintf(hint, sizeof(hint), "Give the %s a name of 1 to 200 bytes.", what);
        return queue_refuse(err, INVALID, hint, "%s must not be empty", what);
    }
    if (strlen(name) > QUEUE_NAME_MAX) {
        snprintf(hint, sizeof(hint),
                 "Choose a shorter name for the %s; what varies from job to job belongs into args.",
                 what);
        return queue_refuse(err, INVALID, hint, "%s is %zu bytes long, the limit is %d", what,
                            strlen(name), QUEUE_NAME_MAX);
    }
    return 0;
}

static int check_text(const char *what, const char *text, mr_error *err)
{
    char hint[MR_ERROR_HINT_SIZE];
    int code = queue_check_utf8(text, err);

    if (code || !text || strlen(text) <= TEXT_MAX) {
        return code;
    }
    snprintf(hint, sizeof(hint), "Choose a shorter %s.", what);
    return queue_refuse(err, INVALID, hint, "%s is %zu bytes long, the limit is %d", what,
                        strlen(text), TEXT_MAX);
}

int queue_check_number(const char *what, int64_t value, int64_t least, int64_t most, mr_error *err)
{
    char hint[MR_ERROR_HINT_SIZE];

    if (value >= least && value <= most) {
        return 0;
    }
    snprintf(hint, sizeof(hint), "Pass a value from %lld to %lld.", (long long)least,
             (long long)most);
    return queue_refuse(err, INVALID, hint, "%s must be from %lld to %lld, not %lld", what,
                        (long long)least, (long long)most, (long long)value);
}

// Milliseconds as PostgreSQL prints an interval.
static void interval_text(int64_t ms, char *ret, size_t size)
{
    int64_t s = ms / 1000;
    int n = snprintf(ret, size, "%02lld:%02d:%02d", (long long)(s / 3600), (int)(s / 60 % 60),
                     (int)(s % 60));

    if (ms % 1000) {
        n += snprintf(ret + n, size - (size_t)n, ".%03d", (int)(ms % 1000));
        while (ret[n - 1] == '0') {
            ret[--n] = '\0';
        }
    }
}

int queue_check_ms(const char *what, int64_t ms, mr_error *err)
{
    char text[48];

    if (ms <= MS_MAX) {
        return 0;
    }
    interval_text(ms, text, sizeof(text));
    return queue_refuse(err, INVALID,
                        "Pass a positive interval such as '30 seconds', or leave it out.",
                        "%s must be longer than zero and at most 1000 years, not %s", what, text);
}

static int check_size(const char *what, size_t size, int64_t limit, const char *setting,
                      mr_error *err)
{
    char hint[MR_ERROR_HINT_SIZE];

    if ((int64_t)size <= limit) {
        return 0;
    }
    snprintf(hint, sizeof(hint),
             "Keep large payloads in an object store such as S3 and pass a reference; the Redis "
             "backend has no setting %s.",
             setting);
    return queue_refuse(err, INVALID, hint, "%s is %zu bytes long, the limit is %lld", what, size,
                        (long long)limit);
}

// ---- JSON ----

static int hex_of(const char *at)
{
    int value = 0;

    for (int i = 0; i < 4; i++) {
        char c = at[i];
        value = value * 16 + (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return value;
}

// Escapes that jsonb cannot keep: a zero byte, half of a pair. The text is JSON.
static int check_escapes(const char *json, mr_error *err)
{
    bool high = false;

    for (const char *c = json; *c; c++) {
        bool is_unit = c[0] == '\\' && c[1] == 'u';
        int unit = is_unit ? hex_of(c + 2) : 0;
        bool is_low = is_unit && unit >= 0xdc00 && unit <= 0xdfff;
        if (is_unit && unit == 0) {
            queue_refuse(err, "22P05", "", "unsupported Unicode escape sequence");
            mr_error_detail(err, "\\u0000 cannot be converted to text.");
            return MR_EINVALID;
        }
        if (high != is_low) {
            queue_refuse(err, WRONG_TEXT, "", "invalid input syntax for type json");
            mr_error_detail(err, high ? "Unicode low surrogate must follow a high surrogate."
                                      : "Unicode high surrogate must come before a low one.");
            return MR_EINVALID;
        }
        high = is_unit && unit >= 0xd800 && unit <= 0xdbff;
        c += is_unit ? 5 : c[0] == '\\' ? 1 : 0;
    }
    return 0;
}

int queue_check_json(const char *json, mr_error *err)
{
    mr_error why;
    int code = queue_check_utf8(json, err);

    if (code || !json) {
        return code;
    }
    if (json_check(json_slice_of(json), &why)) {
        queue_refuse(err, WRONG_TEXT, "", "invalid input syntax for type json");
        mr_error_detail(err, "%s.", why.message);
        return MR_EINVALID;
    }
    return strchr(json, '\\') ? check_escapes(json, err) : 0;
}

// ---- jobs ----

// What a job cannot ask for on Redis.
static int check_features(const mr_job_spec *job, mr_error *err)
{
    const struct {
        const char *name;
        bool wanted;
    } features[] = {
        {"unique_key", job->unique_key != NULL},
        {"on_conflict", job->on_conflict != NULL},
        {"unique_for_ms", job->unique_for_ms != 0},
        {"ordering_key", job->ordering_key != NULL},
    };

    for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
        if (features[i].wanted) {
            mr_error_set(err, MR_EUSAGE, "%s needs PostgreSQL; this connection is to Redis",
                         features[i].name);
            mr_error_hint(err, "Leave it out, or open a connection to PostgreSQL for it. "
                               "docs/redis.md lists what works where.");
            return MR_EUSAGE;
        }
    }
    return 0;
}

static int check_time(const char *run_at, mr_error *err)
{
    int64_t us = 0;

    if (!run_at) {
        return 0;
    }
    if (str_equal(run_at, "infinity") || str_equal(run_at, "-infinity")) {
        us = INT64_MAX;
    } else if (iso_time_parse(run_at, &us) == ISO_TIME_FORM) {
        return queue_refuse(
            err, "22007",
            "On Redis a time is written like 2026-11-16 14:05:00+01, without a zone in UTC.",
            "invalid input syntax for type timestamp with time zone: \"%s\"", run_at);
    } else if (iso_time_parse(run_at, &us) == ISO_TIME_RANGE) {
        return queue_refuse(err, "22008", "", "date/time field value out of range: \"%s\"", run_at);
    }
    return us <= TIME_MAX_US
               ? 0
               : queue_refuse(err, INVALID, "Pass a time, or leave it out to run the job at once.",
                              "run_at must be a finite time before the year 100000, not %s",
                              run_at);
}

int64_t queue_run_at_ms(const char *run_at)
{
    int64_t us = 0;

    iso_time_parse(run_at, &us);
    return us / 1000 + (us % 1000 > 0);
}

static int check_times(const mr_job_spec *job, mr_error *err)
{
    int code;

    if ((code = check_time(job->run_at, err)) ||
        (code = queue_check_ms("delay", job->delay_ms, err))) {
        return code;
    }
    if (job->run_at && job->delay_ms) {
        return queue_refuse(err, INVALID, "Pass the one or the other.",
                            "run_at and delay exclude each other");
    }
    return 0;
}

static int check_sizes(const mr_job_spec *job, mr_error *err)
{
    int code;

    (void)((code = check_size("args", strlen(job->args ? job->args : ""), ARGS_BYTES, "max_args",
                              err)) ||
           (code = check_size("meta", strlen(job->meta ? job->meta : ""), ARGS_BYTES, "max_args",
                              err)) ||
           (code = check_size("state", job->state_size, PART_BYTES, "max_state", err)) ||
           (code = check_size("blob", job->blob_size, PART_BYTES, "max_blob", err)));
    return code;
}

int redis_queue_check_job(const mr_job_spec *job, mr_error *err)
{
    int code;

    (void)((code = check_features(job, err)) || (code = queue_check_json(job->args, err)) ||
           (code = queue_check_json(job->meta, err)) ||
           (code = queue_check_name("kind", job->kind, err)) ||
           (code = queue_check_name("queue", job->queue ? job->queue : "default", err)) ||
           (code = queue_check_number("priority", job->priority, 0, PRIORITY_MAX, err)) ||
           (code = check_times(job, err)) || (code = check_text("tenant", job->tenant, err)) ||
           (code = check_text("ref", job->ref, err)) ||
           (code = job->max_attempts
                       ? queue_check_number("max_attempts", job->max_attempts, 1, ATTEMPTS_MAX, err)
                       : 0) ||
           (code = queue_check_ms("timeout", job->timeout_ms, err)) ||
           (code = queue_check_ms("expires_in", job->expires_in_ms, err)) ||
           (code = check_sizes(job, err)));
    return code;
}
