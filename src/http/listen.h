// SPDX-License-Identifier: PostgreSQL
//
// The address to listen on, and the files of TLS.

#ifndef MILLRACE_HTTP_LISTEN_H
#define MILLRACE_HTTP_LISTEN_H

#include <stdbool.h>

#include "base/err.h"
#include "http/http.h"

// Whether a text is ADDRESS:PORT, with an address of numbers or localhost.
bool listen_is_address(const char *text);
// A socket that listens. Fails with MR_ECONFIG for an address that is none, MR_EIO where it is
// taken or may not be used.
int listen_open(const char *address, int *ret_fd, int *ret_port, struct mr_error *err);
// The port of a socket that listens.
int listen_port(int fd);
// The contents of the two files, the caller's; both NULL when none is configured.
int listen_read_tls(const struct http_options *options, char **ret_key, char **ret_cert,
                    struct mr_error *err);

#endif
