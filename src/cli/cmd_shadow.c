// SPDX-License-Identifier: PostgreSQL
//
// `millrace shadow`: copies of a queue's jobs go to another database from its log, are given out
// there to nobody, and are compared.

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "client/mover.h"

enum { POLL_MS = 200, WAIT_DEFAULT_MS = 60000 };

static const struct command_form form = {
    "shadow",
    "QUEUE",
    1,
    1,
    "Copies the jobs of a queue to another database as they come in, has them given out\n"
    "there, compares what came out with what went in, and completes them. The queue itself\n"
    "is only read. Runs until it is stopped. Exit status: 0 all equal, 1 something is not.",
    "millrace-shadow(1)",
};

struct shadow {
    struct command_shared shared;
    struct mover_spec spec;
    const char *share; // as given
    int64_t batch;
    int64_t for_ms;  // 0: until it is stopped
    int64_t wait_ms; // without success, before it gives up
    bool until_idle, quiet;
    struct progress progress;
    struct mover_findings findings;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

// The first one ends the shadow behind a batch, the second one the program.
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void pause_ms(int64_t ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&left, NULL); // a signal ends it, and that is fine
}

// One round: a batch over, and what has come there compared. *ret: nothing was to be done.
static int round_trip(struct shadow *shadow, struct mover *mover, bool *ret, struct mr_error *err)
{
    struct mover_step step = {0};
    int code = mover_step(mover, &step, err);

    if (code == 0) {
        code = mover_check(mover, &shadow->findings, err);
    }
    if (code == 0) {
        *ret = step.jobs == 0 && shadow->findings.checked == 0;
        progress_update(&shadow->progress, shadow->findings.mirrored, 0);
    }
    return code;
}

static int run(struct shadow *shadow, struct mover *mover, struct mr_error *err)
{
    int64_t began = clock_ms(), success = began;

    while (!interrupted && (!shadow->for_ms || clock_ms() - began < shadow->for_ms)) {
        bool idle = false;
        int code = round_trip(shadow, mover, &idle, err);

        if (code && (!mover_may_retry(code) || clock_ms() - success >= shadow->wait_ms)) {
            return code;
        }
        if (code == 0) {
            success = clock_ms();
        }
        if (code == 0 && idle && shadow->until_idle) {
            return 0;
        }
        if (code || idle) {
            pause_ms(POLL_MS);
        }
    }
    return 0;
}

// ---- telling ----

static int print_table(const struct mover_findings *found, struct mr_error *err)
{
    static const struct table_column columns[] = {
        {"MIRRORED", true, 0}, {"EQUAL", true, 0},     {"MISSING", true, 0},
        {"EXTRA", true, 0},    {"DIFFERENT", true, 0}, {"OUT OF ORDER", true, 0},
        {"WAITING", true, 0},  {"CUT OFF", true, 0},   {NULL, false, 0},
    };
    AUTO_TABLE table;

    table_init(&table, columns);
    table_add_number(&table, found->mirrored);
    table_add_number(&table, found->equal);
    table_add_number(&table, found->missing);
    table_add_number(&table, found->extra);
    table_add_number(&table, found->different);
    table_add_number(&table, found->out_of_order);
    table_add_number(&table, found->waiting);
    table_add_number(&table, found->cut);
    return table_print(&table, stdout, err);
}

static void print_json(const struct mover_findings *found)
{
    printf("{\"mirrored\":%lld,\"arrived\":%lld,\"equal\":%lld,\"missing\":%lld,\"extra\":%lld,"
           "\"different\":%lld,\"out_of_order\":%lld,\"waiting\":%lld,\"cut\":%lld}\n",
           (long long)found->mirrored, (long long)found->arrived, (long long)found->equal,
           (long long)found->missing, (long long)found->extra, (long long)found->different,
           (long long)found->out_of_order, (long long)found->waiting, (long long)found->cut);
}

static bool is_equal(const struct mover_findings *found)
{
    return found->missing + found->extra + found->different + found->out_of_order + found->cut ==
               0 &&
           found->mirrored == found->arrived;
}

// ---- the command ----

// `10%` or `10`.
static int read_share(const char *text, double *ret, struct mr_error *err)
{
    char *end = NULL;
    double share = strtod(text, &end);

    if (end == text || !(str_equal(end, "") || str_equal(end, "%")) || !(share > 0) ||
        share > 100) {
        mr_error_set(err, MR_EUSAGE, "wrong value for --share: \"%s\"", text);
        mr_error_hint(err, "Write a percentage above 0, at most 100: 10%%.");
        return MR_EUSAGE;
    }
    *ret = share;
    return 0;
}

static int read_spec(struct shadow *shadow, const char *queue, struct mr_error *err)
{
    shadow->spec.queue = queue;
    shadow->spec.from = shadow->shared.dsn;
    if (!shadow->spec.to) {
        mr_error_set(err, MR_EUSAGE, "shadow needs --to, the database that gets copies");
        mr_error_hint(err, "Example: millrace shadow %s --to postgresql://other/app", queue);
        return MR_EUSAGE;
    }
    if (shadow->batch < 1 || shadow->batch > MOVER_BATCH_MAX) {
        return mr_error_set(err, MR_EUSAGE, "--batch is 1 to %d", MOVER_BATCH_MAX);
    }
    shadow->spec.batch = (int)shadow->batch;
    return shadow->share ? read_share(shadow->share, &shadow->spec.share, err) : 0;
}

static int follow(struct shadow *shadow, struct mr_error *err)
{
    AUTO_MOVER *mover = NULL;
    int code = mover_new(&shadow->spec, &mover, err);

    if (code == 0) {
        catch_signals();
        progress_init(&shadow->progress, "jobs", 0, shadow->quiet || shadow->shared.json);
        code = run(shadow, mover, err);
        progress_clear(&shadow->progress);
    }
    if (code) {
        return code;
    }
    if (shadow->shared.json) {
        print_json(&shadow->findings);
        return 0;
    }
    return print_table(&shadow->findings, err);
}

int cmd_shadow(int argc, char **argv)
{
    struct shadow shadow = {
        .batch = MOVER_BATCH_DEFAULT, .wait_ms = WAIT_DEFAULT_MS, .spec = {.copy = true}};
    const struct option_row rows[] = {
        {"to", OPTION_STRING, &shadow.spec.to, "DSN", "the database that gets copies; needed"},
        {"to-queue", OPTION_STRING, &shadow.spec.to_queue, "NAME",
         "the queue there (the same name)"},
        {"share", OPTION_STRING, &shadow.share, "PERCENT", "so many of the tenants (100%)"},
        {"tenant", OPTION_STRING, &shadow.spec.tenant, "NAME", "this tenant alone (all)"},
        {"batch", OPTION_NUMBER, &shadow.batch, "NUMBER", "jobs at once (1000)"},
        {"for", OPTION_DURATION, &shadow.for_ms, "TIME", "so long (until it is stopped)"},
        {"until-idle", OPTION_FLAG, &shadow.until_idle, NULL,
         "until all there is has been copied and compared"},
        {"wait", OPTION_DURATION, &shadow.wait_ms, "TIME",
         "for how long it tries again when it cannot go on (60s)"},
        {"quiet", OPTION_FLAG, &shadow.quiet, NULL, "no progress"},
        COMMAND_SHARED_ROWS(&shadow.shared),
        {0},
    };
    struct mr_error err;
    int first = command_read(&form, rows, &shadow.shared, argc, argv, &err);

    if (first < 0) {
        return command_fail(&err);
    }
    if (shadow.shared.help) {
        return command_help(&form, rows);
    }
    if (read_spec(&shadow, argv[first], &err) || follow(&shadow, &err)) {
        return command_fail(&err);
    }
    return command_finish(is_equal(&shadow.findings) ? EXIT_DONE : EXIT_FAILED);
}
