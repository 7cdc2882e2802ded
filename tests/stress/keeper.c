/* SPDX-License-Identifier: PostgreSQL */
/* Upkeep by several at once, some of which are cut off or think better of it; and a dump beside it.
 */
#include "stress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void maintain(struct session *s)
{
    PGresult *result;

    if (session_ask(s, &result, "select duty, done from millrace.maintain()", 0, NULL) != ANSWER_OK)
        return;
    atomic_fetch_add(&course.maintains, 1);
    for (int i = 0; i < PQntuples(result); i++)
        if (strcmp(PQgetvalue(result, i, 0), "rescue") == 0)
            atomic_fetch_add(&course.rescues, atol(PQgetvalue(result, i, 1)));
    PQclear(result);
}

void *keeper_run(void *arg)
{
    struct session session;

    session_open(&session, (int)(intptr_t)arg);
    while (!atomic_load(&course.stop)) {
        int kind = session_random(&session, 20);

        session_safe_point(&session);
        if (kind == 0) {
            /* Rolled back: the segment's number has moved, its row has not been written. */
            session_do(&session, "begin");
            maintain(&session);
            session_roll_back(&session);
        } else if (kind == 1) {
            session_do(&session, "set statement_timeout = '15ms'");
            maintain(&session);
            session_do(&session, "set statement_timeout = 0");
        } else {
            maintain(&session);
        }
        session_pause(20 + session_random(&session, 200));
    }
    session_close(&session);
    atomic_fetch_sub(&course.sessions, 1);
    return NULL;
}

/* Runs the command of --dump once; its failure is a failure of the run. */
void *dumper_run(void *arg)
{
    (void)arg;
    atomic_store(&course.dumping, true);
    if (system(course.opt.dump) != 0)
        fatal("the dump failed");
    atomic_store(&course.dumping, false);
    return NULL;
}
