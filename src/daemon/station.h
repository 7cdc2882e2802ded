// SPDX-License-Identifier: PostgreSQL
//
// One configured worker on the loop: the worker that claims, the handler that runs, the breaker
// between them, and what it tells the log.

#ifndef MILLRACE_DAEMON_STATION_H
#define MILLRACE_DAEMON_STATION_H

#include <millrace/millrace.h>
#include <stdbool.h>
#include <uv.h>

#include "base/breaker.h"
#include "base/err.h"
#include "client/worker.h"
#include "daemon/station_share.h"
#include "handler/handler.h"
#include "http/tally.h"

struct station;

// Strings are copied.
struct station_options {
    struct worker_options worker;
    struct handler_options handler;
    struct breaker_options breaker;
    struct tally *tally; // counts jobs; must outlive the station; NULL
    // Of several shards: with the others of its worker; must outlive the station; NULL
    struct station_share *share;
    int address; // its place there
};

// Claiming starts with the next turn of the loop. Fails like handler_ops.open and worker_new().
int station_new(const struct station_options *options, uv_loop_t *loop, struct station **ret,
                struct mr_error *err);

// Stops claiming and lets running jobs finish within the grace period; `ended` is called on the
// loop when all is over: every outcome written, the handler closed. It is called too when the
// worker ends by itself (until_empty, failure). In it the station can still be asked for its
// counts; it is freed right afterwards.
void station_stop(struct station *station);
void station_on_end(struct station *station,
                    void (*ended)(void *arg, int code, const struct mr_error *err), void *arg);

// Called each time the worker has connected.
void station_on_connected(struct station *station, void (*connected)(void *arg), void *arg);

const char *station_name(const struct station *station);
bool station_healthy(const struct station *station);
void station_counts(const struct station *station, mr_worker_counts *ret);
enum breaker_status station_breaker(const struct station *station);

#endif
