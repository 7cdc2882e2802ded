// SPDX-License-Identifier: PostgreSQL
//
// Single jobs of many clients, in one transaction: while a group is under way the jobs that come
// meanwhile gather for the next, which waits a moment for as many as were answered with the last: a
// commit waits for the disk as long for one job as for a hundred. A client that is alone does not
// wait. When a group is refused its jobs are tried one by one, so that a
// bad one spoils only itself.

#ifndef MILLRACE_HTTP_ENQUEUE_GROUP_H
#define MILLRACE_HTTP_ENQUEUE_GROUP_H

#include <stdbool.h>

struct exchange;
struct enqueue_group;
struct site;

// NULL without memory.
struct enqueue_group *enqueue_group_new(struct site *site);
void enqueue_group_free(struct enqueue_group *group);

// Enqueues the job that is the exchange's body, and replies to it. `alone`: in a transaction of its
// own, at once.
void enqueue_group_add(struct enqueue_group *group, struct exchange *exchange, bool alone);

#endif
