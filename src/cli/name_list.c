// SPDX-License-Identifier: PostgreSQL

#include "cli/name_list.h"

#include <stdio.h>

#include "cli/rows.h"
#include "cli/table.h"

static int print_names(const PGresult *rows)
{
    for (int i = 0; i < PQntuples(rows); i++) {
        table_put_text(PQgetvalue(rows, i, 0), stdout);
        puts("");
    }
    return 0;
}

static int ask(const struct name_list *list, const struct command_shared *shared, bool names,
               struct mr_error *err)
{
    AUTO_RESULT *rows = NULL;
    const char *const any[] = {NULL, NULL};
    int code = command_ask(shared->dsn, shared->json ? list->json_sql : list->sql, list->parameters,
                           any, &rows, err);

    if (code) {
        return code;
    }
    if (shared->json) {
        return rows_print_list(list->key, rows, err);
    }
    return names ? print_names(rows) : list->print(rows, err);
}

int name_list_run(const struct name_list *list, int argc, char **argv)
{
    struct command_shared shared = {0};
    bool names = false;
    const struct option_row rows[] = {
        {"names", OPTION_FLAG, &names, NULL, "only the names, one a line"},
        COMMAND_SHARED_ROWS(&shared),
        {0},
    };
    struct mr_error err;
    int first = command_read(list->form, rows, &shared, argc, argv, &err);

    if (first >= 0 && shared.help) {
        return command_help(list->form, rows);
    }
    if (first < 0 || ask(list, &shared, names, &err)) {
        return command_fail(&err);
    }
    return command_finish(EXIT_DONE);
}
