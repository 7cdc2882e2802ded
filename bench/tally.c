// SPDX-License-Identifier: PostgreSQL
//
// The handler of bench/scaling_part.py, a plug-in: counts jobs and what they waited in a file that
// the script has made and reads, so that nobody has to ask the database how far it is.
//
// MR_TALLY is the file. MR_TALLY_SLEEP_US, if it is set, is what a job takes.

#include <fcntl.h>
#include <millrace/millrace.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// In the order in which the script unpacks it; behind it what each job waited, in microseconds.
struct tally {
    atomic_llong jobs;
    atomic_llong bytes; // of state and blob
    atomic_llong first_us, last_us;
    _Atomic int wait_us[];
};

static struct tally *tally;
static long long room;
static useconds_t sleep_us;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_tally(void)
{
    const char *path = getenv("MR_TALLY"), *text = getenv("MR_TALLY_SLEEP_US");
    int file = path ? open(path, O_RDWR) : -1;
    struct stat facts;

    sleep_us = text ? (useconds_t)atol(text) : 0;
    if (file < 0 || fstat(file, &facts) < 0 || facts.st_size < (off_t)sizeof *tally) {
        fprintf(stderr, "tally: MR_TALLY names no file that was made for it\n");
        abort();
    }
    void *map = mmap(NULL, (size_t)facts.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (map == MAP_FAILED)
        abort();
    tally = map;
    room = (facts.st_size - (off_t)sizeof *tally) / (off_t)sizeof tally->wait_us[0];
}

static long long wall_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int millrace_handler(const mr_claimed_job *job, mr_outcome *outcome, void *arg);

int millrace_handler(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    long long now, number, none = 0;

    (void)outcome;
    (void)arg;
    pthread_once(&once, open_tally);
    now = wall_us();
    atomic_compare_exchange_strong(&tally->first_us, &none, now);
    if (sleep_us > 0)
        usleep(sleep_us);
    number = atomic_fetch_add(&tally->jobs, 1);
    if (number < room)
        atomic_store(&tally->wait_us[number], (int)(now - job->created_at_us));
    atomic_fetch_add(&tally->bytes, (long long)(job->state_size + job->blob_size));
    atomic_store(&tally->last_us, wall_us());
    return 0;
}
