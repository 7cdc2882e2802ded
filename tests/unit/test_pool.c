// SPDX-License-Identifier: PostgreSQL
//
// The pool: everything that goes in comes out once, and what has not begun can be taken back.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "client/pool.h"

enum { WAIT_MS = 30000 };

struct piece {
    struct pool_work work;
    atomic_int ran;
    atomic_bool *gate; // to wait for; NULL
    void *thread_state;
    bool signals_blocked;
};

static void run_piece(struct pool_work *work, void *thread_state)
{
    struct piece *piece = (struct piece *)work;
    sigset_t mask;

    atomic_fetch_add(&piece->ran, 1);
    piece->thread_state = thread_state;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    piece->signals_blocked = sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGSEGV) == 0;
    while (piece->gate && !atomic_load(piece->gate)) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static void submit(struct pool *pool, struct piece *piece)
{
    piece->work.run = run_piece;
    pool_submit(pool, &piece->work);
}

static bool is_readable(struct pool *pool, int timeout_ms)
{
    struct pollfd poll_fd = {.fd = pool_fd(pool), .events = POLLIN};

    return poll(&poll_fd, 1, timeout_ms) == 1;
}

// The descriptor may be readable once more than there is something; never less often.
static struct piece *await_piece(struct pool *pool)
{
    struct pool_work *work;

    while (!(work = pool_collect(pool))) {
        assert_true(is_readable(pool, WAIT_MS));
    }
    return (struct piece *)work;
}

static struct pool *make_pool(int threads)
{
    struct pool_options options = {.threads = threads};
    struct pool *pool = NULL;

    assert_int_equal(pool_new(&options, &pool, NULL), 0);
    return pool;
}

static void everything_once(void **state)
{
    enum { COUNT = 5000 };
    struct pool *pool = make_pool(4);
    struct piece *pieces = calloc(COUNT, sizeof(*pieces));

    (void)state;
    assert_false(is_readable(pool, 0));
    assert_null(pool_collect(pool));
    for (int i = 0; i < COUNT; i++) {
        submit(pool, &pieces[i]);
    }
    assert_true(is_readable(pool, WAIT_MS));
    for (int i = 0; i < COUNT; i++) {
        await_piece(pool)->ran += 10;
    }
    assert_null(pool_collect(pool));
    assert_false(is_readable(pool, 0));
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(pieces[i].ran, 11);
    }
    assert_true(pieces[0].signals_blocked);
    free(pieces);
    pool_free(pool);
}

static void withdraws_what_has_not_begun(void **state)
{
    struct pool *pool = make_pool(1);
    atomic_bool gate = false;
    struct piece first = {.gate = &gate}, rest[3] = {0}, never = {0};

    (void)state;
    submit(pool, &first);
    while (atomic_load(&first.ran) == 0) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    for (int i = 0; i < 3; i++) {
        submit(pool, &rest[i]);
    }
    assert_false(pool_withdraw(pool, &first.work));
    assert_false(pool_withdraw(pool, &never.work));
    assert_true(pool_withdraw(pool, &rest[2].work)); // the last: the list has a new end
    assert_true(pool_withdraw(pool, &rest[0].work));
    assert_false(pool_withdraw(pool, &rest[0].work));
    submit(pool, &never);
    atomic_store(&gate, true);
    assert_ptr_equal(await_piece(pool), &first);
    assert_ptr_equal(await_piece(pool), &rest[1]);
    assert_ptr_equal(await_piece(pool), &never);
    assert_int_equal(rest[0].ran + rest[2].ran, 0);
    pool_free(pool);
}

static void joins_without_beginning(void **state)
{
    struct pool *pool = make_pool(1);
    atomic_bool gate = false;
    struct piece first = {.gate = &gate}, second = {0};

    (void)state;
    submit(pool, &first);
    while (atomic_load(&first.ran) == 0) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    submit(pool, &second);
    // the join is to find the second in the queue: only now may the first end
    assert_true(pool_withdraw(pool, &second.work));
    submit(pool, &second);
    atomic_store(&gate, true);
    pool_join(pool);
    assert_ptr_equal(pool_collect(pool), &first.work);
    // begun or not: it is in one of the two places
    assert_int_equal(second.ran, pool_withdraw(pool, &second.work) ? 0 : 1);
    pool_free(pool);
    pool_free(NULL);
}

// Short pieces, so that threads take handfuls.
static void warm_up(struct pool *pool, struct piece *pieces, int count)
{
    for (int i = 0; i < count; i++) {
        submit(pool, &pieces[i]);
    }
    for (int i = 0; i < count; i++) {
        (void)await_piece(pool);
        pieces[i].ran = 0;
    }
}

enum { MANY = 300 };

static void submit_all(struct pool *pool, struct piece *pieces)
{
    struct pool_work *works[MANY];

    for (int i = 0; i < MANY; i++) {
        pieces[i].ran = 0;
        works[i] = &pieces[i].work;
    }
    pool_submit_many(pool, works, MANY);
}

// A piece that is long after all holds up nobody: neither those before it in its handful nor
// those behind it.
static void long_ones_hold_up_nobody(void **state)
{
    struct pool *pool = make_pool(2);
    struct piece *pieces = calloc(MANY, sizeof(*pieces));
    atomic_bool gate = false;

    (void)state;
    warm_up(pool, pieces, MANY);
    pieces[5].gate = &gate;
    submit_all(pool, pieces);
    for (int i = 0; i < MANY - 1; i++) {
        assert_ptr_not_equal(await_piece(pool), &pieces[5]);
    }
    assert_null(pool_collect(pool));
    atomic_store(&gate, true);
    assert_ptr_equal(await_piece(pool), &pieces[5]);
    free(pieces);
    pool_free(pool);
}

// What a thread has in its hand but has not begun can be withdrawn; what has ended is there.
static void handfuls_are_open(void **state)
{
    struct pool *pool = make_pool(1);
    struct piece *pieces = calloc(MANY, sizeof(*pieces));
    atomic_bool gate = false;

    (void)state;
    warm_up(pool, pieces, MANY);
    pieces[3].gate = &gate;
    submit_all(pool, pieces);
    while (atomic_load(&pieces[3].ran) == 0) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(pool_collect(pool), &pieces[i]);
    }
    assert_null(pool_collect(pool));
    for (int i = MANY - 1; i > 3; i--) {
        assert_true(pool_withdraw(pool, &pieces[i].work));
    }
    assert_false(pool_withdraw(pool, &pieces[3].work));
    atomic_store(&gate, true);
    assert_ptr_equal(await_piece(pool), &pieces[3]);
    for (int i = 4; i < MANY; i++) {
        assert_int_equal(pieces[i].ran, 0);
    }
    free(pieces);
    pool_free(pool);
}

static atomic_int begun, ended;

static void *begin_thread(void *arg)
{
    atomic_fetch_add(&begun, 1);
    return arg;
}

static void end_thread(void *thread_state)
{
    assert_non_null(thread_state);
    atomic_fetch_add(&ended, 1);
}

static void threads_have_a_state(void **state)
{
    int mine = 0;
    struct pool_options options = {3, begin_thread, end_thread, &mine};
    struct pool *pool = NULL;
    struct piece piece = {0};

    (void)state;
    assert_int_equal(pool_new(&options, &pool, NULL), 0);
    submit(pool, &piece);
    assert_ptr_equal(await_piece(pool)->thread_state, &mine);
    pool_free(pool);
    assert_int_equal(begun, 3);
    assert_int_equal(ended, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_once),         cmocka_unit_test(withdraws_what_has_not_begun),
        cmocka_unit_test(joins_without_beginning), cmocka_unit_test(long_ones_hold_up_nobody),
        cmocka_unit_test(handfuls_are_open),       cmocka_unit_test(threads_have_a_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
