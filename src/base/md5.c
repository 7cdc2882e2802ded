// SPDX-License-Identifier: PostgreSQL
//
// MD5: see md5.h.

#include "base/md5.h"

#include <stdint.h>
#include <string.h>

#define BLOCK_SIZE  64
#define LENGTH_SIZE 8

// The integer part of 2^32 times the sine of 1 to 64.
static const uint32_t sines[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};

static const unsigned char turns[4][4] = {
    {7, 12, 17, 22},
    {5, 9, 14, 20},
    {4, 11, 16, 23},
    {6, 10, 15, 21},
};

static uint32_t rotate(uint32_t word, unsigned bits)
{
    return word << bits | word >> (32 - bits);
}

// What a step mixes, and which word of the block it takes.
static uint32_t mix(unsigned step, const uint32_t v[4], unsigned *ret_word)
{
    switch (step / 16) {
    case 0: *ret_word = step; return (v[1] & v[2]) | (~v[1] & v[3]);
    case 1: *ret_word = (5 * step + 1) % 16; return (v[3] & v[1]) | (~v[3] & v[2]);
    case 2: *ret_word = (3 * step + 5) % 16; return v[1] ^ v[2] ^ v[3];
    default: *ret_word = 7 * step % 16; return v[2] ^ (v[1] | ~v[3]);
    }
}

static void compress(uint32_t hash[4], const unsigned char *block)
{
    uint32_t words[16];
    uint32_t v[4] = {hash[0], hash[1], hash[2], hash[3]};

    for (unsigned i = 0; i < 16; i++) {
        const unsigned char *b = block + (size_t)4 * i;
        words[i] = (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0];
    }
    for (unsigned step = 0; step < 64; step++) {
        unsigned word = 0;
        uint32_t sum = v[0] + mix(step, v, &word) + sines[step];
        uint32_t next = v[1] + rotate(sum + words[word], turns[step / 16][step % 4]);

        v[0] = v[3];
        v[3] = v[2];
        v[2] = v[1];
        v[1] = next;
    }
    for (unsigned i = 0; i < 4; i++) {
        hash[i] += v[i];
    }
}

void md5_sum(const void *data, size_t size, unsigned char ret[MD5_SIZE])
{
    uint32_t hash[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    unsigned char tail[2 * BLOCK_SIZE] = {0};
    size_t whole = size / BLOCK_SIZE, left = size % BLOCK_SIZE;
    size_t padded = left + 1 + LENGTH_SIZE <= BLOCK_SIZE ? BLOCK_SIZE : 2 * BLOCK_SIZE;
    uint64_t bits = (uint64_t)size * 8;

    for (size_t i = 0; i < whole; i++) {
        compress(hash, (const unsigned char *)data + i * BLOCK_SIZE);
    }
    if (left) {
        memcpy(tail, (const unsigned char *)data + whole * BLOCK_SIZE, left);
    }
    tail[left] = 0x80;
    for (size_t i = 0; i < LENGTH_SIZE; i++) {
        tail[padded - LENGTH_SIZE + i] = (unsigned char)(bits >> 8 * i);
    }
    for (size_t at = 0; at < padded; at += BLOCK_SIZE) {
        compress(hash, tail + at);
    }
    for (size_t i = 0; i < MD5_SIZE; i++) {
        ret[i] = (unsigned char)(hash[i / 4] >> 8 * (i % 4));
    }
}
