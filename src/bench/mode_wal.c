// SPDX-License-Identifier: PostgreSQL
//
// Bytes of WAL that a job costs in its life, and what it leaves in tables and indexes. WAL is the
// whole server's: what others write meanwhile is in the figures.

#include <stdlib.h>

#include "bench/crew.h"
#include "bench/modes.h"
#include "bench/script.h"
#include "bench/stage.h"

// Before the measurement: makes the queue, and touches each page of the catalogue for the first
// time since the checkpoint.
enum { WARM_JOBS = 1000 };

struct sizes {
    int64_t table_bytes, index_bytes;
};

static int read_sizes(struct stage *stage, struct sizes *ret, struct mr_error *err)
{
    const char *values[] = {stage->contender->schema};
    AUTO_RESULT *rows = NULL;
    int code = script_query(stage->site->conn, "sizes", 1, values, &rows, err);

    if (code == 0) {
        ret->table_bytes = strtoll(PQgetvalue(rows, 0, 0), NULL, 10);
        ret->index_bytes = strtoll(PQgetvalue(rows, 0, 1), NULL, 10);
    }
    return code;
}

static int drain(struct stage *stage, int64_t jobs, struct mr_error *err)
{
    static struct crew crew;

    crew_init(&crew, stage->contender, stage->site, stage->bench->spec);
    crew.until_empty = true;
    int code = crew_run(&crew, &stage->bench->watch, jobs, err);
    return code ? code : crew_check_done(&crew, jobs, err);
}

static void put_in(struct run *run, const struct bench_spec *spec, const int64_t wal[3],
                   const struct sizes sizes[2])
{
    double jobs = (double)spec->jobs;

    run_note(run, "jobs", jobs);
    run_note(run, "batch", (double)spec->batch);
    run_note(run, "workers", (double)spec->workers);
    run_less(run, "wal_enqueue_bytes", "B/job", (double)(wal[1] - wal[0]) / jobs);
    run_less(run, "wal_drain_bytes", "B/job", (double)(wal[2] - wal[1]) / jobs);
    run_less(run, "wal_bytes", "B/job", (double)(wal[2] - wal[0]) / jobs);
    run_less(run, "table_bytes", "B/job",
             (double)(sizes[1].table_bytes - sizes[0].table_bytes) / jobs);
    run_less(run, "index_bytes", "B/job",
             (double)(sizes[1].index_bytes - sizes[0].index_bytes) / jobs);
}

static int measure(struct stage *stage, struct run *run, struct mr_error *err)
{
    const struct bench_spec *spec = stage->bench->spec;
    int64_t warm = stage_warm_jobs(stage, WARM_JOBS);
    struct sizes sizes[2];
    int64_t wal[3];
    int code;

    if ((code = stage_fill(stage, warm, err)) || (code = drain(stage, warm, err)) ||
        (code = read_sizes(stage, &sizes[0], err)) || (code = stage_wal(stage, &wal[0], err)) ||
        (code = stage_enqueue(stage, spec->jobs, NULL, err)) ||
        (code = stage_wal(stage, &wal[1], err)) || (code = drain(stage, spec->jobs, err)) ||
        (code = stage_wal(stage, &wal[2], err)) || (code = read_sizes(stage, &sizes[1], err))) {
        return code;
    }
    put_in(run, spec, wal, sizes);
    return 0;
}

int mode_wal(struct bench *bench, const struct contender *contender, struct run *run,
             struct mr_error *err)
{
    struct stage stage;
    int code = stage_open(&stage, bench, contender, err);

    if (code == 0) {
        code = measure(&stage, run, err);
    }
    return stage_close(&stage, code, err);
}
