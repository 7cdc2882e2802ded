// SPDX-License-Identifier: PostgreSQL
//
// Modes, contenders and repeats: see bench.h.

#include "bench/bench.h"

#include <stdio.h>

#include "base/str.h"
#include "bench/modes.h"
#include "bench/script.h"

const struct bench_mode bench_modes[] = {
    {"enqueue", mode_enqueue, true, NULL, "rate"},
    {"single", mode_single, true, NULL, "rate"},
    {"drain", mode_drain, true, NULL, "rate"},
    {"steady", mode_steady, true, NULL, "rate"},
    // the textbook has no wake-up to measure
    {"latency", mode_latency, false, NULL, "p50_ms"},
    {"depth", mode_depth, true, "it compares two databases", "deep_rate"},
    {"snapshot", mode_snapshot, true, NULL, "last_fifth_rate"},
    {"wal", mode_wal, true, "others write WAL and tables there", "wal_bytes"},
    {"history", mode_history, true, "it compares two databases", "claim_us"},
    {0},
};

const struct bench_mode *bench_mode_find(const char *name)
{
    for (const struct bench_mode *mode = bench_modes; mode->name; mode++) {
        if (str_equal(mode->name, name)) {
            return mode;
        }
    }
    return NULL;
}

static int read_facts(struct bench *bench, struct mr_error *err)
{
    AUTO_RESULT *version = NULL;
    int code = script_query(bench->place.conn, "server_version", 0, NULL, &version, err);

    if (code == 0) {
        snprintf(bench->server, sizeof(bench->server), "%s", PQgetvalue(version, 0, 0));
        code = script_query(bench->place.conn, "settings", 0, NULL, &bench->settings, err);
    }
    return code;
}

static int measure_once(struct bench *bench, const struct bench_mode *mode,
                        const struct contender *contender, int repeat, struct mr_error *err)
{
    struct run *run = NULL;
    int code = results_add(&bench->results, mode->name, contender->name, repeat, &run, err);

    if (code) {
        return code;
    }
    watch_begin(&bench->watch, "%s, %s, %d of %d", mode->name, contender->name, repeat,
                (int)bench->spec->repeat);
    return mode->measure(bench, contender, run, err);
}

// Whoever is second finds the machine as the first has left it, so they take turns.
static int measure_both(struct bench *bench, const struct bench_mode *mode, int repeat,
                        struct mr_error *err)
{
    const struct contender *turns[] = {&contender_millrace, &contender_textbook};
    bool both = bench->spec->textbook && mode->textbook;
    int code = 0;

    for (int i = 0; i < 2 && code == 0; i++) {
        const struct contender *contender = turns[(i + repeat + 1) % 2];
        if (both || contender == &contender_millrace) {
            code = measure_once(bench, mode, contender, repeat, err);
        }
    }
    return code;
}

static int measure_all(struct bench *bench, const struct bench_mode *const *modes,
                       struct mr_error *err)
{
    int code = 0;

    for (; *modes && code == 0; modes++) {
        for (int repeat = 1; repeat <= bench->spec->repeat && code == 0; repeat++) {
            code = measure_both(bench, *modes, repeat, err);
        }
    }
    return code;
}

int bench_run(struct bench *bench, const struct bench_mode *const *modes, struct mr_error *err)
{
    struct mr_error later = {0};

    results_init(&bench->results);
    watch_begin(&bench->watch, "preparing");
    int code = place_open(&bench->place, bench->spec->dsn, bench->spec->here, err);
    if (code) {
        return code;
    }
    code = read_facts(bench, err);
    if (code == 0) {
        code = measure_all(bench, modes, err);
    }
    if (code == MR_EFULLDISK) {
        mr_error_hint(err, "What was made is dropped again; measure with fewer --jobs, a smaller "
                           "--depth or --payload.");
    }
    int end = place_close(&bench->place, &later);
    if (code == 0 && end) {
        *err = later;
    } else if (end) {
        mr_error_detail(err, "%s", later.message);
        mr_error_hint(err, "%s", later.hint);
    }
    return code ? code : end;
}

void bench_done(struct bench *bench)
{
    PQclear(bench->settings);
    bench->settings = NULL;
    results_done(&bench->results);
}
