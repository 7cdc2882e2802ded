// SPDX-License-Identifier: PostgreSQL
//
// MD5: the examples of RFC 1321, and around the edges of a block.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/md5.h"

static void assert_sum(const char *data, size_t size, const char *wanted)
{
    unsigned char sum[MD5_SIZE];
    char hex[2 * MD5_SIZE + 1];

    md5_sum(data, size, sum);
    for (size_t i = 0; i < MD5_SIZE; i++) {
        snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    }
    assert_string_equal(hex, wanted);
}

static void published_examples(void **state)
{
    static const char *const rows[][2] = {
        {"", "d41d8cd98f00b204e9800998ecf8427e"},
        {"a", "0cc175b9c0f1b6a831c399e269772661"},
        {"abc", "900150983cd24fb0d6963f7d28e17f72"},
        {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
        {"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
         "d174ab98d277d9f5a5611c2c9f419d9f"},
        {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
         "57edf4a22be3c955ac49da2e2107b67a"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_sum(rows[i][0], strlen(rows[i][0]), rows[i][1]);
    }
}

static void edges_of_a_block(void **state)
{
    static const struct {
        size_t size;
        const char *wanted;
    } rows[] = {
        {55, "ef1772b6dff9a122358552954ad0df65"},      {56, "3b0c8ac703f828b04c6c197006d17218"},
        {63, "b06521f39153d618550606be297466d5"},      {64, "014842d480b571495a4a0363793f7367"},
        {65, "c743a45e0d2e6a95cb859adae0248435"},      {119, "8a7bd0732ed6a28ce75f6dabc90e1613"},
        {120, "5f61c0ccad4cac44c75ff505e1f1e537"},     {128, "e510683b3f5ffe4093d021808bc6ff70"},
        {1000000, "7707d6ae4e027c70eea2a935c2296f21"},
    };
    static char data[1000000];

    (void)state;
    memset(data, 'a', sizeof(data));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_sum(data, rows[i].size, rows[i].wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_examples),
        cmocka_unit_test(edges_of_a_block),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
