// SPDX-License-Identifier: PostgreSQL
//
// SHA-256 against the published examples and around the edges of a block, in one piece and in
// many; HMAC against RFC 4231.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/sha256.h"

static void assert_sum(const char *data, size_t size, const char *wanted)
{
    char hex[SHA256_HEX_SIZE];

    sha256_hex(data, size, hex);
    assert_string_equal(hex, wanted);
}

static void published_examples(void **state)
{
    (void)state;
    assert_sum("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_sum("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_sum("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
               "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void edges_of_a_block(void **state)
{
    (void)state;
    static const struct {
        size_t size;
        const char *wanted;
    } rows[] = {
        {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
        {63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
        {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
        {65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"},
        {119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb"},
        {120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c"},
        {128, "6836cf13bac400e9105071cd6af47084dfacad4e5e302c94bfed24e013afb73e"},
        {1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };
    static char data[1000000];

    memset(data, 'a', sizeof(data));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_sum(data, rows[i].size, rows[i].wanted);
    }
}

static void in_pieces(void **state)
{
    (void)state;
    static char data[1000];
    unsigned char whole[SHA256_SIZE], pieces[SHA256_SIZE];
    struct sha256 sum;

    memset(data, 'x', sizeof(data));
    sha256_init(&sum);
    sha256_add(&sum, data, sizeof(data));
    sha256_end(&sum, whole);
    for (size_t step = 1; step <= 130; step++) {
        sha256_init(&sum);
        for (size_t at = 0; at < sizeof(data); at += step) {
            sha256_add(&sum, data + at, step < sizeof(data) - at ? step : sizeof(data) - at);
        }
        sha256_end(&sum, pieces);
        assert_memory_equal(whole, pieces, SHA256_SIZE);
    }
}

// RFC 4231, cases 1, 2, 6 (a key longer than a block).
static void hmac(void **state)
{
    (void)state;
    static char long_key[131];
    static const char short_key[] = "\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b"
                                    "\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b";
    const struct {
        const char *key;
        size_t key_size;
        const char *data;
        const char *wanted;
    } rows[] = {
        {short_key, 20, "Hi There",
         "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {"Jefe", 4, "what do ya want for nothing?",
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {long_key, sizeof(long_key), "Test Using Larger Than Block-Size Key - Hash Key First",
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
    };

    memset(long_key, 0xaa, sizeof(long_key));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sha256_hmac mac;
        char hex[SHA256_HEX_SIZE];

        sha256_hmac_init(&mac, rows[i].key, rows[i].key_size);
        sha256_hmac_add(&mac, rows[i].data, 1);
        sha256_hmac_add(&mac, rows[i].data + 1, strlen(rows[i].data) - 1);
        sha256_hmac_hex(&mac, hex);
        assert_string_equal(hex, rows[i].wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_examples),
        cmocka_unit_test(edges_of_a_block),
        cmocka_unit_test(in_pieces),
        cmocka_unit_test(hmac),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
