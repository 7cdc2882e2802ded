// SPDX-License-Identifier: PostgreSQL
//
// Addresses of S3, and keys of objects: what is read from them, and what is refused.

#include "store/s3_address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "store/blob.h"

static struct s3_address address;
static struct mr_error err;

static void read_as(const char *text, const char *origin, const char *prefix, const char *place)
{
    char found_origin[S3_ORIGIN_SIZE], found_place[S3_PLACE_SIZE];

    assert_int_equal(s3_address_parse(text, &address, &err), 0);
    s3_address_origin(&address, found_origin);
    s3_address_place(&address, found_place);
    assert_string_equal(found_origin, origin);
    assert_string_equal(address.prefix, prefix);
    assert_string_equal(found_place, place);
}

static void good_ones(void **state)
{
    (void)state;
    read_as("s3://jobs", "https://jobs.s3.us-east-1.amazonaws.com", "",
            "s3://jobs at https://s3.us-east-1.amazonaws.com");
    read_as("s3://jobs/a/b/?region=eu-west-1", "https://jobs.s3.eu-west-1.amazonaws.com", "a/b/",
            "s3://jobs/a/b at https://s3.eu-west-1.amazonaws.com");
    read_as("s3://jobs?style=path", "https://s3.us-east-1.amazonaws.com/jobs", "",
            "s3://jobs at https://s3.us-east-1.amazonaws.com");
    read_as("s3://jobs/p?endpoint=http://127.0.0.1:9000", "http://127.0.0.1:9000/jobs", "p/",
            "s3://jobs/p at http://127.0.0.1:9000");
    read_as("s3://jobs/?endpoint=http%3A%2F%2Fminio:9000/&style=host", "http://jobs.minio:9000", "",
            "s3://jobs at http://minio:9000");
    read_as("s3://jobs?endpoint=https://[::1]:9000&ca=/etc/ssl/own%20ca.pem",
            "https://[::1]:9000/jobs", "", "s3://jobs at https://[::1]:9000");
    assert_string_equal(address.region, "us-east-1");
    assert_string_equal(address.ca, "/etc/ssl/own ca.pem");
}

static void bad_ones(void **state)
{
    static const struct {
        const char *text;
        const char *message;
    } rows[] = {
        {"", "it does not begin with s3://"},
        {"http://jobs", "it does not begin with s3://"},
        {"s3://", "the name of a bucket has 3 to 63 characters"},
        {"s3://ab", "the name of a bucket has 3 to 63 characters"},
        {"s3://Jobs", "the name of a bucket is made of a-z, 0-9, - and ."},
        {"s3://key:secret@jobs", "the name of a bucket is made of a-z, 0-9, - and ."},
        {"s3://jobs//a", "its prefix has to be made of"},
        {"s3://jobs/a//b", "its prefix has to be made of"},
        {"s3://jobs/../b", "its prefix has to be made of"},
        {"s3://jobs/a b", "its prefix has to be made of"},
        {"s3://jobs?endpoint=ftp://h", "endpoint has to be http"},
        {"s3://jobs?endpoint=http://", "endpoint has to be http"},
        {"s3://jobs?endpoint=http://h:0", "endpoint has to be http"},
        {"s3://jobs?endpoint=http://h:99999", "endpoint has to be http"},
        {"s3://jobs?endpoint=http://user:geheim@h", "endpoint has to be http"},
        {"s3://jobs?endpoint=http://h/path", "endpoint has to be http"},
        {"s3://jobs?endpoint=http://a%20b", "endpoint has to be http"},
        {"s3://jobs?endpoint=", "the value of endpoint cannot be read"},
        {"s3://jobs?endpoint", "the value of endpoint cannot be read"},
        {"s3://jobs?ca=%zz", "the value of ca cannot be read"},
        {"s3://jobs?ca=%0a", "the value of ca cannot be read"},
        {"s3://jobs?region=a:b", "region is a word"},
        {"s3://jobs?style=fancy", "style is path or host"},
        {"s3://jobs?region=a&region=b", "region is given twice"},
        {"s3://jobs?x=y", "what follows ? is endpoint, region, style, ca"},
        {"s3://jobs?&region=a", "what follows ? is endpoint, region, style, ca"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(s3_address_parse(rows[i].text, &address, &err), MR_ECONFIG);
        assert_non_null(strstr(err.message, rows[i].message));
        assert_null(strstr(err.message, "geheim"));
        assert_int_not_equal(err.hint[0], '\0');
    }
}

static void long_ones(void **state)
{
    char text[2048];

    (void)state;
    snprintf(text, sizeof(text), "s3://jobs/%0255d", 0);
    assert_int_equal(s3_address_parse(text, &address, &err), 0);
    snprintf(text, sizeof(text), "s3://jobs/%0256d", 0);
    assert_int_equal(s3_address_parse(text, &address, &err), MR_ECONFIG);
    assert_non_null(strstr(err.message, "its prefix is longer than 255 bytes"));
    snprintf(text, sizeof(text), "s3://jobs?ca=%01000d", 0);
    assert_int_equal(s3_address_parse(text, &address, &err), MR_ECONFIG);
    assert_non_null(strstr(err.message, "the value of ca cannot be read"));
}

static void keys(void **state)
{
    static const char *const good[] = {"a", "a/b", "A-Z_a~z.09/..a/...", "a/.b"};
    static const char *const bad[] = {"",     "/",   "/a",  "a/",  "a//b", ".",    "..", "a/../b",
                                      "a/./", "a b", "a+b", "a%b", "ä",    "a\nb", "a?", "a&b"};
    char longest[BLOB_KEY_MAX + 2];

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(blob_key_is_good(good[i]));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(blob_key_is_good(bad[i]));
    }
    memset(longest, 'k', sizeof(longest));
    longest[BLOB_KEY_MAX + 1] = '\0';
    assert_false(blob_key_is_good(longest));
    longest[BLOB_KEY_MAX] = '\0';
    assert_true(blob_key_is_good(longest));
}

// What blob_open() refuses without asking anybody.
static void opening(void **state)
{
    struct blob_credentials keys_given = {.access_key = "a", .secret_key = "geheim"};
    struct blob_options options = {.parallel = BLOB_PARALLEL_MAX + 1};
    struct blob_store *store = NULL;

    (void)state;
    assert_int_equal(blob_open("s3://jobs", &keys_given, &options, &store, &err), MR_EUSAGE);
    options = (struct blob_options){.idle_timeout_ms = -1};
    assert_int_equal(blob_open("s3://jobs", &keys_given, &options, &store, &err), MR_EUSAGE);
    assert_int_equal(blob_open("file:///x", &keys_given, NULL, &store, &err), MR_ECONFIG);
    keys_given.secret_key = "";
    assert_int_equal(blob_open("s3://jobs", &keys_given, NULL, &store, &err), MR_ECONFIG);
    assert_null(store);
    keys_given.secret_key = "geheim";
    assert_int_equal(blob_open("s3://jobs/p", &keys_given, NULL, &store, &err), 0);
    assert_string_equal(blob_place(store), "s3://jobs/p at https://s3.us-east-1.amazonaws.com");
    struct blob_page page;
    assert_int_equal(blob_list(store, "a b", NULL, &page, &err), MR_EUSAGE);
    assert_int_equal(blob_list(store, "a", "../b", &page, &err), MR_EUSAGE);
    assert_int_equal(blob_put_many(store, NULL, 0, &err), 0);
    blob_free(store);
    blob_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_ones), cmocka_unit_test(bad_ones), cmocka_unit_test(long_ones),
        cmocka_unit_test(keys),      cmocka_unit_test(opening),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
