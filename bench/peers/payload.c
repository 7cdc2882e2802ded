// SPDX-License-Identifier: PostgreSQL

#include "payload.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../db.h"

enum {
    POOL = 4096,
};

static char pool[POOL][PAYLOAD_BYTES + 1];
static pthread_once_t pool_once = PTHREAD_ONCE_INIT;

static void pool_fill(void)
{
    for (int i = 0; i < POOL; i++) {
        int length = snprintf(pool[i], sizeof pool[i], "{\"id\": %d, \"data\": \"", i);
        for (; length < PAYLOAD_BYTES - 2; length++) {
            pool[i][length] = "0123456789abcdef"[random() & 15];
        }
        memcpy(pool[i] + length, "\"}", 3);
    }
}

const char *payload_next(void)
{
    static atomic_uint turn;
    pthread_once(&pool_once, pool_fill);
    return pool[atomic_fetch_add(&turn, 1) % POOL];
}

static char *put_int(char *at, unsigned value)
{
    unsigned wire = htonl(value);
    memcpy(at, &wire, sizeof wire);
    return at + sizeof wire;
}

char *payload_array(int count, unsigned type, char prefix, int *ret_length)
{
    unsigned width = PAYLOAD_BYTES + (prefix ? 1 : 0);
    size_t length = 20 + (size_t)count * (4 + width);
    char *array = malloc(length);
    if (!array) {
        die("out of memory");
    }
    const unsigned header[] = {1, 0, type, (unsigned)count, 1};
    char *at = array;
    for (size_t i = 0; i < 5; i++) {
        at = put_int(at, header[i]);
    }
    for (int i = 0; i < count; i++) {
        at = put_int(at, width);
        if (prefix) {
            *at++ = prefix;
        }
        memcpy(at, payload_next(), PAYLOAD_BYTES);
        at += PAYLOAD_BYTES;
    }
    *ret_length = (int)length;
    return array;
}
