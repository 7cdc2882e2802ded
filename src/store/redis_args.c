// SPDX-License-Identifier: PostgreSQL
//
// The arguments of a command: see redis_args.h.

#include "store/redis_args.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 32
// Redis takes 1,048,576 with the script and its head.
#define ARGS_MAX (1024 * 1024 - 8)

struct redis_arg {
    const char *data;
    size_t size;
    bool owned;
};

void redis_args_init(struct redis_args *args)
{
    *args = (struct redis_args){0};
}

void redis_args_done(struct redis_args *args)
{
    for (size_t i = 0; i < args->count; i++) {
        if (args->items[i].owned) {
            free((char *)args->items[i].data);
        }
    }
    free(args->items);
    redis_args_init(args);
}

static void add(struct redis_args *args, const char *data, size_t size, bool owned)
{
    if (args->count == args->capacity && !args->no_memory) {
        size_t capacity = args->capacity ? args->capacity * 2 : FIRST_CAPACITY;
        struct redis_arg *items = realloc(args->items, capacity * sizeof(*items));
        args->items = items ? items : args->items;
        args->capacity = items ? capacity : args->capacity;
        args->no_memory = !items;
    }
    if (args->no_memory || !data) {
        args->no_memory = true;
        if (owned) {
            free((char *)data);
        }
        return;
    }
    args->items[args->count++] = (struct redis_arg){data, size, owned};
}

void redis_args_copy(struct redis_args *args, const char *text)
{
    add(args, strdup(text), strlen(text), true);
}

void redis_args_key(struct redis_args *args, const char *key)
{
    redis_args_copy(args, key);
    args->keys++;
}

void redis_args_text(struct redis_args *args, const char *text)
{
    add(args, text, strlen(text), false);
}

void redis_args_bytes(struct redis_args *args, const void *data, size_t size)
{
    add(args, size ? data : "", size, false);
}

void redis_args_number(struct redis_args *args, int64_t number)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRId64, number);
    redis_args_copy(args, text);
}

int redis_args_words(const struct redis_args *args, size_t lead, const char ***ret_argv,
                     size_t **ret_sizes, struct mr_error *err)
{
    if (args->count > ARGS_MAX) {
        mr_error_set(err, MR_ELIMIT, "too much for one command of Redis: %zu values", args->count);
        mr_error_hint(err, "Send less in one call.");
        return MR_ELIMIT;
    }
    const char **argv = calloc(lead + args->count + 1, sizeof(*argv));
    size_t *sizes = calloc(lead + args->count + 1, sizeof(*sizes));
    if (!argv || !sizes || args->no_memory) {
        free(argv);
        free(sizes);
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < args->count; i++) {
        argv[lead + i] = args->items[i].data;
        sizes[lead + i] = args->items[i].size;
    }
    *ret_argv = argv;
    *ret_sizes = sizes;
    return 0;
}

int redis_args_eval(const struct redis_args *args, struct redis_link *link, const char *script,
                    redisReply **ret, struct mr_error *err)
{
    const char **argv = NULL;
    size_t *sizes = NULL;
    int code = redis_args_words(args, 0, &argv, &sizes, err);

    if (code == 0) {
        code = redis_link_eval(link, script, args->keys, (int)args->count, argv, sizes, ret, err);
        free(argv);
        free(sizes);
    }
    return code;
}
