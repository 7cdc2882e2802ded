// SPDX-License-Identifier: PostgreSQL
//
// What the commands of the program share: how one is declared and how it ends.

#ifndef MILLRACE_CLI_COMMAND_H
#define MILLRACE_CLI_COMMAND_H

#include <stdbool.h>

#include "base/err.h"
#include "cli/options.h"
#include "client/conn.h"

enum exit_status {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_UNREACHABLE = 3,
    EXIT_FULL = 4,          // a queue has reached its depth_limit
    EXIT_NOT_COMPLETED = 5, // `wait`: the job ended in another way
    EXIT_LATE = 6,          // `wait`: it has not ended in time
};

// argv[0] is the command's own name. Returns the exit status of the program.
typedef int command_fn(int argc, char **argv);

// Writes the error to stderr, `millrace: what: why` and its detail and hint, and
// returns the exit status that belongs to it.
int command_fail(const struct mr_error *err);

// Returns `status`, or EXIT_FAILED with a message when stdout could not be written.
int command_finish(int status);

// ---- what most commands have in common ----

struct command_shared {
    const char *dsn;
    bool json;
    bool help;
};

// The rows of an option table that fill it.
#define COMMAND_SHARED_ROWS(shared)                                              \
    {"dsn", OPTION_DSN, &(shared)->dsn, "DSN", "the database; see millrace(1)"}, \
        {"json", OPTION_FLAG, &(shared)->json, NULL, "print JSON"},              \
    {                                                                            \
        "help", OPTION_FLAG, &(shared)->help, NULL, "show this"                  \
    }

// What a command is: its name without `millrace`, its arguments and how many it takes.
struct command_form {
    const char *name;
    const char *arguments; // as in the usage line, "" for none
    int least, most;
    const char *about; // sentences
    const char *page;  // of the manual
};

// Reads options and arguments. Returns the index of the first argument, or MR_EUSAGE. With
// --help the number of arguments does not count.
int command_read(const struct command_form *form, const struct option_row *rows,
                 const struct command_shared *shared, int argc, char **argv, struct mr_error *err);

// Prints the form and its options. Returns the exit status.
int command_help(const struct command_form *form, const struct option_row *rows);

// Whether a text is the id of a job. Fails with MR_EUSAGE.
int command_check_id(const char *text, struct mr_error *err);

// Whether a text is JSON; NULL is fine. Fails with MR_EUSAGE, and names the text as `what`.
int command_check_json(const char *what, const char *text, struct mr_error *err);

// A command with verbs of its own, `millrace dead list`; the table ends with a row without a
// name. Finds the verb and runs it.
struct command_verb {
    const char *name;
    command_fn *run;
};
int command_group(const char *name, const struct command_verb *verbs, int argc, char **argv);

// conn_query_params(); what our functions refuse, they refuse without the place in their code.
int command_query(struct conn *conn, const char *sql, int count, const char *const *values,
                  PGresult **ret, struct mr_error *err);

// Connects, asks once, and leaves. *ret is the caller's.
int command_ask(const char *dsn, const char *sql, int count, const char *const *values,
                PGresult **ret, struct mr_error *err);

// What stands in the first column of the row that is nearest to what was typed, borrowed from
// `rows`; NULL when nothing is near.
const char *command_nearest(const PGresult *rows, const char *typed);

// Sets the error for a queue that does not exist, with the nearest name as its hint.
int command_unknown_queue(struct conn *conn, const char *queue, struct mr_error *err);

command_fn cmd_bench;
command_fn cmd_cache;
command_fn cmd_cancel;
command_fn cmd_capture;
command_fn cmd_cron;
command_fn cmd_dead;
command_fn cmd_doctor;
command_fn cmd_enqueue;
command_fn cmd_job;
command_fn cmd_lock;
command_fn cmd_migrate;
command_fn cmd_move;
command_fn cmd_pause;
command_fn cmd_queue;
command_fn cmd_resume;
command_fn cmd_retry;
command_fn cmd_serve;
command_fn cmd_shadow;
command_fn cmd_shard;
command_fn cmd_status;
command_fn cmd_token;
command_fn cmd_top;
command_fn cmd_up;
command_fn cmd_wait;
command_fn cmd_work;

#endif
