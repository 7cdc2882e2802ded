// SPDX-License-Identifier: PostgreSQL
//
// Coded payload parts: what is written is read again; what is truncated, corrupted, oversized or
// ambiguous is refused before anything is allocated for it.

#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include <cmocka.h>

#include "client/part.h"
#include "client/part_zstd.h"

static const char text[] = "the quick brown fox the quick brown fox the quick brown fox the quick "
                           "brown fox the quick brown fox the quick brown fox the quick brown fox";

// A value of `text`, compressed.
static void add_text(struct part_zstd *zstd, struct buf *out)
{
    bool pays = false;

    assert_int_equal(part_zstd_add(zstd, out, text, sizeof(text), &pays, NULL), 0);
    assert_true(pays);
}

static int expand(const struct buf *value, char **ret, struct mr_error *err)
{
    struct part_zstd zstd = {0};
    struct part part;
    int code = part_read(value->data, value->len, &part, err);

    if (code == 0) {
        code = part_zstd_read(&zstd, &part, ret, err);
    }
    part_zstd_done(&zstd);
    return code;
}

static void assert_damaged(const struct buf *value)
{
    struct mr_error err = {0};
    char *original = NULL;

    assert_int_equal(expand(value, &original, &err), MR_EDAMAGED);
    assert_int_equal(err.error_class, MR_CLASS_REJECTED);
    assert_string_not_equal(err.message, "");
    assert_string_not_equal(err.hint, "");
    assert_null(original);
}

// ---- the header ----

static void signature(void **state)
{
    (void)state;
    assert_memory_equal(PART_SIGNATURE, "\x89\x4d\x52\x50\x0d\x0a\x1a\x0a", PART_SIGNATURE_SIZE);
    assert_true(part_is_coded(PART_SIGNATURE, 8));
    assert_false(part_is_coded(PART_SIGNATURE, 7));
    assert_false(part_is_coded("\x89PNG\r\n\x1a\n", 8));
    assert_false(part_is_coded(NULL, 0));
    assert_false(part_is_coded("{}", 2));
}

static void header_is_as_documented(void **state)
{
    (void)state;
    AUTO_BUF value;

    buf_init(&value, PART_VALUE_MAX);
    part_add_header(&value, PART_ZSTD, 0x010203);
    assert_int_equal(value.len, PART_HEADER_SIZE);
    assert_memory_equal(value.data,
                        "\x89MRP\r\n\x1a\n"
                        "z\0\0\0\0\0\1\2\3",
                        PART_HEADER_SIZE);
}

static void every_cut_of_the_header(void **state)
{
    struct part part;
    struct mr_error err;

    (void)state;
    for (size_t size = 0; size < PART_HEADER_SIZE; size++) {
        char *cut = malloc(size + 1); // exactly as long: a sanitizer sees what is read behind it
        assert_non_null(cut);
        memcpy(cut, PART_SIGNATURE "p\0\0\0\0\0\0\0\0", size);
        assert_int_equal(part_read(cut, size, &part, &err), MR_EDAMAGED);
        free(cut);
    }
    assert_int_equal(part_read(PART_SIGNATURE "p\0\0\0\0\0\0\0\0", PART_HEADER_SIZE, &part, &err),
                     0);
    assert_int_equal(part.body_size, 0);
}

static void codings(void **state)
{
    char value[] = PART_SIGNATURE "?\0\0\0\0\0\0\0\0";
    struct part part;
    struct mr_error err;

    (void)state;
    for (int coding = 0; coding < 256; coding++) {
        value[PART_SIGNATURE_SIZE] = (char)coding;
        int wanted = coding == 'p' || coding == 'z' || coding == 'o' ? 0 : MR_EDAMAGED;
        assert_int_equal(part_read(value, PART_HEADER_SIZE, &part, &err), wanted);
    }
}

static void declared_size_is_limited(void **state)
{
    static const struct {
        uint64_t size;
        int code;
    } rows[] = {
        {PART_SIZE_MAX, 0},
        {PART_SIZE_MAX + 1, MR_EDAMAGED},
        {UINT64_C(1) << 32, MR_EDAMAGED},
        {UINT64_C(1) << 63, MR_EDAMAGED},
        {UINT64_MAX, MR_EDAMAGED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char value[] = PART_SIGNATURE "z\0\0\0\0\0\0\0\0";
        struct part part;
        struct mr_error err;
        uint64_t network = htobe64(rows[i].size);
        memcpy(value + PART_SIGNATURE_SIZE + 1, &network, sizeof(network));
        assert_int_equal(part_read(value, PART_HEADER_SIZE, &part, &err), rows[i].code);
    }
}

static void plain_wraps_what_begins_with_the_signature(void **state)
{
    static const char raw[] = PART_SIGNATURE "zzz";
    struct part part;

    (void)state;
    AUTO_BUF value;
    buf_init(&value, PART_VALUE_MAX);
    part_add_plain(&value, raw, sizeof(raw));
    assert_int_equal(part_read(value.data, value.len, &part, NULL), 0);
    assert_int_equal(part.coding, PART_PLAIN);
    assert_int_equal(part.body_size, sizeof(raw));
    assert_memory_equal(part.body, raw, sizeof(raw));
    // one byte less or more than it declares
    assert_int_equal(part_read(value.data, value.len - 1, &part, NULL), MR_EDAMAGED);
    buf_add(&value, "x", 1);
    assert_int_equal(part_read(value.data, value.len, &part, NULL), MR_EDAMAGED);
}

// ---- zstd ----

static void round_trip(void **state)
{
    static const size_t sizes[] = {200, 4096, 100000, 1 << 20};
    struct part_zstd zstd = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        AUTO_BUF value;
        char *data = malloc(sizes[i]), *original = NULL;
        bool pays = false;
        assert_non_null(data);
        for (size_t j = 0; j < sizes[i]; j++) {
            data[j] = (char)(j % 61 + j / 1000);
        }
        buf_init(&value, PART_VALUE_MAX);
        assert_int_equal(part_zstd_add(&zstd, &value, data, sizes[i], &pays, NULL), 0);
        assert_true(pays);
        assert_true(value.len <= sizes[i] - sizes[i] / 10);
        assert_int_equal(expand(&value, &original, NULL), 0);
        assert_memory_equal(original, data, sizes[i]);
        assert_int_equal(original[sizes[i]], 0);
        free(original);
        free(data);
    }
    part_zstd_done(&zstd);
    part_zstd_done(&zstd);
}

// Nothing is appended for what does not become smaller by a tenth.
static void skipped_where_it_does_not_pay(void **state)
{
    struct part_zstd zstd = {0};
    char noise[5000];
    uint64_t seed = 1;
    bool pays = true;

    (void)state;
    AUTO_BUF value;
    buf_init(&value, PART_VALUE_MAX);
    for (size_t i = 0; i < sizeof(noise); i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        noise[i] = (char)(seed >> 56);
    }
    assert_int_equal(part_zstd_add(&zstd, &value, noise, sizeof(noise), &pays, NULL), 0);
    assert_false(pays);
    for (size_t size = 0; size < 20; size++) {
        assert_int_equal(part_zstd_add(&zstd, &value, text, size, &pays, NULL), 0);
        assert_false(pays);
    }
    assert_int_equal(part_zstd_add(&zstd, &value, text, PART_SIZE_MAX + 1, &pays, NULL), 0);
    assert_false(pays);
    assert_int_equal(value.len, 0);
    part_zstd_done(&zstd);
}

static void every_cut_of_a_value(void **state)
{
    struct part_zstd zstd = {0};

    (void)state;
    AUTO_BUF whole;
    buf_init(&whole, PART_VALUE_MAX);
    add_text(&zstd, &whole);
    for (size_t size = 0; size < whole.len; size++) {
        AUTO_BUF cut;
        buf_init(&cut, PART_VALUE_MAX);
        buf_add(&cut, whole.data, size);
        assert_damaged(&cut);
    }
    buf_add(&whole, "x", 1);
    assert_damaged(&whole);
    part_zstd_done(&zstd);
}

// The frame has a checksum, and the header a size that the frame repeats. A bit may be changed so
// that the same comes out, or so that it is refused; never so that something else comes out.
static void every_bit_of_a_value(void **state)
{
    struct part_zstd zstd = {0};
    size_t refused = 0;

    (void)state;
    AUTO_BUF whole;
    buf_init(&whole, PART_VALUE_MAX);
    add_text(&zstd, &whole);
    for (size_t bit = 0; bit < whole.len * 8; bit++) {
        char *original = NULL;
        whole.data[bit / 8] ^= (char)(1 << bit % 8);
        if (expand(&whole, &original, NULL) == 0) {
            assert_memory_equal(original, text, sizeof(text));
            free(original);
        } else {
            refused++;
        }
        whole.data[bit / 8] ^= (char)(1 << bit % 8);
    }
    assert_true(refused > whole.len * 7);
    part_zstd_done(&zstd);
}

static void wrong_size(void **state)
{
    static const int by[] = {-1, 1, 1000};
    struct part_zstd zstd = {0};

    (void)state;
    AUTO_BUF right;
    buf_init(&right, PART_VALUE_MAX);
    add_text(&zstd, &right);
    for (size_t i = 0; i < sizeof(by) / sizeof(by[0]); i++) {
        AUTO_BUF value;
        buf_init(&value, PART_VALUE_MAX);
        part_add_header(&value, PART_ZSTD, sizeof(text) + (size_t)by[i]);
        buf_add(&value, right.data + PART_HEADER_SIZE, right.len - PART_HEADER_SIZE);
        assert_damaged(&value);
    }
    part_zstd_done(&zstd);
}

// 256 MiB of zeroes are a frame of some 20 KiB. It is refused whatever the header says of it.
static void bomb(void **state)
{
    const size_t size = (size_t)256 * 1024 * 1024;
    char *zeroes = calloc(1, size);
    size_t room = ZSTD_compressBound(size);
    char *frame = malloc(room);

    (void)state;
    assert_non_null(zeroes);
    assert_non_null(frame);
    size_t length = ZSTD_compress(frame, room, zeroes, size, 1);
    assert_false(ZSTD_isError(length));
    assert_true(length < 100000);
    free(zeroes);
    static const size_t declared[] = {0, 1, 4096, PART_SIZE_MAX, (size_t)256 * 1024 * 1024};
    for (size_t i = 0; i < sizeof(declared) / sizeof(declared[0]); i++) {
        AUTO_BUF value;
        buf_init(&value, PART_VALUE_MAX);
        part_add_header(&value, PART_ZSTD, declared[i]);
        buf_add(&value, frame, length);
        assert_damaged(&value);
    }
    free(frame);
}

// A frame that does not say its size, and two frames in a row.
static void other_frames(void **state)
{
    char frame[512];
    struct part_zstd zstd = {0};

    (void)state;
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
    size_t length = ZSTD_compress2(context, frame, sizeof(frame), text, sizeof(text));
    assert_false(ZSTD_isError(length));
    ZSTD_freeCCtx(context);
    AUTO_BUF silent;
    buf_init(&silent, PART_VALUE_MAX);
    part_add_header(&silent, PART_ZSTD, sizeof(text));
    buf_add(&silent, frame, length);
    assert_damaged(&silent);

    AUTO_BUF two;
    buf_init(&two, PART_VALUE_MAX);
    add_text(&zstd, &two);
    length = two.len;
    char *again = malloc(length);
    assert_non_null(again);
    memcpy(again, two.data, length);
    buf_add(&two, again + PART_HEADER_SIZE, length - PART_HEADER_SIZE);
    assert_damaged(&two);
    free(again);
    part_zstd_done(&zstd);
}

static void not_zstd(void **state)
{
    (void)state;
    AUTO_BUF value;
    buf_init(&value, PART_VALUE_MAX);
    part_add_header(&value, PART_ZSTD, 5);
    assert_damaged(&value);
    buf_puts(&value, "hello");
    assert_damaged(&value);
}

// ---- args ----

static void args_round_trip(void **state)
{
    static const char value[] = PART_SIGNATURE "p\0\0\0\0\0\0\0\2{}";

    (void)state;
    AUTO_BUF args;
    AUTO_BUF read;
    buf_init(&args, 1000);
    buf_init(&read, PART_VALUE_MAX);
    part_add_args(&args, value, sizeof(value) - 1);
    assert_string_equal(buf_peek(&args), "{\"$coded\": \"iU1SUA0KGgpwAAAAAAAAAAJ7fQ==\"}");
    assert_true(part_args_are_coded(args.data));
    assert_true(part_args_look_coded(args.data));
    assert_int_equal(part_read_args(args.data, &read, NULL), 0);
    assert_int_equal(read.len, sizeof(value) - 1);
    assert_memory_equal(read.data, value, sizeof(value) - 1);
}

static void args_that_are_not_coded(void **state)
{
    static const char *const rows[] = {
        "{}",
        "[]",
        "7",
        "\"$coded\"",
        "null",
        "{\"a\": 1}",
        "",
        "{",
        "{\"$coded\": 1}",
        "{\"$coded\": \"\"}",
        "{\"$coded\": \"hello\"}",
        "{\"$coded\": {\"$coded\": \"iU1SUA0KGgpw\"}}",
        "{\"$code\": \"iU1SUA0KGgpw\"}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_false(part_args_are_coded(rows[i]));
    }
}

static void args_that_are_damaged(void **state)
{
    static const char *const rows[] = {
        "{\"$coded\": \"iU1SUA0KGg\"}", // no whole group
        "{\"$coded\": \"iU1SUA0KGgpw",
        "{\"$coded\": \"iU1SUA0KGgpw\"",
        "{\"$coded\": \"iU1SUA0KGgpw!!!!\"}",
        "{\"$coded\": \"iU1SUA0KGgpw====\"}",
        "{\"$coded\": \"iU1SUA0KGgpw\", \"more\": 1}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct mr_error err;
        AUTO_BUF read;
        buf_init(&read, PART_VALUE_MAX);
        assert_true(part_args_are_coded(rows[i]));
        assert_int_equal(part_read_args(rows[i], &read, &err), MR_EDAMAGED);
    }
}

static void args_that_look_coded(void **state)
{
    static const struct {
        const char *args;
        bool looks;
    } rows[] = {
        {"{\"$coded\":\"x\"}", true},
        {" {\n\"$coded\" : 1}", true},
        {"{\"\\u0024coded\":\"x\"}", true},
        {"{\"a\\n\":1}", true}, // cannot be told without decoding
        {"{\"$coded2\":1}", false},
        {"{\"a\":\"$coded\"}", false},
        {"{}", false},
        {"{\"a", false},
        {"[\"$coded\"]", false},
        {"", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(part_args_look_coded(rows[i].args), rows[i].looks);
    }
}

// ---- objects ----

#define SUM "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static void object_round_trip(void **state)
{
    const struct part_object object = {.key = "seg/12/state-7", .size = 321, .sha256 = SUM};
    struct part_object read;
    struct part part;

    (void)state;
    AUTO_BUF value;
    buf_init(&value, PART_VALUE_MAX);
    assert_int_equal(part_add_object(&value, 4711, &object, NULL), 0);
    assert_int_equal(part_read(value.data, value.len, &part, NULL), 0);
    assert_int_equal(part.coding, PART_OBJECT);
    assert_int_equal(part.size, 4711);
    assert_int_equal(part_read_object(&part, &read, NULL), 0);
    assert_string_equal(read.key, object.key);
    assert_string_equal(read.sha256, object.sha256);
    assert_int_equal(read.size, object.size);
}

static void objects_that_may_not_be(void **state)
{
    struct part_object object = {.key = "", .sha256 = SUM};
    struct mr_error err;

    (void)state;
    AUTO_BUF value;
    buf_init(&value, PART_VALUE_MAX);
    assert_int_equal(part_add_object(&value, 1, &object, &err), MR_EUSAGE);
    strcpy(object.key, "a\"b");
    assert_int_equal(part_add_object(&value, 1, &object, &err), MR_EUSAGE);
    strcpy(object.key, "a\xc3\xa4");
    assert_int_equal(part_add_object(&value, 1, &object, &err), MR_EUSAGE);
    memset(object.key, 'a', PART_KEY_MAX);
    assert_int_equal(part_add_object(&value, 1, &object, &err), 0);
    buf_done(&value);
    strcpy(object.sha256, "e3");
    assert_int_equal(part_add_object(&value, 1, &object, &err), MR_EUSAGE);
    assert_int_equal(value.len, 0);
}

static void objects_that_are_damaged(void **state)
{
    static const char *const rows[] = {
        "",
        "7",
        "{}",
        "{\"key\":\"a\",\"size\":1}",
        "{\"size\":1,\"sha256\":\"" SUM "\"}",
        "{\"key\":\"a\",\"sha256\":\"" SUM "\"}",
        "{\"key\":\"\",\"size\":1,\"sha256\":\"" SUM "\"}",
        "{\"key\":\"a\",\"size\":-1,\"sha256\":\"" SUM "\"}",
        "{\"key\":\"a\",\"size\":99999999999999999999,\"sha256\":\"" SUM "\"}",
        "{\"key\":\"a\",\"size\":\"1\",\"sha256\":\"" SUM "\"}",
        "{\"key\":\"a\\u0041\",\"size\":1,\"sha256\":\"" SUM "\"}",
        "{\"key\":\"a b\",\"size\":1,\"sha256\":\"" SUM "\"}",
        "{\"key\":7,\"size\":1,\"sha256\":\"" SUM "\"}",
        "{\"key\":\"a\",\"size\":1,\"sha256\":\"" SUM "0\"}",
        "{\"key\":\"a\",\"size\":1,\"sha256\":\"" SUM "\"",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct part part = {PART_OBJECT, 1, rows[i], strlen(rows[i])};
        struct part_object object;
        struct mr_error err;
        assert_int_equal(part_read_object(&part, &object, &err), MR_EDAMAGED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signature),
        cmocka_unit_test(header_is_as_documented),
        cmocka_unit_test(every_cut_of_the_header),
        cmocka_unit_test(codings),
        cmocka_unit_test(declared_size_is_limited),
        cmocka_unit_test(plain_wraps_what_begins_with_the_signature),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(skipped_where_it_does_not_pay),
        cmocka_unit_test(every_cut_of_a_value),
        cmocka_unit_test(every_bit_of_a_value),
        cmocka_unit_test(wrong_size),
        cmocka_unit_test(bomb),
        cmocka_unit_test(other_frames),
        cmocka_unit_test(not_zstd),
        cmocka_unit_test(args_round_trip),
        cmocka_unit_test(args_that_are_not_coded),
        cmocka_unit_test(args_that_are_damaged),
        cmocka_unit_test(args_that_look_coded),
        cmocka_unit_test(object_round_trip),
        cmocka_unit_test(objects_that_may_not_be),
        cmocka_unit_test(objects_that_are_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
