// SPDX-License-Identifier: PostgreSQL
//
// Reading JSON without decoding it: whether a text is JSON, and where the members of an object
// stand. PostgreSQL decodes; this tells people early and exactly what is wrong. Nothing here
// allocates or keeps a pointer.

#ifndef MILLRACE_BASE_JSON_SCAN_H
#define MILLRACE_BASE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

// The deepest nesting that is accepted; PostgreSQL's own limit depends on its stack.
enum { JSON_DEPTH_MAX = 1000 };

// A piece of somebody else's text.
struct json_slice {
    const char *at;
    size_t len;
};

// `key` is what stands between the quotes, escapes as they are.
typedef void json_member_fn(void *arg, struct json_slice key, struct json_slice value);

// Whether `text` is one JSON value in UTF-8 (RFC 8259), blanks around it allowed. Fails with
// MR_EINVALID, `invalid JSON at byte N: why`, N counted from 1.
int json_check(struct json_slice text, struct mr_error *err);

// The same for a text that has to be an object, and calls on_member for each of its members. On
// failure it may have been called for some.
int json_each_member(struct json_slice text, json_member_fn *on_member, void *arg,
                     struct mr_error *err);

// The same for a text that has to be an array, and calls on_element for each of its elements.
typedef void json_element_fn(void *arg, struct json_slice value);
int json_each_element(struct json_slice text, json_element_fn *on_element, void *arg,
                      struct mr_error *err);

struct json_slice json_slice_of(const char *text);
bool json_slice_is(struct json_slice slice, const char *text);

#endif
