// SPDX-License-Identifier: PostgreSQL
//
// Many HTTP transfers at once on the libuv loop: libcurl says which sockets and which timeout it
// waits for, libuv waits.

#ifndef MILLRACE_HANDLER_HTTP_MULTI_H
#define MILLRACE_HANDLER_HTTP_MULTI_H

#include <curl/curl.h>
#include <uv.h>

#include "base/err.h"

struct http_multi;

// A transfer has ended and does not belong to the multi any more. May add and remove others.
typedef void http_multi_ended_fn(void *arg, CURL *easy, CURLcode code);

// Keeps up to `connections` idle connections. Fails with MR_ENOMEM, MR_EIO.
int http_multi_new(uv_loop_t *loop, int connections, http_multi_ended_fn *ended, void *arg,
                   struct http_multi **ret, struct mr_error *err);

// Starts a transfer; the handle stays the caller's. Not from inside of a callback of libcurl.
// Fails with MR_ENOMEM.
int http_multi_add(struct http_multi *multi, CURL *easy, struct mr_error *err);

// Ends a transfer without a word to `ended`.
void http_multi_remove(struct http_multi *multi, CURL *easy);

// No transfer is under way. Closes idle connections; `closed` is called on the loop when all is
// gone and the memory is freed.
void http_multi_close(struct http_multi *multi, void (*closed)(void *arg), void *arg);

#endif
