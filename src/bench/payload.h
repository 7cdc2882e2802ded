// SPDX-License-Identifier: PostgreSQL
//
// The args of the jobs that are enqueued: JSON objects of exactly the size asked for, of letters
// that do not compress, each with a number that can be set anew.

#ifndef MILLRACE_BENCH_PAYLOAD_H
#define MILLRACE_BENCH_PAYLOAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct payload {
    char *store;
    size_t texts;
    size_t bytes;      // of each
    const char **args; // `count` of them, borrowed from store; the texts come again and again
    size_t count;
};

// `count` args of `texts` texts. Freed with payload_done(), also on failure: MR_ENOMEM.
int payload_init(struct payload *payload, size_t texts, size_t bytes, size_t count,
                 struct mr_error *err);
void payload_done(struct payload *payload);

// Gives the first `texts` texts the number, 0 to 999,999,999,999.
void payload_mark(struct payload *payload, size_t texts, int64_t number);

// The number of a job's args as the server gives them back; -1 when there is none.
int64_t payload_number(const char *args);

#define AUTO_PAYLOAD __attribute__((cleanup(payload_done))) struct payload

#endif
