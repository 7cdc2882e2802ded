// SPDX-License-Identifier: PostgreSQL
//
// The args of jobs: see payload.h.

#include "bench/payload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/spec.h"

// {"n":1000000000000,"d":"..."}: the number has a digit in front, so that it keeps its width.
#define NUMBER_BASE   INT64_C(1000000000000)
#define NUMBER_OFFSET 5
#define NUMBER_DIGITS 13
#define FRAME         (sizeof("{\"n\":,\"d\":\"\"}") - 1 + NUMBER_DIGITS)

_Static_assert(FRAME < SPEC_PAYLOAD_MIN, "there is room for letters");

// Any letters will do, as long as no two texts are alike.
static unsigned next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005U + 1442695040888963407U;
    return (unsigned)(*seed >> 33);
}

static void write_text(char *text, size_t bytes, uint64_t *seed)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    int len = sprintf(text, "{\"n\":%lld,\"d\":\"", (long long)NUMBER_BASE);

    for (size_t i = (size_t)len; i < bytes - 2; i++) {
        text[i] = letters[next_random(seed) % 64];
    }
    memcpy(text + bytes - 2, "\"}", 3);
}

int payload_init(struct payload *payload, size_t texts, size_t bytes, size_t count,
                 struct mr_error *err)
{
    uint64_t seed = 20250101;

    *payload = (struct payload){.texts = texts, .bytes = bytes, .count = count};
    payload->store = malloc(texts * (bytes + 1));
    payload->args = malloc(count * sizeof(*payload->args));
    if (!payload->store || !payload->args) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < texts; i++) {
        write_text(payload->store + i * (bytes + 1), bytes, &seed);
    }
    for (size_t i = 0; i < count; i++) {
        payload->args[i] = payload->store + i % texts * (bytes + 1);
    }
    return 0;
}

void payload_done(struct payload *payload)
{
    free(payload->store);
    free(payload->args);
    *payload = (struct payload){0};
}

void payload_mark(struct payload *payload, size_t texts, int64_t number)
{
    char digits[24];

    snprintf(digits, sizeof(digits), "%lld", (long long)(NUMBER_BASE + number % NUMBER_BASE));
    for (size_t i = 0; i < texts && i < payload->texts; i++) {
        memcpy(payload->store + i * (payload->bytes + 1) + NUMBER_OFFSET, digits, NUMBER_DIGITS);
    }
}

int64_t payload_number(const char *args)
{
    const char *name = strstr(args, "\"n\":");

    return name ? strtoll(name + strlen("\"n\":"), NULL, 10) - NUMBER_BASE : -1;
}
