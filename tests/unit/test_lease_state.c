// SPDX-License-Identifier: PostgreSQL
//
// What a heartbeat says: binary answers, made by hand.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/lease_state.h"

enum { OID_INT8_ARRAY = 1016, OID_TIMESTAMPTZ = 1184 };

// 2000-01-01 00:00:01 UTC, and the same as we count.
#define SECOND_2000    "\0\0\0\0\0\x0f\x42\x40"
#define SECOND_2000_US INT64_C(946684801000000)

// Pieces of an array over the wire.
#define EMPTY   "\0\0\0\0\0\0\0\0\0\0\0\x14"
#define HEAD(n) "\0\0\0\1\0\0\0\0\0\0\0\x14\0\0\0" n "\0\0\0\1"
#define ID(n)   "\0\0\0\x08\0\0\0\0\0\0\0" n

// A row of `columns` columns with the time and the array; a length of -1 is null.
static PGresult *make_result(int columns, const char *array, int length)
{
    PGresAttDesc attributes[2] = {0};
    PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    static char name[] = "c";
    char time[] = SECOND_2000, copy[128];

    for (int i = 0; i < columns; i++) {
        attributes[i] = (PGresAttDesc){
            .name = name, .format = 1, .typid = i ? OID_INT8_ARRAY : OID_TIMESTAMPTZ, .typlen = -1};
    }
    assert_int_equal(PQsetResultAttrs(result, columns, attributes), 1);
    assert_int_equal(PQsetvalue(result, 0, 0, time, 8), 1);
    if (columns > 1) {
        memcpy(copy, array, length > 0 ? (size_t)length : 0);
        assert_int_equal(PQsetvalue(result, 0, 1, length < 0 ? NULL : copy, length), 1);
    }
    return result;
}

static void nothing_was_cancelled(void **state)
{
    struct lease_state told;

    (void)state;
    for (int length = 12; length >= -1; length -= 13) {
        PGresult *result = make_result(2, EMPTY, length);
        assert_int_equal(lease_state_read(result, &told, NULL), 0);
        assert_int_equal(told.until_us, SECOND_2000_US);
        assert_null(told.cancelled);
        assert_int_equal(told.count, 0);
        assert_false(lease_state_has(&told, 0));
        lease_state_done(&told);
        PQclear(result);
    }
}

static void ids_are_found_in_any_order(void **state)
{
    PGresult *result = make_result(2, HEAD("\3") ID("\x07") ID("\x01") ID("\x05"), 20 + 3 * 12);
    struct lease_state told;
    size_t count = 0;

    (void)state;
    assert_int_equal(lease_state_read(result, &told, NULL), 0);
    PQclear(result); // nothing of it is kept
    assert_int_equal(told.count, 3);
    assert_int_equal(told.cancelled[0], 1);
    assert_int_equal(told.cancelled[1], 5);
    assert_int_equal(told.cancelled[2], 7);
    assert_true(lease_state_has(&told, 1) && lease_state_has(&told, 5));
    assert_true(lease_state_has(&told, 7));
    assert_false(lease_state_has(&told, 0) || lease_state_has(&told, 6));
    int64_t *ids = lease_state_take(&told, &count);
    assert_int_equal(count, 3);
    assert_null(told.cancelled);
    assert_false(lease_state_has(&told, 7));
    lease_state_done(&told);
    free(ids);
}

static void strange(const char *array, int length)
{
    PGresult *result = make_result(2, array, length);
    struct lease_state told = {.count = 77};
    struct mr_error err = {0};

    assert_int_equal(lease_state_read(result, &told, &err), MR_ESCHEMA);
    assert_int_equal(err.code, MR_ESCHEMA);
    assert_true(err.hint[0] != '\0');
    assert_int_equal(told.count, 77); // written only on success
    PQclear(result);
}

static void another_form_is_told(void **state)
{
    static const char two_dimensions[] = "\0\0\0\2\0\0\0\0\0\0\0\x14"
                                         "\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1";
    static const char of_texts[] = "\0\0\0\0\0\0\0\0\0\0\0\x19";
    static const char null_inside[] = HEAD("\1") "\xff\xff\xff\xff\0\0\0\0\0\0\0\1";
    PGresult *result = make_result(1, "", 0);
    struct lease_state told;

    (void)state;
    strange("", 0);
    strange(EMPTY, 11);
    strange(two_dimensions, sizeof(two_dimensions) - 1);
    strange(of_texts, sizeof(of_texts) - 1);
    strange(null_inside, sizeof(null_inside) - 1);
    strange(HEAD("\2") ID("\1"), 20 + 12);            // fewer than it says
    strange(HEAD("\1") ID("\1") ID("\2"), 20 + 24);   // more
    strange(HEAD("\xff") ID("\1"), 20 + 12);          // far fewer
    strange(HEAD("\1") "\0\0\0\x04\0\0\0\1", 20 + 8); // of four bytes
    assert_int_equal(lease_state_read(result, &told, NULL), MR_ESCHEMA);
    PQclear(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_was_cancelled),
        cmocka_unit_test(ids_are_found_in_any_order),
        cmocka_unit_test(another_form_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
