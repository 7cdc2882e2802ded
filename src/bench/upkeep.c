// SPDX-License-Identifier: PostgreSQL
//
// Upkeep beside a measurement: see upkeep.h.

#include "bench/upkeep.h"

#include "base/clock.h"
#include "bench/watch.h"

enum { ROUND_MS = 1000, PAUSE_US = 20000 };

static int keep_up(struct upkeep *upkeep, struct mr_error *err)
{
    AUTO_CONN *conn = NULL;
    int64_t next_ms = clock_ms() + ROUND_MS;
    int code = conn_open(buf_peek(&upkeep->site->dsn), &conn, err);

    while (code == 0 && !atomic_load(&upkeep->stop)) {
        if (clock_ms() < next_ms) {
            watch_pause_us(PAUSE_US);
            continue;
        }
        AUTO_RESULT *rows = NULL;
        code = conn_query(conn, "select count(*) from millrace.maintain()", &rows, err);
        next_ms = clock_ms() + ROUND_MS;
        upkeep->rounds++;
    }
    return code;
}

static void *run(void *arg)
{
    struct upkeep *upkeep = arg;

    upkeep->code = keep_up(upkeep, &upkeep->err);
    return NULL;
}

int upkeep_start(struct upkeep *upkeep, const struct site *site, struct mr_error *err)
{
    upkeep->site = site;
    if (pthread_create(&upkeep->thread, NULL, run, upkeep)) {
        return mr_error_set(err, MR_ENOMEM, "cannot start a thread");
    }
    upkeep->running = true;
    return 0;
}

int upkeep_stop(struct upkeep *upkeep, struct mr_error *err)
{
    if (!upkeep->running) {
        return 0;
    }
    atomic_store(&upkeep->stop, true);
    pthread_join(upkeep->thread, NULL);
    upkeep->running = false;
    if (upkeep->code) {
        *err = upkeep->err;
        mr_error_prefix(err, "upkeep");
    }
    return upkeep->code;
}
