// SPDX-License-Identifier: PostgreSQL
//
// What S3 answers: its XML, and what errors mean.

#include "store/s3_answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "store/s3_fault.h"
#include "store/s3_xml.h"

// ---- XML ----

static char seen[4096];

static bool on_end(void *arg, const char *path, const char *text)
{
    size_t used = strlen(seen);

    (void)arg;
    snprintf(seen + used, sizeof(seen) - used, "%s=%s;", path, text ? text : "(elements)");
    return true;
}

static bool read_xml(const char *text)
{
    seen[0] = '\0';
    return s3_xml_read(text, strlen(text), on_end, NULL);
}

static void documents(void **state)
{
    (void)state;
    assert_true(read_xml("<a/>"));
    assert_string_equal(seen, "a=;");
    assert_true(read_xml("<?xml version=\"1.0\" encoding='UTF-8'?>\n<a xmlns=\"http://x/\">\n"
                         "  <b>1</b><c></c><b q='<'/>\n</a>\n") == false); // < in a value
    assert_true(read_xml("<?xml version=\"1.0\" encoding='UTF-8'?>\n<a xmlns=\"http://x/\">\n"
                         "  <b>1 2</b><c></c><b q='x' />\n</a>\n"));
    assert_string_equal(seen, "a/b=1 2;a/c=;a/b=;a=(elements);");
    assert_true(read_xml("<a>&lt;&amp;&gt;&quot;&apos;&#65;&#x20ac;\xc3\xa4</a>"));
    assert_string_equal(seen, "a=<&>\"'A\xe2\x82\xac\xc3\xa4;");
    assert_true(read_xml("\xef\xbb\xbf<a>x</a>"));
}

static void no_documents(void **state)
{
    static const char *const rows[] = {
        "",
        " ",
        "x",
        "<",
        "<a",
        "<a>",
        "<a></b>",
        "<a><b></a></b>",
        "<a/><b/>",
        "<a/>x",
        "</a>",
        "<a>x<b/></a>",
        "<a><b/>x</a>",
        "<!DOCTYPE a><a/>",
        "<a><!-- x --></a>",
        "<a><![CDATA[x]]></a>",
        "<a><?php ?></a>",
        "<a>&x;</a>",
        "<a>&</a>",
        "<a>&#0;</a>",
        "<a>&#x110000;</a>",
        "<a>&#xd800;</a>",
        "<a>&#;</a>",
        "<a>&#99999999999;</a>",
        "<a b></a>",
        "<a b=c></a>",
        "<a b=\"c></a>",
        "<ab=\"c\"></a>",
        "<a>\x01</a>",
        "<a>\xff</a>",
        "<html><p>hello<br></p></html>",
        "{\"a\": 1}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_false(read_xml(rows[i]));
    }
    assert_false(s3_xml_read("<a>\0</a>", 8, on_end, NULL));
}

// An element in another, so many of them.
static void nest(int depth, char *ret, size_t size)
{
    size_t used = 0;

    for (int i = 0; i < 2 * depth; i++) {
        used += (size_t)snprintf(ret + used, size - used, i < depth ? "<a>" : "</a>");
    }
}

static void too_deep_and_too_long(void **state)
{
    char text[20000];

    (void)state;
    nest(S3_XML_DEPTH_MAX, text, sizeof(text));
    assert_true(read_xml(text));
    nest(S3_XML_DEPTH_MAX + 1, text, sizeof(text));
    assert_false(read_xml(text));
    snprintf(text, sizeof(text), "<a>%0*d</a>", S3_XML_TEXT_MAX, 0);
    assert_true(read_xml(text));
    snprintf(text, sizeof(text), "<a>%0*d</a>", S3_XML_TEXT_MAX + 1, 0);
    assert_false(read_xml(text));
    snprintf(text, sizeof(text), "<n%0*d/>", S3_XML_PATH_SIZE - 2, 0);
    assert_true(read_xml(text));
    snprintf(text, sizeof(text), "<n%0*d/>", S3_XML_PATH_SIZE - 1, 0);
    assert_false(read_xml(text));
}

// ---- lists ----

static bool on_entry(void *arg, const char *key, int64_t size, int64_t modified_us)
{
    size_t used = strlen(seen);

    (void)arg;
    snprintf(seen + used, sizeof(seen) - used, "%s %lld %lld;", key, (long long)size,
             (long long)modified_us);
    return true;
}

static bool read_list(const char *text, bool *ret_truncated)
{
    seen[0] = '\0';
    return s3_answer_list(text, strlen(text), on_entry, NULL, ret_truncated);
}

#define ENTRY(key, size, modified)                                                             \
    "<Contents><Key>" key "</Key><LastModified>" modified "</LastModified><ETag>&quot;1&quot;" \
    "</ETag><Size>" size "</Size><Owner><ID>x</ID></Owner></Contents>"

static void lists(void **state)
{
    bool truncated = true;

    (void)state;
    assert_true(read_list("<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
                          "<Name>jobs</Name><IsTruncated>false</IsTruncated>" ENTRY(
                              "a&amp;b", "5", "1970-01-01T00:00:01.500Z")
                              ENTRY("c", "0", "2026-11-18T02:00:00.000Z") "</ListBucketResult>",
                          &truncated));
    assert_string_equal(seen, "a&b 5 1500000;c 0 1794967200000000;");
    assert_false(truncated);
    assert_true(read_list("<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
                          &truncated));
    assert_true(truncated);
}

static void no_lists(void **state)
{
    static const char *const rows[] = {
        "<ListBucketResult/>",
        "<Error><Code>NoSuchKey</Code></Error>",
        "<IsTruncated>true</IsTruncated>",
        "<ListBucketResult><IsTruncated>1</IsTruncated></ListBucketResult>",
        "<ListBucketResult><IsTruncated>false</IsTruncated>" ENTRY(
            "", "5", "2026-11-18T02:00:00Z") "</ListBucketResult>",
        "<ListBucketResult><IsTruncated>false</IsTruncated>" ENTRY(
            "a", "-5", "2026-11-18T02:00:00Z") "</ListBucketResult>",
        "<ListBucketResult><IsTruncated>false</IsTruncated>" ENTRY(
            "a", "5", "yesterday") "</ListBucketResult>",
        "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>a</Key></Contents>"
        "</ListBucketResult>",
    };
    bool truncated;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_false(read_list(rows[i], &truncated));
    }
}

static void on_undeleted(void *arg, const char *key, const struct s3_error *error)
{
    size_t used = strlen(seen);

    (void)arg;
    snprintf(seen + used, sizeof(seen) - used, "%s %s %s;", key, error->code, error->message);
}

static void deletes(void **state)
{
    static const char good[] = "<DeleteResult><Deleted><Key>a</Key></Deleted><Error><Key>b</Key>"
                               "<Code>AccessDenied</Code><Message>no\nway</Message></Error><Error>"
                               "<Key>c</Key><Code>InternalError</Code></Error></DeleteResult>";

    (void)state;
    seen[0] = '\0';
    assert_true(s3_answer_deleted(good, strlen(good), on_undeleted, NULL));
    assert_string_equal(seen, "b AccessDenied no way;c InternalError ;");
    assert_true(s3_answer_deleted("<DeleteResult/>", 15, on_undeleted, NULL));
    assert_false(s3_answer_deleted("<Deleted/>", 10, on_undeleted, NULL));
    assert_false(s3_answer_deleted("", 0, on_undeleted, NULL));
}

// ---- rules ----

#define RULE(what, days) "<Rule>" what "<Expiration><Days>" days "</Days></Expiration></Rule>"
#define ON               "<Status>Enabled</Status>"

static void rules(void **state)
{
    static const struct {
        const char *rules;
        int days;
    } rows[] = {
        {"", 0},
        {RULE(ON "<Filter><Prefix></Prefix></Filter>", "7"), 7},
        {RULE(ON "<Filter/>", "7"), 7},
        {RULE(ON "<Prefix>jobs/</Prefix>", "7"), 7},
        {RULE(ON "<Filter><Prefix>jobs/p</Prefix></Filter>", "7"), 7},
        {RULE(ON "<Filter><Prefix>jobs/p/q</Prefix></Filter>", "7"), 0},
        {RULE(ON "<Filter><Prefix>other/</Prefix></Filter>", "7"), 0},
        {RULE("<Status>Disabled</Status><Filter/>", "7"), 0},
        {RULE(ON "<Filter><Tag><Key>a</Key><Value>b</Value></Tag></Filter>", "7"), 0},
        {RULE(ON "<Filter><And><Prefix>jobs/</Prefix><ObjectSizeLessThan>9</ObjectSizeLessThan>"
                 "</And></Filter>",
              "7"),
         0},
        {RULE(ON "<Filter><And><Prefix>jobs/</Prefix></And></Filter>", "7"), 7},
        {RULE(ON "<Filter/>", "30") RULE(ON "<Filter/>", "7") RULE(ON "<Filter/>", "9"), 7},
        {"<Rule>" ON "<Filter/><AbortIncompleteMultipartUpload><DaysAfterInitiation>1"
         "</DaysAfterInitiation></AbortIncompleteMultipartUpload></Rule>",
         0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[2048];
        int days = -5;
        int size = snprintf(text, sizeof(text),
                            "<LifecycleConfiguration>%s</LifecycleConfiguration>", rows[i].rules);
        assert_true(s3_answer_lifecycle(text, (size_t)size, "jobs/p/", &days));
        assert_int_equal(days, rows[i].days);
    }
    int days = -5;
    assert_false(s3_answer_lifecycle("<ListBucketResult/>", 19, "", &days));
    assert_int_equal(days, -5);
}

// ---- errors ----

static struct s3_fault judge(long status, const char *body, const struct s3_head *head)
{
    struct s3_fault fault;

    s3_fault_of_answer(status, body, strlen(body), head, &fault);
    return fault;
}

#define ERROR(code) "<Error><Code>" code "</Code><Message>why</Message></Error>"

static void faults(void **state)
{
    static const struct {
        long status;
        const char *body;
        enum blob_result result;
        const char *text;
    } rows[] = {
        {500, "", BLOB_TRANSIENT, "the store answered 500 without saying why"},
        {500, ERROR("InternalError"), BLOB_TRANSIENT, "the store answered 500 InternalError: why"},
        {503, ERROR("SlowDown"), BLOB_TRANSIENT, "the store answered 503 SlowDown: why"},
        {400, ERROR("RequestTimeout"), BLOB_TRANSIENT,
         "the store answered 400 RequestTimeout: why"},
        {429, "<html/>", BLOB_TRANSIENT, "the store answered 429 without saying why"},
        {404, ERROR("NoSuchKey"), BLOB_MISSING, "the store answered 404 NoSuchKey: why"},
        {404, ERROR("NoSuchBucket"), BLOB_CONFIG, "the store answered 404 NoSuchBucket: why"},
        {404, "not found", BLOB_CONFIG, "the store answered 404 without saying why"},
        {403, ERROR("Whatever"), BLOB_CONFIG, "the store answered 403 Whatever: why"},
        {400, ERROR("EntityTooLarge"), BLOB_REJECTED, "the store answered 400 EntityTooLarge: why"},
        {400, "<Error/>", BLOB_CONFIG, "the store answered 400 without saying why"},
        {400, ERROR("ExpiredToken"), BLOB_CONFIG, "the store answered 400 ExpiredToken: why"},
        {501, ERROR("NotImplemented"), BLOB_CONFIG, "the store answered 501 NotImplemented: why"},
        {301, ERROR("PermanentRedirect"), BLOB_CONFIG,
         "the store answered 301 PermanentRedirect: why"},
        {100, "", BLOB_CONFIG, "the store answered 100 without saying why"},
    };
    static const struct s3_head nothing;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct s3_fault fault = judge(rows[i].status, rows[i].body, &nothing);
        assert_int_equal(fault.result, rows[i].result);
        assert_string_equal(fault.text, rows[i].text);
    }
}

static void a_wrong_clock(void **state)
{
    struct s3_head head = {.of_s3 = true, .clock_s = (int64_t)time(NULL) - 7200};
    struct s3_fault fault = judge(403, ERROR("RequestTimeTooSkewed"), &head);
    int seconds = 0;

    (void)state;
    assert_int_equal(fault.result, BLOB_CONFIG);
    assert_int_equal(sscanf(fault.text,
                            "the store answered 403 RequestTimeTooSkewed: the clock of this "
                            "machine is %d s ahead of that of the store",
                            &seconds),
                     1);
    assert_in_range(seconds, 7200, 7260);
    assert_non_null(strstr(fault.hint, "clock"));
}

// A text of the server's that would break a line, or is longer than there is room.
static void texts(void **state)
{
    static const struct s3_head nothing;
    char body[4000];

    (void)state;
    snprintf(body, sizeof(body), "<Error><Code>Odd\n\tOne</Code><Message>%03000d</Message></Error>",
             0);
    struct s3_fault fault = judge(400, body, &nothing);
    assert_memory_equal(fault.text, "the store answered 400 Odd  One: 000", 36);
    assert_true(strlen(fault.text) < BLOB_TEXT_SIZE);
    s3_fault_of_curl(CURLE_COULDNT_CONNECT, "", &fault);
    assert_int_equal(fault.result, BLOB_TRANSIENT);
    assert_int_not_equal(fault.text[0], '\0');
    s3_fault_of_curl(CURLE_PEER_FAILED_VERIFICATION, "self-signed\ncertificate", &fault);
    assert_int_equal(fault.result, BLOB_CONFIG);
    assert_string_equal(fault.text, "self-signed certificate");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents),
        cmocka_unit_test(no_documents),
        cmocka_unit_test(too_deep_and_too_long),
        cmocka_unit_test(lists),
        cmocka_unit_test(no_lists),
        cmocka_unit_test(deletes),
        cmocka_unit_test(rules),
        cmocka_unit_test(faults),
        cmocka_unit_test(a_wrong_clock),
        cmocka_unit_test(texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
