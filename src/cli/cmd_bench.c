// SPDX-License-Identifier: PostgreSQL
//
// `millrace bench`: measures a server.

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "bench/bench.h"
#include "cli/bench_report.h"
#include "cli/command.h"
#include "cli/progress.h"

enum { MODES_MAX = 16 };

struct bench_command {
    struct command_shared shared;
    struct bench_spec spec;
    const char *compare;
    bool yes;
    const struct bench_mode *modes[MODES_MAX + 1];
};

static const struct command_form form = {
    "bench",
    "[MODE...]",
    0,
    MODES_MAX,
    "Measures a server: in a scratch database that it makes and drops, or with --here in queues\n"
    "of the database itself. The modes are enqueue (in bulk), single (one job a transaction),\n"
    "drain, steady (producers and workers at once), latency, depth, snapshot (a held one), wal\n"
    "and history; without one all are measured.",
    "millrace-bench(1)",
};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

// The first one ends the measurement in order, the second one the program.
static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct sigaction before;
        sigaction(numbers[i], NULL, &before);
        // nohup has it ignored
        if (before.sa_handler != SIG_IGN) {
            sigaction(numbers[i], &action, NULL);
        }
    }
}

// ---- progress ----

struct shown {
    struct progress progress;
    char what[160];
};

static void show(void *arg, const char *what, int64_t done, int64_t whole)
{
    struct shown *shown = arg;
    char noun[sizeof(shown->what)];

    snprintf(noun, sizeof(noun), "jobs (%s)", what);
    if (!str_equal(noun, shown->what) || shown->progress.whole != whole) {
        memcpy(shown->what, noun, sizeof(noun));
        progress_init(&shown->progress, shown->what, whole, false);
    }
    progress_update(&shown->progress, done, done);
}

// ---- the command line ----

static int check_range(const char *name, int64_t value, int64_t least, int64_t most,
                       struct mr_error *err)
{
    if (value >= least && value <= most) {
        return 0;
    }
    return mr_error_set(err, MR_EUSAGE, "bench: --%s must be from %lld to %lld", name,
                        (long long)least, (long long)most);
}

static int check_ranges(const struct bench_spec *spec, struct mr_error *err)
{
    const struct {
        const char *name;
        int64_t value, least, most;
    } rows[] = {
        {"jobs", spec->jobs, 1, SPEC_JOBS_MAX},
        {"payload", spec->payload_bytes, SPEC_PAYLOAD_MIN, SPEC_PAYLOAD_MAX},
        {"batch", spec->batch, 1, SPEC_BATCH_MAX},
        {"chunk", spec->chunk, 1, SPEC_CHUNK_MAX},
        {"workers", spec->workers, 1, SPEC_WORKERS_MAX},
        {"concurrency", spec->concurrency, 0, SPEC_CONCURRENCY_MAX},
        {"parts", spec->parts, 1, SPEC_PARTS_MAX},
        {"depth", spec->depth, 1, SPEC_JOBS_MAX},
        {"seconds", spec->seconds, 1, SPEC_SECONDS_MAX},
        {"rate", spec->rate, 0, SPEC_RATE_MAX},
        {"repeat", spec->repeat, 1, SPEC_REPEAT_MAX},
    };
    int code = 0;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && code == 0; i++) {
        code = check_range(rows[i].name, rows[i].value, rows[i].least, rows[i].most, err);
    }
    return code;
}

static int unknown_mode(const char *typed, struct mr_error *err)
{
    AUTO_BUF names;

    buf_init(&names, 1024);
    for (const struct bench_mode *mode = bench_modes; mode->name; mode++) {
        buf_printf(&names, "%s%s", names.len ? ", " : "", mode->name);
    }
    mr_error_set(err, MR_EUSAGE, "bench: unknown mode: %s", typed);
    mr_error_hint(err, "The modes are %s.", buf_peek(&names));
    return MR_EUSAGE;
}

static int cannot_be_here(const struct bench_mode *mode, struct mr_error *err)
{
    mr_error_set(err, MR_EUSAGE, "bench: %s cannot be measured with --here: %s", mode->name,
                 mode->not_here);
    mr_error_hint(err, "Leave out --here, which needs the right to create a database.");
    return MR_EUSAGE;
}

static int take_modes(struct bench_command *command, int argc, char **argv, int first,
                      struct mr_error *err)
{
    size_t count = 0;

    for (int i = first; i < argc; i++) {
        const struct bench_mode *mode = bench_mode_find(argv[i]);
        if (!mode) {
            return unknown_mode(argv[i], err);
        }
        if (command->spec.here && mode->not_here) {
            return cannot_be_here(mode, err);
        }
        command->modes[count++] = mode;
    }
    for (const struct bench_mode *mode = bench_modes; first == argc && mode->name; mode++) {
        if (!command->spec.here || !mode->not_here) {
            command->modes[count++] = mode;
        }
    }
    return 0;
}

static int check_compare(struct bench_command *command, struct mr_error *err)
{
    if (!command->compare) {
        return 0;
    }
    if (!str_equal(command->compare, "textbook")) {
        mr_error_set(err, MR_EUSAGE, "bench: cannot compare with %s", command->compare);
        mr_error_hint(err, "Write --compare textbook.");
        return MR_EUSAGE;
    }
    if (command->spec.here) {
        mr_error_set(err, MR_EUSAGE,
                     "bench: --compare textbook cannot be done with --here: "
                     "it needs a table of its own");
        mr_error_hint(err, "Leave out --here, which needs the right to create a database.");
        return MR_EUSAGE;
    }
    command->spec.textbook = true;
    return 0;
}

static bool has_person(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

// A measurement loads the database it runs in.
static int check_consent(const struct bench_command *command, struct mr_error *err)
{
    char answer[16] = "";

    if (!command->spec.here || command->yes) {
        return 0;
    }
    if (!has_person()) {
        mr_error_set(err, MR_EUSAGE, "bench: --here: cannot ask without a terminal");
        mr_error_hint(err, "Add --yes to measure in this database without being asked.");
        return MR_EUSAGE;
    }
    fprintf(stderr, "Put load on this database? Its log keeps the jobs until their retention is "
                    "over. [y/N] ");
    fflush(stderr);
    if (fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y')) {
        return 0;
    }
    return mr_error_set(err, MR_EINVALID, "bench: not confirmed, nothing was measured");
}

static int check_usage(struct bench_command *command, int argc, char **argv, int first,
                       struct mr_error *err)
{
    int code;

    command->spec.dsn = command->shared.dsn;
    if ((code = check_ranges(&command->spec, err)) || (code = check_compare(command, err)) ||
        (code = take_modes(command, argc, argv, first, err))) {
        return code;
    }
    return check_consent(command, err);
}

static int run(const struct bench_command *command, struct mr_error *err)
{
    struct shown shown = {0};
    struct bench bench = {
        .spec = &command->spec,
        .watch = {.stopped = &stopped, .arg = &shown},
    };

    if (isatty(STDERR_FILENO)) {
        bench.watch.progress = show;
    }
    catch_signals();
    int code = bench_run(&bench, command->modes, err);
    progress_clear(&shown.progress);
    if (code == 0) {
        code =
            command->shared.json ? bench_report_json(&bench, err) : bench_report_text(&bench, err);
    }
    bench_done(&bench);
    return code;
}

int cmd_bench(int argc, char **argv)
{
    struct bench_command command = {.spec = {
                                        .jobs = SPEC_JOBS_DEFAULT,
                                        .payload_bytes = SPEC_PAYLOAD_DEFAULT,
                                        .batch = SPEC_BATCH_DEFAULT,
                                        .chunk = SPEC_CHUNK_DEFAULT,
                                        .workers = 1,
                                        .parts = 1,
                                        .depth = SPEC_DEPTH_DEFAULT,
                                        .seconds = SPEC_SECONDS_DEFAULT,
                                        .repeat = 1,
                                    }};
    struct bench_spec *spec = &command.spec;
    const struct option_row rows[] = {
        {"jobs", OPTION_NUMBER, &spec->jobs, "NUMBER", "jobs of a run (100000)"},
        {"payload", OPTION_NUMBER, &spec->payload_bytes, "BYTES", "of a job's args (200)"},
        {"batch", OPTION_NUMBER, &spec->batch, "NUMBER", "jobs in one claim at most (100)"},
        {"chunk", OPTION_NUMBER, &spec->chunk, "NUMBER",
         "jobs in one transaction of a bulk enqueue (10000)"},
        {"workers", OPTION_NUMBER, &spec->workers, "NUMBER", "workers, a connection each (1)"},
        {"concurrency", OPTION_NUMBER, &spec->concurrency, "NUMBER",
         "threads of a worker (the number of cores)"},
        {"parts", OPTION_NUMBER, &spec->parts, "NUMBER", "of the queue (1)"},
        {"depth", OPTION_NUMBER, &spec->depth, "JOBS", "depth: the deep backlog (200000)"},
        {"seconds", OPTION_NUMBER, &spec->seconds, "NUMBER",
         "steady, latency, single: for how long (5)"},
        {"rate", OPTION_NUMBER, &spec->rate, "NUMBER",
         "steady: jobs a second; 0 is as fast as they can (0)"},
        {"hold-snapshot", OPTION_FLAG, &spec->hold_snapshot, NULL,
         "another session holds a snapshot meanwhile"},
        {"upkeep", OPTION_FLAG, &spec->upkeep, NULL,
         "maintain runs beside it once a second, as in a daemon"},
        {"repeat", OPTION_NUMBER, &spec->repeat, "NUMBER", "runs of each mode (1)"},
        {"compare", OPTION_STRING, &command.compare, "NAME",
         "measure textbook too, a table with SKIP LOCKED"},
        {"here", OPTION_FLAG, &spec->here, NULL, "in this database, in queues of its own"},
        {"yes", OPTION_FLAG, &command.yes, NULL, "with --here: do not ask"},
        COMMAND_SHARED_ROWS(&command.shared),
        {0},
    };
    struct mr_error err;
    int first = command_read(&form, rows, &command.shared, argc, argv, &err);

    if (first >= 0 && command.shared.help) {
        return command_help(&form, rows);
    }
    if (first < 0 || check_usage(&command, argc, argv, first, &err) || run(&command, &err)) {
        return command_fail(&err);
    }
    return command_finish(EXIT_DONE);
}
