// SPDX-License-Identifier: PostgreSQL
//
// Work that waits for somebody, on a thread of its own, for an owner who may not wait: one errand
// after the other, in the order in which they were added. The thread begins with the first one.

#ifndef MILLRACE_CLIENT_ERRAND_H
#define MILLRACE_CLIENT_ERRAND_H

#include <stdbool.h>

// The head of what somebody wants done. `run` is called on the thread, then `done` on that of the
// owner, or `drop` where the owner ends before; either frees it.
struct errand {
    struct errand *next;
    void (*run)(struct errand *errand);
    void (*done)(struct errand *errand);
    void (*drop)(struct errand *errand);
};

struct errands;

// `wake` is called on the thread when something is done. NULL: out of memory.
struct errands *errands_new(void (*wake)(void *arg), void *arg);

// Waits for the errand that runs, if any. NULL is fine.
void errands_free(struct errands *errands);

// Takes the errand over. False: there can be no thread; it is the caller's still.
bool errands_add(struct errands *errands, struct errand *errand);

// Calls `done` for all that ran since, on the owner's thread.
void errands_collect(struct errands *errands);

#endif
