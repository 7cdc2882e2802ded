// SPDX-License-Identifier: PostgreSQL
//
// The items of the cost list, one function each. `small` scales the counts down for a smoke
// test: then times mean nothing, and only what has the kind CHECK_STRUCTURE is judged.

#ifndef MILLRACE_BENCH_ITEMS_H
#define MILLRACE_BENCH_ITEMS_H

#include <stdbool.h>

void item_wal(bool small);
void item_history(bool small);
void item_depth(bool small);
void item_snapshot(bool small);
void item_empty(bool small);
void item_depthcall(bool small);
void item_disk(bool small);
void item_enqueue_wait(bool small);
void item_plans(bool small);
void item_worker(bool small);
void item_pickup(bool small);
void item_idle(bool small);
void item_features(bool small);
void item_fair(bool small);
void item_looking(bool small);
void item_capture(bool small);

// The database with ten million finished jobs that `empty` and `plans` share; made by
// whichever comes first. Its queue is called "big".
#define BIG_DATABASE "bench_big"
void big_make(bool small);
void big_drop(void);

#endif
