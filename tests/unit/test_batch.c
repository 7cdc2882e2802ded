// SPDX-License-Identifier: PostgreSQL
//
// Batches: binary rows of claimed_job, made by hand.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/batch.h"

enum { COLUMNS = 17 };

static const Oid types[COLUMNS] = {25, 20, 23, 23, 25,   3802, 3802, 17,  17,
                                   25, 25, 23, 25, 1184, 1184, 1186, 1186};

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
    char copy[64];

    memcpy(copy, data, length > 0 ? (size_t)length : 0);
    assert_int_equal(PQsetvalue(result, row, column, length < 0 ? NULL : copy, length), 1);
}

// 2000-01-01 00:00:01 UTC
#define SECOND_2000 "\0\0\0\0\0\x0f\x42\x40"
// one second, two days, one month
#define INTERVAL "\0\0\0\0\0\x0f\x42\x40\0\0\0\2\0\0\0\1"

static void put_row(PGresult *result, int row)
{
    put(result, row, 0, "lease", 5);
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
    put(result, row, 11, "\0\0\0\x32", 4);
    put(result, row, 12, "", -1);
    put(result, row, 13, SECOND_2000, 8);
    put(result, row, 14, "\x7f\xff\xff\xff\xff\xff\xff\xff", 8);
    put(result, row, 15, INTERVAL, 16);
    put(result, row, 16, "\0\0\0\0\x01\xc9\xc3\x80\0\0\0\0\0\0\0\0", 16);
}

static void reads_a_row(void **state)
{
    PGresult *result = make_result(COLUMNS, types);
    mr_batch *batch = NULL;

    (void)state;
    put_row(result, 0);
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
    assert_true(job->lease_until_us == INT64_MAX); // infinity
    assert_int_equal(job->timeout_ms, (INT64_C(32) * 86400 + 1) * 1000);
    assert_null(mr_batch_job(batch, 1));
    mr_batch_free(batch);
}

static void reads_none(void **state)
{
    mr_batch *batch = NULL;

    (void)state;
    assert_int_equal(batch_take(make_result(COLUMNS, types), NULL, &batch, NULL), 0);
    assert_int_equal(mr_batch_count(batch), 0);
    assert_null(mr_batch_lease(batch));
    assert_int_equal(batch_lease_ms(batch), 0);
    mr_batch_free(batch);
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
        cmocka_unit_test(reads_a_row),
        cmocka_unit_test(reads_none),
        cmocka_unit_test(refuses_other_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
