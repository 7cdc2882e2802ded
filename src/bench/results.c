// SPDX-License-Identifier: PostgreSQL
//
// What was measured: see results.h.

#include "bench/results.h"

#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/str.h"

// ---- runs ----

static void add_entry(struct run *run, struct run_entry entry)
{
    if (run->entry_count < RUN_ENTRIES_MAX) {
        run->entries[run->entry_count++] = entry;
    }
}

void run_note(struct run *run, const char *name, double value)
{
    add_entry(run, (struct run_entry){.name = name, .value = value});
}

void run_more(struct run *run, const char *name, const char *unit, double value)
{
    add_entry(run, (struct run_entry){.name = name, .value = value, .unit = unit});
}

void run_less(struct run *run, const char *name, const char *unit, double value)
{
    add_entry(run, (struct run_entry){.name = name, .value = value, .unit = unit, .less = true});
}

void run_ratio(struct run *run, const char *name, const char *against, double value)
{
    add_entry(run, (struct run_entry){.name = name, .value = value, .against = against});
}

const struct run_entry *run_find(const struct run *run, const char *name)
{
    for (size_t i = 0; i < run->entry_count; i++) {
        if (!run->entries[i].against && str_equal(run->entries[i].name, name)) {
            return &run->entries[i];
        }
    }
    return NULL;
}

void results_init(struct results *results)
{
    *results = (struct results){0};
}

void results_done(struct results *results)
{
    free(results->runs);
    results_init(results);
}

int results_add(struct results *results, const char *mode, const char *contender, int repeat,
                struct run **ret, struct mr_error *err)
{
    if (results->count == RESULTS_MAX) {
        return mr_error_set(err, MR_ELIMIT, "more than %d runs", RESULTS_MAX);
    }
    if (results->count == results->capacity) {
        size_t capacity = results->capacity ? results->capacity * 2 : 16;
        struct run *runs = realloc(results->runs, capacity * sizeof(*runs));
        if (!runs) {
            return mr_error_set(err, MR_ENOMEM, "out of memory");
        }
        results->runs = runs;
        results->capacity = capacity;
    }
    struct run *run = &results->runs[results->count++];
    *run = (struct run){.mode = mode, .contender = contender, .repeat = repeat};
    *ret = run;
    return 0;
}

// ---- findings ----

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && str_equal(a, b));
}

static bool is_of(const struct run *run, const struct finding *finding)
{
    return str_equal(run->mode, finding->mode) && str_equal(run->contender, finding->contender);
}

static bool is_known(const struct findings *findings, const struct run *run,
                     const struct run_entry *entry)
{
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        if (is_of(run, finding) && str_equal(finding->name, entry->name) &&
            same_text(finding->against, entry->against)) {
            return true;
        }
    }
    return false;
}

static int add_finding(struct findings *findings, struct finding finding, struct sample *sample,
                       struct mr_error *err)
{
    struct finding *items =
        realloc(findings->items, (findings->count + 1) * sizeof(*findings->items));

    if (!items) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    finding.spread = sample_spread(sample);
    findings->items = items;
    items[findings->count++] = finding;
    return 0;
}

// One entry of a run, with the same of the other repeats.
static int find_entry(const struct results *results, const struct run *run,
                      const struct run_entry *entry, struct findings *findings,
                      struct mr_error *err)
{
    const struct finding finding = {
        .mode = run->mode,
        .contender = run->contender,
        .name = entry->name,
        .unit = entry->unit,
        .less = entry->less,
        .against = entry->against,
    };
    AUTO_SAMPLE sample;
    int code = 0;

    sample_init(&sample);
    for (size_t i = 0; i < results->count && code == 0; i++) {
        const struct run *other = &results->runs[i];
        for (size_t k = 0; is_of(other, &finding) && k < other->entry_count && code == 0; k++) {
            if (str_equal(other->entries[k].name, entry->name) &&
                same_text(other->entries[k].against, entry->against)) {
                code = sample_add(&sample, other->entries[k].value, err);
            }
        }
    }
    return code ? code : add_finding(findings, finding, &sample, err);
}

static int find_entries(const struct results *results, bool ratios, struct findings *findings,
                        struct mr_error *err)
{
    int code = 0;

    for (size_t i = 0; i < results->count; i++) {
        const struct run *run = &results->runs[i];
        for (size_t k = 0; k < run->entry_count && code == 0; k++) {
            const struct run_entry *entry = &run->entries[k];
            bool wanted = ratios ? entry->against != NULL : entry->unit != NULL;
            if (wanted && !is_known(findings, run, entry)) {
                code = find_entry(results, run, entry, findings, err);
            }
        }
    }
    return code;
}

static const struct run *find_run(const struct results *results, const char *mode,
                                  const char *contender, int repeat)
{
    for (size_t i = 0; i < results->count; i++) {
        const struct run *run = &results->runs[i];
        if (run->repeat == repeat && str_equal(run->mode, mode) &&
            str_equal(run->contender, contender)) {
            return run;
        }
    }
    return NULL;
}

// A figure of Millrace over the textbook's; nothing where the textbook has none.
static int compare(const struct results *results, const struct finding *figure,
                   struct findings *findings, struct mr_error *err)
{
    struct finding ratio = *figure;
    AUTO_SAMPLE sample;
    int code = 0;

    sample_init(&sample);
    for (size_t i = 0; i < results->count && code == 0; i++) {
        const struct run *run = &results->runs[i];
        const struct run *other = find_run(results, figure->mode, "textbook", run->repeat);
        const struct run_entry *ours = is_of(run, figure) ? run_find(run, figure->name) : NULL;
        const struct run_entry *theirs = other ? run_find(other, figure->name) : NULL;
        if (ours && theirs && theirs->value > 0) {
            code = sample_add(&sample, ours->value / theirs->value, err);
        }
    }
    ratio.unit = NULL;
    ratio.against = "textbook";
    return code || !sample.count ? code : add_finding(findings, ratio, &sample, err);
}

int results_find(const struct results *results, struct findings *ret, struct mr_error *err)
{
    struct findings findings = {0};
    int code = find_entries(results, false, &findings, err);
    size_t figures = findings.count;

    if (code == 0) {
        code = find_entries(results, true, &findings, err);
    }
    for (size_t i = 0; i < figures && code == 0; i++) {
        struct finding figure = findings.items[i];
        if (str_equal(figure.contender, "millrace")) {
            code = compare(results, &figure, &findings, err);
        }
    }
    if (code) {
        findings_done(&findings);
        return code;
    }
    *ret = findings;
    return 0;
}

void findings_done(struct findings *findings)
{
    free(findings->items);
    *findings = (struct findings){0};
}

// ---- JSON ----

// JSON has no infinity.
static void add_number(struct buf *out, double value)
{
    buf_printf(out, "%.10g", isfinite(value) ? value : 0);
}

static void add_name(struct buf *out, const char *name)
{
    buf_puts(out, ", ");
    json_add_string(out, name);
    buf_puts(out, ": ");
}

static void add_text(struct buf *out, const char *name, const char *text)
{
    add_name(out, name);
    json_add_string(out, text);
}

static void add_run(struct buf *out, const struct run *run)
{
    buf_puts(out, "{\"mode\": ");
    json_add_string(out, run->mode);
    add_text(out, "contender", run->contender);
    buf_printf(out, ", \"repeat\": %d", run->repeat);
    for (size_t i = 0; i < run->entry_count; i++) {
        if (!run->entries[i].against) {
            add_name(out, run->entries[i].name);
            add_number(out, run->entries[i].value);
        }
    }
    buf_puts(out, "}");
}

static void add_finding_json(struct buf *out, const struct finding *finding)
{
    buf_puts(out, "{\"mode\": ");
    json_add_string(out, finding->mode);
    add_text(out, "contender", finding->contender);
    add_text(out, "figure", finding->name);
    add_text(out, finding->against ? "against" : "unit",
             finding->against ? finding->against : finding->unit);
    add_text(out, "better", finding->less ? "less" : "more");
    add_name(out, "median");
    add_number(out, finding->spread.median);
    add_name(out, "least");
    add_number(out, finding->spread.least);
    add_name(out, "most");
    add_number(out, finding->spread.most);
    buf_puts(out, "}");
}

static void add_findings(struct buf *out, const struct findings *findings, bool ratios)
{
    const char *comma = "";

    for (size_t i = 0; i < findings->count; i++) {
        if ((findings->items[i].against != NULL) == ratios) {
            buf_puts(out, comma);
            add_finding_json(out, &findings->items[i]);
            comma = ",\n  ";
        }
    }
}

void results_json(const struct results *results, const struct findings *findings, struct buf *out)
{
    buf_puts(out, "\"runs\": [");
    for (size_t i = 0; i < results->count; i++) {
        buf_puts(out, i ? ",\n  " : "");
        add_run(out, &results->runs[i]);
    }
    buf_puts(out, "],\n\"figures\": [");
    add_findings(out, findings, false);
    buf_puts(out, "],\n\"ratios\": [");
    add_findings(out, findings, true);
    buf_puts(out, "]");
}
