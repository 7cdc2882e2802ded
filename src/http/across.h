// SPDX-License-Identifier: PostgreSQL
//
// Requests that are about all shards: the route's call is made on each, and the answers become one.
//
// 1. Of those that look (PLACE_SUM, PLACE_LIST, PLACE_APART) a shard that does not answer is
//    missing, and `shards` in the reply says so; when none answers the request fails.
// 2. Those that change something (PLACE_EACH) fail when one fails; `shards` says what each has
//    done.
//    What a shard does not know (a queue) is no failure as long as another does.

#ifndef MILLRACE_HTTP_ACROSS_H
#define MILLRACE_HTTP_ACROSS_H

#include "http/params.h"

struct exchange;
struct site;

// Appends what a shard has said as it is to be told.
typedef void across_shape_fn(const struct site *site, struct json_slice text, struct buf *out);

// Calls the route's call on all shards, with the first `count` of its parameters, and replies.
// `shape` may be NULL.
void across_call(struct exchange *exchange, struct params *params, size_t count,
                 across_shape_fn *shape);

#endif
