// SPDX-License-Identifier: PostgreSQL
//
// What an error of Redis's means to a caller: a code, a message and a hint.

#ifndef MILLRACE_STORE_REDIS_ERROR_H
#define MILLRACE_STORE_REDIS_ERROR_H

#include <hiredis/hiredis.h>
#include <stdbool.h>

#include "base/err.h"

// `text` is the error as Redis wrote it. Returns the code; MR_EDATABASE where it is none of the
// known ones.
int redis_error_set(const char *text, const char *place, struct mr_error *err);

// Whether the server refuses everything for a while, and has done nothing: LOADING and the like.
bool redis_error_passes(const redisReply *reply);

// Whether a server that says this still answers reads. It also says it to PING.
bool redis_error_reads(const char *text);

#endif
