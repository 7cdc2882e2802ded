// SPDX-License-Identifier: PostgreSQL
//
// Options structs of the public header: the first member is the size that the caller's header
// knew, so that a program built with an older one works with a newer library.

#ifndef MILLRACE_CLIENT_SIZED_H
#define MILLRACE_CLIENT_SIZED_H

#include <stddef.h>

#include "base/err.h"

// Copies what the caller's struct has over the defaults in `to`, which is `known` bytes. `init`
// names the macro of the header that initializes it. Fails with MR_EUSAGE.
int sized_read(void *to, size_t known, const void *from, const char *init, struct mr_error *err);

#endif
