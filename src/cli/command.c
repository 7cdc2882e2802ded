// SPDX-License-Identifier: PostgreSQL
//
// What the commands of the program share: see command.h.

#include "cli/command.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json_scan.h"
#include "base/str.h"
#include "cli/rows.h"

// The code of an error as an exit status; all others are EXIT_FAILED.
static int exit_status_of(int code)
{
    static const struct {
        int code;
        enum exit_status status;
    } rows[] = {
        {MR_EUSAGE, EXIT_USAGE},
        {MR_ECONNECT, EXIT_UNREACHABLE},
        {MR_EFULL, EXIT_FULL},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].code == code) {
            return rows[i].status;
        }
    }
    return EXIT_FAILED;
}

int command_fail(const struct mr_error *err)
{
    fflush(stdout);
    fprintf(stderr, "millrace: %s\n", err->message);
    if (err->detail[0]) {
        fprintf(stderr, "detail: %s\n", err->detail);
    }
    if (err->hint[0]) {
        fprintf(stderr, "hint: %s\n", err->hint);
    }
    return exit_status_of(err->code);
}

int command_finish(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return status;
    }
    fprintf(stderr, "millrace: cannot write to standard output: %s\n", strerror(errno));
    return EXIT_FAILED;
}

int command_help(const struct command_form *form, const struct option_row *rows)
{
    printf("usage: millrace %s%s%s [OPTION...]\n\n%s\n\n", form->name, *form->arguments ? " " : "",
           form->arguments, form->about);
    options_help(rows, stdout);
    printf("\nSee %s.\n", form->page);
    return command_finish(EXIT_DONE);
}

static int check_count(const struct command_form *form, int argc, char **argv, int first,
                       struct mr_error *err)
{
    int count = argc - first;

    if (count >= form->least && count <= form->most) {
        return first;
    }
    if (count < form->least) {
        mr_error_set(err, MR_EUSAGE, "%s: %s is missing", form->name, form->arguments);
    } else {
        mr_error_set(err, MR_EUSAGE, "%s: one argument too many: \"%s\"", form->name,
                     argv[first + form->most]);
    }
    mr_error_hint(err, "Write `millrace %s%s%s`; see `millrace %s --help`.", form->name,
                  *form->arguments ? " " : "", form->arguments, form->name);
    return MR_EUSAGE;
}

int command_read(const struct command_form *form, const struct option_row *rows,
                 const struct command_shared *shared, int argc, char **argv, struct mr_error *err)
{
    int first = options_parse(rows, argc, argv, err);

    return first < 0 || shared->help ? first : check_count(form, argc, argv, first, err);
}

int command_check_id(const char *text, struct mr_error *err)
{
    int64_t id = 0;

    if (str_parse_int(text, 1, INT64_MAX, &id)) {
        return 0;
    }
    mr_error_set(err, MR_EUSAGE, "\"%s\" is not the id of a job", text);
    mr_error_hint(err, "An id is a whole number, as `millrace enqueue` prints it.");
    return MR_EUSAGE;
}

int command_check_json(const char *what, const char *text, struct mr_error *err)
{
    int code = text ? json_check(json_slice_of(text), err) : 0;

    if (code) {
        mr_error_prefix(err, "%s", what);
        mr_error_recode(err, MR_EUSAGE);
        mr_error_hint(err, "Put JSON in single quotes for the shell: '{\"to\": \"ada\"}'.");
    }
    return code ? MR_EUSAGE : 0;
}

static int group_help(const struct command_verb *verbs)
{
    for (; verbs->name; verbs++) {
        char verb[64], help[] = "--help";
        char *argv[] = {verb, help, NULL};

        snprintf(verb, sizeof(verb), "%s", verbs->name);
        verbs->run(2, argv);
        if (verbs[1].name) {
            puts("");
        }
    }
    return command_finish(EXIT_DONE);
}

static int no_verb(const char *name, const struct command_verb *verbs, const char *typed)
{
    struct mr_error err;
    char list[200] = "";
    size_t len = 0;

    for (; verbs->name && len < sizeof(list); verbs++) {
        len +=
            (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", len ? ", " : "", verbs->name);
    }
    if (typed) {
        mr_error_set(&err, MR_EUSAGE, "unknown command: %s %s", name, typed);
    } else {
        mr_error_set(&err, MR_EUSAGE, "%s: what to do is missing", name);
    }
    mr_error_hint(&err, "Write `millrace %s` and one of %s; see `millrace %s --help`.", name, list,
                  name);
    return command_fail(&err);
}

int command_group(const char *name, const struct command_verb *verbs, int argc, char **argv)
{
    if (argc > 1 && str_equal(argv[1], "--help")) {
        return group_help(verbs);
    }
    for (const struct command_verb *verb = verbs; argc > 1 && verb->name; verb++) {
        if (str_equal(argv[1], verb->name)) {
            return verb->run(argc - 1, argv + 1);
        }
    }
    return no_verb(name, verbs, argc > 1 ? argv[1] : NULL);
}

int command_query(struct conn *conn, const char *sql, int count, const char *const *values,
                  PGresult **ret, struct mr_error *err)
{
    int code = conn_query_params(conn, sql, count, values, ret, err);

    if (code && err->error_class == MR_CLASS_REJECTED) {
        mr_error_detail(err, "%s", "");
    }
    if (code == 0) {
        rows_decode(*ret);
    }
    return code;
}

int command_ask(const char *dsn, const char *sql, int count, const char *const *values,
                PGresult **ret, struct mr_error *err)
{
    AUTO_CONN *conn = NULL;
    int code = conn_open(dsn, &conn, err);

    return code ? code : command_query(conn, sql, count, values, ret, err);
}

const char *command_nearest(const PGresult *rows, const char *typed)
{
    const char *nearest = NULL;
    int nearest_distance = INT_MAX;

    for (int i = 0; i < PQntuples(rows); i++) {
        int distance = str_distance(typed, PQgetvalue(rows, i, 0));
        if (distance < nearest_distance) {
            nearest = PQgetvalue(rows, i, 0);
            nearest_distance = distance;
        }
    }
    return nearest;
}

int command_unknown_queue(struct conn *conn, const char *queue, struct mr_error *err)
{
    AUTO_RESULT *rows = NULL;
    int code = command_query(conn, "select q.queue from millrace.queues q", 0, NULL, &rows, err);

    if (code) {
        return code;
    }
    const char *nearest = command_nearest(rows, queue);
    mr_error_set(err, MR_EUNKNOWN, "there is no queue '%s'", queue);
    if (nearest) {
        mr_error_hint(err, "The nearest is '%s'; see them all with `millrace queue list`.",
                      nearest);
    } else {
        mr_error_hint(err, "There is no queue yet; the first job of a queue makes it.");
    }
    return MR_EUNKNOWN;
}
