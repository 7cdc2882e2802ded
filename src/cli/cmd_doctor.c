// SPDX-License-Identifier: PostgreSQL
//
// `millrace doctor`: what the SQL function doctor() finds, and what only the client can see.

#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/doctor_blobs.h"
#include "cli/doctor_client.h"
#include "cli/finding.h"
#include "cli/rows.h"
#include "cli/terminal.h"

enum { PLACE_MAX = 400 };

enum { DOCTOR_TOPIC, DOCTOR_VERDICT, DOCTOR_EVIDENCE, DOCTOR_REMEDY };

static const struct command_form form = {
    "doctor",
    "",
    0,
    0,
    "Checks the server, the schema and what holds them up: settings, open transactions, slots,\n"
    "segments, upkeep, queues, roles, connections, clocks, the disk. Each check has a verdict (ok,\n"
    "note, warning, critical), what was found, and what to do. Ends with 1 when one of them is a\n"
    "warning or critical.",
    "millrace-doctor(1)",
};

static void add_rows(struct findings *findings, const PGresult *rows)
{
    for (int i = 0; i < PQntuples(rows); i++) {
        const char *evidence = rows_value(rows, i, DOCTOR_EVIDENCE);
        const char *remedy = rows_value(rows, i, DOCTOR_REMEDY);
        struct finding *finding = findings_add(findings, PQgetvalue(rows, i, DOCTOR_TOPIC),
                                               verdict_of(PQgetvalue(rows, i, DOCTOR_VERDICT)));

        finding_evidence(finding, "%s", evidence ? evidence : "");
        finding_remedy(finding, "%s", remedy ? remedy : "");
    }
}

// Where it was tried to connect to, without the password: libpq's message lacks the rest.
static void tell_place(const char *dsn, struct mr_error *err)
{
    static const char *const shown[] = {"host", "hostaddr", "port", "dbname", "user", "service"};
    const char *chosen = NULL;
    PQconninfoOption *options = NULL;
    AUTO_BUF place;

    buf_init(&place, PLACE_MAX);
    if (conn_choose_dsn(dsn, &chosen, NULL) == 0) {
        options = chosen ? PQconninfoParse(chosen, NULL) : PQconndefaults();
    }
    for (PQconninfoOption *option = options; option && option->keyword; option++) {
        for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
            if (option->val && option->val[0] && str_equal(option->keyword, shown[i])) {
                buf_printf(&place, " %s=%s", option->keyword, option->val);
            }
        }
    }
    PQconninfoFree(options);
    if (place.len && !err->detail[0]) {
        mr_error_detail(err, "Tried%s; nothing else can be known without a connection.",
                        buf_peek(&place));
    }
}

static int look(const struct command_shared *shared, struct findings *findings,
                struct mr_error *err)
{
    AUTO_CONN *conn = NULL;
    AUTO_RESULT *rows = NULL;
    int code = conn_open(shared->dsn, &conn, err);

    if (code) {
        tell_place(shared->dsn, err);
        return code;
    }
    code = command_query(conn,
                         "select d.topic, d.verdict, d.evidence, d.remedy from millrace.doctor() d",
                         0, NULL, &rows, err);
    if (code) {
        return code;
    }
    add_rows(findings, rows);
    code = doctor_client(conn, findings, err);
    return code ? code : doctor_blobs(conn, findings, err);
}

// What kept it from looking is a finding too, for whoever reads the JSON.
static void add_failure(struct findings *findings, const struct mr_error *err)
{
    struct finding *finding = findings_add(
        findings, err->code == MR_ECONNECT ? "connection" : "schema", VERDICT_CRITICAL);

    finding_evidence(finding, "%s", err->message);
    finding_remedy(finding, "%s", err->hint);
}

static int run(const struct command_shared *shared)
{
    static struct findings findings; // large, and there is one
    struct mr_error err;
    int code = look(shared, &findings, &err);

    if (code && shared->json) {
        add_failure(&findings, &err);
    }
    if (shared->json) {
        findings_print_json(&findings, stdout, NULL);
    } else if (code == 0) {
        findings_print(&findings, terminal_colours(STDOUT_FILENO), terminal_columns(STDOUT_FILENO),
                       stdout, NULL);
    }
    if (code) {
        return command_fail(&err);
    }
    return command_finish(findings_worst(&findings) >= VERDICT_WARNING ? EXIT_FAILED : EXIT_DONE);
}

int cmd_doctor(int argc, char **argv)
{
    struct command_shared shared = {0};
    const struct option_row rows[] = {COMMAND_SHARED_ROWS(&shared), {0}};
    struct mr_error err;
    int first = command_read(&form, rows, &shared, argc, argv, &err);

    if (first < 0) {
        return command_fail(&err);
    }
    return shared.help ? command_help(&form, rows) : run(&shared);
}
