/* SPDX-License-Identifier: PostgreSQL */
/*
 * Checks at a quiet moment, when no session has a transaction open: the tables themselves, read as
 * their owner without any function of the schema, against what the ledger knows and against what
 * depth() and stats() say.
 */
#include "stress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Truth from the tables. Available is the newest row of a job that no claim's list of positions
 * holds and that did not move on to `delayed` or `dead`. A claim stands in the leaf of its job or a
 * later one, so it is there as long as the job is. Completed jobs whose leaf is gone are known to
 * the ledger alone.
 */
static const char truth_sql[] =
    "with taken as materialized ("
    "  select k.lane, u.pos, k.status, coalesce(substr(k.outcome, u.ord::int, 1), case k.status when 'r' then 'o' else 'c' end) as letter"
    "    from millrace.claim k cross join lateral unnest(k.positions) with ordinality u(pos, ord)),"
    " newest as materialized ("
    "  select distinct on (j.job_id) j.job_id, j.lane, j.pos"
    "    from (select case when j.pack_n is null then j.job_id else p.at end as job_id, j.lane, p.at as pos"
    "            from millrace.job j cross join lateral generate_series(j.pos - coalesce(j.pack_n, 1) + 1, j.pos) p(at)) j"
    "   order by j.job_id, j.pos desc),"
    " available as materialized ("
    "  select n.lane from newest n"
    "    left join taken t on t.pos = n.pos"
    "    left join millrace.delayed d on d.job_id = n.job_id"
    "    left join millrace.dead b on b.job_id = n.job_id"
    "   where t.pos is null and d.job_id is null and b.job_id is null),"
    " held as materialized ("
    "  select t.lane from taken t join newest n on n.pos = t.pos where t.status = 'r' and t.letter = 'o')"
    "select q.queue_name,"
    "       (select count(*) from available a where a.lane >> 12 = q.queue_id) as available,"
    "       (select coalesce(sum(k.open_n), 0) from millrace.claim k where k.status = 'r' and k.lane >> 12 = q.queue_id) as running,"
    "       (select count(*) from held h where h.lane >> 12 = q.queue_id) as held,"
    "       (select count(*) from millrace.delayed d where d.lane >> 12 = q.queue_id) as delayed,"
    "       (select count(*) from millrace.dead d where d.queue_id = q.queue_id) as dead,"
    "       millrace.depth(q.queue_name) as depth,"
    "       s.available as s_available, s.running as s_running, s.scheduled + s.retrying as s_delayed, s.dead as s_dead"
    "  from millrace.queue q"
    "  cross join lateral millrace.stats(q.queue_name) s"
    " order by q.queue_name";

static long value(PGresult *result, int row, const char *column)
{
    return atol(PQgetvalue(result, row, PQfnumber(result, column)));
}

static void same(const char *when, const char *queue, const char *what, long said, long real)
{
    if (said != real)
        fatal("%s: queue %s: %s is %ld, but the tables hold %ld", when, queue, what, said, real);
}

static PGresult *truth(struct session *s)
{
    PGresult *result;

    /* Nobody has analysed the tables: without this the planner would loop over what it believes to
     * be a few rows. */
    if (session_do(s, "set jit = off") != ANSWER_OK ||
        session_do(s, "set work_mem = '256MB'") != ANSWER_OK ||
        session_do(s, "set enable_nestloop = off") != ANSWER_OK ||
        session_ask(s, &result, truth_sql, 0, NULL) != ANSWER_OK)
        fatal("could not read the tables");
    return result;
}

static void check_totals(struct session *s, const char *when)
{
    PGresult *result;
    long done;

    /* Counted by a pass of its own: claims that ended since the last one are not in the ledger of
     * depth yet. */
    if (session_do(s, "select millrace.maintain()") != ANSWER_OK ||
        session_ask(
            s, &result,
            "select coalesce(sum(t.done_total), 0) + coalesce((select sum(k.done_n) from millrace.claim k where k.status = 'r'), 0)"
            "  from millrace.lanes_all() l cross join lateral millrace.lane_tally(l) t",
            0, NULL) != ANSWER_OK)
        fatal("could not read the totals");
    done = atol(PQgetvalue(result, 0, 0));
    PQclear(result);
    if (done != atomic_load(&ledger_completed_n))
        fatal("%s: the depth ledger knows %ld completed jobs, the workers completed %ld", when,
              done, atomic_load(&ledger_completed_n));
}

/* enqueued = completed + available + running + delayed + dead */
void quiet_check(const char *when)
{
    struct session session;
    PGresult *result;
    long sum = atomic_load(&ledger_completed_n), committed = atomic_load(&ledger_committed_n);

    session_open(&session, 1000);
    result = truth(&session);
    for (int i = 0; i < PQntuples(result); i++) {
        const char *queue = PQgetvalue(result, i, 0);

        same(when, queue, "depth()", value(result, i, "depth"), value(result, i, "available"));
        same(when, queue, "stats().available", value(result, i, "s_available"),
             value(result, i, "available"));
        same(when, queue, "stats().running", value(result, i, "s_running"),
             value(result, i, "running"));
        same(when, queue, "the number of jobs in open claims", value(result, i, "running"),
             value(result, i, "held"));
        same(when, queue, "stats().dead", value(result, i, "s_dead"), value(result, i, "dead"));
        if (value(result, i, "delayed") <= 10000)
            same(when, queue, "stats().scheduled + retrying", value(result, i, "s_delayed"),
                 value(result, i, "delayed"));
        sum += value(result, i, "available") + value(result, i, "running") +
               value(result, i, "delayed") + value(result, i, "dead");
    }
    if (!course.opt.faults && sum != committed)
        fatal(
            "%s: %ld jobs were committed, but %ld are completed, available, running, delayed or dead",
            when, committed, sum);
    PQclear(result);
    if (!course.opt.faults)
        check_totals(&session, when);
    session_close(&session);
}

/* The summary, as JSON on standard output. */
void quiet_report(void)
{
    struct session session;
    PGresult *result;

    session_open(&session, 1001);
    if (session_ask(
            &session, &result,
            "select max(seg), max(seg) - count(*) filter (where not truncated) from millrace.segment",
            0, NULL) != ANSWER_OK)
        fatal("could not read the segments");
    printf(
        "{\"jobs\": %ld, \"completed\": %ld, \"dead\": %ld, \"rolled_back\": %ld, \"unknown\": %ld, \"claims\": %ld,"
        " \"rolled_back_claims\": %ld, \"ordered\": %ld, \"rescued\": %ld, \"mr001\": %ld, \"deadlocks\": %ld,"
        " \"cancelled\": %ld, \"reconnects\": %ld, \"maintains\": %ld, \"rotations\": %s, \"truncations\": %s, \"parked\": %ld}\n",
        atomic_load(&ledger_committed_n), atomic_load(&ledger_completed_n),
        atomic_load(&ledger_dead_n), atomic_load(&ledger_rolled_back_n),
        atomic_load(&ledger_unknown_n), atomic_load(&course.claims),
        atomic_load(&course.rolled_back_claims), atomic_load(&course.ordered_seen),
        atomic_load(&course.rescues), atomic_load(&course.void_writes),
        atomic_load(&course.deadlocks), atomic_load(&course.other_retries),
        atomic_load(&course.reconnects), atomic_load(&course.maintains), PQgetvalue(result, 0, 0),
        PQgetvalue(result, 0, 1), atomic_load(&course.parked));
    PQclear(result);
    session_close(&session);
}
