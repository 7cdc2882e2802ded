// SPDX-License-Identifier: PostgreSQL
//
// What errors of Redis mean: those of the server, and those inside of a script, as old and new
// versions write them.

#include "store/redis_error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_codes(void **state)
{
    static const struct {
        const char *text;
        int code;
    } rows[] = {
        {"LOADING Redis is loading the dataset in memory", MR_ECONNECT},
        {"BUSY Redis is busy running a script.", MR_ECONNECT},
        {"BUSYGROUP Consumer Group name already exists", MR_ECONFLICT},
        {"BUSYNESS", MR_EDATABASE},
        {"LOADING", MR_ECONNECT},
        {"OOM command not allowed when used memory > 'maxmemory'.", MR_EFULLDISK},
        {"ERR Error running script (call to f_1): @user_script:3: @user_script: 3: -OOM command not "
         "allowed when used memory > 'maxmemory'.",
         MR_EFULLDISK},
        {"ERR Error running script (call to f_1): @user_script:3: WRONGTYPE Operation against a key",
         MR_EFOREIGN},
        {"WRONGTYPE Operation against a key script: f00, on @user_script:3.", MR_EFOREIGN},
        {"ERR Error running script (call to f_1): @user_script:3: user_script:3: attempt to index",
         MR_EDATABASE},
        {"NOAUTH Authentication required.", MR_EPRIVILEGE},
        {"WRONGPASS invalid username-password pair or user is disabled.", MR_EPRIVILEGE},
        {"READONLY You can't write against a read only replica.", MR_EREADONLY},
        {"MOVED 3999 127.0.0.1:6381", MR_ECONFIG},
        {"ERR unknown command `UNLINK`", MR_ESERVER},
        {"ERR This Redis command is not allowed from scripts", MR_ESERVER},
        {"ERR This Redis command is not allowed from script script: f00, on @user_script:3.",
         MR_ESERVER},
        {"ERR Error running script (call to f_1): @user_script:3: @user_script: 3: This Redis "
         "command is not allowed from scripts",
         MR_ESERVER},
        {"ERR something else", MR_EDATABASE},
        {"", MR_EDATABASE},
    };
    mr_error err;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (redis_error_set(rows[i].text, "here", &err) != rows[i].code ||
            err.code != rows[i].code) {
            fail_msg("%s: %d", rows[i].text, err.code);
        }
    }
}

static void test_passes(void **state)
{
    char loading[] = "LOADING Redis is loading", oom[] = "OOM", group[] = "BUSYGROUP exists",
         fine[] = "LOADING";
    redisReply reply = {.type = REDIS_REPLY_ERROR, .str = loading};

    (void)state;
    assert_true(redis_error_passes(&reply));
    reply.str = oom;
    assert_false(redis_error_passes(&reply));
    reply.str = group;
    assert_false(redis_error_passes(&reply));
    reply.type = REDIS_REPLY_STRING;
    reply.str = fine;
    assert_false(redis_error_passes(&reply));
}

static void test_old_servers(void **state)
{
    mr_error err;

    (void)state;
    redis_error_set("ERR unknown command `UNLINK`", "here", &err);
    assert_string_equal(err.hint, "Redis 6.2 or newer is needed.");
    redis_error_set("ERR This Redis command is not allowed from scripts", "here", &err);
    assert_string_equal(err.hint, "Redis 6.2 or newer is needed.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_old_servers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
