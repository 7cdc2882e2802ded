// SPDX-License-Identifier: PostgreSQL
//
// Where a Redis server is, as people write it:
//
//   redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]      also redis://:PASSWORD@HOST
//   unix://[USER[:PASSWORD]@]/PATH[?db=DATABASE]           a socket on this machine

#ifndef MILLRACE_STORE_REDIS_URL_H
#define MILLRACE_STORE_REDIS_URL_H

#include <stdbool.h>

#include "base/err.h"

#define REDIS_DEFAULT_PORT 6379
#define REDIS_TEXT_MAX     256
#define REDIS_DATABASE_MAX 1000000

struct redis_url {
    char host[REDIS_TEXT_MAX]; // empty: path
    int port;
    char path[REDIS_TEXT_MAX];
    char user[REDIS_TEXT_MAX]; // empty: none
    char password[REDIS_TEXT_MAX];
    int database;
};

// Whether a text is meant as one: redis://, rediss:// or unix://.
bool redis_url_is(const char *text);

// Reads one. Fails with MR_ECONFIG; no message has a part of the address, which may hold a secret.
int redis_url_parse(const char *text, struct redis_url *ret, struct mr_error *err);

// HOST:PORT or the path, for people; `size` bytes at most.
void redis_url_place(const struct redis_url *url, char *ret, size_t size);

#endif
