// SPDX-License-Identifier: PostgreSQL
//
// Bulk enqueue: jobs a second, and WAL bytes a job, with the library's bulk call.

#include "bench/modes.h"
#include "bench/stage.h"

static int measure(struct stage *stage, struct run *run, struct mr_error *err)
{
    const struct bench_spec *spec = stage->bench->spec;
    int64_t wal[2], us = 0;
    int code;

    if ((spec->hold_snapshot && (code = stage_hold(stage, err))) ||
        (code = stage_wal(stage, &wal[0], err)) ||
        (code = stage_enqueue(stage, spec->jobs, &us, err)) ||
        (code = stage_wal(stage, &wal[1], err))) {
        return code;
    }
    double seconds = (double)us / 1e6;
    run_note(run, "jobs", (double)spec->jobs);
    run_note(run, "chunk", (double)stage->chunk);
    run_note(run, "seconds", seconds);
    run_more(run, "rate", "jobs/s", (double)spec->jobs / seconds);
    run_less(run, "wal_bytes", "B/job", (double)(wal[1] - wal[0]) / (double)spec->jobs);
    return 0;
}

int mode_enqueue(struct bench *bench, const struct contender *contender, struct run *run,
                 struct mr_error *err)
{
    struct stage stage;
    int code = stage_open(&stage, bench, contender, err);

    if (code == 0) {
        code = measure(&stage, run, err);
    }
    return stage_close(&stage, code, err);
}
