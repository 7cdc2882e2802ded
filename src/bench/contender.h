// SPDX-License-Identifier: PostgreSQL
//
// Who is measured: Millrace through its library, or the textbook queue through a pipelined
// driver, behind one door, so that both do the same work in the same run.

#ifndef MILLRACE_BENCH_CONTENDER_H
#define MILLRACE_BENCH_CONTENDER_H

#include <millrace/millrace.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/place.h"
#include "bench/spec.h"

struct hand; // crew.h: one worker

// A session that enqueues, or claims by hand.
struct session {
    const struct site *site;
    mr_conn *millrace;
    struct conn *textbook;
};

struct contender {
    const char *name;
    const char *schema; // whose tables are its own

    // Once in a fresh site.
    int (*prepare)(struct site *site, const struct bench_spec *spec, struct mr_error *err);
    // After a bulk load.
    int (*settle)(struct site *site, struct mr_error *err);

    // `session` is zeroed; session_close() afterwards, also on failure.
    int (*session_open)(struct session *session, struct mr_error *err);
    void (*session_close)(struct session *session);
    // Enqueues, `chunk` jobs a transaction.
    int (*enqueue)(struct session *session, const char *const *args, size_t count, size_t chunk,
                   struct mr_error *err);
    // One claim of at most `batch` jobs, and its completion. *ret_claim_us is the claim's time
    // alone, *ret_count what it brought.
    int (*claim)(struct session *session, int batch, int64_t *ret_claim_us, int64_t *ret_count,
                 struct mr_error *err);

    // A worker. hand_open() on the thread that hand_stop() is called on; hand_run() on its own,
    // until it is stopped or, where its crew says so, nothing is left. hand_run() says in
    // hand->completed how many jobs it completed.
    int (*hand_open)(struct hand *hand, struct mr_error *err);
    int (*hand_run)(struct hand *hand, struct mr_error *err);
    void (*hand_stop)(struct hand *hand);
    void (*hand_close)(struct hand *hand);
};

extern const struct contender contender_millrace;
extern const struct contender contender_textbook;

#endif
