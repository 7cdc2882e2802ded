// SPDX-License-Identifier: PostgreSQL
//
// Depth: the drain rate where 10,000 jobs wait over the rate where --depth wait, each in a
// database of its own. Rounds of the two take turns; what a round took is put in again, so that
// every round finds the same depth.

#include "base/clock.h"
#include "bench/crew.h"
#include "bench/modes.h"
#include "bench/stage.h"

enum {
    ROUNDS = 5,
    SHALLOW_LEAST = 10000,
    SHALLOW_BATCHES = 10, // with large batches it is not as shallow
    WARM_BATCHES = 2,     // of a round, not timed
    DEEP_TIMES = 2,       // at least so much deeper
    TICK_US = 1000,
};

static int64_t shallow_of(const struct bench_spec *spec)
{
    int64_t batches = SHALLOW_BATCHES * spec->batch * spec->workers;

    return batches > SHALLOW_LEAST ? batches : SHALLOW_LEAST;
}

// Starts workers, and stops them when the second mark is reached.
static int run_crew(struct crew *crew, struct watch *watch, struct mr_error *err)
{
    struct mr_error later = {0};
    int code = crew_start(crew, err);

    while (code == 0 && !atomic_load(&crew->marks[1].us)) {
        code = crew_tick(crew, watch, crew->marks[1].count, false, err);
        watch_pause_us(TICK_US);
    }
    int end = crew_finish(crew, &later);
    if (code == 0 && end) {
        *err = later;
    }
    return code ? code : end;
}

// Times half of a shallow backlog. Adds jobs a second to the sample.
static int one_round(struct stage *stage, struct sample *rates, struct mr_error *err)
{
    static struct crew crew;
    const struct bench_spec *spec = stage->bench->spec;
    int64_t warm = WARM_BATCHES * spec->batch * spec->workers;
    int64_t timed = shallow_of(spec) / 2;
    int code;

    crew_init(&crew, stage->contender, stage->site, spec);
    crew_mark_at(&crew, warm);
    crew_mark_at(&crew, warm + timed);
    if ((code = run_crew(&crew, &stage->bench->watch, err)) ||
        (code = stage_enqueue(stage, crew.completed, NULL, err))) {
        return code;
    }
    double seconds = crew_seconds_between(&crew, 0, 1);
    return sample_add(rates, (double)timed / (seconds > 0 ? seconds : 1e-6), err);
}

static int all_rounds(struct stage stages[2], struct sample rates[2], struct mr_error *err)
{
    int code = 0;

    for (int i = 0; i < ROUNDS * 2 && code == 0; i++) {
        int which = (i & 1) ^ (i / 2 & 1);
        code = one_round(&stages[which], &rates[which], err);
    }
    return code;
}

static void put_in(const struct bench_spec *spec, struct sample rates[2], struct run *run)
{
    double shallow = sample_median(&rates[0]);
    double deep = sample_median(&rates[1]);

    run_note(run, "shallow", (double)shallow_of(spec));
    run_note(run, "depth", (double)spec->depth);
    run_note(run, "batch", (double)spec->batch);
    run_note(run, "workers", (double)spec->workers);
    run_note(run, "rounds", ROUNDS);
    run_more(run, "shallow_rate", "jobs/s", shallow);
    run_more(run, "deep_rate", "jobs/s", deep);
    run_ratio(run, "deep_rate", "shallow", deep / shallow);
}

static int measure(struct stage stages[2], struct run *run, struct mr_error *err)
{
    const struct bench_spec *spec = stages[0].bench->spec;
    struct sample rates[2] = {0};
    int code;

    if ((code = stage_fill(&stages[0], shallow_of(spec), err)) == 0 &&
        (code = stage_fill(&stages[1], spec->depth, err)) == 0 &&
        (code = all_rounds(stages, rates, err)) == 0) {
        put_in(spec, rates, run);
    }
    sample_done(&rates[0]);
    sample_done(&rates[1]);
    return code;
}

static int check_depth(const struct bench_spec *spec, struct mr_error *err)
{
    int64_t least = DEEP_TIMES * shallow_of(spec);

    if (spec->depth >= least) {
        return 0;
    }
    mr_error_set(err, MR_EUSAGE, "bench: depth: --depth must be at least %lld here",
                 (long long)least);
    mr_error_hint(err, "It is compared with %lld jobs, ten batches of each worker or more.",
                  (long long)shallow_of(spec));
    return MR_EUSAGE;
}

int mode_depth(struct bench *bench, const struct contender *contender, struct run *run,
               struct mr_error *err)
{
    struct stage stages[2] = {0};
    int code;

    if ((code = check_depth(bench->spec, err)) == 0 &&
        (code = stage_open(&stages[0], bench, contender, err)) == 0 &&
        (code = stage_open(&stages[1], bench, contender, err)) == 0) {
        code = measure(stages, run, err);
    }
    for (int i = 0; i < 2; i++) {
        if (stages[i].bench) {
            code = stage_close(&stages[i], code, err);
        }
    }
    return code;
}
