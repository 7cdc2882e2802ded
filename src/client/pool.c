// SPDX-License-Identifier: PostgreSQL
//
// Threads for work that blocks: see pool.h.
//
// Work moves todo -> (a thread) -> done -> collected. The first two lists belong to the lock,
// the last one to the owner. The descriptor is set when `done` gets its first piece and cleared
// when the owner finds both lists empty, so a burst of pieces costs one write and one read.
//
// A thread whose pieces are short takes several at a time: to fetch one costs more than to do
// nothing in it. The handful is bounded by number and, as soon as a piece turns out to be long,
// by giving the rest back.

#include "client/pool.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"

// The largest handful; how short pieces must be for more than one; when the rest is given back.
enum { HANDFUL_MAX = 32, SHORT_US = 20, LONG_US = 1000 };

struct work_list {
    struct pool_work *first, **end;
};

struct pool {
    struct pool_options options;
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct work_list todo, done, collected;
    int todo_count;
    int idle; // threads that wait
    bool ending;
    int fd;
    int started;
    pthread_t threads[];
};

static void list_init(struct work_list *list)
{
    list->first = NULL;
    list->end = &list->first;
}

static void list_push(struct work_list *list, struct pool_work *work)
{
    work->next = NULL;
    *list->end = work;
    list->end = &work->next;
}

static struct pool_work *list_pop(struct work_list *list)
{
    struct pool_work *work = list->first;

    if (work) {
        list->first = work->next;
        if (!list->first) {
            list->end = &list->first;
        }
    }
    return work;
}

// `to` is empty.
static void list_move(struct work_list *to, struct work_list *from)
{
    if (from->first) {
        *to = *from;
        list_init(from);
    }
}

// ---- the threads' side ----

// Pieces that a thread has taken, and how short its last ones were.
struct handful {
    struct pool_work *works[HANDFUL_MAX];
    int count;
    int64_t piece_us; // what a piece of the last handful took
};

static int handful_size(const struct pool *pool, const struct handful *handful)
{
    int share = pool->todo_count / (2 * pool->options.threads);

    if (handful->piece_us > SHORT_US || share < 1) {
        return 1;
    }
    return share < HANDFUL_MAX ? share : HANDFUL_MAX;
}

// Waits for work; false when the thread is to end. The lock is held.
static bool take_handful(struct pool *pool, struct handful *handful)
{
    while (!pool->todo.first && !pool->ending) {
        pool->idle++;
        pthread_cond_wait(&pool->more, &pool->lock);
        pool->idle--;
    }
    int wanted = handful_size(pool, handful);
    for (handful->count = 0; !pool->ending && handful->count < wanted && pool->todo.first;) {
        handful->works[handful->count++] = list_pop(&pool->todo);
        pool->todo_count--;
    }
    return handful->count > 0;
}

// Runs pieces until one was long; returns how many. The lock is not held.
static int run_handful(struct handful *handful, void *state)
{
    int64_t begun_us = clock_us(), took_us = 0;
    int done = 0;

    while (done < handful->count && took_us < LONG_US) {
        handful->works[done]->run(handful->works[done], state);
        took_us = clock_us() - begun_us;
        done++;
    }
    handful->piece_us = took_us / done;
    return done;
}

// The lock is held.
static void put_done(struct pool *pool, struct pool_work *const *works, int count)
{
    bool was_empty = !pool->done.first;
    uint64_t one = 1;

    for (int i = 0; i < count; i++) {
        list_push(&pool->done, works[i]);
    }
    // fails only when the counter is full, and then it is readable anyway
    if (was_empty && write(pool->fd, &one, sizeof(one)) < 0) {
        return;
    }
}

// Back to the front, in order. The lock is held.
static void put_back(struct pool *pool, struct pool_work *const *works, int count)
{
    for (int i = count - 1; i >= 0; i--) {
        works[i]->next = pool->todo.first;
        if (!pool->todo.first) {
            pool->todo.end = &works[i]->next;
        }
        pool->todo.first = works[i];
        pool->todo_count++;
        pthread_cond_signal(&pool->more);
    }
}

static void *thread_main(void *arg)
{
    struct pool *pool = arg;
    void *state = pool->options.thread_begin ? pool->options.thread_begin(pool->options.arg) : NULL;
    struct handful handful = {.piece_us = LONG_US};

    pthread_mutex_lock(&pool->lock);
    while (take_handful(pool, &handful)) {
        pthread_mutex_unlock(&pool->lock);
        int done = run_handful(&handful, state);
        pthread_mutex_lock(&pool->lock);
        put_done(pool, handful.works, done);
        put_back(pool, handful.works + done, handful.count - done);
    }
    pthread_mutex_unlock(&pool->lock);
    if (pool->options.thread_end) {
        pool->options.thread_end(state);
    }
    return NULL;
}

// ---- the owner's side ----

// The signals of the process go to the threads of the program, which knows what to do with
// them; a thread gets only those that its own fault raises.
static void mask_for_threads(sigset_t *ret)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};

    sigfillset(ret);
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        sigdelset(ret, own[i]);
    }
}

static int start_threads(struct pool *pool, struct mr_error *err)
{
    sigset_t mask, old;
    int failure = 0;

    mask_for_threads(&mask);
    pthread_sigmask(SIG_SETMASK, &mask, &old);
    while (!failure && pool->started < pool->options.threads) {
        failure = pthread_create(&pool->threads[pool->started], NULL, thread_main, pool);
        pool->started += failure ? 0 : 1;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failure) {
        mr_error_set(err, MR_EIO, "cannot start thread %d of %d: %s", pool->started + 1,
                     pool->options.threads, strerror(failure));
        mr_error_hint(err, "Lower the concurrency, or raise the limit of processes (ulimit -u).");
        return MR_EIO;
    }
    return 0;
}

int pool_new(const struct pool_options *options, struct pool **ret, struct mr_error *err)
{
    struct pool *pool = calloc(1, sizeof(*pool) + (size_t)options->threads * sizeof(pthread_t));
    int code;

    if (!pool) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    pool->options = *options;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->more, NULL);
    list_init(&pool->todo);
    list_init(&pool->done);
    list_init(&pool->collected);
    pool->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (pool->fd < 0) {
        code = mr_error_set(err, MR_EIO, "cannot open a descriptor: %s", strerror(errno));
        mr_error_hint(err, "Raise the limit of open files (ulimit -n).");
    } else {
        code = start_threads(pool, err);
    }
    if (code) {
        pool_free(pool);
        return code;
    }
    *ret = pool;
    return 0;
}

int pool_fd(const struct pool *pool)
{
    return pool->fd;
}

void pool_submit(struct pool *pool, struct pool_work *work)
{
    pool_submit_many(pool, &work, 1);
}

void pool_submit_many(struct pool *pool, struct pool_work *const *works, int count)
{
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < count; i++) {
        list_push(&pool->todo, works[i]);
    }
    pool->todo_count += count;
    for (int i = 0; i < count && i < pool->idle; i++) {
        pthread_cond_signal(&pool->more);
    }
    pthread_mutex_unlock(&pool->lock);
}

bool pool_withdraw(struct pool *pool, struct pool_work *work)
{
    struct pool_work **at;

    pthread_mutex_lock(&pool->lock);
    for (at = &pool->todo.first; *at && *at != work; at = &(*at)->next) {
    }
    bool found = *at != NULL;
    if (found) {
        *at = work->next;
        pool->todo_count--;
        if (!*at) {
            pool->todo.end = at;
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return found;
}

struct pool_work *pool_collect(struct pool *pool)
{
    uint64_t ignored;

    if (!pool->collected.first) {
        pthread_mutex_lock(&pool->lock);
        list_move(&pool->collected, &pool->done);
        // nothing to read: nothing was written since the last time
        if (!pool->collected.first && read(pool->fd, &ignored, sizeof(ignored)) < 0) {
            ignored = 0;
        }
        pthread_mutex_unlock(&pool->lock);
    }
    return list_pop(&pool->collected);
}

void pool_join(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->ending = true;
    pthread_cond_broadcast(&pool->more);
    pthread_mutex_unlock(&pool->lock);
    while (pool->started > 0) {
        pthread_join(pool->threads[--pool->started], NULL);
    }
}

void pool_free(struct pool *pool)
{
    if (!pool) {
        return;
    }
    pool_join(pool);
    pthread_cond_destroy(&pool->more);
    pthread_mutex_destroy(&pool->lock);
    if (pool->fd >= 0) {
        close(pool->fd);
    }
    free(pool);
}
