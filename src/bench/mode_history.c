// SPDX-License-Identifier: PostgreSQL
//
// History: what a claim costs where --jobs jobs were finished before, over what it costs in a
// fresh database; empty claims, and claims that bring a batch. The two take turns.

#include "bench/crew.h"
#include "bench/modes.h"
#include "bench/stage.h"

enum {
    CLAIMS = 100,
    WARM_CLAIMS = 10, // plans are made anew for the first ones
    TICK_EVERY = 10,
};

enum side { FRESH, AGED, SIDES };

struct costs {
    struct sample empty[SIDES];
    struct sample full[SIDES];
};

// Finishes all of its jobs, as workers do.
static int grow_old(struct stage *stage, int64_t jobs, struct mr_error *err)
{
    static struct crew crew;
    int code = stage_fill(stage, jobs, err);

    if (code) {
        return code;
    }
    crew_init(&crew, stage->contender, stage->site, stage->bench->spec);
    crew.until_empty = true;
    code = crew_run(&crew, &stage->bench->watch, jobs, err);
    return code ? code : crew_check_done(&crew, jobs, err);
}

// One claim, which has to bring what is expected of it.
static int claim_once(struct stage *stage, int64_t expected, struct sample *costs, bool counts,
                      struct mr_error *err)
{
    int64_t us = 0, count = 0;
    int code =
        stage->contender->claim(&stage->session, (int)stage->bench->spec->batch, &us, &count, err);

    if (code == 0 && count != expected) {
        return mr_error_set(err, MR_EINTERNAL, "%s: a claim brought %lld jobs instead of %lld",
                            stage->contender->name, (long long)count, (long long)expected);
    }
    return code || !counts ? code : sample_add(costs, (double)us, err);
}

static int claims(struct stage stages[SIDES], int64_t expected, struct sample costs[SIDES],
                  struct mr_error *err)
{
    int code = 0;

    for (int i = 0; i < (WARM_CLAIMS + CLAIMS) * SIDES && code == 0; i++) {
        int side = (i & 1) ^ (i / 2 & 1);
        code = claim_once(&stages[side], expected, &costs[side], i >= WARM_CLAIMS * SIDES, err);
        if (code == 0 && i % TICK_EVERY == 0) {
            code = watch_tick(&stages[0].bench->watch, i, (WARM_CLAIMS + CLAIMS) * SIDES, err);
        }
    }
    return code;
}

static int measure(struct stage stages[SIDES], struct costs *costs, struct mr_error *err)
{
    const struct bench_spec *spec = stages[0].bench->spec;
    int64_t jobs = spec->batch * (WARM_CLAIMS + CLAIMS);
    int code;

    if ((code = grow_old(&stages[FRESH], spec->batch, err)) ||
        (code = grow_old(&stages[AGED], spec->jobs, err)) ||
        (code = claims(stages, 0, costs->empty, err)) ||
        (code = stage_fill(&stages[FRESH], jobs, err)) ||
        (code = stage_fill(&stages[AGED], jobs, err))) {
        return code;
    }
    return claims(stages, spec->batch, costs->full, err);
}

static void put_in(struct run *run, const struct bench_spec *spec, struct costs *costs)
{
    double empty[SIDES] = {sample_median(&costs->empty[FRESH]), sample_median(&costs->empty[AGED])};
    double full[SIDES] = {sample_median(&costs->full[FRESH]), sample_median(&costs->full[AGED])};

    run_note(run, "jobs", (double)spec->jobs);
    run_note(run, "batch", (double)spec->batch);
    run_note(run, "claims", CLAIMS);
    run_less(run, "fresh_empty_claim_us", "us", empty[FRESH]);
    run_less(run, "empty_claim_us", "us", empty[AGED]);
    run_less(run, "fresh_claim_us", "us", full[FRESH]);
    run_less(run, "claim_us", "us", full[AGED]);
    run_ratio(run, "empty_claim_us", "fresh", empty[FRESH] > 0 ? empty[AGED] / empty[FRESH] : 0);
    run_ratio(run, "claim_us", "fresh", full[FRESH] > 0 ? full[AGED] / full[FRESH] : 0);
}

int mode_history(struct bench *bench, const struct contender *contender, struct run *run,
                 struct mr_error *err)
{
    struct stage stages[SIDES] = {0};
    struct costs costs = {0};
    int code;

    if ((code = stage_open(&stages[FRESH], bench, contender, err)) == 0 &&
        (code = stage_open(&stages[AGED], bench, contender, err)) == 0 &&
        (code = measure(stages, &costs, err)) == 0) {
        put_in(run, bench->spec, &costs);
    }
    for (int i = 0; i < SIDES; i++) {
        if (stages[i].bench) {
            code = stage_close(&stages[i], code, err);
        }
        sample_done(&costs.empty[i]);
        sample_done(&costs.full[i]);
    }
    return code;
}
