// SPDX-License-Identifier: PostgreSQL
//
// SHA-256 (FIPS 180-4) and HMAC over it (RFC 2104). Our own, because the build's tools need it
// too, where there is no library yet.

#ifndef MILLRACE_BASE_SHA256_H
#define MILLRACE_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE       32
#define SHA256_HEX_SIZE   65
#define SHA256_BLOCK_SIZE 64

struct sha256 {
    uint32_t hash[8];
    uint64_t size; // of all that was added
    unsigned char block[SHA256_BLOCK_SIZE];
};

void sha256_init(struct sha256 *sum);
void sha256_add(struct sha256 *sum, const void *data, size_t size);
// Nothing can be added afterwards.
void sha256_end(struct sha256 *sum, unsigned char ret[SHA256_SIZE]);

// Writes the checksum of `data` as 64 lower-case digits and a NUL.
void sha256_hex(const char *data, size_t size, char ret_hex[SHA256_HEX_SIZE]);

// HMAC of what is added between init and hex.
struct sha256_hmac {
    struct sha256 inner;
    struct sha256 outer;
};

void sha256_hmac_init(struct sha256_hmac *hmac, const char *key, size_t key_size);
void sha256_hmac_add(struct sha256_hmac *hmac, const void *data, size_t size);
void sha256_hmac_hex(struct sha256_hmac *hmac, char ret_hex[SHA256_HEX_SIZE]);

#endif
