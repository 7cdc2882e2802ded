// SPDX-License-Identifier: PostgreSQL
//
// Payload parts that are objects of a blob store, on their way through the API: written before the
// call that names them, read before the reply that has them. Each waits for the store beside the
// loop, on libuv's threads, as long as the exchange is suspended.

#ifndef MILLRACE_HTTP_OBJECTS_H
#define MILLRACE_HTTP_OBJECTS_H

#include "client/parcel.h"
#include "http/http_parts.h"

// The store, opened when it is first asked for; NULL: there is none, or it cannot be used, which
// the log says once.
struct depot *objects_depot(struct http *http);

// Called on the loop. `parcel` is freed afterwards.
typedef void objects_fn(void *arg, struct parcel *parcel, bool failed);

// Writes (or reads) the objects of `parcel`, which is taken over and empty afterwards, and calls
// `done`, now or later.
void objects_ship(struct http *http, struct parcel *parcel, objects_fn *done, void *arg);
void objects_fetch(struct http *http, struct parcel *parcel, objects_fn *done, void *arg);

// The server ends: what is under way does so within moments. objects_under_way() is 0 then.
void objects_stop(struct http *http);
int objects_under_way(const struct http *http);

#endif
