// SPDX-License-Identifier: PostgreSQL
//
// Drain: a backlog is worked off by workers whose handler does nothing. The time is that of the
// workers from their start, connecting included, to the end of the last one.

#include "bench/crew.h"
#include "bench/modes.h"
#include "bench/stage.h"

static void put_in(struct run *run, const struct crew *crew, int64_t jobs, int64_t wal_bytes)
{
    double seconds = (double)(crew->end_us - crew->start_us) / 1e6;

    run_note(run, "jobs", (double)jobs);
    run_note(run, "batch", crew->batch);
    run_note(run, "workers", crew->workers);
    run_note(run, "seconds", seconds);
    run_note(run, "memory_bytes", (double)crew->memory_bytes);
    run_more(run, "rate", "jobs/s", (double)jobs / seconds);
    run_less(run, "wal_bytes", "B/job", (double)wal_bytes / (double)jobs);
}

static int measure(struct stage *stage, struct run *run, struct mr_error *err)
{
    static struct crew crew;
    const struct bench_spec *spec = stage->bench->spec;
    int64_t wal[2];
    int code;

    crew_init(&crew, stage->contender, stage->site, spec);
    crew.until_empty = true;
    if ((code = stage_fill(stage, spec->jobs, err)) || (code = stage_wal(stage, &wal[0], err))) {
        return code;
    }
    stage_rest(stage);
    if ((code = crew_run(&crew, &stage->bench->watch, spec->jobs, err)) ||
        (code = stage_wal(stage, &wal[1], err)) ||
        (code = crew_check_done(&crew, spec->jobs, err))) {
        return code;
    }
    put_in(run, &crew, spec->jobs, wal[1] - wal[0]);
    return 0;
}

int mode_drain(struct bench *bench, const struct contender *contender, struct run *run,
               struct mr_error *err)
{
    struct stage stage;
    int code = stage_open(&stage, bench, contender, err);

    if (code == 0) {
        code = measure(&stage, run, err);
    }
    return stage_close(&stage, code, err);
}
