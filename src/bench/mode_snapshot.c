// SPDX-License-Identifier: PostgreSQL
//
// A held snapshot: another session keeps vacuum from removing anything while a backlog is worked
// off. What counts is how the last fifth compares with the first.

#include "bench/crew.h"
#include "bench/modes.h"
#include "bench/stage.h"

enum { JOBS_LEAST = 100 };

static double rate_between(const struct crew *crew, int first, int last)
{
    double jobs = (double)(crew->marks[last].count - crew->marks[first].count);
    double seconds = crew_seconds_between(crew, first, last);

    return jobs / (seconds > 0 ? seconds : 1e-6);
}

static void put_in(struct run *run, const struct crew *crew, int64_t jobs)
{
    double seconds = (double)(crew->end_us - crew->start_us) / 1e6;
    double first = rate_between(crew, 0, 1);
    double last = rate_between(crew, 2, 3);

    run_note(run, "jobs", (double)jobs);
    run_note(run, "batch", crew->batch);
    run_note(run, "workers", crew->workers);
    run_note(run, "seconds", seconds);
    run_more(run, "rate", "jobs/s", (double)jobs / seconds);
    run_more(run, "first_fifth_rate", "jobs/s", first);
    run_more(run, "last_fifth_rate", "jobs/s", last);
    run_ratio(run, "last_fifth_rate", "first fifth", last / first);
}

static int measure(struct stage *stage, struct run *run, struct mr_error *err)
{
    static struct crew crew;
    const struct bench_spec *spec = stage->bench->spec;
    const int64_t marks[] = {1, spec->jobs / 5, spec->jobs / 5 * 4, spec->jobs};
    int code;

    crew_init(&crew, stage->contender, stage->site, spec);
    crew.until_empty = true;
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        crew_mark_at(&crew, marks[i]);
    }
    if ((code = stage_fill(stage, spec->jobs, err)) || (code = stage_hold(stage, err)) ||
        (code = crew_run(&crew, &stage->bench->watch, spec->jobs, err)) ||
        (code = crew_check_done(&crew, spec->jobs, err))) {
        return code;
    }
    put_in(run, &crew, spec->jobs);
    return 0;
}

int mode_snapshot(struct bench *bench, const struct contender *contender, struct run *run,
                  struct mr_error *err)
{
    struct stage stage;

    if (bench->spec->jobs < JOBS_LEAST) {
        return mr_error_set(err, MR_EUSAGE, "bench: snapshot: --jobs must be at least %d",
                            JOBS_LEAST);
    }
    int code = stage_open(&stage, bench, contender, err);
    if (code == 0) {
        code = measure(&stage, run, err);
    }
    return stage_close(&stage, code, err);
}
