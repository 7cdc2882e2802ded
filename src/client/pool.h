// SPDX-License-Identifier: PostgreSQL
//
// Threads for work that blocks. Work is handed in and collected on one thread, the owner's. The
// threads take no signals of the process.

#ifndef MILLRACE_CLIENT_POOL_H
#define MILLRACE_CLIENT_POOL_H

#include <stdbool.h>

#include "base/err.h"

struct pool;

// One piece of work. The owner embeds it in something of its own and keeps it alive from
// pool_submit() until it comes back from pool_collect().
struct pool_work {
    void (*run)(struct pool_work *work, void *thread_state); // on a thread of the pool
    struct pool_work *next;                                  // the pool's
};

struct pool_options {
    int threads;
    // What each thread has for itself: made on it when it starts, ended on it. May be NULL.
    void *(*thread_begin)(void *arg);
    void (*thread_end)(void *thread_state);
    void *arg;
};

// Fails with MR_ENOMEM, MR_EIO (descriptors, threads).
int pool_new(const struct pool_options *options, struct pool **ret, struct mr_error *err);

// Readable when something can be collected; where pieces are short, not for every one of them.
int pool_fd(const struct pool *pool);

void pool_submit(struct pool *pool, struct pool_work *work);
// The same for many, at the price of one.
void pool_submit_many(struct pool *pool, struct pool_work *const *works, int count);

// A piece of work that is done, or NULL.
struct pool_work *pool_collect(struct pool *pool);

// Takes back a piece of work that no thread has begun; false when one has.
bool pool_withdraw(struct pool *pool, struct pool_work *work);

// Waits for running work and ends the threads. Work that has not begun is not run any more; it
// can still be withdrawn, and what has ended collected.
void pool_join(struct pool *pool);

// Joins, then frees. NULL is fine.
void pool_free(struct pool *pool);

#endif
