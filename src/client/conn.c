// SPDX-License-Identifier: PostgreSQL
//
// One connection to PostgreSQL: see conn.h.

#include "client/conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "client/dsn_list.h"
#include "store/redis_url.h"

struct conn {
    PGconn *pg;
};

// A prefix of an SQLSTATE and what it means; the first row that fits counts.
static const struct {
    const char *sqlstate;
    int code;
} sqlstate_codes[] = {
    {"42501", MR_EPRIVILEGE}, // insufficient_privilege
    {"55P03", MR_ELOCK},      // lock_not_available
    {"25006", MR_EREADONLY},  // read_only_sql_transaction
    {"25000", MR_ECONFIG},    // not read committed
    {"40001", MR_ECONFLICT},  // serialization_failure
    {"40P01", MR_ECONFLICT},  // deadlock_detected
    {"57P", MR_ECONNECT},     // shutting down, starting up, terminated by an administrator
    {"53300", MR_ECONNECT},   // too_many_connections
    {"08", MR_ECONNECT},      // connection exceptions
    {"MR001", MR_ELEASE},     {"MR002", MR_EFULL},   {"MR003", MR_EUNKNOWN},
    {"MR004", MR_ERESTORED},  {"3F000", MR_ESCHEMA}, // invalid_schema_name
    {"42883", MR_ESCHEMA},                           // undefined_function
    {"22", MR_EINVALID},                             // data exceptions
    {"0A000", MR_EINVALID},                          // feature_not_supported
    {"54", MR_ELIMIT},                               // larger than the server can take
    {"53100", MR_EFULLDISK},                         // disk_full
    {"57014", MR_ETIMEOUT},                          // query_canceled
};

int conn_code_of_sqlstate(const char *sqlstate)
{
    for (size_t i = 0; i < sizeof(sqlstate_codes) / sizeof(sqlstate_codes[0]); i++) {
        if (str_starts(sqlstate, sqlstate_codes[i].sqlstate)) {
            return sqlstate_codes[i].code;
        }
    }
    return MR_EDATABASE;
}

static void drop_notice(void *arg, const PGresult *result)
{
    (void)arg;
    (void)result;
}

// A backend's title begins like that, in its own host's eyes.
static bool is_backend(int pid)
{
    char path[32];
    char title[16] = "";

    snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
    FILE *file = fopen(path, "re");
    if (file) {
        title[fread(title, 1, sizeof(title) - 1, file)] = '\0';
        fclose(file);
    }
    return str_starts(title, "postgres:");
}

bool conn_same_host(const PGconn *pg)
{
    const char *host = PQhost(pg);
    const char *address = PQhostaddr(pg);

    if (host && (host[0] == '/' || host[0] == '@')) {
        return true;
    }
    return address && (str_starts(address, "127.") || str_equal(address, "::1")) &&
           is_backend(PQbackendPID(pg));
}

void conn_silence(PGconn *pg)
{
    PQsetNoticeReceiver(pg, drop_notice, NULL);
}

// The dsn that counts, and what to call its source; NULL for libpq's environment.
static const char *pick_dsn(const char *dsn, const char **ret_source)
{
    static const char *const variables[] = {"MILLRACE_DSN", "DATABASE_URL"};

    *ret_source = "--dsn";
    if (!str_empty(dsn)) {
        return dsn;
    }
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        *ret_source = variables[i];
        if (!str_empty(getenv(variables[i]))) {
            return getenv(variables[i]);
        }
    }
    return NULL;
}

// libpq quotes a string that it cannot parse, with the password in it; say less.
static int check_dsn(const char *dsn, const char *source, struct mr_error *err)
{
    char *reason = NULL;
    PQconninfoOption *options = PQconninfoParse(dsn, &reason);

    PQfreemem(reason);
    if (options) {
        PQconninfoFree(options);
        return 0;
    }
    mr_error_set(err, MR_EUSAGE, "cannot connect: the connection string in %s cannot be parsed",
                 source);
    mr_error_hint(err, "Write postgresql://user@host:5432/database or "
                       "\"host=... port=5432 dbname=... user=...\"; "
                       "special characters in a URI need percent-encoding.");
    return MR_EUSAGE;
}

const char *conn_redis_dsn(const char *dsn)
{
    const char *source = NULL;
    const char *chosen = pick_dsn(dsn, &source);

    return chosen && redis_url_is(chosen) ? chosen : NULL;
}

const char *conn_shards_dsn(const char *dsn)
{
    const char *source = NULL;
    const char *chosen = pick_dsn(dsn, &source);

    return dsn_is_list(chosen) ? chosen : NULL;
}

int conn_choose_dsn(const char *dsn, const char **ret, struct mr_error *err)
{
    const char *source = NULL;
    const char *chosen = pick_dsn(dsn, &source);

    if (chosen && redis_url_is(chosen)) {
        mr_error_set(err, MR_EUSAGE, "PostgreSQL is needed; the address in %s is one of Redis",
                     source);
        mr_error_hint(err, "docs/redis.md lists what works where.");
        return MR_EUSAGE;
    }
    if (dsn_is_list(chosen)) {
        mr_error_set(err, MR_EUSAGE, "this needs one database; %s names several", source);
        mr_error_hint(err,
                      "Give the address of one shard with --dsn. docs/shards.md lists what works "
                      "across shards.");
        return MR_EUSAGE;
    }

    // a bare word is a database name to libpq, and there is nothing to parse
    if (chosen && (strchr(chosen, '=') || strchr(chosen, ':')) && check_dsn(chosen, source, err)) {
        return MR_EUSAGE;
    }
    *ret = chosen;
    return 0;
}

// The first line is the message, the rest are details.
int conn_connect_error(const PGconn *pg, struct mr_error *err)
{
    const char *text = PQerrorMessage(pg);
    size_t first = strcspn(text, "\n");

    mr_error_set(err, MR_ECONNECT, "cannot connect to the database: %.*s", (int)first, text);
    mr_error_hint(err,
                  "Is the server running there? The database is chosen with --dsn, MILLRACE_DSN, "
                  "DATABASE_URL, or PGHOST, PGPORT, PGDATABASE, PGUSER.");
    return MR_ECONNECT;
}

// The hosts of a dsn, at most; more are not put in another order.
#define HOSTS_SIZE_MAX (64 * 1024)

// Keywords and values for libpq. What the dsn says comes later and wins, except for the encoding:
// everything we send is UTF-8.
enum { SETTINGS = 10, SETTING_HOST = 5, HOST_SETTINGS = 3 };
static const char *const keywords[SETTINGS] = {
    "connect_timeout",
    "fallback_application_name",
    "tcp_user_timeout",
    "keepalives_idle",
    "dbname",
    "host", // of the dsn, in another order; NULL: as it says
    "hostaddr",
    "port",
    "client_encoding",
    NULL,
};

static void settings_of(const char *dsn, const char *application_name, const char **ret_values)
{
    const char *const values[SETTINGS] = {
        getenv("PGCONNECT_TIMEOUT") ? NULL : "10",
        application_name ? application_name : "millrace",
        "30000",
        "30",
        dsn,
        NULL,
        NULL,
        NULL,
        "UTF8",
        NULL,
    };

    _Static_assert(CONN_TIMEOUT_S == 10, "connect_timeout above");
    memcpy(ret_values, values, sizeof(values));
}

static PGconn *connect_pg(const char *dsn)
{
    const char *values[SETTINGS];

    settings_of(dsn, NULL, values);
    return PQconnectdbParams(keywords, values, 1);
}

void conn_rotate(const char *list, int turn, struct buf *out)
{
    const char *first = list;
    int items = 1;

    for (const char *c = list; *c; c++) {
        items += *c == ',';
    }
    for (int i = turn % items; i > 0; i--) {
        first = strchr(first, ',') + 1;
    }
    buf_puts(out, first);
    if (first > list) {
        buf_puts(out, ",");
        buf_add(out, list, (size_t)(first - list) - 1);
    }
}

// What the dsn says about a keyword, in another order; empty when it says nothing.
static void rotate_setting(const char *dsn, const char *keyword, int turn, struct buf *out)
{
    PQconninfoOption *options = PQconninfoParse(dsn, NULL);

    for (const PQconninfoOption *option = options; option && option->keyword; option++) {
        if (str_equal(option->keyword, keyword) && option->val) {
            conn_rotate(option->val, turn, out);
        }
    }
    PQconninfoFree(options);
}

PGconn *conn_start(const char *dsn, const char *application_name, int turn)
{
    const char *values[SETTINGS];
    struct buf lists[HOST_SETTINGS];

    settings_of(dsn, application_name, values);
    for (int i = 0; i < HOST_SETTINGS; i++) {
        buf_init(&lists[i], HOSTS_SIZE_MAX);
        if (turn > 0 && dsn) {
            rotate_setting(dsn, keywords[SETTING_HOST + i], turn, &lists[i]);
            values[SETTING_HOST + i] = lists[i].status ? NULL : buf_peek(&lists[i]);
        }
    }
    PGconn *pg = PQconnectStartParams(keywords, values, 1);
    for (int i = 0; i < HOST_SETTINGS; i++) {
        buf_done(&lists[i]);
    }
    return pg;
}

int conn_open(const char *dsn, struct conn **ret, struct mr_error *err)
{
    const char *chosen = NULL;
    int code = conn_choose_dsn(dsn, &chosen, err);

    if (code) {
        return code;
    }
    AUTO_CONN *conn = calloc(1, sizeof(*conn));
    if (!conn) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    conn->pg = connect_pg(chosen);
    if (!conn->pg) {
        return mr_error_set(err, MR_ENOMEM, "out of memory");
    }
    if (PQstatus(conn->pg) != CONNECTION_OK) {
        return conn_connect_error(conn->pg, err);
    }
    conn_silence(conn->pg);
    *ret = conn;
    conn = NULL;
    return 0;
}

void conn_free(struct conn *conn)
{
    if (conn) {
        PQfinish(conn->pg);
        free(conn);
    }
}

void conn_cleanup(struct conn **conn)
{
    conn_free(*conn);
}

void conn_result_cleanup(PGresult **result)
{
    PQclear(*result);
}

// Where the failing statement stands, as well as the server knows.
static void prefix_place(const PGresult *result, const char *script, int statement,
                         struct mr_error *err)
{
    const char *position = PQresultErrorField(result, PG_DIAG_STATEMENT_POSITION);

    if (position) {
        mr_error_prefix(err, "line %d", str_line_of(script, atoi(position)));
    } else if (statement > 1) {
        mr_error_prefix(err, "statement %d", statement);
    }
}

// Whether something of ours is missing, not of the user's: a schema, function or view.
static bool is_missing(const char *sqlstate, const char *message)
{
    bool missing = conn_code_of_sqlstate(sqlstate) == MR_ESCHEMA ||
                   str_equal(sqlstate, "42P01"); // undefined_table

    return missing && message && strstr(message, "millrace");
}

static int server_error(const PGresult *result, struct mr_error *err)
{
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
    const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);
    const char *context = PQresultErrorField(result, PG_DIAG_CONTEXT);
    int code = conn_code_of_sqlstate(sqlstate ? sqlstate : "");

    mr_error_set(err, code, "%s", message ? message : "the server gave no reason");
    mr_error_sqlstate(err, sqlstate ? sqlstate : "");
    mr_error_detail(err, "%s%s%s", detail ? detail : "", detail && context ? "\n" : "",
                    context ? context : "");
    mr_error_hint(err, "%s", hint ? hint : "");
    if (!hint && sqlstate && is_missing(sqlstate, message)) {
        mr_error_hint(err, "Install or upgrade the schema with `millrace migrate`.");
    }
    return code;
}

// Fills `err` from a result that is not a success. A result without an SQLSTATE was
// made by libpq: the connection is gone.
int conn_error_of(const PGconn *pg, const PGresult *result, struct mr_error *err)
{
    if (result && PQresultErrorField(result, PG_DIAG_SQLSTATE)) {
        return server_error(result, err);
    }
    if (PQstatus(pg) != CONNECTION_OK) {
        const char *text = PQerrorMessage(pg);
        mr_error_set(err, MR_ECONNECT, "lost the connection to the database: %.*s",
                     (int)strcspn(text, "\n"), text);
        mr_error_hint(err, "What was not committed is rolled back; run the command again.");
        return MR_ECONNECT;
    }
    return mr_error_set(err, MR_EDATABASE, "unexpected answer: %s",
                        result ? PQresStatus(PQresultStatus(result)) : "none");
}

static bool is_good(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY;
}

// Reads one result; true when there may be another. A COPY is refused by the next
// PQexec(), which is the rollback.
static bool run_next(struct conn *conn, const char *script, int statement, int *code,
                     struct mr_error *err)
{
    AUTO_RESULT *result = PQgetResult(conn->pg);

    if (!result) {
        return false;
    }
    if (*code == 0 && !is_good(result)) {
        *code = conn_error_of(conn->pg, result, err);
        prefix_place(result, script, statement, err);
    }
    ExecStatusType status = PQresultStatus(result);
    return status != PGRES_COPY_IN && status != PGRES_COPY_OUT && status != PGRES_COPY_BOTH;
}

int conn_run(struct conn *conn, const char *script, struct mr_error *err)
{
    int code = 0;
    int statement = 1;

    if (!PQsendQuery(conn->pg, script)) {
        return conn_error_of(conn->pg, NULL, err);
    }
    while (run_next(conn, script, statement, &code, err)) {
        statement++;
    }
    return code;
}

static int take_rows(const struct conn *conn, PGresult *result, PGresult **ret,
                     struct mr_error *err)
{
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        int code = conn_error_of(conn->pg, result, err);
        PQclear(result);
        return code;
    }
    *ret = result;
    return 0;
}

int conn_query(struct conn *conn, const char *sql, PGresult **ret, struct mr_error *err)
{
    return take_rows(conn, PQexec(conn->pg, sql), ret, err);
}

int conn_query_params(struct conn *conn, const char *sql, int count, const char *const *values,
                      PGresult **ret, struct mr_error *err)
{
    return take_rows(conn, PQexecParams(conn->pg, sql, count, NULL, values, NULL, NULL, 0), ret,
                     err);
}

void conn_rollback(struct conn *conn)
{
    if (PQtransactionStatus(conn->pg) != PQTRANS_IDLE) {
        PQclear(PQexec(conn->pg, "rollback"));
    }
}

bool conn_in_transaction(const struct conn *conn)
{
    return PQtransactionStatus(conn->pg) == PQTRANS_INTRANS;
}

PGconn *conn_pg(const struct conn *conn)
{
    return conn->pg;
}

int conn_server_version(const struct conn *conn)
{
    return PQserverVersion(conn->pg);
}
