// SPDX-License-Identifier: PostgreSQL
//
// What doctor finds on the client's side, and how findings are shown.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/doctor_blobs.h"
#include "cli/doctor_client.h"
#include "cli/finding.h"

// The program's own files are not part of this one.
#include "client/embedded.h"
#include "store/blob.h"
const struct embedded_set embedded = {0};

static struct findings findings;

static int clear(void **state)
{
    (void)state;
    memset(&findings, 0, sizeof(findings));
    return 0;
}

static void clocks(void **state)
{
    (void)state;
    static const struct {
        int64_t sent, received, server;
        enum verdict verdict;
        const char *evidence;
    } cases[] = {
        {100, 200, 150, VERDICT_OK, "agrees with the server's"},
        {0, 5000000, 4999999, VERDICT_OK, "agrees with the server's"},
        {100, 200, 700200, VERDICT_OK, "the server's is 700 ms ahead"},
        {1000000, 1000200, 100000, VERDICT_OK, "the server's is 900 ms behind"},
        {100, 200, 2000200, VERDICT_NOTE, "the server's is 2 s ahead"},
        {3600000100, 3600000200, 100, VERDICT_WARNING, "the server's is 1 h behind"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        doctor_judge_clock(&findings, cases[i].sent, cases[i].received, cases[i].server);
        assert_int_equal(findings.list[i].verdict, cases[i].verdict);
        assert_string_equal(findings.list[i].evidence, cases[i].evidence);
        assert_int_equal(findings.list[i].remedy[0] != 0, cases[i].verdict != VERDICT_OK);
    }
}

static void disks(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes, free;
        enum verdict verdict;
        const char *evidence;
    } cases[] = {
        {100000000000, 20000000000, VERDICT_OK, "20 % of 100.0 GB free at /data"},
        {100000000000, 19900000000, VERDICT_WARNING, "20 % of 100.0 GB free at /data"},
        {100000000000, 9900000000, VERDICT_CRITICAL, "10 % of 100.0 GB free at /data"},
        {0, 0, VERDICT_CRITICAL, "0 % of 0.0 GB free at /data"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        doctor_judge_disk(&findings, "/data", cases[i].bytes, cases[i].free);
        assert_int_equal(findings.list[i].verdict, cases[i].verdict);
        assert_string_equal(findings.list[i].evidence, cases[i].evidence);
    }
}

static void lifecycles(void **state)
{
    (void)state;
    static const struct {
        int rule_days;
        double need_days;
        enum verdict verdict;
        const char *evidence;
    } cases[] = {
        {BLOB_LIFECYCLE_UNKNOWN, 400, VERDICT_OK, "s3://b can be used"},
        {0, 400, VERDICT_OK, "s3://b can be used"},
        {7, 7, VERDICT_OK, "s3://b can be used"},
        {7, 30, VERDICT_WARNING,
         "s3://b removes objects after 7 days, and jobs may need theirs for 30"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        doctor_judge_lifecycle(&findings, "s3://b", cases[i].rule_days, cases[i].need_days);
        assert_int_equal(findings.list[i].verdict, cases[i].verdict);
        assert_string_equal(findings.list[i].evidence, cases[i].evidence);
    }
}

static void shown(bool colours, int columns, bool json, const char *expected)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    if (json) {
        assert_int_equal(findings_print_json(&findings, out, NULL), 0);
    } else {
        assert_int_equal(findings_print(&findings, colours, columns, out, NULL), 0);
    }
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
}

static void the_worst_comes_first(void **state)
{
    (void)state;
    finding_evidence(findings_add(&findings, "a", VERDICT_OK), "fine");
    finding_remedy(&findings.list[0], "none");
    finding_evidence(findings_add(&findings, "b", verdict_of("critical")), "x\033[31m\"%s\"", "y");
    finding_remedy(&findings.list[1], "cure");
    finding_evidence(findings_add(&findings, "c", verdict_of("what")), "odd");
    assert_int_equal(findings_worst(&findings), VERDICT_CRITICAL);
    shown(false, 0, false,
          "critical  b                      x [31m\"y\"\n"
          "                                 -> cure\n"
          "note      c                      odd\n"
          "ok        a                      fine\n"
          "\n3 checks: 1 critical, 0 warnings, 1 note, 1 ok\n");
    shown(false, 0, true,
          "{\"verdict\":\"critical\",\n\"checks\":[\n"
          "{\"topic\":\"a\",\"verdict\":\"ok\",\"evidence\":\"fine\",\"remedy\":null},\n"
          "{\"topic\":\"b\",\"verdict\":\"critical\",\"evidence\":\"x\\u001b[31m\\\"y\\\"\","
          "\"remedy\":\"cure\"},\n"
          "{\"topic\":\"c\",\"verdict\":\"note\",\"evidence\":\"odd\",\"remedy\":null}]}\n");
}

static void lines_are_broken_at_blanks(void **state)
{
    (void)state;
    finding_evidence(findings_add(&findings, "a", VERDICT_NOTE), "ein Wort fällt in die Zeile");
    finding_remedy(&findings.list[0], "one-word-that-is-longer-than-a-line and others");
    shown(false, 33 + 21, false,
          "note      a                      ein Wort fällt in die\n"
          "                                 Zeile\n"
          "                                 -> one-word-that-is-longer-than-a-line\n"
          "                                    and others\n"
          "\n1 checks: 0 critical, 0 warnings, 1 note, 0 ok\n");
    // There is no room for a column of text.
    shown(false, 50, false,
          "note      a                      ein Wort fällt in die Zeile\n"
          "                                 -> one-word-that-is-longer-than-a-line and others\n"
          "\n1 checks: 0 critical, 0 warnings, 1 note, 0 ok\n");
}

static void none_and_too_many(void **state)
{
    (void)state;
    assert_int_equal(findings_worst(&findings), VERDICT_OK);
    shown(false, 0, false, "\n0 checks: 0 critical, 0 warnings, 0 notes, 0 ok\n");
    for (int i = 0; i < FINDINGS_MAX + 10; i++) {
        finding_evidence(findings_add(&findings, "t", VERDICT_NOTE), "%2000d", i);
    }
    assert_int_equal(findings.count, FINDINGS_MAX);
    assert_int_equal(strlen(findings.list[FINDINGS_MAX - 1].evidence), FINDING_TEXT_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(clocks, clear),
        cmocka_unit_test_setup(disks, clear),
        cmocka_unit_test_setup(lifecycles, clear),
        cmocka_unit_test_setup(the_worst_comes_first, clear),
        cmocka_unit_test_setup(lines_are_broken_at_blanks, clear),
        cmocka_unit_test_setup(none_and_too_many, clear),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
