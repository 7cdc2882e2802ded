// SPDX-License-Identifier: PostgreSQL
//
// SHA-256: see sha256.h. Written for clarity, not for speed.

#include "base/sha256.h"

#include <stdio.h>
#include <string.h>

#define LENGTH_SIZE 8

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t word, int bits)
{
    return word >> bits | word << (32 - bits);
}

static void schedule(const unsigned char *block, uint32_t w[64])
{
    for (int i = 0; i < 16; i++) {
        const unsigned char *b = block + 4 * i;
        w[i] = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    }
    for (int i = 16; i < 64; i++) {
        uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
}

static void compress(uint32_t hash[8], const unsigned char *block)
{
    uint32_t w[64];
    uint32_t v[8];

    schedule(block, w);
    memcpy(v, hash, sizeof(v));
    for (int i = 0; i < 64; i++) {
        uint32_t s1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25);
        uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t t1 = v[7] + s1 + choice + round_constants[i] + w[i];
        uint32_t s0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);

        memmove(v + 1, v, 7 * sizeof(v[0]));
        v[4] += t1;
        v[0] = t1 + s0 + majority;
    }
    for (int i = 0; i < 8; i++) {
        hash[i] += v[i];
    }
}

void sha256_init(struct sha256 *sum)
{
    static const uint32_t start[8] = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
    };

    memcpy(sum->hash, start, sizeof(start));
    sum->size = 0;
}

void sha256_add(struct sha256 *sum, const void *data, size_t size)
{
    const unsigned char *bytes = data;

    while (size > 0) {
        size_t held = sum->size % SHA256_BLOCK_SIZE;
        size_t taken = SHA256_BLOCK_SIZE - held < size ? SHA256_BLOCK_SIZE - held : size;

        memcpy(sum->block + held, bytes, taken);
        sum->size += taken;
        bytes += taken;
        size -= taken;
        if (held + taken == SHA256_BLOCK_SIZE) {
            compress(sum->hash, sum->block);
        }
    }
}

// The last one or two blocks: what is left, a one bit, zeros, the length in bits.
void sha256_end(struct sha256 *sum, unsigned char ret[SHA256_SIZE])
{
    unsigned char tail[2 * SHA256_BLOCK_SIZE] = {0x80};
    size_t held = sum->size % SHA256_BLOCK_SIZE;
    size_t pad = held + 1 + LENGTH_SIZE <= SHA256_BLOCK_SIZE ? SHA256_BLOCK_SIZE - held
                                                             : 2 * SHA256_BLOCK_SIZE - held;
    uint64_t bits = sum->size * 8;

    for (size_t i = 0; i < LENGTH_SIZE; i++) {
        tail[pad - 1 - i] = (unsigned char)(bits >> 8 * i);
    }
    sha256_add(sum, tail, pad);
    for (size_t i = 0; i < SHA256_SIZE; i++) {
        ret[i] = (unsigned char)(sum->hash[i / 4] >> (24 - 8 * (i % 4)));
    }
}

static void hex_of(const unsigned char sum[SHA256_SIZE], char ret_hex[SHA256_HEX_SIZE])
{
    for (size_t i = 0; i < SHA256_SIZE; i++) {
        snprintf(ret_hex + 2 * i, SHA256_HEX_SIZE - 2 * i, "%02x", sum[i]);
    }
}

void sha256_hex(const char *data, size_t size, char ret_hex[SHA256_HEX_SIZE])
{
    struct sha256 sum;
    unsigned char bytes[SHA256_SIZE];

    sha256_init(&sum);
    sha256_add(&sum, data, size);
    sha256_end(&sum, bytes);
    hex_of(bytes, ret_hex);
}

void sha256_hmac_init(struct sha256_hmac *hmac, const char *key, size_t key_size)
{
    unsigned char block[SHA256_BLOCK_SIZE] = {0};

    if (key_size <= sizeof(block)) {
        memcpy(block, key, key_size);
    } else {
        struct sha256 sum;
        sha256_init(&sum);
        sha256_add(&sum, key, key_size);
        sha256_end(&sum, block);
    }
    for (size_t i = 0; i < sizeof(block); i++) {
        block[i] ^= 0x36;
    }
    sha256_init(&hmac->inner);
    sha256_add(&hmac->inner, block, sizeof(block));
    for (size_t i = 0; i < sizeof(block); i++) {
        block[i] ^= 0x36 ^ 0x5c;
    }
    sha256_init(&hmac->outer);
    sha256_add(&hmac->outer, block, sizeof(block));
}

void sha256_hmac_add(struct sha256_hmac *hmac, const void *data, size_t size)
{
    sha256_add(&hmac->inner, data, size);
}

void sha256_hmac_hex(struct sha256_hmac *hmac, char ret_hex[SHA256_HEX_SIZE])
{
    unsigned char sum[SHA256_SIZE];

    sha256_end(&hmac->inner, sum);
    sha256_add(&hmac->outer, sum, sizeof(sum));
    sha256_end(&hmac->outer, sum);
    hex_of(sum, ret_hex);
}
