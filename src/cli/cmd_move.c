// SPDX-License-Identifier: PostgreSQL
//
// `millrace move`: the jobs of a queue go to another database.

#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/figure.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "client/mover.h"

enum { PAUSE_FIRST_MS = 100, PAUSE_MAX_MS = 2000, WAIT_DEFAULT_MS = 60000, FIGURE_MAX = 64 };
// Between two looks of --follow at a queue that has nothing to move. Jobs that have to stay are put
// behind the others by each: hence not all the time.
enum { IDLE_FIRST_MS = 200, IDLE_MAX_MS = 10000 };

static const struct command_form form = {
    "move",
    "QUEUE",
    1,
    1,
    "Moves the jobs of a queue that wait, those for later with their times, to another\n"
    "database, each once: it may be killed at any moment and goes on when it is run again.\n"
    "Running jobs finish where they are. Exit status: 0 nothing is left, 1 something is.",
    "millrace-move(1)",
};

struct move {
    struct command_shared shared;
    struct mover_spec spec;
    int64_t batch;
    int64_t limit;   // 0: all
    int64_t wait_ms; // without success, before it gives up
    bool dry_run, give_back, follow, quiet;
    struct progress progress;
    // what was done
    int64_t jobs, again, merged, batches, carried, unreadable;
    int64_t stored; // that stay, at the last look
    struct mover_counts before, after;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

// The first one ends the move behind a batch, the second one the program.
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static int64_t waiting(const struct move *move, const struct mover_counts *counts)
{
    return counts->available + counts->scheduled + counts->retrying + counts->moving +
           (move->spec.dead ? counts->dead : 0);
}

static void pause_ms(int64_t ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&left, NULL); // a signal ends it, and that is fine
}

// ---- moving ----

static void note_step(struct move *move, const struct mover_step *step)
{
    move->jobs += step->jobs;
    move->again += step->again ? step->jobs : 0;
    move->merged += step->merged;
    move->batches++;
    move->carried += step->carried;
    move->unreadable += step->unreadable;
    progress_update(&move->progress, move->jobs, move->jobs);
}

// Says why it goes slowly, once for each reason.
static void note_trouble(struct move *move, const struct mr_error *err, int *last)
{
    if (err->code != *last && !move->quiet) {
        progress_clear(&move->progress);
        fprintf(stderr, "millrace: %s; trying again\n", err->message);
    }
    *last = err->code;
}

// One step, again and again while it may still succeed.
static int step_until_done(struct move *move, struct mover *mover, struct mover_step *ret,
                           struct mr_error *err)
{
    int64_t since = clock_ms(), pause = PAUSE_FIRST_MS;
    int last = 0;

    for (;;) {
        int code = mover_step(mover, ret, err);
        if (!mover_may_retry(code) || interrupted || clock_ms() - since >= move->wait_ms) {
            return code;
        }
        note_trouble(move, err, &last);
        pause_ms(pause);
        pause = pause * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS : pause * 2;
    }
}

static int run_steps(struct move *move, struct mover *mover, struct mr_error *err)
{
    int64_t idle = IDLE_FIRST_MS;

    while (!interrupted && (!move->limit || move->jobs < move->limit)) {
        struct mover_step step = {0};
        int code = step_until_done(move, mover, &step, err);

        move->stored = step.stored;
        if (code || (step.jobs == 0 && !move->follow)) {
            return code;
        }
        if (step.jobs) {
            note_step(move, &step);
            idle = IDLE_FIRST_MS;
        } else {
            pause_ms(idle);
            idle = idle * 2 > IDLE_MAX_MS ? IDLE_MAX_MS : idle * 2;
        }
    }
    return 0;
}

// ---- telling ----

static void add_counts(struct table *table, const char *when, const struct mover_counts *counts)
{
    table_add(table, when);
    table_add_number(table, counts->available);
    table_add_number(table, counts->scheduled);
    table_add_number(table, counts->retrying);
    table_add_number(table, counts->running);
    table_add_number(table, counts->dead);
    table_add_number(table, counts->moving);
    table_add_number(table, counts->moved);
    table_add_number(table, counts->to_depth);
}

static int print_counts(const struct move *move, struct mr_error *err)
{
    static const struct table_column columns[] = {
        {"", false, 0},       {"AVAILABLE", true, 0}, {"SCHEDULED", true, 0}, {"RETRYING", true, 0},
        {"RUNNING", true, 0}, {"DEAD", true, 0},      {"MOVING", true, 0},    {"MOVED", true, 0},
        {"THERE", true, 0},   {NULL, false, 0},
    };
    AUTO_TABLE table;

    table_init(&table, columns);
    add_counts(&table, "before", &move->before);
    if (!move->dry_run) {
        add_counts(&table, "now", &move->after);
    }
    return table_print(&table, stdout, err);
}

static void print_number(const char *before, int64_t number, const char *after)
{
    AUTO_BUF text;

    buf_init(&text, FIGURE_MAX);
    figure_add_number(&text, number);
    printf("%s%s%s", before, buf_peek(&text), after);
}

static void print_sum(const struct move *move)
{
    print_number("moved ", move->jobs, move->jobs == 1 ? " job" : " jobs");
    print_number(" in ", move->batches, move->batches == 1 ? " batch" : " batches");
    if (move->again) {
        print_number("; ", move->again, " of them had arrived before");
    }
    if (move->merged) {
        print_number("; ", move->merged, " had a unique key that a job there holds");
    }
    if (move->carried) {
        print_number("; ", move->carried, " payload parts from the blob store");
    }
    puts("");
    if (move->unreadable) {
        print_number("", move->unreadable,
                     " parts are missing in the blob store or damaged: their jobs become dead "
                     "letters there\n");
    }
    if (move->stored) {
        print_number("", move->stored,
                     " jobs stay because a part of them is in the blob store: run this again with "
                     "MILLRACE_BLOBS or --blobs\n");
    }
}

static void print_json_counts(const char *name, const struct mover_counts *counts)
{
    printf("\"%s\":{\"available\":%lld,\"scheduled\":%lld,\"retrying\":%lld,\"running\":%lld,"
           "\"dead\":%lld,\"moving\":%lld,\"moved\":%lld,\"there\":%lld}",
           name, (long long)counts->available, (long long)counts->scheduled,
           (long long)counts->retrying, (long long)counts->running, (long long)counts->dead,
           (long long)counts->moving, (long long)counts->moved, (long long)counts->to_depth);
}

static void print_json(const struct move *move)
{
    printf("{\"jobs\":%lld,\"batches\":%lld,\"again\":%lld,\"merged\":%lld,\"carried\":%lld,"
           "\"unreadable\":%lld,\"stored\":%lld,",
           (long long)move->jobs, (long long)move->batches, (long long)move->again,
           (long long)move->merged, (long long)move->carried, (long long)move->unreadable,
           (long long)move->stored);
    print_json_counts("before", &move->before);
    printf(",");
    print_json_counts("now", &move->after);
    puts("}");
}

static int tell(struct move *move, struct mr_error *err)
{
    if (move->shared.json) {
        print_json(move);
        return 0;
    }
    int code = print_counts(move, err);
    if (code == 0 && !move->dry_run) {
        print_sum(move);
    }
    return code;
}

// ---- the command ----

static int give_back(struct move *move, struct mover *mover, struct mr_error *err)
{
    int64_t count = 0;
    int code = mover_give_back(mover, &count, err);

    if (code == 0 && move->shared.json) {
        printf("{\"given_back\":%lld}\n", (long long)count);
    } else if (code == 0) {
        print_number("put ", count, count == 1 ? " job back\n" : " jobs back\n");
    }
    return code;
}

static int run(struct move *move, struct mover *mover, struct mr_error *err)
{
    int code = mover_count(mover, &move->before, err);

    if (code) {
        return code;
    }
    move->after = move->before;
    if (!move->dry_run) {
        int64_t whole = waiting(move, &move->before);
        catch_signals();
        progress_init(&move->progress, "jobs",
                      move->limit && move->limit < whole ? move->limit : whole,
                      move->quiet || move->shared.json);
        code = run_steps(move, mover, err);
        progress_clear(&move->progress);
    }
    if (code == 0 && !move->dry_run) {
        code = mover_count(mover, &move->after, err);
    }
    return code ? code : tell(move, err);
}

// What was moved is moved, also where the rest could not be.
static void hint_go_on(const struct move *move, struct mr_error *err)
{
    char said[MR_ERROR_HINT_SIZE];

    if (move->jobs) {
        snprintf(said, sizeof(said), "%s", err->hint);
        mr_error_hint(err, "%s%s%lld jobs have been moved; run the same command again to go on.",
                      said, said[0] ? " " : "", (long long)move->jobs);
    }
}

static int read_spec(struct move *move, const char *queue, struct mr_error *err)
{
    move->spec.queue = queue;
    move->spec.from = move->shared.dsn;
    if (!move->spec.to && move->give_back) {
        move->spec.to = ""; // nobody asks it
        move->spec.blobs = "";
    } else if (!move->spec.to) {
        mr_error_set(err, MR_EUSAGE, "move needs --to, the database to move to");
        mr_error_hint(err, "Example: millrace move %s --to postgresql://other/app", queue);
        return MR_EUSAGE;
    }
    if (move->batch < 1 || move->batch > MOVER_BATCH_MAX) {
        return mr_error_set(err, MR_EUSAGE, "--batch is 1 to %d", MOVER_BATCH_MAX);
    }
    move->spec.batch = (int)(move->limit && move->limit < move->batch ? move->limit : move->batch);
    return 0;
}

int cmd_move(int argc, char **argv)
{
    struct move move = {.batch = MOVER_BATCH_DEFAULT, .wait_ms = WAIT_DEFAULT_MS};
    const struct option_row rows[] = {
        {"to", OPTION_STRING, &move.spec.to, "DSN", "the database to move to; needed"},
        {"to-queue", OPTION_STRING, &move.spec.to_queue, "NAME", "the queue there (the same name)"},
        {"batch", OPTION_NUMBER, &move.batch, "NUMBER", "jobs at once (1000)"},
        {"limit", OPTION_COUNT, &move.limit, "NUMBER", "stop after so many, 0 for all (0)"},
        {"dead", OPTION_FLAG, &move.spec.dead, NULL, "dead letters, too"},
        {"blobs", OPTION_STRING, &move.spec.blobs, "ADDRESS",
         "the blob store that payload parts are in (MILLRACE_BLOBS)"},
        {"to-blobs", OPTION_STRING, &move.spec.to_blobs, "ADDRESS",
         "the one of the queue there; without it such parts go into rows"},
        {"wait", OPTION_DURATION, &move.wait_ms, "TIME",
         "for how long it tries again when it cannot go on (60s)"},
        {"follow", OPTION_FLAG, &move.follow, NULL, "go on with what comes in, until stopped"},
        {"dry-run", OPTION_FLAG, &move.dry_run, NULL, "count only"},
        {"give-back", OPTION_FLAG, &move.give_back, NULL,
         "put jobs on their way back; only when the other database is lost"},
        {"quiet", OPTION_FLAG, &move.quiet, NULL, "no progress"},
        COMMAND_SHARED_ROWS(&move.shared),
        {0},
    };
    struct mr_error err;
    AUTO_MOVER *mover = NULL;
    int first = command_read(&form, rows, &move.shared, argc, argv, &err);

    if (first < 0) {
        return command_fail(&err);
    }
    if (move.shared.help) {
        return command_help(&form, rows);
    }
    if (read_spec(&move, argv[first], &err) || mover_new(&move.spec, &mover, &err) ||
        (move.give_back ? give_back(&move, mover, &err) : run(&move, mover, &err))) {
        hint_go_on(&move, &err);
        return command_fail(&err);
    }
    bool left =
        !move.give_back && waiting(&move, &move.after) + move.after.running + move.stored > 0;
    return command_finish(left && !move.dry_run ? EXIT_FAILED : EXIT_DONE);
}
