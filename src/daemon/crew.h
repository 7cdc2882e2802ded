// SPDX-License-Identifier: PostgreSQL
//
// The workers that a configuration names, each as a station on the loop. A new configuration
// changes the crew while it works: who is unchanged is left alone.

#ifndef MILLRACE_DAEMON_CREW_H
#define MILLRACE_DAEMON_CREW_H

#include <millrace/millrace.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "daemon/config.h"
#include "http/tally.h"

struct crew;

struct crew_hooks {
    void (*connected)(void *arg); // a worker has connected
    void (*ended)(void *arg);     // after crew_stop(): nobody is left
    void *arg;
};

// A worker that gave up (no schema, no privilege) is started again after this time.
#define CREW_RESTART_MS 5000

// An empty crew, whose jobs are counted in `tally`, which may be NULL. Fails with MR_ENOMEM.
int crew_new(uv_loop_t *loop, const struct crew_hooks *hooks, struct tally *tally,
             struct crew **ret, struct mr_error *err);
// Nobody may be left.
void crew_free(struct crew *crew);

// Makes the crew what `config` says: unchanged workers go on untouched, new ones start, removed
// ones stop gracefully, changed ones are replaced, the old one stopping gracefully while the new
// one already claims. `config` must live until the next call or the end, the one before until
// this returns. All or nothing: on failure (as of station_new()) the crew is as it was.
int crew_apply(struct crew *crew, const struct config *config, struct mr_error *err);

// Everybody stops gracefully. Returns the longest grace period.
int64_t crew_stop(struct crew *crew);

size_t crew_size(const struct crew *crew);
// Whether every worker of the present configuration has connected at least once.
bool crew_connected(const struct crew *crew);
// What all of them did, those that have ended included.
void crew_counts(const struct crew *crew, mr_worker_counts *ret);

// Appends, as texts of JSON with commas between, why workers cannot do their work.
void crew_reasons(const struct crew *crew, struct buf *out);
// Whether the breaker of each worker is open.
void crew_breakers(const struct crew *crew, void (*each)(void *arg, const char *worker, bool open),
                   void *arg);

#endif
