// SPDX-License-Identifier: PostgreSQL
//
// Millrace and the textbook queue behind one door, so that both are measured by the same
// driver: prepared statements on one pipelined session; a claim in its own transaction
// without waiting for the disk (a lost claim is a redelivery), a completion that waits.

#ifndef MILLRACE_BENCH_RIVAL_H
#define MILLRACE_BENCH_RIVAL_H

#include <libpq-fe.h>

enum {
    BATCH = 100,
};

struct rival {
    const char *name;
    void (*prepare)(PGconn *conn);                  // once a session
    const char *claim;                              // prepared: (queue, how many)
    const char *complete;                           // prepared: (what complete_arg made of a claim)
    char *(*complete_arg)(const PGresult *claimed); // heap
};

extern const struct rival rival_millrace;
extern const struct rival rival_textbook;

struct drained {
    long jobs;
    double seconds;
    double claim_seconds; // drain_apart() only: time in claims alone
    double cpu_us;        // of the session's server process, a job; 0 where unknown
};

// Claims and completes `jobs` jobs, BATCH at a time; ends the program when there are fewer.
// The completion of one batch and the claim of the next share a round trip.
struct drained drain(PGconn *conn, const struct rival *rival, const char *queue, long jobs);
// The same with another size of batches.
struct drained drain_batch(PGconn *conn, const struct rival *rival, const char *queue, long jobs,
                           int batch);

// The same in two round trips a batch, with the claims' time apart. `between`, where not null,
// is run on a session of its own before each claim and is in no time but `seconds`.
struct between {
    PGconn *conn;
    const char *statement;
};
struct drained drain_apart(PGconn *conn, const struct rival *rival, const char *queue, long jobs,
                           const struct between *between);

#endif
