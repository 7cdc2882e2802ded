// SPDX-License-Identifier: PostgreSQL
//
// Workers of one contender: see crew.h.

#include "bench/crew.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/script.h"

enum {
    TICK_US = 20000,
    PING_AFTER_US = 2000000, // of silence
};

void crew_init(struct crew *crew, const struct contender *contender, struct site *site,
               const struct bench_spec *spec)
{
    memset(crew, 0, sizeof(*crew));
    crew->contender = contender;
    crew->site = site;
    crew->workers = (int)spec->workers;
    crew->batch = (int)spec->batch;
    crew->concurrency = (int)spec->concurrency;
}

void crew_mark_at(struct crew *crew, int64_t count)
{
    crew->marks[crew->mark_count++].count = count;
}

void crew_note(struct crew *crew, const char *args)
{
    int64_t count = atomic_fetch_add(&crew->started, 1) + 1;

    for (int i = 0; i < crew->mark_count; i++) {
        if (crew->marks[i].count == count) {
            atomic_store(&crew->marks[i].us, clock_us());
        }
    }
    if (crew->on_job) {
        crew->on_job(crew->arg, args);
    }
}

double crew_seconds_between(const struct crew *crew, int first, int last)
{
    return (double)(atomic_load(&crew->marks[last].us) - atomic_load(&crew->marks[first].us)) / 1e6;
}

static void *run_hand(void *arg)
{
    struct hand *hand = arg;

    hand->code = hand->crew->contender->hand_run(hand, &hand->err);
    hand->end_us = clock_us();
    atomic_store(&hand->done, true);
    return NULL;
}

static int start_hand(struct crew *crew, struct hand *hand, struct mr_error *err)
{
    int code = crew->contender->hand_open(hand, err);

    if (code) {
        return code;
    }
    if (pthread_create(&hand->thread, NULL, run_hand, hand)) {
        return mr_error_set(err, MR_ENOMEM, "cannot start a thread");
    }
    hand->running = true;
    return 0;
}

int crew_start(struct crew *crew, struct mr_error *err)
{
    int code = 0;

    crew->start_us = clock_us();
    crew->seen_us = crew->start_us;
    for (int i = 0; i < crew->workers && code == 0; i++) {
        crew->hands[i].crew = crew;
        code = start_hand(crew, &crew->hands[i], err);
    }
    return code;
}

bool crew_is_done(struct crew *crew)
{
    for (int i = 0; i < crew->workers; i++) {
        if (!atomic_load(&crew->hands[i].done)) {
            return false;
        }
    }
    return true;
}

static int failed_hand(struct crew *crew, struct mr_error *err)
{
    for (int i = 0; i < crew->workers; i++) {
        struct hand *hand = &crew->hands[i];
        if (atomic_load(&hand->done) && hand->code) {
            *err = hand->err;
            return hand->code;
        }
    }
    return 0;
}

// Workers wait for a server that is gone; a measurement need not.
static int check_silence(struct crew *crew, bool idle, struct mr_error *err)
{
    int64_t now = clock_us();
    int64_t started = atomic_load(&crew->started);
    int64_t one = 0;

    if (started != crew->seen) {
        crew->seen = started;
        crew->seen_us = now;
    }
    if (now - crew->seen_us < PING_AFTER_US) {
        return 0;
    }
    if (!idle && now - crew->seen_us > (int64_t)CREW_STALL_S * 1000000) {
        return mr_error_set(err, MR_ETIMEOUT, "%s: no job was started for %d seconds",
                            crew->contender->name, CREW_STALL_S);
    }
    return script_number(crew->site->conn, "ping", &one, err);
}

// Resident memory of this process; 0 where the kernel does not tell.
static int64_t memory_bytes(void)
{
    long long whole = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file) {
        if (fscanf(file, "%lld %lld", &whole, &resident) != 2) {
            resident = 0;
        }
        fclose(file);
    }
    return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

static void note_memory(struct crew *crew)
{
    int64_t bytes = memory_bytes();

    crew->memory_bytes = bytes > crew->memory_bytes ? bytes : crew->memory_bytes;
}

int crew_tick(struct crew *crew, struct watch *watch, int64_t whole, bool idle,
              struct mr_error *err)
{
    int code = watch_tick(watch, atomic_load(&crew->started), whole, err);

    note_memory(crew);
    if (code == 0) {
        code = failed_hand(crew, err);
    }
    return code ? code : check_silence(crew, idle, err);
}

static void end_hand(struct crew *crew, struct hand *hand)
{
    if (hand->running) {
        pthread_join(hand->thread, NULL);
        hand->running = false;
        crew->completed += hand->completed;
        crew->end_us = hand->end_us > crew->end_us ? hand->end_us : crew->end_us;
    }
    crew->contender->hand_close(hand);
}

int crew_finish(struct crew *crew, struct mr_error *err)
{
    int code = 0;

    atomic_store(&crew->stop, true);
    for (int i = 0; i < crew->workers; i++) {
        if (crew->hands[i].running) {
            crew->contender->hand_stop(&crew->hands[i]);
        }
    }
    for (int i = 0; i < crew->workers; i++) {
        struct hand *hand = &crew->hands[i];
        end_hand(crew, hand);
        if (code == 0 && hand->code) {
            code = hand->code;
            *err = hand->err;
        }
    }
    return code;
}

// Which error counts: what made it end, not what ending led to.
int crew_run(struct crew *crew, struct watch *watch, int64_t whole, struct mr_error *err)
{
    struct mr_error later = {0};
    int code = crew_start(crew, err);

    while (code == 0 && !crew_is_done(crew)) {
        code = crew_tick(crew, watch, whole, false, err);
        watch_pause_us(TICK_US);
    }
    int end = crew_finish(crew, &later);
    if (code == 0 && end) {
        *err = later;
    }
    return code ? code : end;
}

int crew_check_done(const struct crew *crew, int64_t jobs, struct mr_error *err)
{
    if (crew->completed == jobs) {
        return 0;
    }
    return mr_error_set(err, MR_EINTERNAL, "%s completed %lld of %lld jobs", crew->contender->name,
                        (long long)crew->completed, (long long)jobs);
}
