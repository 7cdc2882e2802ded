// SPDX-License-Identifier: PostgreSQL
//
// A circuit breaker: after so many failures in a row nothing is tried for a while, then one
// probe decides. Time comes from the caller.
//
//   closed --failures in a row--> open --open_ms--> half open --probe good--> closed
//                                  ^                    |
//                                  +----probe failed----+

#ifndef MILLRACE_BASE_BREAKER_H
#define MILLRACE_BASE_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

struct breaker_options {
    int failures; // 0: never opens
    int64_t open_ms;
    // A probe that failed makes the next wait twice as long, up to this; 0: always open_ms.
    int64_t open_max_ms;
    double jitter;          // of a wait, on top of it; 0: none
    double (*random)(void); // 0 to 1, for jitter; NULL: none
};

enum breaker_status {
    BREAKER_CLOSED,
    BREAKER_OPEN,
    BREAKER_HALF_OPEN,
};

struct breaker {
    struct breaker_options options;
    enum breaker_status status;
    int failures; // in a row
    int64_t opened_at_ms;
    int64_t wait_ms;    // without jitter: how long it is open this time
    int64_t open_at_ms; // when the next probe may start
    bool probing;       // half open: the one probe is under way
};

void breaker_init(struct breaker *breaker, struct breaker_options options);

// How many jobs may start now: `room`, 1 for a probe, or 0. Moves from open to half open when
// the time has come.
int breaker_allows(struct breaker *breaker, int room, int64_t now_ms);
// When to ask again; 0 when only an outcome can change the answer.
int64_t breaker_retry_at_ms(const struct breaker *breaker);
// Jobs were started.
void breaker_started(struct breaker *breaker, int count);
// A job ended. Return true when that opened or closed the breaker.
bool breaker_good(struct breaker *breaker);
bool breaker_failed(struct breaker *breaker, int64_t now_ms);
// A job ended in a way that says nothing (released, dropped).
void breaker_neutral(struct breaker *breaker);

#endif
