// SPDX-License-Identifier: PostgreSQL
//
// `millrace job`: the whole story of one job. For people it is told as a timeline, put together
// from the runs that the log still has and from the job's own history of failures.

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cli/command.h"
#include "cli/figure.h"
#include "cli/rows.h"
#include "cli/table.h"
#include "client/call.h"
#include "client/parcel_json.h"

// args, meta and result are cut here; --json has all of it
enum { SHOWN_MAX = 2000, EVENT_TEXT_MAX = 16 * 1024, LABEL_WIDTH = 13 };

// Columns of the query about the job.
enum {
    HEAD_ID,
    HEAD_KIND,
    HEAD_STATUS,
    HEAD_ATTEMPT,
    HEAD_MAX_ATTEMPTS,
    HEAD_CREATED_AT,
    HEAD_RUN_AT,
    HEAD_CREATED,
    HEAD_RUN,
    HEAD_WORKER,
    HEAD_CLAIMED_AT,
    HEAD_FINISHED_AT,
    HEAD_CLAIMED,
    HEAD_FINISHED,
    HEAD_FIELDS, // from here on: shown as they are, labelled with their names
};

// Columns of the query about its runs, and of the one about its history.
enum {
    RUN_ATTEMPT,
    RUN_OUTCOME,
    RUN_WORKER,
    RUN_ERROR,
    RUN_BEGIN_AT,
    RUN_END_AT,
    RUN_BEGIN,
    RUN_END
};
enum { PAST_ATTEMPT, PAST_OUTCOME, PAST_WORKER, PAST_ERROR, PAST_AT, PAST_TIME };

struct story {
    PGresult *head;
    PGresult *runs;
    PGresult *past;
};

// One line of the timeline.
struct event {
    double time;    // seconds since 1970, to sort by
    int rank;       // what came first of two at the same time
    const char *at; // as text, borrowed from a result
    const char *error;
    char text[300];
};

struct timeline {
    struct event *events;
    size_t count;
};

static const struct command_form form = {
    "job",
    "ID",
    1,
    1,
    "Tells the story of a job: what it is, and what happened to it when.",
    "millrace-job(1)",
};

// ---- asking ----

static int ask(struct conn *conn, const char *id, struct story *story, struct mr_error *err)
{
    int code = command_query(
        conn,
        "select s ->> 'id', s ->> 'kind', s ->> 'status', s ->> 'attempt', s ->> 'max_attempts',"
        " s ->> 'created_at', s ->> 'run_at', date_part('epoch', (s ->> 'created_at')::timestamptz),"
        " date_part('epoch', (s ->> 'run_at')::timestamptz), s ->> 'worker', s ->> 'claimed_at',"
        " s ->> 'finished_at', date_part('epoch', (s ->> 'claimed_at')::timestamptz),"
        " date_part('epoch', (s ->> 'finished_at')::timestamptz), s ->> 'queue' as queue,"
        " s ->> 'priority' as priority, s ->> 'tenant' as tenant, s ->> 'ref' as ref,"
        " s ->> 'source' as source, s -> 'args' as args, s -> 'meta' as meta,"
        " s -> 'result' as result, (s ->> 'progress') || ' %' as progress,"
        " s ->> 'progress_note' as note, s ->> 'cancel_requested' as cancelling,"
        " s ->> 'reason' as reason, s ->> 'batch' as batch, s -> 'needs' as needs,"
        " s -> 'needed_by' as needed_by from millrace.job($1::bigint) s",
        1, &id, &story->head, err);

    if (code == 0) {
        code = command_query(
            conn,
            "select a ->> 'attempt', a ->> 'outcome', a ->> 'worker', a ->> 'error',"
            " a ->> 'claimed_at', a ->> 'finished_at',"
            " date_part('epoch', (a ->> 'claimed_at')::timestamptz),"
            " date_part('epoch', (a ->> 'finished_at')::timestamptz)"
            " from millrace.job($1::bigint) s, jsonb_array_elements(s -> 'attempts') a",
            1, &id, &story->runs, err);
    }
    if (code == 0) {
        code = command_query(
            conn,
            "select h ->> 'attempt', h ->> 'outcome', h ->> 'worker', h ->> 'error', h ->> 'at',"
            " date_part('epoch', (h ->> 'at')::timestamptz)"
            " from millrace.job($1::bigint) s, jsonb_array_elements(s -> 'history') h",
            1, &id, &story->past, err);
    }
    return code;
}

// In one snapshot: the three answers are about the same moment.
static int ask_at_once(const char *dsn, const char *id, struct story *story, struct mr_error *err)
{
    AUTO_CONN *conn = NULL;
    int code = conn_open(dsn, &conn, err);

    if (code == 0) {
        code = conn_run(conn, "begin isolation level repeatable read read only", err);
    }
    if (code == 0) {
        code = ask(conn, id, story, err);
        conn_rollback(conn);
    }
    return code;
}

// ---- the timeline ----

static double seconds_of(const PGresult *rows, int row, int column)
{
    const char *text = rows_value(rows, row, column);

    return text ? strtod(text, NULL) : 0;
}

__attribute__((format(printf, 5, 6))) static struct event *add_event(struct timeline *line,
                                                                     double time, int rank,
                                                                     const char *at,
                                                                     const char *format, ...)
{
    struct event *event = &line->events[line->count++];
    va_list args;

    *event = (struct event){.time = time, .rank = rank, .at = at};
    va_start(args, format);
    vsnprintf(event->text, sizeof(event->text), format, args);
    va_end(args);
    str_trim_utf8(event->text);
    return event;
}

static const char *words_for(const char *outcome)
{
    return str_equal(outcome, "dead") ? "failed for the last time" : outcome;
}

static void add_run(struct timeline *line, const PGresult *runs, int row)
{
    const char *attempt = PQgetvalue(runs, row, RUN_ATTEMPT);
    const char *begin_at = rows_value(runs, row, RUN_BEGIN_AT);
    const char *end_at = rows_value(runs, row, RUN_END_AT);
    double begin = seconds_of(runs, row, RUN_BEGIN);
    double end = seconds_of(runs, row, RUN_END);
    const char *worker = rows_value(runs, row, RUN_WORKER);
    AUTO_BUF took;

    buf_init(&took, SHOWN_MAX);
    if (begin_at) {
        add_event(line, begin, row * 2 + 1, begin_at, "attempt %s claimed by %s", attempt,
                  worker ? worker : "a worker");
    }
    if (!end_at) {
        return;
    }
    if (begin_at) {
        buf_puts(&took, " after ");
        figure_add_seconds(&took, end - begin);
    }
    struct event *event = add_event(line, end, row * 2 + 2, end_at, "attempt %s %s%s", attempt,
                                    words_for(PQgetvalue(runs, row, RUN_OUTCOME)), buf_peek(&took));
    event->error = rows_value(runs, row, RUN_ERROR);
}

// Whether a run that the log still has ended with this entry of the history.
static bool is_told(const PGresult *runs, const char *attempt, const char *error)
{
    for (int i = 0; i < PQntuples(runs); i++) {
        const char *told = rows_value(runs, i, RUN_ERROR);
        if (str_equal(PQgetvalue(runs, i, RUN_ATTEMPT), attempt) && told && error &&
            str_equal(told, error)) {
            return true;
        }
    }
    return false;
}

static void add_past(struct timeline *line, const struct story *story, int row)
{
    const char *attempt = PQgetvalue(story->past, row, PAST_ATTEMPT);
    const char *error = rows_value(story->past, row, PAST_ERROR);
    const char *worker = rows_value(story->past, row, PAST_WORKER);
    const char *at = rows_value(story->past, row, PAST_AT);

    if (!at || is_told(story->runs, attempt, error)) {
        return;
    }
    struct event *event =
        add_event(line, seconds_of(story->past, row, PAST_TIME), row * 2 + 2, at,
                  "attempt %s %s%s%s", attempt, PQgetvalue(story->past, row, PAST_OUTCOME),
                  worker ? ", worker " : "", worker ? worker : "");
    event->error = error;
}

// Of a job that only the archive has, the last run is in what is known of the job itself.
static void add_archived(struct timeline *line, const PGresult *head)
{
    const char *attempt = PQgetvalue(head, 0, HEAD_ATTEMPT);
    const char *claimed_at = rows_value(head, 0, HEAD_CLAIMED_AT);
    const char *finished_at = rows_value(head, 0, HEAD_FINISHED_AT);
    const char *worker = rows_value(head, 0, HEAD_WORKER);

    if (claimed_at) {
        add_event(line, seconds_of(head, 0, HEAD_CLAIMED), 1, claimed_at,
                  "attempt %s claimed by %s", attempt, worker ? worker : "a worker");
    }
    if (finished_at) {
        add_event(line, seconds_of(head, 0, HEAD_FINISHED), 2, finished_at, "%s",
                  PQgetvalue(head, 0, HEAD_STATUS));
    }
}

static int by_time(const void *a, const void *b)
{
    const struct event *x = a;
    const struct event *y = b;

    if (x->time != y->time) {
        return x->time < y->time ? -1 : 1;
    }
    return x->rank - y->rank;
}

static void collect(struct timeline *line, const struct story *story)
{
    const char *run_at = rows_value(story->head, 0, HEAD_RUN_AT);
    double created = seconds_of(story->head, 0, HEAD_CREATED);
    double due = seconds_of(story->head, 0, HEAD_RUN);

    add_event(line, created, 0, PQgetvalue(story->head, 0, HEAD_CREATED_AT), "enqueued");
    for (int i = 0; i < PQntuples(story->runs); i++) {
        add_run(line, story->runs, i);
    }
    if (PQntuples(story->runs) == 0) {
        add_archived(line, story->head);
    }
    for (int i = 0; i < PQntuples(story->past); i++) {
        add_past(line, story, i);
    }
    if (run_at && due > created) {
        add_event(line, due, 0, run_at, "due");
    }
    qsort(line->events, line->count, sizeof(*line->events), by_time);
}

// An error may have many lines: each is indented below its event.
static void print_error(const char *error)
{
    while (*error) {
        size_t len = strcspn(error, "\n");
        AUTO_BUF text;

        buf_init(&text, EVENT_TEXT_MAX);
        buf_add(&text, error, len);
        printf("      ");
        table_put_text(buf_peek(&text), stdout);
        puts("");
        error += len + (error[len] == '\n');
    }
}

static void print_event(const struct event *event)
{
    AUTO_BUF at;

    buf_init(&at, SHOWN_MAX);
    figure_add_clock(&at, event->at);
    printf("  %s  ", buf_peek(&at));
    table_put_text(event->text, stdout);
    puts("");
    if (event->error) {
        print_error(event->error);
    }
}

static int print_timeline(const struct story *story, struct mr_error *err)
{
    // two lines a run, one an entry of the history, and four of the job itself
    size_t most = 2 * (size_t)PQntuples(story->runs) + (size_t)PQntuples(story->past) + 4;
    struct timeline line = {.events = calloc(most, sizeof(struct event))};

    if (!line.events) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    collect(&line, story);
    puts("\ntimeline");
    for (size_t i = 0; i < line.count; i++) {
        print_event(&line.events[i]);
    }
    free(line.events);
    return 0;
}

// ---- the job ----

static void print_field(const char *label, const char *value)
{
    char shown[SHOWN_MAX + 1];

    snprintf(shown, sizeof(shown), "%s", value);
    str_trim_utf8(shown);
    printf("  %-*s", LABEL_WIDTH, label);
    table_put_text(shown, stdout);
    puts(strlen(value) > SHOWN_MAX ? "… (--json has all of it)" : "");
}

static void print_head(const PGresult *head)
{
    printf("job %s: ", PQgetvalue(head, 0, HEAD_ID));
    table_put_text(PQgetvalue(head, 0, HEAD_KIND), stdout);
    printf(", %s, attempt %s of %s\n", PQgetvalue(head, 0, HEAD_STATUS),
           PQgetvalue(head, 0, HEAD_ATTEMPT), PQgetvalue(head, 0, HEAD_MAX_ATTEMPTS));
    for (int i = HEAD_FIELDS; i < PQnfields(head); i++) {
        const char *value = rows_value(head, 0, i);
        if (value) {
            print_field(PQfname(head, i), value);
        }
    }
}

static int print_story(const char *dsn, const char *id, struct mr_error *err)
{
    struct story story = {0};
    int code = ask_at_once(dsn, id, &story, err);

    if (code == 0) {
        print_head(story.head);
        code = print_timeline(&story, err);
    }
    PQclear(story.head);
    PQclear(story.runs);
    PQclear(story.past);
    return code;
}

static int print_json(const char *dsn, const char *id, struct mr_error *err)
{
    AUTO_RESULT *rows = NULL;
    AUTO_BUF shown;

    buf_init(&shown, CALL_SIZE_MAX);
    int code = command_ask(dsn, "select millrace.job($1::bigint)", 1, &id, &rows, err);
    if (code || (code = parcel_json_show(json_slice_of(PQgetvalue(rows, 0, 0)), &shown, err))) {
        return code;
    }
    puts(buf_peek(&shown));
    return 0;
}

int cmd_job(int argc, char **argv)
{
    struct command_shared shared = {0};
    const struct option_row rows[] = {COMMAND_SHARED_ROWS(&shared), {0}};
    struct mr_error err;
    int first = command_read(&form, rows, &shared, argc, argv, &err);

    if (first < 0) {
        return command_fail(&err);
    }
    if (shared.help) {
        return command_help(&form, rows);
    }
    if (command_check_id(argv[first], &err) ||
        (shared.json ? print_json : print_story)(shared.dsn, argv[first], &err)) {
        return command_fail(&err);
    }
    return command_finish(EXIT_DONE);
}
