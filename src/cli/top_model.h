// SPDX-License-Identifier: PostgreSQL
//
// What `millrace top` knows: the last answer of the database, and what follows from it and those
// before: rates and their history.

#ifndef MILLRACE_CLI_TOP_MODEL_H
#define MILLRACE_CLI_TOP_MODEL_H

#include <jansson.h>
#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { TOP_HISTORY = 60 };

// The figures of a queue that are shown and sorted by, after its name.
enum top_figure {
    TOP_AVAILABLE,
    TOP_RUNNING,
    TOP_SCHEDULED,
    TOP_RETRYING,
    TOP_DEAD,
    TOP_IN,     // a second
    TOP_OUT,    // a second
    TOP_FAILED, // a second
    TOP_WAIT,   // seconds, the 95th percentile
    TOP_OLDEST, // seconds
    TOP_FIGURES,
};

struct top_queue {
    const char *name; // borrowed from the answer
    const char *status, *message;
    bool paused;
    double figures[TOP_FIGURES];      // NAN: not known
    double enqueued, ended, failures; // totals, of which rates are made
    double history[TOP_HISTORY];      // of TOP_OUT, oldest first
    int history_len;
};

struct top_model {
    json_t *overview;
    json_t *system;  // asked for now and then
    json_t *workers; // likewise
    json_t *story;   // of the queue that is looked into; NULL
    json_t *dead;    // its latest dead letters
    struct top_queue *queues;
    size_t count;
    double sums[TOP_FIGURES];
    double at_s; // when the answer came, by clock_us()
};

// The columns of the answer, JSON each; null: not asked for.
enum {
    TOP_COLUMN_OVERVIEW,
    TOP_COLUMN_SYSTEM,
    TOP_COLUMN_WORKERS,
    TOP_COLUMN_STORY,
    TOP_COLUMN_DEAD
};

void top_model_done(struct top_model *model);

// Takes over an answer that came at `at_s`. On failure the model is as before.
int top_model_take(struct top_model *model, const PGresult *answer, double at_s,
                   struct mr_error *err);

// Orders the queues by a figure, largest first and unknown ones last; by name with TOP_FIGURES.
void top_model_sort(struct top_model *model, enum top_figure figure);

// Where a queue stands; -1: there is none of that name.
int top_model_find(const struct top_model *model, const char *name);

// ---- a look into JSON; what is missing or of another type is "", NAN, false ----

const char *top_text(const json_t *object, const char *key);
double top_number(const json_t *object, const char *key);

#endif
