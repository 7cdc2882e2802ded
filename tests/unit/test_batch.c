// SPDX-License-Identifier: PostgreSQL
//
// Batches: binary rows of claim_packs(), made by hand.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/batch.h"

enum { COLUMNS = 17, PACK = 16 };

static const Oid types[COLUMNS] = {25, 20, 23, 23, 25,   3802, 3802, 17,  17,
                                   25, 25, 23, 25, 1184, 1184, 1186, 3807};

static PGresult *make_result(int columns, const Oid *column_types)
{
    PGresAttDesc attributes[COLUMNS] = {0};
    PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    static char name[] = "c";

    for (int i = 0; i < columns; i++) {
        attributes[i] =
            (PGresAttDesc){.name = name, .format = 1, .typid = column_types[i], .typlen = -1};
    }
    assert_int_equal(PQsetResultAttrs(result, columns, attributes), 1);
    return result;
}

// Bytes as they come over the wire; a length of -1 is null.
static void put(PGresult *result, int row, int column, const char *data, int length)
{
    char copy[128];

    memcpy(copy, data, length > 0 ? (size_t)length : 0);
    assert_int_equal(PQsetvalue(result, row, column, length < 0 ? NULL : copy, length), 1);
}

// 2000-01-01 00:00:01 UTC
#define SECOND_2000 "\0\0\0\0\0\x0f\x42\x40"
// one second, two days, one month
#define INTERVAL "\0\0\0\0\0\x0f\x42\x40\0\0\0\2\0\0\0\1"

// Priority 50, made at that second. `until`: 8 bytes.
static void put_lease(PGresult *result, const char *until)
{
    for (int column = 0; column < COLUMNS; column++) {
        put(result, 0, column, "", -1);
    }
    put(result, 0, 0, "lease", 5);
    put(result, 0, 11, "\0\0\0\x32", 4);
    put(result, 0, 13, SECOND_2000, 8);
    put(result, 0, 14, until, 8);
}

static void put_job(PGresult *result, int row)
{
    put(result, row, 0, "", -1);
    put(result, row, 1, "\x01\x02\x03\x04\x05\x06\x07\x08", 8);
    put(result, row, 2, "\0\0\0\2", 4);
    put(result, row, 3, "\0\0\1\0", 4);
    put(result, row, 4, "kind", 4);
    put(result, row, 5, "\1{\"a\": 1}", 9);
    put(result, row, 6, "", -1);
    put(result, row, 7, "a\0b", 3);
    put(result, row, 8, "", 0);
    put(result, row, 9, "", -1);
    put(result, row, 10, "ref", 3);
    put(result, row, 11, "", -1);
    put(result, row, 12, "", -1);
    put(result, row, 13, SECOND_2000, 8);
    put(result, row, 14, "", -1);
    put(result, row, 15, INTERVAL, 16);
    put(result, row, PACK, "", -1);
}

static void reads_a_job(void **state)
{
    PGresult *result = make_result(COLUMNS, types);
    mr_batch *batch = NULL;

    (void)state;
    put_lease(result, "\0\0\0\0\x01\xd9\x05\xc0"); // 31 s
    put_job(result, 1);
    assert_int_equal(batch_jobs_in(result), 1);
    assert_int_equal(batch_take(result, "q", &batch, NULL), 0);
    assert_int_equal(mr_batch_count(batch), 1);
    assert_string_equal(mr_batch_lease(batch), "lease");
    assert_int_equal(batch_lease_ms(batch), 30000);
    const mr_claimed_job *job = mr_batch_job(batch, 0);
    assert_int_equal(job->id, 0x0102030405060708);
    assert_int_equal(job->attempt, 2);
    assert_int_equal(job->max_attempts, 256);
    assert_int_equal(job->priority, 50);
    assert_string_equal(job->queue, "q");
    assert_string_equal(job->args, "{\"a\": 1}");
    assert_null(job->meta);
    assert_int_equal(job->state_size, 3);
    assert_memory_equal(job->state, "a\0b", 4); // with a zero byte behind it
    assert_non_null(job->blob);
    assert_int_equal(job->blob_size, 0);
    assert_null(job->tenant);
    assert_string_equal(job->ref, "ref");
    assert_int_equal(job->created_at_us, 946684801000000);
    assert_int_equal(job->lease_until_us, 946684831000000);
    assert_int_equal(job->timeout_ms, (INT64_C(32) * 86400 + 1) * 1000);
    assert_null(mr_batch_job(batch, 1));
    mr_batch_free(batch);
}

static void reads_an_endless_lease(void **state)
{
    PGresult *result = make_result(COLUMNS, types);
    mr_batch *batch = NULL;

    (void)state;
    put_lease(result, "\x7f\xff\xff\xff\xff\xff\xff\xff");
    put_job(result, 1);
    put_job(result, 2);
    assert_int_equal(batch_take(result, "q", &batch, NULL), 0);
    assert_int_equal(mr_batch_count(batch), 2);
    assert_true(mr_batch_job(batch, 1)->lease_until_us == INT64_MAX);
    assert_true(batch_lease_ms(batch) > INT64_MAX / 2000);
    mr_batch_free(batch);
}

// Also a result with a lease and no jobs, which the server does not send.
static void reads_none(void **state)
{
    PGresult *alone = make_result(COLUMNS, types);
    mr_batch *batch = NULL;

    (void)state;
    assert_int_equal(batch_take(make_result(COLUMNS, types), NULL, &batch, NULL), 0);
    assert_int_equal(mr_batch_count(batch), 0);
    assert_null(mr_batch_lease(batch));
    assert_int_equal(batch_lease_ms(batch), 0);
    mr_batch_free(batch);
    put_lease(alone, SECOND_2000);
    assert_int_equal(batch_take(alone, NULL, &batch, NULL), 0);
    assert_int_equal(mr_batch_count(batch), 0);
    assert_null(mr_batch_lease(batch));
    mr_batch_free(batch);
}

// An array of jsonb: one dimension, no nulls; three elements, from number 1.
#define PACK_HEAD "\0\0\0\1\0\0\0\0\0\0\x0e\xda\0\0\0\3\0\0\0\1"
#define PACK_THREE                                            \
    PACK_HEAD "\0\0\0\3\1{}\0\0\0\x0a\1{\"a\": 22}\0\0\0\2\1" \
              "7"
enum { PACK_HEAD_SIZE = 20, PACK_THREE_SIZE = PACK_HEAD_SIZE + 7 + 14 + 6 };

static void put_pack(PGresult *result, int row, const char *pack, int size)
{
    put_job(result, row);
    put(result, row, 5, "", -1);
    put(result, row, PACK, pack, size);
}

static void reads_a_pack(void **state)
{
    static const char *const args[] = {"{}", "{\"a\": 22}", "7"};
    PGresult *result = make_result(COLUMNS, types);
    mr_batch *batch = NULL;

    (void)state;
    put_lease(result, "\0\0\0\0\x01\xd9\x05\xc0");
    put_job(result, 1);
    put_pack(result, 2, PACK_THREE, PACK_THREE_SIZE);
    put_job(result, 3);
    assert_int_equal(batch_jobs_in(result), 5);
    assert_int_equal(batch_take(result, "q", &batch, NULL), 0);
    assert_int_equal(mr_batch_count(batch), 5);
    for (size_t i = 0; i < 3; i++) {
        const mr_claimed_job *job = mr_batch_job(batch, 1 + i);
        assert_int_equal(job->id, 0x0102030405060708 + i);
        assert_string_equal(job->args, args[i]);
        assert_string_equal(job->kind, "kind");
        assert_string_equal(job->lease, "lease");
        assert_int_equal(job->attempt, 2);
    }
    assert_string_equal(mr_batch_job(batch, 4)->args, "{\"a\": 1}");
    mr_batch_free(batch);
}

static void refuses_pack(const char *pack, int size)
{
    PGresult *result = make_result(COLUMNS, types);
    mr_batch *batch = NULL;
    mr_error err;

    put_lease(result, SECOND_2000);
    put_pack(result, 1, pack, size);
    put_job(result, 2);
    assert_int_equal(batch_take(result, "q", &batch, &err), MR_ESCHEMA);
    assert_non_null(strstr(err.message, "a pack is not an array of jsonb"));
    assert_null(batch);
}

static void refuses_what_is_no_pack(void **state)
{
    (void)state;
    for (int size = 0; size < PACK_THREE_SIZE; size++) {
        refuses_pack(PACK_THREE, size); // cut off
    }
    refuses_pack("\0\0\0\0\0\0\0\0\0\0\x0e\xda", 12);     // empty, as PostgreSQL sends it
    refuses_pack("\0\0\0\2" PACK_THREE, PACK_THREE_SIZE); // two dimensions
    refuses_pack(PACK_HEAD "\xff\xff\xff\xff\0\0\0\3\1{}\0\0\0\2\1"
                           "7",
                 37); // a null
    refuses_pack(PACK_HEAD "\0\0\0\3\2{}\0\0\0\3\2{}\0\0\0\2\2"
                           "7",
                 40); // another form of jsonb
}

static void refuses_other_columns(void **state)
{
    mr_batch *batch = NULL;
    mr_error err;
    Oid other[COLUMNS];

    (void)state;
    assert_int_equal(batch_take(make_result(COLUMNS - 1, types), NULL, &batch, &err), MR_ESCHEMA);
    assert_non_null(strstr(err.hint, "millrace migrate"));
    memcpy(other, types, sizeof(other));
    other[2] = 21; // smallint
    assert_int_equal(batch_take(make_result(COLUMNS, other), NULL, &batch, &err), MR_ESCHEMA);
    assert_null(batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_job),
        cmocka_unit_test(reads_an_endless_lease),
        cmocka_unit_test(reads_none),
        cmocka_unit_test(reads_a_pack),
        cmocka_unit_test(refuses_what_is_no_pack),
        cmocka_unit_test(refuses_other_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
