// SPDX-License-Identifier: PostgreSQL
//
// The jobs' payloads: JSON of PAYLOAD_BYTES bytes that does not compress, made once and used in
// turn, so that making them costs nothing while the clock runs.

#ifndef MILLRACE_BENCH_PAYLOAD_H
#define MILLRACE_BENCH_PAYLOAD_H

#include <stddef.h>

enum {
    PAYLOAD_BYTES = 200,
};

// The next payload: PAYLOAD_BYTES bytes, zero-terminated, valid until the program ends.
// Any thread may call.
const char *payload_next(void);

// `count` payloads as a one-dimensional array in PostgreSQL's binary format. Heap.
// `type` is the elements' OID, `prefix` a byte before each (jsonb wants 1), 0 for none.
char *payload_array(int count, unsigned type, char prefix, int *ret_length);

enum {
    TYPE_TEXT = 25,
    TYPE_JSONB = 3802,
};

#endif
