// SPDX-License-Identifier: PostgreSQL
//
// Jobs of one lease in one transaction: see sql_group.h.

#include "handler/sql_group.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/str.h"
#include "client/call.h"
#include "handler/answer.h"
#include "handler/handler.h"
#include "handler/job_text.h"
#include "handler/sql_name.h"

#define STATEMENT_MAX 1024
// The client's own limit is behind the server's, for a server that does not answer at all.
#define LIMIT_MARGIN_MS 5000
#define PAUSE_MS        50
// PostgreSQL counts timeouts in 32 bits.
#define TIMEOUT_MAX_MS INT32_MAX

// Types of results, as PostgreSQL numbers them.
enum {
    OID_BOOL = 16,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_JSON = 114,
    OID_VOID = 2278,
    OID_JSONB = 3802,
};

// What is to be done with the savepoint that is open, before the next statement.
enum savepoint {
    SAVEPOINT_NONE,
    SAVEPOINT_RELEASE,
    SAVEPOINT_UNDO,
};

struct run {
    struct sql_group *group;
    struct sql_target *target;
    struct sql_session *session;
    enum savepoint savepoint;
    int first, last;  // the jobs whose function runs now, `last` not among them
    int tries;        // again
    bool unreachable; // no connection could be made
    bool unclear;     // the answer to a commit was lost
};

// ---- the target ----

int sql_target_init(struct sql_target *target, const char *name, enum sql_mode mode,
                    int64_t timeout_ms, struct mr_error *err)
{
    AUTO_BUF quoted;

    buf_init(&quoted, STATEMENT_MAX);
    buf_init(&target->function, STATEMENT_MAX);
    buf_init(&target->batch, STATEMENT_MAX);
    buf_init(&target->procedure, STATEMENT_MAX);
    atomic_init(&target->mode, mode);
    target->timeout_ms = timeout_ms;
    int code = sql_name_quote(name, &quoted, err);
    if (code) {
        return code;
    }
    buf_printf(&target->function, "%s %s($1::jsonb)", "select", quoted.data);
    buf_printf(&target->batch, "%s * from %s($1::jsonb[])", "select", quoted.data);
    buf_printf(&target->procedure, "%s %s($1::jsonb)", "call", quoted.data);
    code = buf_status(&target->function, err);
    code = code ? code : buf_status(&target->batch, err);
    return code ? code : buf_status(&target->procedure, err);
}

void sql_target_done(struct sql_target *target)
{
    buf_done(&target->function);
    buf_done(&target->batch);
    buf_done(&target->procedure);
}

// ---- the group ----

struct sql_group *sql_group_new(struct sql_target *target, struct held_job *const *jobs, int count)
{
    struct sql_group *group = calloc(1, sizeof(*group) + (size_t)count * sizeof(group->jobs[0]));

    if (!group) {
        return NULL;
    }
    group->target = target;
    group->count = count;
    atomic_init(&group->dropped, false);
    for (int i = 0; i < count; i++) {
        group->jobs[i].held = jobs[i];
        atomic_init(&group->jobs[i].cancelled, false);
        outcome_init(&group->jobs[i].outcome);
    }
    return group;
}

void sql_group_free(struct sql_group *group)
{
    for (int i = 0; i < group->count; i++) {
        outcome_done(&group->jobs[i].outcome);
    }
    free(group);
}

// ---- stopping ----

static bool is_dropped(const struct run *run)
{
    return atomic_load(&run->group->dropped);
}

static bool are_cancelled(const struct run *run, int from, int to)
{
    for (int i = from; i < to; i++) {
        if (atomic_load(&run->group->jobs[i].cancelled)) {
            return true;
        }
    }
    return false;
}

// What the session asks while it waits. A job that is cancelled stops nothing but its function:
// the transaction goes on with the others.
static bool must_stop(const void *arg)
{
    const struct run *run = arg;

    return is_dropped(run) || are_cancelled(run, run->first, run->last);
}

// Before a function is called for some jobs.
static int check_stopped(const struct run *run, int from, int to, struct mr_error *err)
{
    if (is_dropped(run) || are_cancelled(run, from, to)) {
        return mr_error_set(err, MR_ETIMEOUT, "stopped");
    }
    return 0;
}

// ---- outcomes ----

static void fail_job(struct sql_job *job, const struct mr_error *err)
{
    AUTO_BUF text;

    buf_init(&text, HANDLER_LINE_MAX);
    if (atomic_load(&job->cancelled)) {
        outcome_cancel(&job->outcome);
        return;
    }
    buf_puts(&text, err->message);
    if (err->sqlstate[0]) {
        buf_printf(&text, " (SQLSTATE %s)", err->sqlstate);
    }
    if (err->detail[0]) {
        buf_printf(&text, ": %s", err->detail);
    }
    if (text.data) {
        str_one_line(text.data);
    }
    outcome_fail(&job->outcome, buf_peek(&text), 0, false);
}

static void fail_jobs(struct run *run, int from, int to, const struct mr_error *err)
{
    for (int i = from; i < to; i++) {
        fail_job(&run->group->jobs[i], err);
    }
}

static void release_jobs(struct run *run, int from, int to)
{
    for (int i = from; i < to; i++) {
        outcome_release(&run->group->jobs[i].outcome);
    }
}

// The outcomes are committed. What they say stays beside it, for the log.
static void keep_jobs(struct run *run, int from, int to)
{
    for (int i = from; i < to; i++) {
        struct outcome *outcome = &run->group->jobs[i].outcome;
        outcome->failed = outcome->kind == OUTCOME_FAILED;
        outcome->kind = OUTCOME_ELSEWHERE;
    }
}

static bool is_json_type(Oid type)
{
    return type == OID_JSON || type == OID_JSONB;
}

// A value of any type as JSON.
static void complete_with(struct outcome *outcome, const char *value, Oid type)
{
    AUTO_BUF text;

    buf_init(&text, OUTCOME_ENTRY_MAX);
    if (type == OID_BOOL) {
        buf_puts(&text, value[0] == 't' ? "true" : "false");
    } else if (is_json_type(type) || type == OID_INT2 || type == OID_INT4 || type == OID_INT8) {
        buf_puts(&text, value);
    } else {
        json_add_string(&text, value);
    }
    outcome_complete(outcome, buf_peek(&text));
    if (text.status) {
        outcome->members.status = text.status;
    }
}

// What the function returned. An object with an `outcome` says what becomes of the job; any other
// value is its result, unless only answers count. Fails with MR_EINVALID for a bad answer.
static int read_value(struct sql_job *job, const PGresult *result, bool answers_only,
                      struct mr_error *err)
{
    int64_t id = 0;

    outcome_complete(&job->outcome, NULL);
    if (PQntuples(result) == 0 || PQnfields(result) == 0 || PQgetisnull(result, 0, 0) ||
        PQftype(result, 0) == OID_VOID) {
        return 0;
    }
    const char *value = PQgetvalue(result, 0, 0);
    size_t size = (size_t)PQgetlength(result, 0, 0);
    if (is_json_type(PQftype(result, 0)) && answer_is_meant(value, size)) {
        int code = answer_parse(value, size, &id, &job->outcome, err);
        if (code) {
            mr_error_prefix(err, "the function gave an answer that cannot be used");
        }
        return code;
    }
    if (!answers_only) {
        complete_with(&job->outcome, value, PQftype(result, 0));
    }
    return buf_status(&job->outcome.members, err);
}

// ---- statements ----

static int64_t timeout_of(const struct run *run, const struct sql_job *job)
{
    int64_t own_ms = job->held->job->timeout_ms;
    int64_t ms = own_ms > 0 ? own_ms : run->target->timeout_ms;

    return ms < TIMEOUT_MAX_MS ? ms : TIMEOUT_MAX_MS;
}

// The longest of some jobs; 0 when one of them has none.
static int64_t timeout_of_jobs(const struct run *run, int from, int to)
{
    int64_t longest_ms = 0;

    for (int i = from; i < to; i++) {
        int64_t ms = timeout_of(run, &run->group->jobs[i]);
        if (ms <= 0) {
            return 0;
        }
        longest_ms = ms > longest_ms ? ms : longest_ms;
    }
    return longest_ms;
}

// The limit by our own clock; 0: none.
static int64_t limit_of(int64_t timeout_ms)
{
    return timeout_ms > 0 ? timeout_ms + LIMIT_MARGIN_MS : 0;
}

static int add_step(struct sql_step *steps, int count, const char *statement)
{
    steps[count] = (struct sql_step){statement, NULL};
    return count + 1;
}

// Puts what the savepoint needs before the next statement.
static int add_savepoint(struct run *run, struct sql_step *steps, int count)
{
    if (run->savepoint == SAVEPOINT_UNDO) {
        count = add_step(steps, count, "rollback to savepoint job");
    }
    if (run->savepoint != SAVEPOINT_NONE) {
        count = add_step(steps, count, "release savepoint job");
    }
    run->savepoint = SAVEPOINT_NONE;
    return count;
}

// A statement that was cancelled after its time says so.
static void tell_timeout(int code, int64_t began_ms, int64_t timeout_ms, struct mr_error *err)
{
    if (code == MR_ETIMEOUT && timeout_ms > 0 && clock_ms() - began_ms >= timeout_ms) {
        mr_error_prefix(err, "timed out after %lld ms", (long long)timeout_ms);
    }
}

// Runs what calls the function for jobs from..to-1, unless one of them is cancelled meanwhile.
static int run_function(struct run *run, int from, int to, const struct sql_step *steps, int count,
                        int64_t limit_ms, PGresult **ret, struct mr_error *err)
{
    run->first = from;
    run->last = to;
    int code = sql_session_run(run->session, steps, count, limit_ms, ret, err);
    run->first = run->last = 0;
    return code;
}

// Calls the function for jobs from..to-1 under a savepoint and a timeout.
static int call_function(struct run *run, int from, int to, const char *statement,
                         const struct call *params, PGresult **ret, struct mr_error *err)
{
    struct sql_step steps[SQL_STEPS_MAX];
    char statement_timeout[64], lock_timeout[64];
    int64_t timeout_ms = timeout_of_jobs(run, from, to);
    int64_t began_ms = clock_ms();
    int code = check_stopped(run, from, to, err);

    if (code) {
        return code;
    }
    snprintf(statement_timeout, sizeof(statement_timeout), "set local statement_timeout = %lld",
             (long long)timeout_ms);
    snprintf(lock_timeout, sizeof(lock_timeout), "set local lock_timeout = %lld",
             (long long)(timeout_ms > 0 ? timeout_ms : SQL_LOCK_MS));
    int count = add_savepoint(run, steps, 0);
    count = add_step(steps, count, "savepoint job");
    count = add_step(steps, count, lock_timeout);
    count = add_step(steps, count, statement_timeout);
    steps[count++] = (struct sql_step){statement, params};
    code = run_function(run, from, to, steps, count, limit_of(timeout_ms), ret, err);
    run->savepoint = code ? SAVEPOINT_UNDO : SAVEPOINT_RELEASE;
    tell_timeout(code, began_ms, timeout_ms, err);
    return code;
}

// Whether an error in a function concerns the transaction: it cannot go on, or would go well if
// all of it were done again.
static bool is_wider(const struct run *run, int code)
{
    return code == MR_ECONNECT || code == MR_EREADONLY || is_dropped(run) ||
           (code == MR_ECONFLICT && run->tries < SQL_TRIES);
}

// ---- a function for each job ----

// Fails only where the transaction cannot go on.
static int run_job(struct run *run, int at, struct mr_error *err)
{
    struct sql_job *job = &run->group->jobs[at];
    AUTO_CALL params;
    AUTO_BUF text;
    PGresult *result = NULL;

    buf_init(&text, JOB_TEXT_MAX);
    call_init(&params, CALL_FINISH);
    if (job->decided) {
        return 0;
    }
    job_text_json(job->held->job, &text);
    call_text(&params, buf_peek(&text));
    int code = buf_status(&text, err);
    if (code == 0) {
        code = call_function(run, at, at + 1, run->target->function.data, &params, &result, err);
    }
    if (code == 0) {
        code = read_value(job, result, false, err);
        run->savepoint = code ? SAVEPOINT_UNDO : SAVEPOINT_RELEASE;
        PQclear(result);
    }
    if (code == 0 || is_wider(run, code)) {
        return code;
    }
    fail_job(job, err);
    return 0;
}

static int run_jobs(struct run *run, int from, int *end, struct mr_error *err)
{
    int64_t began_ms = clock_ms();
    int code = 0;

    for (int i = from; i < *end && code == 0; i++) {
        if (i > from && clock_ms() - began_ms > SQL_TRANSACTION_MS) {
            *end = i;
            return 0;
        }
        code = run_job(run, i, err);
    }
    return code;
}

// ---- a function for many jobs ----

static struct sql_job *find_job(struct run *run, int from, int to, const char *id_text)
{
    int64_t id = 0;

    if (!str_parse_int(id_text, 0, INT64_MAX, &id)) {
        return NULL;
    }
    for (int i = from; i < to; i++) {
        if (run->group->jobs[i].held->job->id == id) {
            return &run->group->jobs[i];
        }
    }
    return NULL;
}

// Rows of id and error, of those that failed.
static int read_failures(struct run *run, int from, int to, const PGresult *result,
                         struct mr_error *err)
{
    bool none = PQnfields(result) == 1 && PQftype(result, 0) == OID_VOID;

    for (int i = from; i < to; i++) {
        outcome_complete(&run->group->jobs[i].outcome, NULL);
    }
    if (!none && PQnfields(result) < 2) {
        mr_error_set(err, MR_EINVALID, "the function returns %d column, not id and error",
                     PQnfields(result));
        mr_error_detail(err, "A batch function is declared with: returns table (id bigint, "
                             "error text)");
        return MR_EINVALID;
    }
    for (int row = 0; !none && row < PQntuples(result); row++) {
        struct sql_job *job = find_job(run, from, to, PQgetvalue(result, row, 0));
        if (!job) {
            return mr_error_set(err, MR_EINVALID,
                                "the function returned the id %.40s, which is "
                                "not in its batch",
                                PQgetvalue(result, row, 0));
        }
        bool silent = PQgetisnull(result, row, 1);
        outcome_fail(&job->outcome,
                     silent ? "the handler gave no reason" : PQgetvalue(result, row, 1), 0, false);
    }
    return 0;
}

// The jobs' texts as one jsonb[].
static int batch_params(struct run *run, int from, int to, struct call *params,
                        struct mr_error *err)
{
    const char **texts = calloc((size_t)(to - from), sizeof(*texts));
    AUTO_BUF all;

    buf_init(&all, CALL_SIZE_MAX);
    for (int i = from; i < to; i++) {
        job_text_json(run->group->jobs[i].held->job, &all);
        buf_add(&all, "", 1);
    }
    int code = texts ? buf_status(&all, err) : mr_error_set(err, MR_ENOMEM, "out of memory");
    const char *text = buf_peek(&all);
    for (int i = 0; texts && code == 0 && i < to - from; i++) {
        texts[i] = text;
        text += strlen(text) + 1;
    }
    if (texts && code == 0) {
        call_json_array(params, texts, (size_t)(to - from));
        code = call_status(params, err);
    }
    free(texts);
    return code;
}

static int call_batch(struct run *run, int from, int to, struct mr_error *err)
{
    AUTO_CALL params;
    PGresult *result = NULL;

    call_init(&params, CALL_FINISH);
    int code = batch_params(run, from, to, &params, err);
    if (code == 0) {
        code = call_function(run, from, to, run->target->batch.data, &params, &result, err);
    }
    if (code == 0) {
        code = read_failures(run, from, to, result, err);
        run->savepoint = code ? SAVEPOINT_UNDO : SAVEPOINT_RELEASE;
        PQclear(result);
    }
    return code;
}

// When it raises, each half is tried by itself: the job that is to blame fails alone.
static int run_batch(struct run *run, int from, int to, struct mr_error *err)
{
    int code = from < to ? call_batch(run, from, to, err) : 0;
    int middle = from + (to - from) / 2;

    if (code == 0 || is_wider(run, code)) {
        return code;
    }
    if (to - from == 1) {
        fail_job(&run->group->jobs[from], err);
        return 0;
    }
    code = run_batch(run, from, middle, err);
    return code ? code : run_batch(run, middle, to, err);
}

// Jobs whose answers were refused stand in between: those around them are batches.
static int run_batches(struct run *run, int from, int to, struct mr_error *err)
{
    int code = 0;

    for (int i = from; i < to && code == 0; i++) {
        if (run->group->jobs[i].decided) {
            code = run_batch(run, from, i, err);
            from = i + 1;
        }
    }
    return code ? code : run_batch(run, from, to, err);
}

// ---- the transaction ----

// With a snapshot for the whole transaction every heartbeat would be a conflict.
static int begin(struct run *run, struct mr_error *err)
{
    const struct sql_step step = {"begin isolation level read committed", NULL};
    int code = sql_session_connect(run->session, err);

    run->savepoint = SAVEPOINT_NONE;
    run->unreachable = code != 0;
    code = code ? code : check_stopped(run, 0, 0, err);
    return code ? code : sql_session_run(run->session, &step, 1, SQL_FINISH_MS, NULL, err);
}

// The outcomes of these jobs as finish() wants them.
static void add_outcomes(const struct run *run, int from, int to, struct buf *out)
{
    for (int i = from; i < to; i++) {
        const struct sql_job *job = &run->group->jobs[i];
        buf_puts(out, i == from ? "[" : ",");
        outcome_print(&job->outcome, job->held->job->id, out);
    }
    buf_puts(out, "]");
}

static int finish(struct run *run, int from, int to, struct mr_error *err)
{
    struct sql_step steps[SQL_STEPS_MAX];
    char timeout[64];
    AUTO_CALL params;
    AUTO_BUF text;

    buf_init(&text, CALL_SIZE_MAX);
    add_outcomes(run, from, to, &text);
    call_init(&params, CALL_FINISH);
    call_text(&params, run->group->jobs[from].held->job->lease);
    call_text(&params, buf_peek(&text));
    int code = buf_status(&text, err);
    if (code) {
        return code;
    }
    snprintf(timeout, sizeof(timeout), "set local statement_timeout = %d", SQL_FINISH_MS);
    int count = add_savepoint(run, steps, 0);
    count = add_step(steps, count, "set local lock_timeout = 0");
    count = add_step(steps, count, timeout);
    steps[count++] = (struct sql_step){call_infos[CALL_FINISH].statement, &params};
    return sql_session_run(run->session, steps, count, limit_of(SQL_FINISH_MS), NULL, err);
}

static int commit(struct run *run, struct mr_error *err)
{
    const struct sql_step step = {"commit", NULL};
    int code = sql_session_run(run->session, &step, 1, limit_of(SQL_FINISH_MS), NULL, err);

    run->unclear = code == MR_ECONNECT;
    return code;
}

// Jobs from `from` on; *end is how far it came, at most what it was.
static int transaction(struct run *run, int from, int *end, struct mr_error *err)
{
    int code = begin(run, err);

    if (code == 0 && atomic_load(&run->target->mode) == SQL_BATCH) {
        code = run_batches(run, from, *end, err);
    } else if (code == 0) {
        code = run_jobs(run, from, end, err);
    }
    if (code == 0) {
        code = finish(run, from, *end, err);
    }
    if (code == 0) {
        code = commit(run, err);
    }
    if (code) {
        sql_session_rollback(run->session);
    }
    return code;
}

// Whether finish() accepts the outcome of one job. Nothing stays of it.
static int try_outcome(struct run *run, int at, struct mr_error *err)
{
    const struct sql_step step = {"savepoint job", NULL};
    struct sql_step steps[SQL_STEPS_MAX];
    int code = sql_session_run(run->session, &step, 1, SQL_FINISH_MS, NULL, err);

    if (code) {
        return code;
    }
    code = finish(run, at, at + 1, err);
    run->savepoint = SAVEPOINT_UNDO;
    int count = add_savepoint(run, steps, 0);
    int after = sql_session_run(run->session, steps, count, SQL_FINISH_MS, NULL, NULL);
    return after ? after : code;
}

// finish() refused something: which of them? Returns how many were found; those fail, and are not
// called again.
static int find_refused(struct run *run, int from, int to)
{
    struct mr_error err;
    int found = 0;
    int code = begin(run, &err);

    for (int i = from; i < to && code != MR_ECONNECT; i++) {
        struct sql_job *job = &run->group->jobs[i];
        code = try_outcome(run, i, &err);
        if (mr_code_class(code) == MR_CLASS_REJECTED && !job->decided) {
            mr_error_prefix(&err, "the outcome was refused");
            mr_error_detail(&err, "%s", ""); // where in our own functions
            fail_job(job, &err);
            job->decided = true;
            found++;
        }
    }
    sql_session_rollback(run->session);
    return found;
}

// ---- when it fails ----

enum remedy {
    REMEDY_AGAIN,   // the same once more
    REMEDY_HALVE,   // somebody in there is to blame
    REMEDY_RELEASE, // not ours any more, or nobody knows
    REMEDY_FAIL,    // no job is to blame, and it would not go better
};

static enum remedy remedy_of(struct run *run, int from, int end, int code)
{
    if (is_dropped(run) || run->unclear || code == MR_ELEASE) {
        return REMEDY_RELEASE;
    }
    if (run->unreachable) {
        return REMEDY_FAIL;
    }
    if (code == MR_EREADONLY) {
        sql_session_reset(run->session); // the primary may be elsewhere by now
    }
    if (mr_code_class(code) == MR_CLASS_REJECTED && find_refused(run, from, end) > 0) {
        return REMEDY_AGAIN;
    }
    if ((code == MR_ECONNECT || code == MR_EREADONLY || code == MR_ECONFLICT || code == MR_ELOCK) &&
        run->tries < SQL_TRIES) {
        sql_session_pause(run->session, (int64_t)PAUSE_MS << run->tries++);
        return REMEDY_AGAIN;
    }
    return mr_code_class(code) == MR_CLASS_CONFIG ? REMEDY_FAIL : REMEDY_HALVE;
}

static void run_range(struct run *run, int from, int to)
{
    struct mr_error err;

    while (from < to) {
        int end = to;
        int code = transaction(run, from, &end, &err);
        if (code == 0) {
            keep_jobs(run, from, end);
            from = end;
            continue;
        }
        switch (remedy_of(run, from, end, code)) {
        case REMEDY_AGAIN: break;
        case REMEDY_HALVE:
            if (end - from == 1) {
                fail_job(&run->group->jobs[from], &err);
            } else {
                run_range(run, from, from + (end - from) / 2);
                run_range(run, from + (end - from) / 2, end);
            }
            from = end;
            break;
        case REMEDY_RELEASE:
            end = run->unclear ? end : to;
            run->unclear = false;
            release_jobs(run, from, end);
            from = end;
            break;
        case REMEDY_FAIL:
            fail_jobs(run, from, end, &err);
            from = end;
            break;
        }
    }
}

// ---- a procedure ----

// At least once: it commits by itself, and its outcome is written afterwards, by the worker.
static int call_procedure(struct run *run, int at, struct mr_error *err)
{
    struct sql_job *job = &run->group->jobs[at];
    int64_t timeout_ms = timeout_of(run, job);
    AUTO_CALL params;
    AUTO_BUF text;
    PGresult *result = NULL;

    buf_init(&text, JOB_TEXT_MAX);
    call_init(&params, CALL_FINISH);
    job_text_json(job->held->job, &text);
    call_text(&params, buf_peek(&text));
    const struct sql_step step = {run->target->procedure.data, &params};
    int code = buf_status(&text, err);
    code = code ? code : sql_session_connect(run->session, err);
    code = code ? code : check_stopped(run, at, at + 1, err);
    if (code == 0) {
        int64_t began_ms = clock_ms();
        code = run_function(run, at, at + 1, &step, 1, timeout_ms, &result, err);
        tell_timeout(code, began_ms, timeout_ms, err);
    }
    if (code == 0) {
        code = read_value(job, result, true, err);
        PQclear(result);
    }
    return code;
}

static void run_procedures(struct run *run, int from, int to)
{
    struct mr_error err;

    for (int i = from; i < to; i++) {
        struct sql_job *job = &run->group->jobs[i];
        if (is_dropped(run)) {
            outcome_release(&job->outcome);
        } else if (call_procedure(run, i, &err)) {
            fail_job(job, &err);
        }
    }
}

// ---- which of them ----

// "wrong_object_type": it is there, but cannot stand in a query.
static bool is_procedure(struct run *run)
{
    struct mr_error err;
    int mode = atomic_load(&run->target->mode);

    if (mode != SQL_UNKNOWN) {
        return mode == SQL_PROCEDURE;
    }
    if (sql_session_connect(run->session, &err)) {
        return false; // comes to light once more, and is dealt with there
    }
    int code = sql_session_check(run->session, run->target->function.data, &err);
    bool found = code != 0 && str_equal(err.sqlstate, "42809");
    if (code == 0 || found) {
        atomic_store(&run->target->mode, found ? SQL_PROCEDURE : SQL_FUNCTION);
    }
    return found;
}

void sql_group_run(struct sql_group *group, struct sql_session *session)
{
    struct run run = {.group = group, .target = group->target, .session = session};

    sql_session_heed(session, must_stop, &run);
    if (is_procedure(&run)) {
        run_procedures(&run, 0, group->count);
    } else {
        run_range(&run, 0, group->count);
    }
    sql_session_heed(session, NULL, NULL);
}
