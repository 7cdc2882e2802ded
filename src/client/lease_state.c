// SPDX-License-Identifier: PostgreSQL
//
// What a heartbeat says of a lease: see lease_state.h.

#include "client/lease_state.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "client/batch.h"

// The columns of CALL_HEARTBEAT.
enum { COLUMN_UNTIL, COLUMN_CANCELLED, COLUMNS };

// The type of the ids, as PostgreSQL numbers it.
enum { OID_INT8 = 20 };

// An array over the wire: the number of dimensions, whether there are nulls, the type of its
// elements; for each dimension its size and first index; for each element its length and bytes.
enum {
    HEAD_SIZE = 12,
    TYPE_AT = 8,
    COUNT_AT = HEAD_SIZE,
    DIMENSION_SIZE = 8,
    LENGTH_SIZE = 4,
    ID_SIZE = 8,
    ELEMENT_SIZE = LENGTH_SIZE + ID_SIZE,
};

static uint32_t read_uint32(const char *data)
{
    uint32_t network;

    memcpy(&network, data, sizeof(network));
    return ntohl(network);
}

static int64_t read_int64(const char *data)
{
    uint64_t network;

    memcpy(&network, data, sizeof(network));
    return (int64_t)be64toh(network);
}

static int strange(struct mr_error *err)
{
    mr_error_set(err, MR_ESCHEMA, "the answer to a heartbeat has another form than expected");
    mr_error_hint(err, "The schema and the library are of different versions; upgrade the older "
                       "one (`millrace migrate` for the schema).");
    return MR_ESCHEMA;
}

// How many ids an array of so many bytes has; less than 0: it is none, or has nulls.
static int64_t count_ids(const char *data, size_t size)
{
    if (size < HEAD_SIZE || read_uint32(data + TYPE_AT) != OID_INT8) {
        return -1;
    }
    uint32_t dimensions = read_uint32(data);
    if (dimensions == 0 && size == HEAD_SIZE) {
        return 0;
    }
    if (dimensions != 1 || size < HEAD_SIZE + DIMENSION_SIZE) {
        return -1;
    }
    uint64_t count = read_uint32(data + COUNT_AT);
    return count * ELEMENT_SIZE == size - HEAD_SIZE - DIMENSION_SIZE ? (int64_t)count : -1;
}

static int compare_ids(const void *a, const void *b)
{
    int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;

    return first < second ? -1 : first > second;
}

// False: an element is no id.
static bool read_ids(const char *data, int64_t *ids, size_t count)
{
    data += HEAD_SIZE + DIMENSION_SIZE;
    for (size_t i = 0; i < count; i++, data += ELEMENT_SIZE) {
        if (read_uint32(data) != ID_SIZE) {
            return false;
        }
        ids[i] = read_int64(data + LENGTH_SIZE);
    }
    qsort(ids, count, sizeof(*ids), compare_ids);
    return true;
}

static int read_cancelled(const PGresult *result, struct lease_state *state, struct mr_error *err)
{
    const char *data = PQgetvalue(result, 0, COLUMN_CANCELLED);
    int64_t count = count_ids(data, (size_t)PQgetlength(result, 0, COLUMN_CANCELLED));

    if (count <= 0) {
        return count < 0 ? strange(err) : 0;
    }
    int64_t *ids = calloc((size_t)count, sizeof(*ids));
    if (!ids) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    if (!read_ids(data, ids, (size_t)count)) {
        free(ids);
        return strange(err);
    }
    state->cancelled = ids;
    state->count = (size_t)count;
    return 0;
}

int lease_state_read(const PGresult *result, struct lease_state *ret, struct mr_error *err)
{
    struct lease_state state = {0};
    int code = 0;

    if (PQntuples(result) != 1 || PQnfields(result) != COLUMNS ||
        PQfformat(result, COLUMN_CANCELLED) != 1 ||
        PQgetlength(result, 0, COLUMN_UNTIL) != ID_SIZE) {
        return strange(err);
    }
    state.until_us = batch_time_us(result, 0, COLUMN_UNTIL);
    if (!PQgetisnull(result, 0, COLUMN_CANCELLED) && (code = read_cancelled(result, &state, err))) {
        return code;
    }
    *ret = state;
    return 0;
}

void lease_state_done(struct lease_state *state)
{
    free(state->cancelled);
    *state = (struct lease_state){0};
}

bool lease_state_has(const struct lease_state *state, int64_t id)
{
    return state->count > 0 && bsearch(&id, state->cancelled, state->count,
                                       sizeof(*state->cancelled), compare_ids) != NULL;
}

int64_t *lease_state_take(struct lease_state *state, size_t *ret_count)
{
    int64_t *ids = state->cancelled;

    *ret_count = state->count;
    state->cancelled = NULL;
    state->count = 0;
    return ids;
}
