// SPDX-License-Identifier: PostgreSQL
//
// Objects of a blob store: see objects.h.

#include "http/objects.h"

#include <stdlib.h>

#include "base/log.h"

struct trip {
    uv_work_t work;
    struct http *http;
    struct depot *depot;
    struct parcel parcel;
    bool out, failed;
    objects_fn *done;
    void *arg;
};

struct depot *objects_depot(struct http *http)
{
    struct mr_error err;

    if (!http->depot_known) {
        http->depot_known = true;
        if (depot_new(&http->options.blobs, &http->depot, &err)) {
            const struct log_field fields[] = {LOG_TEXT_FIELD("hint", err.hint)};
            log_put(LEVEL_ERROR, "http.blobs", fields, 1, "the blob store cannot be used: %s",
                    err.message);
        }
    }
    return http->depot;
}

static void run(uv_work_t *work)
{
    struct trip *trip = work->data;

    if (trip->out) {
        trip->failed = parcel_ship(&trip->parcel, trip->depot, NULL) != 0;
    } else {
        parcel_fetch(&trip->parcel, trip->depot);
    }
}

static void finished(struct trip *trip)
{
    trip->done(trip->arg, &trip->parcel, trip->failed);
    parcel_done(&trip->parcel);
    free(trip);
}

static void ran(uv_work_t *work, int status)
{
    struct trip *trip = work->data;

    trip->failed = trip->failed || status != 0;
    trip->http->trips--;
    finished(trip);
}

static void go(struct http *http, struct parcel *parcel, bool out, objects_fn *done, void *arg)
{
    struct trip *trip = calloc(1, sizeof(*trip));

    if (!trip) {
        done(arg, parcel, true);
        parcel_done(parcel);
        return;
    }
    *trip = (struct trip){.http = http,
                          .depot = objects_depot(http),
                          .parcel = *parcel,
                          .out = out,
                          .done = done,
                          .arg = arg};
    *parcel = (struct parcel){0};
    trip->work.data = trip;
    trip->failed = out && !trip->depot;
    if (!trip->depot || uv_queue_work(http->loop, &trip->work, run, ran)) {
        finished(trip); // what was not read says so when it is opened
        return;
    }
    http->trips++;
}

void objects_ship(struct http *http, struct parcel *parcel, objects_fn *done, void *arg)
{
    go(http, parcel, true, done, arg);
}

void objects_fetch(struct http *http, struct parcel *parcel, objects_fn *done, void *arg)
{
    go(http, parcel, false, done, arg);
}

void objects_stop(struct http *http)
{
    if (http->depot) {
        depot_stop(http->depot);
    }
}

int objects_under_way(const struct http *http)
{
    return http->trips;
}
