// SPDX-License-Identifier: PostgreSQL
//
// Shards without a server: lists of addresses, ids, leases, how keys spread and move, and who is
// let in.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/dsn_list.h"
#include "client/shard.h"

// ---- addresses ----

static void one_address_stays_one(void **state)
{
    static const char *const dsns[] = {
        "postgresql://u:a;b@host/db?x=1;2",
        "host=a password=x;y dbname=b",
        "host=a password=';' dbname=b",
        "host=a password='a ; b' dbname=c",
        "host=a\n dbname=b",
        "jobs",
        "host=a password='it\\'s ; so'",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(dsns) / sizeof(dsns[0]); i++) {
        struct dsn_list list;
        assert_false(dsn_is_list(dsns[i]));
        assert_int_equal(dsn_list_parse(dsns[i], &list, NULL), 0);
        assert_int_equal(list.count, 1);
        assert_string_equal(list.items[0], dsns[i]);
        dsn_list_done(&list);
    }
    assert_false(dsn_is_list(NULL));
}

static void several_are_a_list(void **state)
{
    struct dsn_list list;

    (void)state;
    assert_true(dsn_is_list("postgresql://it's@a/x ; host=b password='p ; q' ;\n jobs"));
    assert_int_equal(
        dsn_list_parse("postgresql://it's@a/x ; host=b password='p ; q' ;\n jobs ", &list, NULL),
        0);
    assert_int_equal(list.count, 3);
    assert_string_equal(list.items[0], "postgresql://it's@a/x");
    assert_string_equal(list.items[1], "host=b password='p ; q'");
    assert_string_equal(list.items[2], "jobs");
    dsn_list_done(&list);
}

static void bad_lists_are_refused(void **state)
{
    static const char *const dsns[] = {"a ; ", " ; a", "a ; ; b", "a ; a", "a ; redis://h"};
    struct mr_error err;
    struct dsn_list list;
    AUTO_BUF many;

    (void)state;
    for (size_t i = 0; i < sizeof(dsns) / sizeof(dsns[0]); i++) {
        assert_int_equal(dsn_list_parse(dsns[i], &list, &err), MR_EUSAGE);
        assert_non_null(strstr(err.hint, "docs/shards.md"));
    }
    buf_init(&many, DSN_LIST_SIZE_MAX);
    for (int i = 0; i <= DSN_LIST_MAX; i++) {
        char name[16];
        snprintf(name, sizeof(name), "d%d", i);
        dsn_list_add(&many, name);
    }
    assert_int_equal(dsn_list_parse(buf_peek(&many), &list, &err), MR_EUSAGE);
    assert_non_null(strstr(err.message, "too many"));
}

// ---- ids and leases ----

static void ids_carry_the_shard(void **state)
{
    (void)state;
    assert_int_equal(shard_of_id(1), 0);
    assert_int_equal(shard_of_id((INT64_C(1) << 48) - 1), 0);
    assert_int_equal(shard_of_id(INT64_C(1) << 48), 1);
    assert_int_equal(shard_of_id((INT64_C(31) << 48) + 33), 31);
    assert_int_equal(shard_of_id(INT64_C(32) << 48), -1);
    assert_int_equal(shard_of_id(0), -1);
    assert_int_equal(shard_of_id(-5), -1);
    // the largest id of the largest shard is a whole number in a double
    int64_t largest = (INT64_C(32) << 48) - 1;
    assert_true((int64_t)(double)largest == largest);
}

static void leases_carry_the_shard(void **state)
{
    static const char *const wrong[] = {"0.1.2.x", "s:0.1", "s32:0", "s-1:0", "s123:0",
                                        "s1",      "",      "x1:0",  "s 1:0", "s1x:0"};
    char lease[SHARD_LEASE_SIZE];
    const char *rest = NULL;

    (void)state;
    shard_lease(31, "0.53248.17.e0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", lease);
    assert_string_equal(lease, "s31:0.53248.17.e0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11");
    assert_int_equal(shard_of_lease(lease, &rest), 31);
    assert_string_equal(rest, "0.53248.17.e0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11");
    assert_int_equal(shard_of_lease("s0:", &rest), 0);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(shard_of_lease(wrong[i], &rest), -1);
    }
}

// ---- the set ----

static struct shard_info info_of(int number, uint32_t members)
{
    struct shard_info info = {.enrolled = true, .number = number, .members = members};

    snprintf(info.set_id, sizeof(info.set_id), "one");
    return info;
}

static void admit_all(struct shard_set *set, int count)
{
    *set = (struct shard_set){.count = count};
    for (int i = 0; i < count; i++) {
        struct shard_info info = info_of(i, (UINT32_C(1) << count) - 1);
        assert_int_equal(shard_set_admit(set, i, &info, NULL), 0);
    }
}

enum { KEYS = 10000 };

static int place(const struct shard_set *set, int key)
{
    char text[32];

    snprintf(text, sizeof(text), "tenant-%d", key);
    return shard_set_pin(set, text).number;
}

// Short keys that differ in their last digits: no shard is further from its share than a tenth of
// it.
static void keys_spread_evenly(void **state)
{
    (void)state;
    for (int count = 1; count <= SHARD_NUMBERS / 2; count *= 2) {
        struct shard_set set;
        int n[SHARD_NUMBERS] = {0};
        admit_all(&set, count);
        for (int i = 0; i < KEYS; i++) {
            n[place(&set, i)]++;
        }
        for (int i = 0; i < count; i++) {
            assert_in_range(n[i], KEYS / count * 8 / 10, KEYS / count * 12 / 10);
        }
    }
}

static void a_new_shard_takes_its_share_and_no_more(void **state)
{
    struct shard_set four, five;
    int moved = 0;

    (void)state;
    admit_all(&four, 4);
    admit_all(&five, 5);
    for (int i = 0; i < KEYS; i++) {
        int before = place(&four, i), after = place(&five, i);
        assert_true(before == after || after == 4);
        moved += before != after;
    }
    assert_in_range(moved, KEYS / 5 * 8 / 10, KEYS / 5 * 12 / 10);
}

static void the_order_of_addresses_does_not_matter(void **state)
{
    struct shard_set set, turned = {.count = 3};

    (void)state;
    admit_all(&set, 3);
    for (int i = 0; i < 3; i++) {
        struct shard_info info = info_of((i + 1) % 3, 7);
        assert_int_equal(shard_set_admit(&turned, i, &info, NULL), 0);
    }
    for (int i = 0; i < KEYS; i++) {
        assert_int_equal(place(&set, i), place(&turned, i));
    }
}

// A member that nobody has seen keeps its keys: they are not given to others behind its back.
static void a_member_that_is_down_keeps_its_keys(void **state)
{
    struct shard_set set, without;
    int missed = 0;

    (void)state;
    admit_all(&set, 3);
    without = set;
    without.entries[1].known = false;
    assert_false(shard_set_complete(&without));
    for (int i = 0; i < KEYS; i++) {
        assert_int_equal(place(&without, i), place(&set, i));
        missed += place(&without, i) == 1;
    }
    assert_true(missed > 0);
    assert_int_equal(shard_set_find(&without, 1), -1);
}

static void keys_have_two_places_while_the_set_changes(void **state)
{
    struct shard_set set;
    int from_draining = 0, to_joining = 0;

    (void)state;
    admit_all(&set, 4);
    set.entries[0].info.status = SHARD_DRAINING;
    set.entries[3].info.status = SHARD_JOINING;
    for (int i = 0; i < KEYS; i++) {
        char key[32];
        snprintf(key, sizeof(key), "tenant-%d", i);
        struct shard_pin pin = shard_set_pin(&set, key);
        assert_true(pin.number != 0 && pin.previous != 3);
        from_draining += pin.previous == 0;
        to_joining += pin.number == 3;
    }
    assert_true(from_draining > 0 && to_joining > 0);
    for (int i = 0; i < 4; i++) {
        set.entries[i].info.status = SHARD_DRAINING;
    }
    assert_int_equal(shard_set_pin(&set, "k").number, -1);
    assert_true(shard_set_pin(&set, "k").previous >= 0);
}

static void copies_and_strangers_are_refused(void **state)
{
    struct shard_set set;
    struct shard_info info = info_of(1, 7);
    struct mr_error err;

    (void)state;
    admit_all(&set, 3);
    assert_int_equal(shard_set_admit(&set, 2, &info, &err), MR_ECONFIG);
    assert_string_equal(err.message, "the databases at addresses 2 and 3 are both shard 1");
    assert_int_equal(shard_set_find(&set, 2), -1);
    info = info_of(2, 7);
    snprintf(info.set_id, sizeof(info.set_id), "other");
    assert_int_equal(shard_set_admit(&set, 2, &info, &err), MR_ECONFIG);
    assert_string_equal(err.message,
                        "the databases at addresses 1 and 3 are shards of different sets");
    info = (struct shard_info){0};
    assert_int_equal(shard_set_admit(&set, 2, &info, &err), MR_ECONFIG);
    assert_string_equal(err.message, "the database is not a shard");
    info = info_of(2, 7);
    assert_int_equal(shard_set_admit(&set, 2, &info, &err), 0);
    assert_int_equal(shard_set_admit(&set, 2, &info, &err), 0);
    assert_true(shard_set_complete(&set));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_address_stays_one),
        cmocka_unit_test(several_are_a_list),
        cmocka_unit_test(bad_lists_are_refused),
        cmocka_unit_test(ids_carry_the_shard),
        cmocka_unit_test(leases_carry_the_shard),
        cmocka_unit_test(keys_spread_evenly),
        cmocka_unit_test(a_new_shard_takes_its_share_and_no_more),
        cmocka_unit_test(the_order_of_addresses_does_not_matter),
        cmocka_unit_test(a_member_that_is_down_keeps_its_keys),
        cmocka_unit_test(keys_have_two_places_while_the_set_changes),
        cmocka_unit_test(copies_and_strangers_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
