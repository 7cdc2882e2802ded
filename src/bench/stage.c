// SPDX-License-Identifier: PostgreSQL
//
// What most modes begin with: see stage.h.

#include "bench/stage.h"

#include <malloc.h>

#include "base/clock.h"
#include "bench/script.h"

// Chunks of one call of the library, which may send them in a pipeline.
enum { CALL_CHUNKS = 8 };

int64_t stage_warm_jobs(const struct stage *stage, int64_t jobs)
{
    int64_t most = (int64_t)STAGE_CHUNK_BYTES / stage->bench->spec->payload_bytes;

    return jobs < most ? jobs : most;
}

static size_t chunk_of(const struct bench_spec *spec)
{
    size_t most = STAGE_CHUNK_BYTES / (size_t)spec->payload_bytes;
    size_t chunk = (size_t)(spec->chunk < spec->jobs ? spec->chunk : spec->jobs);

    return chunk < most ? chunk : most;
}

// A checkpoint that falls into a measurement by chance is noise. Not everybody may make one.
static void quiet_down(const struct site *site)
{
    struct mr_error ignored;

    script_run(site->conn, "checkpoint", NULL, NULL, &ignored);
}

int stage_open(struct stage *stage, struct bench *bench, const struct contender *contender,
               struct mr_error *err)
{
    const struct bench_spec *spec = bench->spec;
    int code;

    *stage = (struct stage){.bench = bench, .contender = contender, .chunk = chunk_of(spec)};
    if ((code = place_enter(&bench->place, &stage->site, err)) ||
        (code = contender->prepare(stage->site, spec, err)) ||
        (code = payload_init(&stage->payload, stage->chunk, (size_t)spec->payload_bytes,
                             stage->chunk * CALL_CHUNKS, err))) {
        return code;
    }
    quiet_down(stage->site);
    stage->session.site = stage->site;
    code = contender->session_open(&stage->session, err);
    if (code == 0 && spec->upkeep && contender == &contender_millrace) {
        code = upkeep_start(&stage->upkeep, stage->site, err);
    }
    return code;
}

void stage_rest(struct stage *stage)
{
    stage->contender->session_close(&stage->session);
    stage->session.site = NULL;
    payload_done(&stage->payload);
    malloc_trim(0);
}

int stage_close(struct stage *stage, int code, struct mr_error *err)
{
    struct mr_error later = {0};
    int end = upkeep_stop(&stage->upkeep, &later);

    conn_free(stage->holder);
    if (stage->session.site) {
        stage->contender->session_close(&stage->session);
    }
    payload_done(&stage->payload);
    if (stage->site) {
        int left = place_leave(&stage->bench->place, stage->site, end ? NULL : &later);
        end = end ? end : left;
    }
    if (code == 0 && end) {
        *err = later;
    }
    return code ? code : end;
}

int stage_enqueue(struct stage *stage, int64_t jobs, int64_t *ret_us, struct mr_error *err)
{
    int64_t begun = clock_us();
    int code = 0;

    for (int64_t done = 0; done < jobs && code == 0;) {
        int64_t left = jobs - done;
        size_t most = stage->payload.count;
        size_t n = left < (int64_t)most ? (size_t)left : most;
        code =
            stage->contender->enqueue(&stage->session, stage->payload.args, n, stage->chunk, err);
        done += (int64_t)n;
        if (code == 0) {
            code = watch_tick(&stage->bench->watch, done, jobs, err);
        }
    }
    if (code == 0 && ret_us) {
        *ret_us = clock_us() - begun;
    }
    return code;
}

int stage_fill(struct stage *stage, int64_t jobs, struct mr_error *err)
{
    int code = stage_enqueue(stage, jobs, NULL, err);

    if (code == 0) {
        code = stage->contender->settle(stage->site, err);
    }
    if (code == 0 && stage->bench->spec->hold_snapshot) {
        code = stage_hold(stage, err);
    }
    return code;
}

int stage_hold(struct stage *stage, struct mr_error *err)
{
    int code = 0;

    if (!stage->holder) {
        code = conn_open(buf_peek(&stage->site->dsn), &stage->holder, err);
    }
    if (code == 0 && !conn_in_transaction(stage->holder)) {
        code = script_run(stage->holder, "hold_snapshot", NULL, NULL, err);
    }
    return code;
}

int stage_wal(struct stage *stage, int64_t *ret, struct mr_error *err)
{
    return script_number(stage->site->conn, "wal_position", ret, err);
}
