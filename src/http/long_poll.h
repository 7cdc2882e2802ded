// SPDX-License-Identifier: PostgreSQL
//
// Requests that wait: claims for jobs, and whoever wants to know how a job ends.
//
// 1. Those who wait for the same thing stand in a line. Only the first of a line asks: when the
//    queue is woken, and every LONG_POLL_IDLE_MS in case a wake-up was lost; when it has got
//    something the next one asks at once. So one job costs one claim and an empty one, however
//    many wait.
// 2. Where nobody would be woken (a pooler, a limit of the queue) the first asks every
//    LONG_POLL_MS. Ends of jobs wake nobody: whoever waits for one asks at intervals that grow
//    with the time it has waited, from LONG_POLL_MS to LONG_POLL_IDLE_MS.
// 3. A client that leaves while it waits takes no job. One that leaves while its claim is under
//    way, or before its reply has gone out, has its lease released, and the line is woken.
// 4. When the database cannot be reached all of a line are told, at once.

#ifndef MILLRACE_HTTP_LONG_POLL_H
#define MILLRACE_HTTP_LONG_POLL_H

#define LONG_POLL_MS      100
#define LONG_POLL_IDLE_MS 1000
#define LONG_POLL_WAIT_MS 60000

struct http;
struct long_poll;

// NULL without memory.
struct long_poll *long_poll_new(struct http *http);
void long_poll_free(struct long_poll *long_poll);
// Everybody who waits gets what there is, which is nothing.
void long_poll_stop(struct long_poll *long_poll);

#endif
