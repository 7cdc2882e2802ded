// SPDX-License-Identifier: PostgreSQL
//
// Parts of a job on their way out and in, as bytes and in JSON texts; policies, and how long they
// are believed.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base64.h"
#include "client/call.h"
#include "client/parcel.h"
#include "client/parcel_json.h"

enum { LARGE = 2000 };

static const struct policy above_1000 = {.compress_above = 1000};
static char large[LARGE + 1];

static int make_large(void **state)
{
    (void)state;
    memset(large, 'x', LARGE);
    return 0;
}

static struct json_slice slice_of(const struct buf *buf)
{
    return (struct json_slice){buf->data, buf->len};
}

// ---- policies ----

static void policies_as_the_server_says(void **state)
{
    static const struct {
        const char *json;
        int code;
        size_t compress, args;
        bool pieces;
    } rows[] = {
        {"{\"compress\": 1000, \"max_args\": 5, \"pieces\": true}", 0, 1000, 5, true},
        {"{\"compress\": null, \"pieces\": false}", 0, 0, 0, false},
        {"{}", 0, 0, 0, false},
        {"{\"offload\": {\"above\": 1}, \"compress\": 200}", 0, 200, 0, false},
        {"{\"compress\": -5, \"pieces\": 1}", 0, 0, 0, false},
        {"{\"compress\": 1e3, \"pieces\": \"true\"}", 0, 0, 0, false},
        {"{\"compress\": \"1000\"}", 0, 0, 0, false},
        {"{\"compress\": 99999999999999999999999999}", 0, 0, 0, false},
        {"[]", MR_ESCHEMA, 0, 0, false},
        {"", MR_ESCHEMA, 0, 0, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct policy policy = {0};
        assert_int_equal(policy_read(rows[i].json, &policy, NULL), rows[i].code);
        assert_int_equal(policy.compress_above, rows[i].compress);
        assert_int_equal(policy.args_max, rows[i].args);
        assert_int_equal(policy.pieces, rows[i].pieces);
    }
}

static void policies_are_believed_for_a_while(void **state)
{
    struct policies policies = {0};
    char name[20];

    (void)state;
    assert_null(policies_find(&policies, "q", 0));
    policies_put(&policies, "q", &above_1000, 5);
    assert_int_equal(policies_find(&policies, "q", POLICY_MS + 4)->compress_above, 1000);
    assert_null(policies_find(&policies, "q", POLICY_MS + 5));
    policies_put(&policies, "q", &(struct policy){0}, POLICY_MS + 5);
    assert_int_equal(policies_find(&policies, "q", POLICY_MS + 6)->compress_above, 0);
    for (int i = 0; i < 5 * POLICIES_MAX; i++) {
        snprintf(name, sizeof(name), "q%d", i);
        policies_put(&policies, name, &above_1000, 0);
        assert_non_null(policies_find(&policies, name, 1));
    }
    policies_done(&policies);
    assert_null(policies_find(&policies, "q", 0));
}

static void names_of_leases(void **state)
{
    char one[POLICY_LEASE_NAME_SIZE], other[POLICY_LEASE_NAME_SIZE];

    (void)state;
    policy_lease_name("1.5696.2.6a25c711-103e-491e-b02f-b8bcb18c93cc", one);
    policy_lease_name("9.5697.7.00000000-103e-491e-b02f-b8bcb18c93cc", other);
    assert_string_equal(one, other); // lanes of one queue
    policy_lease_name("1.9792.2.6a25c711-103e-491e-b02f-b8bcb18c93cc", other);
    assert_string_not_equal(one, other);
    policy_lease_name("", other);
    policy_lease_name("no lease at all, and a long one, too: 1234567890123456789012345", other);
}

// ---- bytes ----

static void what_stays_as_it_is(void **state)
{
    static const struct policy off;
    static const struct policy *const policies[] = {NULL, &off, &above_1000};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct parcel parcel = {0};
        const void *data = large;
        size_t size = i < 2 ? LARGE : 1000; // not more than the policy's
        assert_int_equal(parcel_pack_bytes(&parcel, policies[i], &data, &size, NULL), 0);
        assert_ptr_equal(data, large);
        data = NULL;
        size = 0;
        assert_int_equal(parcel_pack_bytes(&parcel, policies[i], &data, &size, NULL), 0);
        assert_null(data);
        const char *args = "{\"a\": 1}", *given = args;
        assert_int_equal(parcel_pack_args(&parcel, policies[i], &args, NULL), 0);
        assert_ptr_equal(args, given);
        assert_null(parcel.values);
        parcel_done(&parcel);
    }
}

static void there_and_back(void **state)
{
    AUTO_PARCEL out = {0};
    AUTO_PARCEL in = {0};
    mr_job_spec job = MR_JOB_SPEC_INIT;
    char args[LARGE + 20];

    (void)state;
    snprintf(args, sizeof(args), "{\n\"a\": \"%s\"}", large);
    job.args = args;
    job.state = large;
    job.state_size = LARGE;
    assert_int_equal(parcel_pack_job(&out, &above_1000, &job, NULL), 0);
    assert_true(job.state_size < 100);
    assert_true(strlen(job.args) < 200);
    mr_claimed_job claimed = {.args = job.args, .state = job.state, .state_size = job.state_size};
    assert_true(parcel_is_coded(&claimed));
    assert_int_equal(parcel_open_job(&in, &claimed, NULL), 0);
    assert_int_equal(claimed.state_size, LARGE);
    assert_memory_equal(claimed.state, large, LARGE);
    args[1] = ' '; // on one line
    assert_string_equal(claimed.args, args);
    assert_false(parcel_is_coded(&claimed));
}

// What the server could not check would be checked by nobody.
static void args_left_to_the_server(void **state)
{
    static const char *const rows[][2] = {
        {"{\"a\": \"", "\""},         // no JSON
        {"{\"a\": \"\\u0000", "\"}"}, // none that PostgreSQL keeps
        {"{\"a\": \"\\ud800", "\"}"},
        {"{\"$coded\": \"", "\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct parcel parcel = {0};
        char text[LARGE + 40];
        const char *args = text;
        snprintf(text, sizeof(text), "%s%s%s", rows[i][0], large, rows[i][1]);
        assert_int_equal(parcel_pack_args(&parcel, &above_1000, &args, NULL), 0);
        assert_ptr_equal(args, text);
        parcel_done(&parcel);
    }
    // larger than the queue takes
    struct parcel parcel = {0};
    const struct policy small = {.compress_above = 1000, .args_max = LARGE};
    char text[LARGE + 40];
    const char *args = text;
    snprintf(text, sizeof(text), "{\"a\": \"%s\"}", large);
    assert_int_equal(parcel_pack_args(&parcel, &small, &args, NULL), 0);
    assert_ptr_equal(args, text);
    parcel_done(&parcel);
}

// Everything of a claim together is limited, whatever little it takes where it is stored; one is
// always opened.
static void many_bombs(void **state)
{
    AUTO_PARCEL out = {0};
    struct parcel in = {0};
    struct mr_error err;
    char *zeroes = calloc(1, PART_SIZE_MAX);
    const void *data = zeroes;
    size_t size = PART_SIZE_MAX;
    int opened = 0;

    (void)state;
    assert_non_null(zeroes);
    assert_int_equal(parcel_pack_bytes(&out, &above_1000, &data, &size, NULL), 0);
    assert_true(size < 100000);
    for (int code = 0; code == 0;) {
        const void *coded = data;
        size_t coded_size = size;
        code = parcel_open_bytes(&in, &coded, &coded_size, &err);
        opened += code == 0;
        assert_true(code == 0 || code == MR_ELIMIT);
    }
    assert_int_equal(opened, PARCEL_DECODED_MAX / PART_SIZE_MAX);
    parcel_done(&in);
    free(zeroes);
}

static void damaged_parts_are_named(void **state)
{
    const mr_claimed_job jobs[] = {
        {.args = "{\"$coded\": \"iU1SUA0KGgpw\"}"},
        {.args = "{\"$coded\": \"iU1SUA0KGgpwAAAAAAAAAAF7\"}"}, // well-formed, and no JSON in it
        {.args = "{}", .state = PART_SIGNATURE "z", .state_size = 9},
        {.args = "{}", .blob = PART_SIGNATURE "o\0\0\0\0\0\0\0\1{}", .blob_size = 19},
    };
    static const char *const names[] = {"args", "args", "state", "blob"};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct parcel parcel = {0};
        struct mr_error err;
        mr_claimed_job job = jobs[i];
        assert_int_equal(parcel_open_job(&parcel, &job, &err), MR_EDAMAGED);
        assert_memory_equal(err.message, names[i], strlen(names[i]));
        assert_memory_equal(&job, &jobs[i], sizeof(job));
        parcel_done(&parcel);
    }
}

// ---- JSON ----

static void pack_text(const struct policy *policy, const char *text, struct buf *out)
{
    AUTO_PARCEL parcel = {0};

    assert_int_equal(parcel_json_pack(&parcel, policy, json_slice_of(text), out, NULL), 0);
}

static void texts_that_stay(void **state)
{
    static const char *const rows[] = {
        "{}",
        "[]",
        "7",
        "{\"state\": \"AAEC\", \"blob\": 5, \"args\": {\"a\": [1, 2]}}",
        "{\"kind\": \"k\", \"state\": \"%%%\"}",
        "{\"a",
        "{\"state\": null}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        AUTO_BUF out;
        buf_init(&out, 10000);
        pack_text(&above_1000, rows[i], &out);
        assert_string_equal(buf_peek(&out), rows[i]);
    }
}

// Members in any order, base64 with line breaks, inside of changes and outcomes.
static void texts_that_are_coded(void **state)
{
    AUTO_BUF base64;
    AUTO_BUF text;
    AUTO_BUF out;

    (void)state;
    buf_init(&base64, 10000);
    buf_init(&text, 100000);
    buf_init(&out, 100000);
    base64_add(&base64, large, LARGE);
    buf_printf(&text,
               "{\"outcomes\": [{\"id\": 1, \"state\":\"%.100s\\n%s\", \"x\": 1}, 7,"
               " {\"blob\":\"%s\"}], \"changes\": {\"args\": {\"a\": \"%s\"}, \"n\": 2}}",
               base64.data, base64.data + 100, base64.data, large);
    pack_text(&above_1000, text.data, &out);
    assert_true(out.len < 1000);
    assert_int_equal(json_check(slice_of(&out), NULL), 0);
    assert_non_null(strstr(out.data, "\"state\":\"iU1SUA0KGgp6"));
    assert_non_null(strstr(out.data, "\", \"x\": 1}, 7, {\"blob\":\"iU1SUA0KGgp6"));
    assert_non_null(strstr(out.data, "\"changes\": {\"args\": {\"$coded\": \"iU1SUA0KGgp6"));
    assert_string_equal(out.data + out.len - 10, ", \"n\": 2}}");
}

static void lookalikes_in_texts(void **state)
{
    AUTO_BUF out;

    (void)state;
    buf_init(&out, 10000);
    // \x89MRP... as base64, as it is and with an escape in it
    pack_text(NULL, "{\"state\": \"iU1SUA0KGgo=\", \"args\": {\"$coded\": 1}}", &out);
    assert_string_equal(out.data, "{\"state\": \"iU1SUA0KGgpwAAAAAAAAAAiJTVJQDQoaCg==\","
                                  " \"args\": {\"$coded\": "
                                  "\"iU1SUA0KGgpwAAAAAAAAAA17IiRjb2RlZCI6IDF9\"}}");
}

struct flaws {
    int count;
    int64_t id;
    int code;
    bool object;
};

static void on_flaw(void *arg, int64_t id, const struct mr_error *flaw, bool object)
{
    struct flaws *flaws = arg;

    flaws->count++;
    flaws->object = object;
    flaws->id = id;
    flaws->code = flaw->code;
}

static void claims_are_opened(void **state)
{
    AUTO_PARCEL parcel = {0};
    AUTO_BUF text;
    AUTO_BUF out;
    struct flaws flaws = {0};
    size_t jobs = 0;

    (void)state;
    buf_init(&text, 100000);
    buf_init(&out, 100000);
    buf_puts(&text, "{\"jobs\": ["
                    "{\"id\": 7, \"args\": {}, \"state\": \"iU1SUA0KGgpwAAAAAAAAAANhYmM=\"}, "
                    "{\"id\": 8, \"args\": {}, \"state\": \"iU1SUA0KGgpwAAAAAAAAAARhYmM=\"}, "
                    "{\"id\": 9, \"args\": {\"$coded\": \"iU1SUA0KGgpwAAAAAAAAAAJ7fQ==\"}}"
                    "], \"lease\": \"1.2\"}");
    assert_true(parcel_json_is_coded(slice_of(&text)));
    assert_int_equal(
        parcel_json_open_claim(&parcel, slice_of(&text), on_flaw, &flaws, &out, &jobs, NULL), 0);
    assert_string_equal(out.data, "{\"jobs\": [{\"id\": 7, \"args\": {}, \"state\": \"YWJj\"}, "
                                  "{\"id\": 9, \"args\": {}}], \"lease\": \"1.2\"}");
    assert_int_equal(jobs, 2);
    assert_int_equal(flaws.count, 1);
    assert_int_equal(flaws.id, 8);
    assert_int_equal(flaws.code, MR_EDAMAGED);
    assert_false(flaws.object);
}

// A part above the size becomes a reference, with what the store is to have beside it; without a
// store, or once that has failed, it does not.
static void large_parts_are_references(void **state)
{
    const struct policy policy = {.offload_above = 512, .home = "0123456789abcdef"};
    AUTO_PARCEL parcel = {.offloads = true};
    char bytes[2000];
    const void *data = bytes;
    size_t size = sizeof(bytes);
    struct part part;
    struct part_object object;

    (void)state;
    memset(bytes, 'x', sizeof(bytes));
    assert_int_equal(parcel_pack_bytes(&parcel, &policy, &data, &size, NULL), 0);
    assert_true(parcel_is_object(data, size));
    assert_true(size < 512);
    assert_int_equal(part_read(data, size, &part, NULL), 0);
    assert_int_equal(part.size, sizeof(bytes));
    assert_int_equal(part_read_object(&part, &object, NULL), 0);
    assert_int_equal(parcel.object_count, 1);
    assert_string_equal(parcel.objects[0].key, object.key);
    assert_int_equal(strncmp(object.key, "0123456789abcdef/", 17), 0);
    assert_int_equal(parcel.objects[0].size, sizeof(bytes));
    assert_ptr_equal(parcel.objects[0].data, bytes);
    data = bytes;
    size = 512;
    assert_int_equal(parcel_pack_bytes(&parcel, &policy, &data, &size, NULL), 0);
    assert_ptr_equal(data, bytes);
    parcel_pack_again(&parcel);
    parcel.offloads = true;
    size = sizeof(bytes);
    assert_int_equal(parcel_pack_bytes(&parcel, &policy, &data, &size, NULL), 0);
    assert_ptr_equal(data, bytes);
    assert_int_equal(parcel.object_count, 0);
}

// What was not read cannot be opened, and says what is missing.
static void objects_need_a_store(void **state)
{
    const struct policy policy = {.offload_above = 512, .home = "0123456789abcdef"};
    AUTO_PARCEL out = {.offloads = true};
    AUTO_PARCEL in = {0};
    char bytes[600] = "";
    struct mr_error err = {0};
    mr_claimed_job job = {.args = "{}", .state = bytes, .state_size = sizeof(bytes)};

    (void)state;
    assert_int_equal(parcel_pack_bytes(&out, &policy, &job.state, &job.state_size, NULL), 0);
    assert_true(parcel_has_object(&job));
    assert_int_equal(parcel_want_job(&in, &job, NULL), 0);
    assert_int_equal(in.object_count, 1);
    parcel_fetch(&in, NULL);
    assert_int_equal(parcel_open_job(&in, &job, &err), MR_ECONFIG);
    assert_non_null(strstr(err.message, "none is configured"));
    assert_non_null(strstr(err.hint, "MILLRACE_BLOBS"));
    in.objects[0].result = BLOB_MISSING;
    snprintf(in.objects[0].text, sizeof(in.objects[0].text), "not there");
    assert_int_equal(parcel_open_job(&in, &job, &err), MR_EDAMAGED);
    assert_non_null(strstr(err.message, "missing: not there"));
    in.objects[0].result = BLOB_OK;
    in.objects[0].body = calloc(1, sizeof(bytes));
    in.objects[0].size = sizeof(bytes) - 1;
    assert_int_equal(parcel_open_job(&in, &job, &err), MR_EDAMAGED);
    in.objects[0].size = sizeof(bytes);
    assert_int_equal(parcel_open_job(&in, &job, &err), 0);
    assert_int_equal(job.state_size, sizeof(bytes));
}

// A story as the server tells it: the part is what payload_face() made of it.
static void show(const void *data, size_t size, const char *wanted)
{
    AUTO_PARCEL parcel = {0};
    AUTO_BUF value;
    AUTO_BUF text;
    AUTO_BUF out;
    bool pays;

    buf_init(&value, 100000);
    buf_init(&text, 200000);
    buf_init(&out, 200000);
    assert_int_equal(part_zstd_add(&parcel.zstd, &value, data, size, &pays, NULL), 0);
    buf_printf(&text, "{\"id\": 1, \"state\": {\"cut\": false, \"bytes\": %zu, \"value\": \"",
               size);
    base64_add(&text, value.data, value.len);
    buf_printf(&text,
               "\", \"coding\": \"zstd\", \"format\": \"coded\", \"stored\": %zu}, \"z\": 1}",
               value.len);
    assert_int_equal(parcel_json_show(slice_of(&text), &out, NULL), 0);
    assert_non_null(strstr(out.data, wanted));
    assert_non_null(strstr(out.data, "}, \"z\": 1}"));
    assert_int_equal(json_check(slice_of(&out), NULL), 0);
}

static void stories_are_shown(void **state)
{
    char bytes[40000];

    (void)state;
    memset(bytes, '7', 300);
    show(bytes, 300, "\"cut\": false, \"format\": \"json\", \"value\": 777");
    memset(bytes, 'x', sizeof(bytes));
    show(bytes, 300, "\"cut\": false, \"format\": \"text\", \"value\": \"xxx");
    show(bytes, sizeof(bytes), "\"cut\": true, \"format\": \"text\", \"value\": \"xxx");
    bytes[0] = '\0';
    show(bytes, 300, "\"cut\": false, \"format\": \"hex\", \"value\": \"0078");
    memset(bytes, '\xff', 300);
    show(bytes, 300, "\"cut\": false, \"format\": \"hex\", \"value\": \"ffff");
    // the last character is cut in two, and left out
    memset(bytes, 'x', sizeof(bytes));
    memcpy(bytes + 16383, "\xc3\xa4", 2);
    show(bytes, sizeof(bytes), "xxx\"}");
}

static void stories_of_damaged_parts(void **state)
{
    AUTO_BUF out;

    (void)state;
    buf_init(&out, 10000);
    assert_int_equal(
        parcel_json_show(json_slice_of("{\"args\": {\"$coded\": \"iU1SUA0KGgpw\"}, \"blob\": {"
                                       "\"value\": \"iU1SUA0KGgp6AAAAAAAAAAF7\", \"bytes\": 1,"
                                       " \"stored\": 18, \"coding\": \"zstd\","
                                       " \"format\": \"coded\"}}"),
                         &out, NULL),
        0);
    assert_string_equal(out.data, "{\"args\": {\"$coded\": \"iU1SUA0KGgpw\"}, \"blob\": {\"bytes\":"
                                  " 1, \"stored\": 18, \"coding\": \"zstd\", \"damaged\": true}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_as_the_server_says),
        cmocka_unit_test(policies_are_believed_for_a_while),
        cmocka_unit_test(names_of_leases),
        cmocka_unit_test(what_stays_as_it_is),
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(args_left_to_the_server),
        cmocka_unit_test(many_bombs),
        cmocka_unit_test(damaged_parts_are_named),
        cmocka_unit_test(texts_that_stay),
        cmocka_unit_test(texts_that_are_coded),
        cmocka_unit_test(lookalikes_in_texts),
        cmocka_unit_test(claims_are_opened),
        cmocka_unit_test(large_parts_are_references),
        cmocka_unit_test(objects_need_a_store),
        cmocka_unit_test(stories_are_shown),
        cmocka_unit_test(stories_of_damaged_parts),
    };
    return cmocka_run_group_tests(tests, make_large, NULL);
}
