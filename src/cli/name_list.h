// SPDX-License-Identifier: PostgreSQL
//
// The verb `list` of commands whose things have names: a table, only the names, or JSON.

#ifndef MILLRACE_CLI_NAME_LIST_H
#define MILLRACE_CLI_NAME_LIST_H

#include "cli/command.h"

struct name_list {
    const struct command_form *form;
    const char *key;      // of the array in JSON
    const char *sql;      // for people; the first column is the name
    const char *json_sql; // for machines
    int parameters;       // of both, at most two: null
    int (*print)(const PGresult *rows, struct mr_error *err);
};

// Runs the verb. Returns the exit status of the program.
int name_list_run(const struct name_list *list, int argc, char **argv);

#endif
