// SPDX-License-Identifier: PostgreSQL
//
// Threads for work that blocks: see pool.h.
//
// Work moves todo -> a thread's handful -> done -> collected.
//
// 1. Todo and the filling of handfuls belong to the lock. A thread whose pieces are short takes
//    several at a time: to fetch one costs more than to do nothing in it.
// 2. A piece in a handful is begun by whoever moves `next` past it: the thread itself, without the
//    lock; or, with the lock, a thread that has nothing to do, or the owner who wants it back. So
//    nothing waits behind a piece that turns out to be long, and what has not begun can be
//    withdrawn.
// 3. Done is a stack without a lock: a piece is there as soon as it has ended. The descriptor is
//    set at the end of a handful, and cleared when the owner finds nothing: an owner who looks by
//    himself now and then also finds what ended before a piece that is long.

#include "client/pool.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"

// The largest handful, and how short pieces must be for more than one.
enum { HANDFUL_MAX = 32, SHORT_US = 20 };

struct work_list {
    struct pool_work *first, **end;
};

// Pieces that a thread has taken.
struct handful {
    struct pool *pool;
    struct pool_work *works[HANDFUL_MAX];
    int count;
    atomic_int next;  // the first that nobody has begun
    int64_t piece_us; // what a piece of the last handful took
};

struct pool {
    struct pool_options options;
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct work_list todo, collected;
    _Atomic(struct pool_work *) done;
    atomic_bool announced; // the descriptor was set since it was cleared
    int todo_count;
    int idle;   // threads that wait
    int spread; // handfuls of more than one
    atomic_bool ending;
    int fd;
    int started;
    struct handful *handfuls;
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

// ---- the threads' side ----

static struct pool_work *handful_next(struct handful *handful)
{
    int at = atomic_fetch_add(&handful->next, 1);

    return at < handful->count ? handful->works[at] : NULL;
}

static bool has_rest(const struct handful *handful)
{
    return atomic_load(&handful->next) < handful->count;
}

static int handful_size(const struct pool *pool, const struct handful *handful)
{
    int share = pool->todo_count / (2 * pool->options.threads);

    if (handful->piece_us > SHORT_US || share < 1) {
        return 1;
    }
    return share < HANDFUL_MAX ? share : HANDFUL_MAX;
}

// The lock is held from here to thread_main(), unless something else is said.

static bool fill(struct pool *pool, struct handful *handful)
{
    int wanted = handful_size(pool, handful);

    handful->count = 0;
    while (handful->count < wanted && pool->todo.first) {
        handful->works[handful->count++] = list_pop(&pool->todo);
        pool->todo_count--;
    }
    atomic_store(&handful->next, 0);
    pool->spread += handful->count > 1;
    return handful->count > 0;
}

// One piece from the handful of a thread that is busy.
static bool steal(struct pool *pool, struct handful *handful)
{
    for (int i = 0; pool->spread > 0 && i < pool->options.threads; i++) {
        struct handful *from = &pool->handfuls[i];
        struct pool_work *work = has_rest(from) ? handful_next(from) : NULL;
        if (work) {
            handful->works[0] = work;
            handful->count = 1;
            atomic_store(&handful->next, 0);
            return true;
        }
    }
    return false;
}

// Waits for work; false when the thread is to end.
static bool take_handful(struct pool *pool, struct handful *handful)
{
    pool->spread -= handful->count > 1;
    handful->count = 0;
    while (!atomic_load(&pool->ending)) {
        if (fill(pool, handful) || steal(pool, handful)) {
            return true;
        }
        pool->idle++;
        pthread_cond_wait(&pool->more, &pool->lock);
        pool->idle--;
    }
    return false;
}

// Without the lock.
static void put_done(struct pool *pool, struct pool_work *work)
{
    work->next = atomic_load(&pool->done);
    while (!atomic_compare_exchange_weak(&pool->done, &work->next, work)) {
    }
}

// Without the lock.
static void announce(struct pool *pool)
{
    uint64_t one = 1;

    // fails only when the counter is full, and then it is readable anyway
    if (!atomic_exchange(&pool->announced, true) && write(pool->fd, &one, sizeof(one)) < 0) {
        return;
    }
}

// Without the lock.
static void run_handful(struct pool *pool, struct handful *handful, void *state)
{
    int64_t begun_us = clock_us();
    int ran = 0;
    struct pool_work *work;

    while (!atomic_load(&pool->ending) && (work = handful_next(handful))) {
        work->run(work, state);
        put_done(pool, work);
        ran++;
    }
    if (ran > 0) {
        announce(pool);
        handful->piece_us = (clock_us() - begun_us) / ran;
    }
}

// What nobody has begun goes back to the front.
static void put_back(struct pool *pool, struct handful *handful)
{
    struct work_list rest;
    struct pool_work *work;

    list_init(&rest);
    while (has_rest(handful) && (work = handful_next(handful))) {
        list_push(&rest, work);
        pool->todo_count++;
    }
    if (rest.first) {
        *rest.end = pool->todo.first;
        pool->todo.end = pool->todo.first ? pool->todo.end : rest.end;
        pool->todo.first = rest.first;
    }
}

static void *thread_main(void *arg)
{
    struct handful *handful = arg;
    struct pool *pool = handful->pool;
    void *state = pool->options.thread_begin ? pool->options.thread_begin(pool->options.arg) : NULL;

    pthread_mutex_lock(&pool->lock);
    while (take_handful(pool, handful)) {
        pthread_mutex_unlock(&pool->lock);
        run_handful(pool, handful, state);
        pthread_mutex_lock(&pool->lock);
        put_back(pool, handful); // the pool is ending
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
        failure = pthread_create(&pool->threads[pool->started], NULL, thread_main,
                                 &pool->handfuls[pool->started]);
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

static struct handful *make_handfuls(struct pool *pool)
{
    struct handful *handfuls = calloc((size_t)pool->options.threads, sizeof(*handfuls));

    for (int i = 0; handfuls && i < pool->options.threads; i++) {
        handfuls[i].pool = pool;
        handfuls[i].piece_us = SHORT_US + 1; // until it is known
    }
    return handfuls;
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
    list_init(&pool->collected);
    pool->handfuls = make_handfuls(pool);
    pool->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (!pool->handfuls) {
        code = mr_error_set(err, MR_ENOMEM, "out of memory");
    } else if (pool->fd < 0) {
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

// The lock is held. How many waiting threads to wake for so many pieces.
static int wanted(const struct pool *pool, int count)
{
    return count < pool->idle ? count : pool->idle;
}

// Without the lock: who is woken takes it first thing, and would wait for it.
static void wake(struct pool *pool, int threads)
{
    for (int i = 0; i < threads; i++) {
        pthread_cond_signal(&pool->more);
    }
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
    int threads = wanted(pool, count);
    pthread_mutex_unlock(&pool->lock);
    wake(pool, threads);
}

bool pool_withdraw(struct pool *pool, struct pool_work *work)
{
    struct pool_work **at;

    pthread_mutex_lock(&pool->lock);
    for (int i = 0; pool->spread > 0 && i < pool->options.threads; i++) {
        put_back(pool, &pool->handfuls[i]);
    }
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
    int threads = wanted(pool, pool->todo_count);
    pthread_mutex_unlock(&pool->lock);
    wake(pool, threads);
    return found;
}

// In the order in which they ended.
static void take_done(struct pool *pool)
{
    struct pool_work *work = atomic_exchange(&pool->done, NULL), *next;

    pool->collected.end = work ? &work->next : &pool->collected.first;
    for (; work; work = next) {
        next = work->next;
        work->next = pool->collected.first;
        pool->collected.first = work;
    }
}

struct pool_work *pool_collect(struct pool *pool)
{
    uint64_t ignored;

    if (!pool->collected.first) {
        take_done(pool);
    }
    if (!pool->collected.first && atomic_load(&pool->announced)) {
        // nothing to read yet: it is just about to be written, and will be read next time
        if (read(pool->fd, &ignored, sizeof(ignored)) > 0) {
            atomic_store(&pool->announced, false);
        }
        take_done(pool); // what came in between is announced by nobody else
        if (pool->collected.first) {
            announce(pool);
        }
    }
    return list_pop(&pool->collected);
}

void pool_join(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->ending, true);
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
    free(pool->handfuls);
    free(pool);
}
