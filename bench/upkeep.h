// SPDX-License-Identifier: PostgreSQL
//
// Things that go on in the background of a measurement, each in a thread with a session of
// its own.

#ifndef MILLRACE_BENCH_UPKEEP_H
#define MILLRACE_BENCH_UPKEEP_H

// Calls maintain() again and again, with a pause between. One at a time.
struct upkeep_done {
    long rounds;
    long rotations;
    long retired;
    long failures;          // duties that warned
    double largest_segment; // bytes
    double slowest_round_s;
};
void upkeep_start(const char *database, long pause_ms);
struct upkeep_done upkeep_stop(void);

// Runs one statement (a CALL) in a thread of its own; job_wait() returns when it is done.
struct job_thread;
struct job_thread *job_start(const char *database, const char *statement);
void job_wait(struct job_thread *job);

#endif
