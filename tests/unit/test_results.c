// SPDX-License-Identifier: PostgreSQL
//
// What `millrace bench` makes of its runs: figures, ratios, JSON, bars; and the args of its jobs.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/str.h"
#include "bench/chart.h"
#include "bench/payload.h"
#include "bench/results.h"

enum { TEXT_MAX = 65536 };
#define EPSILON 1e-4

static void add(struct results *results, const char *contender, int repeat, double rate)
{
    struct run *run = NULL;
    struct mr_error err;

    assert_int_equal(results_add(results, "drain", contender, repeat, &run, &err), 0);
    run_note(run, "jobs", 1000);
    run_more(run, "rate", "jobs/s", rate);
    run_less(run, "wal_bytes", "B/job", rate / 10);
    run_ratio(run, "rate", "first fifth", rate / 1000);
}

static const struct finding *find(const struct findings *findings, const char *contender,
                                  const char *name, const char *against)
{
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->items[i];
        bool same =
            against ? finding->against && str_equal(finding->against, against) : !finding->against;
        if (same && str_equal(finding->contender, contender) && str_equal(finding->name, name)) {
            return finding;
        }
    }
    return NULL;
}

static void fill(struct results *results)
{
    results_init(results);
    add(results, "millrace", 1, 400);
    add(results, "textbook", 1, 100);
    add(results, "textbook", 2, 200);
    add(results, "millrace", 2, 600);
    add(results, "millrace", 3, 500);
    add(results, "textbook", 3, 100);
}

static void figures_over_repeats(void **state)
{
    (void)state;
    struct results results;
    struct findings findings = {0};
    struct mr_error err;

    fill(&results);
    assert_int_equal(results_find(&results, &findings, &err), 0);
    const struct finding *rate = find(&findings, "millrace", "rate", NULL);
    assert_float_equal(rate->spread.median, 500, EPSILON);
    assert_float_equal(rate->spread.least, 400, EPSILON);
    assert_float_equal(rate->spread.most, 600, EPSILON);
    assert_string_equal(rate->unit, "jobs/s");
    assert_false(rate->less);
    assert_true(find(&findings, "textbook", "wal_bytes", NULL)->less);
    // a circumstance is no figure
    assert_null(find(&findings, "millrace", "jobs", NULL));
    findings_done(&findings);
    results_done(&results);
}

static void ratios_repeat_by_repeat(void **state)
{
    (void)state;
    struct results results;
    struct findings findings = {0};
    struct mr_error err;

    fill(&results);
    assert_int_equal(results_find(&results, &findings, &err), 0);
    // 400/100, 600/200, 500/100: not the ratio of the medians
    const struct finding *ratio = find(&findings, "millrace", "rate", "textbook");
    assert_float_equal(ratio->spread.median, 4, EPSILON);
    assert_float_equal(ratio->spread.least, 3, EPSILON);
    assert_float_equal(ratio->spread.most, 5, EPSILON);
    assert_null(find(&findings, "textbook", "rate", "textbook"));
    // what a run brought along
    ratio = find(&findings, "textbook", "rate", "first fifth");
    assert_float_equal(ratio->spread.most, 0.2, EPSILON);
    findings_done(&findings);
    results_done(&results);
}

static void without_a_rival_there_is_no_ratio(void **state)
{
    (void)state;
    struct results results;
    struct findings findings = {0};
    struct run *run = NULL;
    struct mr_error err;

    results_init(&results);
    assert_int_equal(results_find(&results, &findings, &err), 0);
    assert_int_equal(findings.count, 0);
    assert_int_equal(results_add(&results, "wal", "millrace", 1, &run, &err), 0);
    run_more(run, "rate", "jobs/s", 5);
    assert_int_equal(results_add(&results, "wal", "textbook", 1, &run, &err), 0);
    run_more(run, "rate", "jobs/s", 0); // nothing to divide by
    assert_int_equal(results_find(&results, &findings, &err), 0);
    assert_null(find(&findings, "millrace", "rate", "textbook"));
    findings_done(&findings);
    results_done(&results);
}

static void json(void **state)
{
    (void)state;
    struct results results;
    struct findings findings = {0};
    struct mr_error err;
    AUTO_BUF out;

    fill(&results);
    assert_int_equal(results_find(&results, &findings, &err), 0);
    buf_init(&out, TEXT_MAX);
    buf_puts(&out, "{");
    results_json(&results, &findings, &out);
    buf_puts(&out, "}");
    json_t *root = json_loads(buf_peek(&out), 0, NULL);
    assert_non_null(root);
    assert_int_equal(json_array_size(json_object_get(root, "runs")), 6);
    assert_int_equal(json_array_size(json_object_get(root, "figures")), 4);
    assert_int_equal(json_array_size(json_object_get(root, "ratios")), 4);
    const json_t *run = json_array_get(json_object_get(root, "runs"), 0);
    assert_float_equal(json_number_value(json_object_get(run, "rate")), 400, EPSILON);
    assert_float_equal(json_number_value(json_object_get(run, "jobs")), 1000, EPSILON);
    json_decref(root);
    findings_done(&findings);
    results_done(&results);
}

static void charts(void **state)
{
    (void)state;
    struct chart chart;
    AUTO_BUF out;

    buf_init(&out, TEXT_MAX);
    chart_init(&chart);
    chart_draw(&chart, &out);
    assert_string_equal(buf_peek(&out), "");
    chart_add(&chart, "millrace", 1000);
    chart_add(&chart, "book", 500);
    chart_add(&chart, "tiny", 0.5);
    chart_add(&chart, "none", 0);
    chart_draw(&chart, &out);
    assert_string_equal(buf_peek(&out),
                        "  millrace  ##################################################  1000\n"
                        "  book      #########################                           500\n"
                        "  tiny      #                                                   0.50\n"
                        "  none                                                          0.00\n");
}

static void payloads(void **state)
{
    (void)state;
    struct mr_error err;
    AUTO_PAYLOAD payload;

    assert_int_equal(payload_init(&payload, 3, 32, 7, &err), 0);
    for (size_t i = 0; i < payload.count; i++) {
        json_t *args = json_loads(payload.args[i], 0, NULL);
        assert_non_null(args);
        json_decref(args);
        assert_int_equal(strlen(payload.args[i]), 32);
    }
    assert_string_not_equal(payload.args[0], payload.args[1]);
    assert_ptr_equal(payload.args[0], payload.args[3]);
    assert_int_equal(payload_number(payload.args[0]), 0);
    payload_mark(&payload, 2, 123456789);
    assert_int_equal(payload_number(payload.args[1]), 123456789);
    assert_int_equal(payload_number(payload.args[2]), 0);
    assert_int_equal(strlen(payload.args[1]), 32);
    // as the server writes it
    assert_int_equal(payload_number("{\"d\": \"x\", \"n\": 1000000000042}"), 42);
    assert_int_equal(payload_number("{}"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_over_repeats),
        cmocka_unit_test(ratios_repeat_by_repeat),
        cmocka_unit_test(without_a_rival_there_is_no_ratio),
        cmocka_unit_test(json),
        cmocka_unit_test(charts),
        cmocka_unit_test(payloads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
