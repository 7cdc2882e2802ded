/* SPDX-License-Identifier: PostgreSQL */
/* Producers: every way to enqueue, every way for a transaction to end. */
#include "stress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The jobs of one transaction. */
struct batch {
    int64_t ids[WRITER_IDS_MAX];
    int n;
};

static void batch_add(struct batch *batch, PGresult *result)
{
    for (int i = 0; i < PQntuples(result); i++) {
        if (batch->n == WRITER_IDS_MAX)
            fatal("a writer's transaction is too large");
        batch->ids[batch->n++] = atoll(PQgetvalue(result, i, 0));
    }
    PQclear(result);
}

static enum answer enqueue(struct session *s, struct batch *batch, const char *sql, int n,
                           const char *const *values)
{
    PGresult *result;
    enum answer answer = session_ask(s, &result, sql, n, values);

    if (answer == ANSWER_OK)
        batch_add(batch, result);
    return answer;
}

static const char *some_queue(struct session *s)
{
    return queue_names[session_random(s, QUEUES - 1)];
}

static enum answer enqueue_one(struct session *s, struct batch *batch)
{
    char priority[16];
    const char *values[] = {some_queue(s), priority};

    snprintf(priority, sizeof(priority), "%d", 40 + 10 * session_random(s, 3));
    return enqueue(
        s, batch,
        "select millrace.enqueue('stress', '{\"a\": 1}', queue => $1, priority => $2::int)", 2,
        values);
}

static enum answer enqueue_bulk(struct session *s, struct batch *batch)
{
    char priority[16], count[16];
    const char *values[] = {some_queue(s), priority, count};

    snprintf(priority, sizeof(priority), "%d", 40 + 10 * session_random(s, 3));
    snprintf(count, sizeof(count), "%d", 1 + session_random(s, course.opt.bulk * 2));
    return enqueue(
        s, batch,
        "select millrace.enqueue_many('stress', array_fill('{\"a\": 1}'::jsonb, array[$3::int]), $1, $2::int)",
        3, values);
}

static enum answer enqueue_mixed(struct session *s, struct batch *batch)
{
    char count[16];
    const char *values[] = {some_queue(s), count, some_queue(s)};

    snprintf(count, sizeof(count), "%d", 2 + session_random(s, 40));
    return enqueue(
        s, batch,
        "select millrace.enqueue_jobs((select jsonb_agg(jsonb_strip_nulls(jsonb_build_object("
        "'kind', 'stress', 'queue', case when i % 3 = 0 then $1 else $3 end, 'priority', 40 + i % 3 * 10,"
        "'delay', case when i % 7 = 0 then '300 ms' end))) from generate_series(1, $2::int) i))",
        3, values);
}

static enum answer enqueue_some(struct session *s, struct batch *batch)
{
    int kind = session_random(s, 100);

    if (kind < 60)
        return enqueue_bulk(s, batch);
    if (kind < 85)
        return enqueue_one(s, batch);
    return enqueue_mixed(s, batch);
}

/* Ends the transaction and tells the ledger. */
static void conclude(struct session *s, struct batch *batch, enum answer answer, bool commit)
{
    if (answer == ANSWER_OK && commit)
        answer = session_do(s, "commit");
    else if (answer == ANSWER_OK) {
        session_roll_back(s);
        answer = ANSWER_AGAIN;
    } else {
        session_roll_back(s);
        commit = false;
    }
    if (answer == ANSWER_OK)
        ledger_commit(batch->ids, batch->n);
    else if (answer == ANSWER_GONE && commit)
        ledger_unknown(batch->ids, batch->n);
    else
        ledger_roll_back(batch->ids, batch->n);
    batch->n = 0;
}

static void plain(struct session *s, struct batch *batch)
{
    enum answer answer =
        session_do(s, session_random(s, 8) ? "begin" : "begin isolation level repeatable read");

    for (int i = session_random(s, 3); answer == ANSWER_OK && i >= 0; i--)
        answer = enqueue_some(s, batch);
    if (session_random(s, 3) == 0)
        session_pause(session_random(s, 25));
    conclude(s, batch, answer, session_random(s, 12) != 0);
}

/* a, savepoint, b, rollback to savepoint, c: b never happened. Sometimes inside another savepoint
 * that stays. */
static void with_savepoint(struct session *s, struct batch *batch)
{
    enum answer answer = session_do(s, "begin");
    struct batch *gone = calloc(1, sizeof(*gone));

    if (!gone)
        fatal("out of memory");
    if (answer == ANSWER_OK && session_random(s, 2))
        answer = session_do(s, "savepoint outside");
    if (answer == ANSWER_OK)
        answer = enqueue_one(s, batch);
    if (answer == ANSWER_OK)
        answer = session_do(s, "savepoint inside");
    if (answer == ANSWER_OK)
        answer = enqueue_some(s, gone);
    if (answer == ANSWER_OK)
        answer = session_do(s, "rollback to savepoint inside");
    if (answer == ANSWER_OK)
        answer = enqueue_some(s, batch);
    ledger_roll_back(gone->ids, gone->n);
    free(gone);
    conclude(s, batch, answer, session_random(s, 8) != 0);
}

/* Prepared transactions run without a session; the log must wait for them all the same. */
static void two_phase(struct session *s, struct batch *batch)
{
    char sql[96];
    enum answer answer = session_do(s, "begin");
    static atomic_int counter;
    int number = atomic_fetch_add(&counter, 1);

    if (answer == ANSWER_OK)
        answer = enqueue_some(s, batch);
    snprintf(sql, sizeof(sql), "prepare transaction 'stress %d'", number);
    if (answer == ANSWER_OK)
        answer = session_do(s, sql);
    if (answer != ANSWER_OK) {
        conclude(s, batch, answer, false);
        return;
    }
    session_pause(session_random(s, 100));
    bool commit = session_random(s, 4) != 0;
    snprintf(sql, sizeof(sql), "%s prepared 'stress %d'", commit ? "commit" : "rollback", number);
    if (session_do(s, sql) != ANSWER_OK)
        fatal("could not end a prepared transaction");
    if (commit)
        ledger_commit(batch->ids, batch->n);
    else
        ledger_roll_back(batch->ids, batch->n);
    batch->n = 0;
}

/* The jobs that a writer claimed in its transaction. */
struct taken {
    int n;
    struct {
        int64_t id;
        int attempt;
        char lease[96];
    } jobs[20];
};

static void taken_add(struct taken *taken, PGresult *result)
{
    for (int i = 0; i < PQntuples(result); i++, taken->n++) {
        if (taken->n == (int)(sizeof(taken->jobs) / sizeof(taken->jobs[0])))
            fatal("a writer claimed more jobs than it asked for");
        taken->jobs[taken->n].id = atoll(PQgetvalue(result, i, 1));
        taken->jobs[taken->n].attempt = atoi(PQgetvalue(result, i, 2));
        snprintf(taken->jobs[taken->n].lease, sizeof(taken->jobs[taken->n].lease), "%s",
                 PQgetvalue(result, i, 0));
    }
}

/* Claims up to five jobs and completes them; the ledger hears of them when they are committed. */
static enum answer take_some(struct session *s, struct taken *taken)
{
    const char *values[] = {some_queue(s)};
    PGresult *result;
    enum answer answer = session_ask(
        s, &result, "select lease, id, attempt from millrace.claim($1, 'both', 5, '1 hour')", 1,
        values);

    if (answer != ANSWER_OK)
        return answer;
    taken_add(taken, result);
    if (PQntuples(result) > 0) {
        const char *lease[] = {PQgetvalue(result, 0, 0)};

        answer = session_do(s, "savepoint before_complete");
        if (answer == ANSWER_OK)
            answer = session_ask(s, NULL, "select millrace.complete($1)", 1, lease);
    }
    PQclear(result);
    return answer;
}

static void commit_both(struct session *s, struct batch *batch, const struct taken *taken)
{
    enum answer answer = session_do(s, "commit");

    for (int i = 0; answer == ANSWER_OK && i < taken->n; i++) {
        ledger_deliver(taken->jobs[i].id, taken->jobs[i].attempt, taken->jobs[i].lease);
        ledger_completed(taken->jobs[i].id, taken->jobs[i].attempt);
    }
    if (answer == ANSWER_OK)
        ledger_commit(batch->ids, batch->n);
    batch->n = 0;
}

/*
 * Claims and enqueues in one transaction, twice: the window that the claim opens must not swallow
 * the transaction's own jobs. The claimed ones are completed in the same transaction.
 */
static void claim_and_enqueue(struct session *s, struct batch *batch)
{
    struct taken taken = {0};
    enum answer answer = session_do(s, "begin");
    bool commit = session_random(s, 4) != 0;

    for (int round = 0; round < 2 && answer == ANSWER_OK; round++) {
        if (session_random(s, 2))
            answer = enqueue_one(s, batch);
        if (answer == ANSWER_OK)
            answer = take_some(s, &taken);
        if (answer == ANSWER_OK)
            answer = enqueue_one(s, batch);
    }
    if (answer == ANSWER_OK && commit && !course.opt.faults)
        commit_both(s, batch, &taken);
    else
        conclude(s, batch, answer, false);
}

/* A deep backlog pins its segments, and then nothing rotates: the writers do not run away from the
 * claimers. */
static void wait_for_claimers(struct session *s)
{
    while (atomic_load(&ledger_committed_n) - atomic_load(&ledger_completed_n) >
               course.opt.backlog &&
           atomic_load(&course.writing)) {
        session_safe_point(s);
        session_pause(5);
    }
}

void *writer_run(void *arg)
{
    struct session session;
    struct batch *batch = calloc(1, sizeof(*batch));

    if (!batch)
        fatal("out of memory");
    session_open(&session, (int)(intptr_t)arg);
    while (atomic_load(&course.writing)) {
        int kind = session_random(&session, 100);

        session_safe_point(&session);
        wait_for_claimers(&session);
        if (kind < 80)
            plain(&session, batch);
        else if (kind < 90)
            with_savepoint(&session, batch);
        else if (kind < 93 && !course.opt.faults)
            two_phase(&session, batch);
        else
            claim_and_enqueue(&session, batch);
    }
    free(batch);
    session_close(&session);
    atomic_fetch_sub(&course.sessions, 1);
    return NULL;
}

/* Stays open for seconds, with jobs written at its beginning and at its end. */
void *long_writer_run(void *arg)
{
    struct session session;
    struct batch *batch = calloc(1, sizeof(*batch));

    if (!batch)
        fatal("out of memory");
    session_open(&session, (int)(intptr_t)arg);
    while (atomic_load(&course.writing)) {
        enum answer answer;

        session_safe_point(&session);
        answer = session_do(&session, "begin");
        if (answer == ANSWER_OK)
            answer = enqueue_bulk(&session, batch);
        for (int i = 5 + session_random(&session, 40); i > 0 && !atomic_load(&course.hold); i--)
            session_pause(100);
        if (answer == ANSWER_OK)
            answer = enqueue_one(&session, batch);
        conclude(&session, batch, answer, session_random(&session, 4) != 0);
    }
    free(batch);
    session_close(&session);
    atomic_fetch_sub(&course.sessions, 1);
    return NULL;
}

/* Counts upwards in the lane that ordered_claimer_run reads. A number is committed before the next
 * one is taken. */
void *ordered_writer_run(void *arg)
{
    struct session session;
    struct batch *batch = calloc(1, sizeof(*batch));
    int number = 0;

    if (!batch)
        fatal("out of memory");
    session_open(&session, (int)(intptr_t)arg);
    while (atomic_load(&course.writing)) {
        char who[16], count[16];
        const char *values[] = {queue_names[QUEUES - 1], who, count};
        enum answer answer;

        session_safe_point(&session);
        snprintf(who, sizeof(who), "%d", session.index);
        snprintf(count, sizeof(count), "%d", ++number);
        answer = session_do(&session, "begin");
        if (answer == ANSWER_OK)
            answer = enqueue(
                &session, batch,
                "select millrace.enqueue('ordered', jsonb_build_object('s', $2::int, 'n', $3::int), $1)",
                3, values);
        conclude(&session, batch, answer, session_random(&session, 10) != 0);
        session_pause(session_random(&session, 15));
    }
    free(batch);
    session_close(&session);
    atomic_fetch_sub(&course.sessions, 1);
    return NULL;
}
