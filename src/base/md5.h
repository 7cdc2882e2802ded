// SPDX-License-Identifier: PostgreSQL
//
// MD5 (RFC 1321), for protocols that ask for it to notice damage. It protects against nothing else.

#ifndef MILLRACE_BASE_MD5_H
#define MILLRACE_BASE_MD5_H

#include <stddef.h>

#define MD5_SIZE 16

void md5_sum(const void *data, size_t size, unsigned char ret[MD5_SIZE]);

#endif
