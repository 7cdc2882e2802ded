// SPDX-License-Identifier: PostgreSQL
//
// A lease in a worker's hands: its jobs, which of them still run, and the outcomes that the
// database does not know yet. Talks to nobody.

#ifndef MILLRACE_CLIENT_LEASE_H
#define MILLRACE_CLIENT_LEASE_H

#include <millrace/millrace.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/outcome.h"
#include "client/worker.h"

// An outcome that is to be written.
struct entry {
    int64_t id;
    struct outcome outcome;
    bool replaced; // what the handler said was refused, and this says so
    struct entry *next;
};

struct entry_list {
    struct entry *first, **end;
    int count;
};

void entry_list_init(struct entry_list *list);
void entry_list_add(struct entry_list *list, struct entry *entry);
// Moves everything behind what `list` has.
void entry_list_append(struct entry_list *list, struct entry_list *from);
struct entry *entry_list_pop(struct entry_list *list); // NULL when empty
void entry_list_done(struct entry_list *list);
// All completed, with nothing to say.
bool entry_list_plain(const struct entry_list *list);
void entry_free(struct entry *entry);

// What a transport knows of the jobs of a lease beside them; NULL: nothing.
struct delivery;

struct lease {
    mr_batch *batch;
    struct delivery *delivery;
    const char *text;       // borrowed from the batch
    struct held_job *helds; // one for each job
    int count;
    int open;     // jobs not settled yet
    int dropped;  // of these: nobody waits for their outcome
    int shipping; // outcomes whose parts are being written to a blob store
    int64_t length_ms;
    int64_t beat_at_ms; // next heartbeat
    bool beating;       // one is under way
    bool lost;          // void: nothing is written any more
    // Outcomes: told by the handler; in a request that has no answer; in one whose connection
    // broke, so that they may be written already.
    struct entry_list ready, sent, unclear;
    int64_t ready_since_ms;
    bool writing;           // a request is under way
    bool alone;             // not together with other leases
    int one_by_one;         // so many entries go in requests of their own: one of them was refused
    int64_t write_after_ms; // after a failure
    int64_t write_pause_ms;
    struct lease *next, *prev;
};

// Takes over batch and delivery, also on failure (NULL: out of memory).
struct lease *lease_new(mr_batch *batch, int64_t length_ms, int64_t now_ms,
                        struct delivery *delivery);
void lease_free(struct lease *lease);

// Nothing runs and nothing is to be written.
bool lease_over(const struct lease *lease);

#endif
