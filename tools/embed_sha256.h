// SPDX-License-Identifier: PostgreSQL
//
// SHA-256 (FIPS 180-4) for the build's own tools, so that checksums are constants in
// the program and building needs no library.

#ifndef MILLRACE_TOOLS_EMBED_SHA256_H
#define MILLRACE_TOOLS_EMBED_SHA256_H

#include <stddef.h>

#define SHA256_HEX_SIZE 65

// Writes the checksum of `data` as 64 lower-case digits and a NUL.
void sha256_hex(const char *data, size_t size, char ret_hex[SHA256_HEX_SIZE]);

#endif
