// SPDX-License-Identifier: PostgreSQL
//
// A fuzz target: takes any bytes, and must neither crash nor break what it says about itself.

#ifndef MILLRACE_TESTS_FUZZ_H
#define MILLRACE_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Like assert(), in every build.
#define MUST(condition)     \
    do {                    \
        if (!(condition)) { \
            abort();        \
        }                   \
    } while (0)

#endif
