// SPDX-License-Identifier: PostgreSQL
//
// What `millrace bench` prints: see bench_report.h.

#include "cli/bench_report.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "bench/chart.h"
#include "cli/figure.h"
#include "cli/table.h"
#include "config.h"

#define REPORT_MAX (16 * 1024 * 1024)

static long cores(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);

    return count > 0 ? count : 1;
}

// ---- JSON ----

static void add_settings(struct buf *out, const PGresult *settings)
{
    for (int i = 0; i < PQntuples(settings); i++) {
        buf_puts(out, i ? ", " : "");
        json_add_string(out, PQgetvalue(settings, i, 0));
        buf_puts(out, ": ");
        json_add_string(out, PQgetvalue(settings, i, 1));
    }
}

int bench_report_json(const struct bench *bench, struct mr_error *err)
{
    struct findings findings = {0};
    AUTO_BUF out;
    int code = results_find(&bench->results, &findings, err);

    buf_init(&out, REPORT_MAX);
    if (code) {
        return code;
    }
    buf_printf(&out, "{\"version\": \"%s\", \"server\": ", MILLRACE_VERSION);
    json_add_string(&out, bench->server);
    buf_printf(&out, ", \"cores\": %ld, \"payload_bytes\": %lld,\n\"settings\": {", cores(),
               (long long)bench->spec->payload_bytes);
    add_settings(&out, bench->settings);
    buf_puts(&out, "},\n");
    results_json(&bench->results, &findings, &out);
    buf_puts(&out, "}\n");
    findings_done(&findings);
    if ((code = buf_status(&out, err)) == 0) {
        fwrite(out.data, 1, out.len, stdout);
    }
    return code;
}

// ---- text ----

static void print_head(const struct bench *bench)
{
    const struct bench_spec *spec = bench->spec;

    printf("millrace %s, PostgreSQL %s, %ld cores, payload %lld bytes\n", MILLRACE_VERSION,
           bench->server, cores(), (long long)spec->payload_bytes);
    printf("jobs %lld, batch %lld, chunk %lld, workers %lld, repeat %lld%s%s\n",
           (long long)spec->jobs, (long long)spec->batch, (long long)spec->chunk,
           (long long)spec->workers, (long long)spec->repeat,
           spec->hold_snapshot ? ", a snapshot is held" : "", spec->upkeep ? ", with upkeep" : "");
    for (int i = 0; i < PQntuples(bench->settings); i++) {
        printf("%s%s=%s", i ? ", " : "", PQgetvalue(bench->settings, i, 0),
               PQgetvalue(bench->settings, i, 1));
    }
    puts("\n");
}

// Whole numbers where they are large, else four digits.
static void add_value(struct table *table, double value)
{
    AUTO_BUF text;

    buf_init(&text, 64);
    if (fabs(value) >= 1000) {
        figure_add_number(&text, (int64_t)llround(value));
    } else {
        buf_printf(&text, "%.*f", fabs(value) >= 100 ? 0 : fabs(value) >= 10 ? 1 : 2, value);
    }
    table_add(table, buf_peek(&text));
}

static void add_spread(struct table *table, const struct spread *spread)
{
    add_value(table, spread->median);
    add_value(table, spread->least);
    add_value(table, spread->most);
}

static int print_figures(const struct findings *findings, struct mr_error *err)
{
    static const struct table_column columns[] = {
        {"MODE", false, 0}, {"WHO", false, 0}, {"FIGURE", false, 0}, {"MEDIAN", true, 0},
        {"LEAST", true, 0}, {"MOST", true, 0}, {"UNIT", false, 0},   {0}};
    AUTO_TABLE table;

    table_init(&table, columns);
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        if (!finding->against) {
            table_add(&table, finding->mode);
            table_add(&table, finding->contender);
            table_add(&table, finding->name);
            add_spread(&table, &finding->spread);
            table_add(&table, finding->unit);
        }
    }
    return table_print(&table, stdout, err);
}

static bool has_ratios(const struct findings *findings)
{
    // they come last
    return findings->count && findings->items[findings->count - 1].against;
}

static int print_ratios(const struct findings *findings, struct mr_error *err)
{
    static const struct table_column columns[] = {
        {"RATIO", false, 0}, {"WHO", false, 0},  {"FIGURE", false, 0}, {"OVER", false, 0},
        {"MEDIAN", true, 0}, {"LEAST", true, 0}, {"MOST", true, 0},    {0}};

    if (!has_ratios(findings)) {
        return 0;
    }
    AUTO_TABLE table;
    table_init(&table, columns);
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        if (finding->against) {
            table_add(&table, finding->mode);
            table_add(&table, finding->contender);
            table_add(&table, finding->name);
            table_add(&table, finding->against);
            add_spread(&table, &finding->spread);
        }
    }
    puts("");
    return table_print(&table, stdout, err);
}

// The main figure of a mode, a bar for each contender.
static void print_chart(const struct findings *findings, const struct bench_mode *mode)
{
    const struct finding *last = NULL;
    struct chart chart;
    AUTO_BUF text;

    buf_init(&text, REPORT_MAX);
    chart_init(&chart);
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        if (!finding->against && str_equal(finding->mode, mode->name) &&
            str_equal(finding->name, mode->main)) {
            chart_add(&chart, finding->contender, finding->spread.median);
            last = finding;
        }
    }
    if (last) {
        chart_draw(&chart, &text);
        printf("\n%s: %s, %s, %s is better\n%s", mode->name, mode->main, last->unit,
               last->less ? "less" : "more", buf_peek(&text));
    }
}

int bench_report_text(const struct bench *bench, struct mr_error *err)
{
    struct findings findings = {0};
    int code = results_find(&bench->results, &findings, err);

    if (code) {
        return code;
    }
    print_head(bench);
    if ((code = print_figures(&findings, err)) == 0 && (code = print_ratios(&findings, err)) == 0) {
        for (const struct bench_mode *mode = bench_modes; mode->name; mode++) {
            print_chart(&findings, mode);
        }
    }
    findings_done(&findings);
    return code;
}
