// SPDX-License-Identifier: PostgreSQL
//
// The arguments of a command, as many as it takes. Adding never fails in place: the owner asks
// once, with redis_args_eval(), and is told then.

#ifndef MILLRACE_STORE_REDIS_ARGS_H
#define MILLRACE_STORE_REDIS_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/redis_link.h"

struct redis_arg;

struct redis_args {
    struct redis_arg *items;
    size_t count, capacity;
    int keys; // how many of them are keys
    bool no_memory;
};

// Allocates nothing.
void redis_args_init(struct redis_args *args);
void redis_args_done(struct redis_args *args);

// The next argument. Texts and bytes are borrowed until redis_args_done(), keys and numbers are
// copied. Keys come first.
void redis_args_key(struct redis_args *args, const char *key);
void redis_args_text(struct redis_args *args, const char *text);
void redis_args_bytes(struct redis_args *args, const void *data, size_t size);
void redis_args_number(struct redis_args *args, int64_t number);
void redis_args_copy(struct redis_args *args, const char *text);

// As arrays, behind `lead` places that the caller fills; the caller frees both, what they point to
// is borrowed. Fails with MR_ENOMEM, MR_ELIMIT.
int redis_args_words(const struct redis_args *args, size_t lead, const char ***ret_argv,
                     size_t **ret_sizes, struct mr_error *err);

// Runs a script with them: see redis_link_eval().
int redis_args_eval(const struct redis_args *args, struct redis_link *link, const char *script,
                    redisReply **ret, struct mr_error *err);

#define AUTO_REDIS_ARGS __attribute__((cleanup(redis_args_done))) struct redis_args

#endif
