// SPDX-License-Identifier: PostgreSQL
//
// What `millrace top` knows: see top_model.h.

#include "cli/top_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cli/rows.h"

// What of the figures comes as it is, by its name in overview().
static const struct {
    enum top_figure figure;
    const char *key;
} plain[] = {
    {TOP_AVAILABLE, "available"}, {TOP_RUNNING, "running"}, {TOP_SCHEDULED, "scheduled"},
    {TOP_RETRYING, "retrying"},   {TOP_DEAD, "dead"},       {TOP_OLDEST, "oldest_seconds"},
};

const char *top_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

double top_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void free_answer(struct top_model *model)
{
    json_decref(model->overview);
    json_decref(model->system);
    json_decref(model->workers);
    json_decref(model->story);
    json_decref(model->dead);
    free(model->queues);
}

void top_model_done(struct top_model *model)
{
    free_answer(model);
    *model = (struct top_model){0};
}

// ---- rates ----

// A total that went down began anew; a second time within no time says nothing.
static double rate(double now, double before, double seconds)
{
    return seconds > 0.01 && now >= before ? (now - before) / seconds : NAN;
}

static void add_history(struct top_queue *queue, const struct top_queue *before)
{
    int keep = before->history_len < TOP_HISTORY ? before->history_len : TOP_HISTORY - 1;
    const double *from = before->history + before->history_len - keep;

    memcpy(queue->history, from, (size_t)keep * sizeof(*from));
    queue->history_len = keep;
    if (!isnan(queue->figures[TOP_OUT])) {
        queue->history[queue->history_len++] = queue->figures[TOP_OUT];
    }
}

static void add_rates(struct top_queue *queue, const struct top_queue *before, double seconds)
{
    queue->figures[TOP_IN] = rate(queue->enqueued, before->enqueued, seconds);
    queue->figures[TOP_OUT] = rate(queue->ended, before->ended, seconds);
    queue->figures[TOP_FAILED] = rate(queue->failures, before->failures, seconds);
    add_history(queue, before);
}

// ---- an answer ----

static struct top_queue read_queue(const json_t *object)
{
    struct top_queue queue = {
        .name = top_text(object, "queue"),
        .status = top_text(object, "status"),
        .message = top_text(object, "message"),
        .paused = json_is_true(json_object_get(object, "paused")),
        .enqueued = top_number(object, "enqueued_total"),
        .ended = top_number(object, "completed_total"),
        .failures = top_number(object, "failed_total"),
    };

    for (int i = 0; i < TOP_FIGURES; i++) {
        queue.figures[i] = NAN;
    }
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        queue.figures[plain[i].figure] = top_number(object, plain[i].key);
    }
    queue.figures[TOP_WAIT] = top_number(json_object_get(object, "wait"), "p95");
    return queue;
}

static int parse(const PGresult *answer, int column, json_t **ret, struct mr_error *err)
{
    const char *text = rows_value(answer, 0, column);

    *ret = text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;
    return text && !*ret ? mr_error_set(err, MR_EINTERNAL, "an answer that is not JSON") : 0;
}

static void add_sums(struct top_model *model)
{
    for (int figure = 0; figure < TOP_FIGURES; figure++) {
        model->sums[figure] = NAN;
        for (size_t i = 0; i < model->count; i++) {
            double value = model->queues[i].figures[figure];

            if (!isnan(value)) {
                model->sums[figure] =
                    isnan(model->sums[figure]) ? value : model->sums[figure] + value;
            }
        }
    }
}

static int read_queues(struct top_model *model, const struct top_model *before,
                       struct mr_error *err)
{
    const json_t *list = json_object_get(model->overview, "queues");

    model->count = json_array_size(list);
    model->queues = calloc(model->count + 1, sizeof(*model->queues));
    if (!model->queues) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < model->count; i++) {
        struct top_queue *queue = &model->queues[i];

        *queue = read_queue(json_array_get(list, i));
        int known = top_model_find(before, queue->name);
        if (known >= 0) {
            add_rates(queue, &before->queues[known], model->at_s - before->at_s);
        }
    }
    add_sums(model);
    return 0;
}

// What is asked for now and then stays until it comes anew.
static void keep(json_t **part, json_t *before)
{
    if (!*part && before) {
        *part = json_incref(before);
    }
}

int top_model_take(struct top_model *model, const PGresult *answer, double at_s,
                   struct mr_error *err)
{
    struct top_model next = {.at_s = at_s};
    json_t **const parts[] = {&next.overview, &next.system, &next.workers, &next.story, &next.dead};
    int code = PQntuples(answer) == 1 ? 0 : mr_error_set(err, MR_EINTERNAL, "no answer");

    for (int i = 0; i < (int)(sizeof(parts) / sizeof(parts[0])) && code == 0; i++) {
        code = parse(answer, i, parts[i], err);
    }
    if (code == 0) {
        code = read_queues(&next, model, err);
    }
    if (code) {
        free_answer(&next);
        return code;
    }
    keep(&next.system, model->system);
    keep(&next.workers, model->workers);
    free_answer(model);
    *model = next;
    return 0;
}

// ---- order ----

static enum top_figure sort_figure; // qsort() takes no argument of ours

static int compare(const void *left, const void *right)
{
    const struct top_queue *a = left, *b = right;
    int by_name = strcmp(a->name, b->name);

    if (sort_figure == TOP_FIGURES) {
        return by_name;
    }
    double x = a->figures[sort_figure], y = b->figures[sort_figure];
    x = isnan(x) ? -1 : x;
    y = isnan(y) ? -1 : y;
    return x < y ? 1 : x > y ? -1 : by_name;
}

void top_model_sort(struct top_model *model, enum top_figure figure)
{
    sort_figure = figure;
    if (model->count > 0) {
        qsort(model->queues, model->count, sizeof(*model->queues), compare);
    }
}

int top_model_find(const struct top_model *model, const char *name)
{
    for (size_t i = 0; i < model->count; i++) {
        if (str_equal(model->queues[i].name, name)) {
            return (int)i;
        }
    }
    return -1;
}
