/* SPDX-License-Identifier: PostgreSQL */
/* Workers: every way to end a lease, and some that do not. */
#include "stress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct held {
    int64_t id;
    int attempt;
    bool open;
};

/* A claimed batch as its worker knows it. */
struct lease {
    char text[96];
    int n;
    struct held jobs[BATCH_MAX];
};

/* Leases that a worker walked away from, to be tried again after they expired. */
enum { ABANDONED_MAX = 32 };
struct abandoned {
    struct lease *leases[ABANDONED_MAX];
    double since[ABANDONED_MAX];
    int n;
};

static enum answer claim(struct session *s, struct lease *lease, const char *queue, int max,
                         int lease_ms)
{
    char holder[32], count[16], time[32];
    const char *values[] = {queue, holder, count, time};
    PGresult *result;
    enum answer answer;

    snprintf(holder, sizeof(holder), "session %d", s->index);
    snprintf(count, sizeof(count), "%d", max);
    snprintf(time, sizeof(time), "%d ms", lease_ms);
    lease->n = 0;
    answer = session_ask(
        s, &result, "select lease, id, attempt from millrace.claim($1, $2, $3::int, $4::interval)",
        4, values);
    if (answer != ANSWER_OK)
        return answer;
    if (PQntuples(result) > BATCH_MAX)
        fatal("one claim returned %d jobs, %d were asked for", PQntuples(result), max);
    for (int i = 0; i < PQntuples(result); i++) {
        if (i > 0 && strcmp(PQgetvalue(result, i, 0), lease->text) != 0)
            fatal("one claim returned two leases");
        snprintf(lease->text, sizeof(lease->text), "%s", PQgetvalue(result, i, 0));
        lease->jobs[i] =
            (struct held){atoll(PQgetvalue(result, i, 1)), atoi(PQgetvalue(result, i, 2)), true};
    }
    lease->n = PQntuples(result);
    PQclear(result);
    return ANSWER_OK;
}

static void deliver(const struct lease *lease)
{
    atomic_fetch_add(&course.claims, 1);
    for (int i = 0; i < lease->n; i++)
        ledger_deliver(lease->jobs[i].id, lease->jobs[i].attempt, lease->text);
}

static bool lease_is_void(const struct lease *lease)
{
    for (int i = 0; i < lease->n; i++)
        if (lease->jobs[i].open && ledger_is_void(lease->jobs[i].id, lease->jobs[i].attempt))
            return true;
    return false;
}

/* Jobs from..to of a lease were asked to end as `what`; tells the ledger what became of it. */
static enum answer settle(struct lease *lease, int from, int to, bool was_void, enum answer answer,
                          char what)
{
    if (answer == ANSWER_OK && was_void)
        fatal("lease %s was rescued, but a write under it succeeded (%c)", lease->text, what);
    for (int i = from; i < to; i++) {
        struct held *job = &lease->jobs[i];

        if (!job->open)
            continue;
        if (answer == ANSWER_GONE)
            ledger_unclear(job->id);
        else if (answer == ANSWER_AGAIN)
            ledger_take_back(job->id, job->attempt);
        else if (answer == ANSWER_OK && what == 'c')
            ledger_completed(job->id, job->attempt);
        else if (answer == ANSWER_OK && what == 'f')
            ledger_failed(job->id);
        else if (answer == ANSWER_OK && what == 'd')
            ledger_dead(job->id, job->attempt), ledger_failed(job->id);
        else if (answer == ANSWER_OK)
            ledger_returned(job->id);
        if (answer != ANSWER_AGAIN)
            job->open = false;
    }
    return answer;
}

static void give_up(struct lease *lease, int from, int to)
{
    for (int i = from; i < to; i++)
        if (lease->jobs[i].open)
            ledger_give_up(lease->jobs[i].id, lease->jobs[i].attempt);
}

/* A list of the open ids of from..to as an array for SQL; the caller frees it. */
static char *id_list(const struct lease *lease, int from, int to)
{
    char *text = malloc((size_t)(to - from) * 22 + 3), *at = text;

    if (!text)
        fatal("out of memory");
    *at++ = '{';
    for (int i = from; i < to; i++)
        if (lease->jobs[i].open)
            at += sprintf(at, "%s%lld", at[-1] == '{' ? "" : ",", (long long)lease->jobs[i].id);
    *at++ = '}';
    *at = '\0';
    return text;
}

static enum answer complete_rest(struct session *s, struct lease *lease)
{
    bool was_void = lease_is_void(lease);
    const char *values[] = {lease->text};

    return settle(lease, 0, lease->n, was_void,
                  session_ask(s, NULL, "select millrace.complete($1)", 1, values), 'c');
}

/* After a deadlock or a cancelled statement the lease is still ours. */
static void complete_surely(struct session *s, struct lease *lease)
{
    for (int i = 0; i < 100; i++)
        if (complete_rest(s, lease) != ANSWER_AGAIN)
            return;
    fatal("lease %s could not be completed in a hundred tries", lease->text);
}

static enum answer part(struct session *s, struct lease *lease, int from, int to, char what,
                        const char *sql)
{
    bool was_void = lease_is_void(lease);
    char *ids = id_list(lease, from, to);
    const char *values[] = {lease->text, ids};
    enum answer answer;

    give_up(lease, from, to);
    answer = session_ask(s, NULL, sql, 2, values);
    free(ids);
    return settle(lease, from, to, was_void, answer, what);
}

/* Gives the first jobs back untouched. */
static enum answer release_part(struct session *s, struct lease *lease, int n)
{
    return part(s, lease, 0, n, 'r', "select millrace.release($1, $2::bigint[])");
}

static void complete_by_pieces(struct session *s, struct lease *lease)
{
    for (int from = 0; from < lease->n;) {
        int to = from + 1 + session_random(s, 10);

        to = to > lease->n ? lease->n : to;
        if (part(s, lease, from, to, 'c', "select millrace.complete($1, $2::bigint[])") ==
            ANSWER_VOID)
            return;
        from = to;
        if (from > 60)
            break;
    }
    complete_surely(s, lease);
}

static enum answer fail_one(struct session *s, struct lease *lease, bool retry)
{
    char id[32];
    const char *values[] = {lease->text, id, retry ? "true" : "false"};
    bool was_void = lease_is_void(lease);

    snprintf(id, sizeof(id), "%lld", (long long)lease->jobs[0].id);
    give_up(lease, 0, 1);
    return settle(lease, 0, 1, was_void,
                  session_ask(s, NULL,
                              "select millrace.fail($1, $2::bigint, 'boom', '200 ms', $3::boolean)",
                              3, values),
                  retry ? 'f' : 'd');
}

static enum answer requeue_one(struct session *s, struct lease *lease)
{
    char id[32];
    const char *values[] = {lease->text, id, queue_names[session_random(s, QUEUES - 1)]};
    bool was_void = lease_is_void(lease);

    snprintf(id, sizeof(id), "%lld", (long long)lease->jobs[0].id);
    give_up(lease, 0, 1);
    return settle(
        lease, 0, 1, was_void,
        session_ask(
            s, NULL,
            "select millrace.requeue($1, $2::bigint, jsonb_build_object('queue', $3::text))", 3,
            values),
        'q');
}

/* Job 0 fails, 1 is released, 2 put back, 3 completed: in one call. */
static void finish_mixed(struct session *s, struct lease *lease)
{
    static const char fates[] = "frqc";
    const char *values[5] = {lease->text};
    char ids[4][32];
    bool was_void = lease_is_void(lease);
    enum answer answer;

    if (lease->n < 4) {
        complete_surely(s, lease);
        return;
    }
    for (int i = 0; i < 4; i++) {
        snprintf(ids[i], sizeof(ids[i]), "%lld", (long long)lease->jobs[i].id);
        values[i + 1] = ids[i];
    }
    give_up(lease, 0, 3);
    answer = session_ask(
        s, NULL,
        "select millrace.finish($1, jsonb_build_array("
        "jsonb_build_object('id', $2::bigint, 'outcome', 'failed', 'error', 'x', 'retry_in', '100 ms'),"
        "jsonb_build_object('id', $3::bigint, 'outcome', 'released'),"
        "jsonb_build_object('id', $4::bigint, 'outcome', 'requeued', 'changes', '{\"priority\": 45}'::jsonb),"
        "jsonb_build_object('id', $5::bigint, 'outcome', 'completed', 'result', '{\"r\": 1}'::jsonb)))",
        5, values);
    for (int i = 0; i < 4; i++)
        settle(lease, i, i + 1, was_void, answer, fates[i]);
    if (answer != ANSWER_VOID)
        complete_surely(s, lease);
}

/* Completes and thinks better of it: the lease must be as it was. */
static void complete_in_vain(struct session *s, struct lease *lease)
{
    const char *values[] = {lease->text};

    if (session_do(s, "begin") == ANSWER_OK)
        session_ask(s, NULL, "select millrace.complete($1)", 1, values);
    session_roll_back(s);
    complete_surely(s, lease);
}

static void beat_and_complete(struct session *s, struct lease *lease)
{
    const char *values[] = {lease->text};
    bool was_void = lease_is_void(lease);

    if (session_ask(s, NULL, "select millrace.heartbeat($1)", 1, values) == ANSWER_OK && was_void)
        fatal("lease %s was rescued, but its heartbeat succeeded", lease->text);
    complete_surely(s, lease);
}

static void abandon(struct abandoned *abandoned, const struct lease *lease)
{
    struct lease *copy = malloc(sizeof(*copy));

    if (!copy)
        fatal("out of memory");
    memcpy(copy, lease, sizeof(*copy));
    abandoned->leases[abandoned->n] = copy;
    abandoned->since[abandoned->n++] = now_s();
}

/* Comes back to a lease after it expired: rescued or not, one of the two sides must lose. */
static void revisit(struct session *s, struct abandoned *abandoned, bool all)
{
    for (int i = 0; i < abandoned->n;) {
        struct lease *lease = abandoned->leases[i];

        if (!all && now_s() - abandoned->since[i] <
                        course.opt.lease_ms / 1000.0 + session_random(s, 2000) / 1000.0) {
            i++;
            continue;
        }
        if (session_random(s, 3) || release_part(s, lease, 1) != ANSWER_VOID)
            complete_surely(s, lease);
        free(lease);
        abandoned->leases[i] = abandoned->leases[--abandoned->n];
        abandoned->since[i] = abandoned->since[abandoned->n];
    }
}

static void fail_and_complete(struct session *s, struct lease *lease)
{
    if (fail_one(s, lease, true) != ANSWER_VOID)
        complete_surely(s, lease);
}

static void bury_and_complete(struct session *s, struct lease *lease)
{
    if (fail_one(s, lease, false) != ANSWER_VOID)
        complete_surely(s, lease);
}

static void release_and_complete(struct session *s, struct lease *lease)
{
    if (release_part(s, lease, lease->n < 20 ? (lease->n + 3) / 4 : 5) != ANSWER_VOID)
        complete_surely(s, lease);
}

static void requeue_and_complete(struct session *s, struct lease *lease)
{
    if (requeue_one(s, lease) != ANSWER_VOID)
        complete_surely(s, lease);
}

/* What a worker does with its lease, drawn from a hundred; from ABANDON_FROM on it walks away. */
enum { ABANDON_FROM = 93 };
static const struct {
    int below;
    void (*end)(struct session *s, struct lease *lease);
} ways[] = {
    {62, complete_surely},      {69, complete_by_pieces}, {76, finish_mixed},
    {80, fail_and_complete},    {81, bury_and_complete},  {85, release_and_complete},
    {88, requeue_and_complete}, {90, complete_in_vain},   {ABANDON_FROM, beat_and_complete},
};

static void act(struct session *s, struct lease *lease, struct abandoned *abandoned, int kind)
{
    size_t way = 0;

    /* While the queues drain nothing goes back into them. */
    if (!atomic_load(&course.writing))
        kind = 0;
    if (kind >= ABANDON_FROM && abandoned->n < ABANDONED_MAX) {
        abandon(abandoned, lease);
        return;
    }
    if (kind >= ABANDON_FROM)
        kind = 0;
    while (kind >= ways[way].below)
        way++;
    ways[way].end(s, lease);
}

static void one_lease(struct session *s, struct lease *lease, struct abandoned *abandoned)
{
    static const int sizes[] = {1, 5, 20, 100, 200, 1000};
    int kind = session_random(s, 100), max = sizes[session_random(s, 6)];
    bool draining = !atomic_load(&course.writing);
    bool in_vain = !draining && session_random(s, 20) == 0;
    /* The lease of one in fourteen is short, because it will be abandoned; with faults any session
     * may vanish. */
    int lease_ms = kind >= ABANDON_FROM || course.opt.faults ? course.opt.lease_ms : 60000;
    enum answer answer;

    /* Rescue goes job by job: what is abandoned is kept small, so that the run is about races and
     * not about that. */
    if (kind >= ABANDON_FROM && max > 20)
        max = 20;
    answer = session_do(s, "begin");
    if (answer == ANSWER_OK)
        answer = claim(s, lease, queue_names[session_random(s, QUEUES - 1)], draining ? 1000 : max,
                       lease_ms);
    /* Now and then the claim stays uncommitted while segments are closed around it. */
    if (answer == ANSWER_OK && session_random(s, 40) == 0)
        session_pause(session_random(s, 600));
    if (answer != ANSWER_OK || in_vain) {
        atomic_fetch_add(&course.rolled_back_claims, in_vain);
        session_roll_back(s);
        return;
    }
    answer = session_do(s, "commit");
    if (answer != ANSWER_OK)
        return;
    if (lease->n == 0) {
        session_pause(session_random(s, 20));
        return;
    }
    deliver(lease);
    if (session_random(s, 10) == 0)
        session_pause(session_random(s, 50));
    act(s, lease, abandoned, kind);
}

void *claimer_run(void *arg)
{
    struct session session;
    struct abandoned abandoned = {0};
    struct lease *lease = calloc(1, sizeof(*lease));

    if (!lease)
        fatal("out of memory");
    session_open(&session, (int)(intptr_t)arg);
    while (!atomic_load(&course.stop)) {
        session_safe_point(&session);
        revisit(&session, &abandoned, !atomic_load(&course.writing));
        one_lease(&session, lease, &abandoned);
    }
    revisit(&session, &abandoned, true);
    free(lease);
    session_close(&session);
    atomic_fetch_sub(&course.sessions, 1);
    return NULL;
}

/* Whether the session holds a lease in the leaf beside the ring. */
static bool is_parked(struct session *s)
{
    char holder[32];
    const char *values[] = {holder};
    PGresult *result;
    bool parked;

    snprintf(holder, sizeof(holder), "session %d", s->index);
    if (session_ask(s, &result,
                    "select count(*) from millrace.claim_parked where holder = $1 and status = 'r'",
                    1, values) != ANSWER_OK)
        return false;
    parked = atoi(PQgetvalue(result, 0, 0)) > 0;
    PQclear(result);
    return parked;
}

static void keep_until_parked(struct session *s, const struct lease *lease)
{
    const char *values[] = {lease->text};
    double deadline = now_s() + 60, beaten = now_s();

    while (!is_parked(s)) {
        session_safe_point(s);
        session_pause(20);
        if (now_s() > deadline)
            fatal("lease %s is not parked, though its segment is long past its retention",
                  lease->text);
        if (now_s() - beaten < 5)
            continue;
        beaten = now_s();
        if (session_ask(s, NULL, "select millrace.heartbeat($1)", 1, values) == ANSWER_VOID)
            fatal("lease %s is void, though it was kept alive", lease->text);
    }
    atomic_fetch_add(&course.parked, 1);
}

/* A worker whose jobs take longer than the log keeps anything. In a run without faults. */
void *patient_run(void *arg)
{
    struct session session;
    struct abandoned none = {0};
    struct lease *lease = calloc(1, sizeof(*lease));

    if (!lease)
        fatal("out of memory");
    session_open(&session, (int)(intptr_t)arg);
    while (!atomic_load(&course.stop)) {
        session_safe_point(&session);
        session_pause(10);
        if (!atomic_load(&course.writing) ||
            claim(&session, lease, queue_names[session_random(&session, QUEUES - 1)], 5, 60000) !=
                ANSWER_OK ||
            lease->n == 0)
            continue;
        deliver(lease);
        keep_until_parked(&session, lease);
        act(&session, lease, &none, session_random(&session, ABANDON_FROM));
    }
    free(lease);
    session_close(&session);
    atomic_fetch_sub(&course.sessions, 1);
    return NULL;
}

/* Row i of the ordered lane: the numbers of each writer must rise. */
static void ordered_check(PGresult *result, int i)
{
    enum { WRITERS_MAX = 1024 };
    static int last[WRITERS_MAX];
    int64_t id = atoll(PQgetvalue(result, i, 1));
    int who = atoi(PQgetvalue(result, i, 3)), number = atoi(PQgetvalue(result, i, 4));

    if (who < 0 || who >= WRITERS_MAX)
        fatal("job %lld has writer %d", (long long)id, who);
    if (number <= last[who])
        fatal("order: number %d of writer %d came after %d (job %lld)", number, who, last[who],
              (long long)id);
    last[who] = number;
    ledger_deliver(id, atoi(PQgetvalue(result, i, 2)), PQgetvalue(result, i, 0));
    atomic_fetch_add(&course.ordered_seen, 1);
}

/* All rows are of one lease, which is long and nobody else's. */
static void ordered_complete(struct session *s, PGresult *result)
{
    const char *values[] = {PQgetvalue(result, 0, 0)};
    enum answer answer = ANSWER_AGAIN;

    for (int i = 0; i < 100 && answer == ANSWER_AGAIN; i++)
        answer = session_ask(s, NULL, "select millrace.complete($1)", 1, values);
    if (answer != ANSWER_OK)
        fatal("lease %s of the ordered lane could not be completed", values[0]);
    for (int i = 0; i < PQntuples(result); i++)
        ledger_completed(atoll(PQgetvalue(result, i, 1)), atoi(PQgetvalue(result, i, 2)));
}

/* The only reader of its lane, in a run without faults. */
void *ordered_claimer_run(void *arg)
{
    const char *values[] = {queue_names[QUEUES - 1]};
    struct session session;

    session_open(&session, (int)(intptr_t)arg);
    while (!atomic_load(&course.stop)) {
        PGresult *result;

        session_safe_point(&session);
        if (session_ask(
                &session, &result,
                "select lease, id, attempt, args ->> 's', args ->> 'n' from millrace.claim($1, 'ordered', 50, '1 hour')",
                1, values) != ANSWER_OK)
            continue;
        for (int i = 0; i < PQntuples(result); i++)
            ordered_check(result, i);
        if (PQntuples(result) > 0)
            ordered_complete(&session, result);
        else
            session_pause(10);
        PQclear(result);
    }
    session_close(&session);
    atomic_fetch_sub(&course.sessions, 1);
    return NULL;
}
