// SPDX-License-Identifier: PostgreSQL
//
// The contenders that are driven from C, behind one door: each is a struct peer, and the modes
// of modes.c measure any of them in the same way. Like the rest of the benchmarks this is a
// program for one purpose: whatever fails ends it with a message.

#ifndef MILLRACE_BENCH_PEER_H
#define MILLRACE_BENCH_PEER_H

#include <stdbool.h>

struct peer {
    const char *name;
    // Makes the tables in an empty database.
    void (*setup)(void);
    // A session for one thread. Every other call takes what this returned.
    void *(*open)(void);
    void (*close)(void *session);
    // Adds jobs in one durable step; with `wake` it also wakes who sleeps in wait().
    void (*enqueue)(void *session, int count, bool wake);
    // Claims and completes up to `batch` jobs; the completion is durable when it returns. 0: there
    // were none. With `more` the next claim may already be under way when it returns.
    long (*work)(void *session, int batch, bool more);
    // Sleeps until there may be work, at most timeout_ms. wait_begin() comes first, once.
    void (*wait_begin)(void *session);
    void (*wait)(void *session, int timeout_ms);
    // Closes a batch, where that is a step of its own; NULL where it is not.
    void (*tick)(void *session);
};

extern const struct peer peer_textbook;
extern const struct peer peer_visibility;
extern const struct peer peer_millrace;
extern const struct peer peer_delete_returning;
extern const struct peer peer_pgq;
extern const struct peer peer_beanstalkd;

// Called by work() when a claim has arrived, before it is completed: here a handler would start.
void peer_note_claim(long jobs);

// What a run was asked for.
struct request {
    const struct peer *peer;
    long jobs;     // how many, all in all
    int chunk;     // jobs an enqueue
    int batch;     // jobs a claim
    int workers;   // threads that work, each with a session
    int producers; // threads that enqueue
    int slices;    // parts of a drain whose times are told apart
    int seconds;   // steady state
    int backlog;   // steady state: producers pause when so many wait
    int tick_jobs; // enqueue: a tick after so many jobs; 0 for one at the end
    int tick_ms;   // steady state and latency: time between ticks
};

// The modes. Each prints one JSON object.
void mode_setup(const struct request *request);
void mode_enqueue(const struct request *request);
void mode_drain(const struct request *request);
void mode_steady(const struct request *request);
void mode_latency(const struct request *request);
// A bare LISTEN and NOTIFY, for comparison with any latency.
void mode_notify(const struct request *request);

#endif
