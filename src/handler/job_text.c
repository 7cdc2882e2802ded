// SPDX-License-Identifier: PostgreSQL
//
// A job as others see it: see job_text.h.

#include "handler/job_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/json.h"
#include "handler/trace.h"

// ---- JSON ----

static void add_time(struct buf *out, const char *name, int64_t at_us)
{
    int64_t part = at_us % 1000000;
    time_t seconds = (time_t)((at_us - part) / 1000000);
    struct tm parts;

    if (part < 0) { // before 1970
        part += 1000000;
        seconds--;
    }
    gmtime_r(&seconds, &parts);
    buf_printf(out, ",\"%s\":\"%04d-%02d-%02dT%02d:%02d:%02d.%06dZ\"", name, parts.tm_year + 1900,
               parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
               (int)part);
}

static void add_text(struct buf *out, const char *name, const char *text)
{
    if (text) {
        buf_printf(out, ",\"%s\":", name);
        json_add_string(out, text);
    }
}

static void add_json(struct buf *out, const char *name, const char *json)
{
    if (json) {
        buf_printf(out, ",\"%s\":", name);
        buf_puts(out, json);
    }
}

static void add_bytes(struct buf *out, const char *name, const void *data, size_t size)
{
    if (data) {
        buf_printf(out, ",\"%s\":\"", name);
        base64_add(out, data, size);
        buf_puts(out, "\"");
    }
}

void job_text_json(const mr_claimed_job *job, struct buf *out)
{
    buf_printf(out, "{\"id\":%lld", (long long)job->id);
    add_text(out, "queue", job->queue);
    add_text(out, "kind", job->kind);
    add_json(out, "args", job->args);
    buf_printf(out, ",\"attempt\":%d,\"max_attempts\":%d,\"priority\":%d", job->attempt,
               job->max_attempts, job->priority);
    add_time(out, "created_at", job->created_at_us);
    add_time(out, "lease_until", job->lease_until_us);
    add_json(out, "meta", job->meta);
    add_text(out, "tenant", job->tenant);
    add_text(out, "ref", job->ref);
    add_text(out, "source", job->source);
    if (job->timeout_ms > 0) {
        buf_printf(out, ",\"timeout\":%lld.%03d", (long long)(job->timeout_ms / 1000),
                   (int)(job->timeout_ms % 1000));
    }
    add_bytes(out, "state", job->state, job->state_size);
    add_bytes(out, "blob", job->blob, job->blob_size);
    buf_puts(out, "}");
}

// ---- environment ----

enum { VARIABLES = 9, NUMBERS_FROM = 6, NUMBER_SIZE = 24 };

struct variable {
    const char *name;
    const char *value; // NULL: not set
    char number[NUMBER_SIZE];
};

static struct variable text_variable(const char *name, const char *value)
{
    return (struct variable){.name = name, .value = value};
}

// The number stands in the variable itself: `value` is set when that has found its place.
static struct variable number_variable(const char *name, int64_t value)
{
    struct variable variable = {.name = name};

    snprintf(variable.number, sizeof(variable.number), "%lld", (long long)value);
    return variable;
}

// `trace` is "" where there is none.
static void variables_of(const mr_claimed_job *job, const char *worker, const char *trace,
                         struct variable *ret)
{
    ret[0] = text_variable("MILLRACE_WORKER", worker);
    ret[1] = text_variable("MILLRACE_QUEUE", job ? job->queue : NULL);
    ret[2] = text_variable("MILLRACE_KIND", job ? job->kind : NULL);
    ret[3] = text_variable("MILLRACE_REF", job ? job->ref : NULL);
    ret[4] = text_variable("MILLRACE_TENANT", job ? job->tenant : NULL);
    ret[5] = text_variable("TRACEPARENT", trace[0] ? trace : NULL);
    ret[6] = number_variable("MILLRACE_JOB_ID", job ? job->id : 0);
    ret[7] = number_variable("MILLRACE_ATTEMPT", job ? job->attempt : 0);
    ret[8] = number_variable("MILLRACE_MAX_ATTEMPTS", job ? job->max_attempts : 0);
    for (int i = NUMBERS_FROM; job && i < VARIABLES; i++) {
        ret[i].value = ret[i].number;
    }
}

static bool is_ours(const char *entry, const struct variable *variables)
{
    for (int i = 0; i < VARIABLES; i++) {
        size_t len = strlen(variables[i].name);
        if (strncmp(entry, variables[i].name, len) == 0 && entry[len] == '=') {
            return true;
        }
    }
    return false;
}

static size_t text_size(const struct variable *variables)
{
    size_t size = 0;

    for (int i = 0; i < VARIABLES; i++) {
        size += variables[i].value ? strlen(variables[i].name) + strlen(variables[i].value) + 2 : 0;
    }
    return size;
}

static size_t count_inherited(void)
{
    size_t count = 0;

    while (environ && environ[count]) {
        count++;
    }
    return count;
}

char **job_text_env(const mr_claimed_job *job, const char *worker)
{
    struct variable variables[VARIABLES];
    size_t inherited = count_inherited();
    size_t at = 0;

    char trace[TRACE_SIZE];

    if (!trace_of_job(job, trace)) {
        trace[0] = '\0';
    }
    variables_of(job, worker, trace, variables);
    size_t table_size = (inherited + VARIABLES + 1) * sizeof(char *);
    char **env = malloc(table_size + text_size(variables));
    if (!env) {
        return NULL;
    }
    char *text = (char *)env + table_size;
    for (size_t i = 0; i < inherited; i++) {
        if (!is_ours(environ[i], variables)) {
            env[at++] = environ[i];
        }
    }
    for (int i = 0; i < VARIABLES; i++) {
        if (variables[i].value) {
            env[at++] = text;
            text = stpcpy(stpcpy(stpcpy(text, variables[i].name), "="), variables[i].value) + 1;
        }
    }
    env[at] = NULL;
    return env;
}
