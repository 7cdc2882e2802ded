// SPDX-License-Identifier: PostgreSQL
//
// Upkeep of every database: see maintains.h.

#include "daemon/maintains.h"

#include <stdlib.h>

#include "client/conn.h"
#include "client/dsn_list.h"

struct maintains {
    struct maintain *all[DSN_LIST_MAX];
    int count;
    int running;
    void (*ended)(void *arg);
    void *ended_arg;
};

static void on_ended(void *arg)
{
    struct maintains *maintains = arg;

    if (--maintains->running == 0) {
        void (*ended)(void *arg) = maintains->ended;
        void *ended_arg = maintains->ended_arg;
        free(maintains);
        ended(ended_arg);
    }
}

void maintains_stop(struct maintains *maintains, void (*ended)(void *arg), void *arg)
{
    int count = maintains->count; // the last one to end frees it

    maintains->ended = ended;
    maintains->ended_arg = arg;
    for (int i = 0; i < count; i++) {
        maintain_stop(maintains->all[i], on_ended, maintains);
    }
}

static void forget(void *arg)
{
    (void)arg;
}

static int start_all(struct maintains *maintains, const struct maintain_options *options,
                     const struct dsn_list *list, uv_loop_t *loop, struct mr_error *err)
{
    struct maintain_options one = *options;
    int code = 0;

    for (int i = 0; code == 0 && i < list->count; i++) {
        one.dsn = list->items[i];
        code = maintain_new(&one, loop, &maintains->all[i], err);
        maintains->count += code == 0;
    }
    maintains->running = maintains->count;
    return code;
}

int maintains_new(const struct maintain_options *options, uv_loop_t *loop, struct maintains **ret,
                  struct mr_error *err)
{
    const char *several = conn_shards_dsn(options->dsn);
    struct dsn_list list;
    int code = dsn_list_parse(several ? several : options->dsn, &list, err);

    if (code) {
        return code;
    }
    struct maintains *maintains = calloc(1, sizeof(*maintains));
    code = maintains ? start_all(maintains, options, &list, loop, err)
                     : mr_error_set(err, MR_ENOMEM, "out of memory");
    dsn_list_done(&list);
    if (code && maintains && maintains->count > 0) {
        maintains_stop(maintains, forget, NULL);
    } else if (code) {
        free(maintains);
    } else {
        *ret = maintains;
    }
    return code;
}

int64_t maintains_rounds(const struct maintains *maintains)
{
    int64_t rounds = 0;

    for (int i = 0; i < maintains->count; i++) {
        rounds += maintain_rounds(maintains->all[i]);
    }
    return rounds;
}

int64_t maintains_reconnects(const struct maintains *maintains)
{
    int64_t reconnects = 0;

    for (int i = 0; i < maintains->count; i++) {
        reconnects += maintain_reconnects(maintains->all[i]);
    }
    return reconnects;
}
