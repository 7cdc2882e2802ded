// SPDX-License-Identifier: PostgreSQL
//
// Scratch databases and queues: see place.h.

#include "bench/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "bench/script.h"
#include "bench/watch.h"
#include "client/embedded.h"
#include "client/schema.h"
#include "config.h"

#define DSN_MAX 65536
// A server that has crashed needs some time before its databases can be dropped.
#define CLOSE_LIMIT_MS   20000
#define SESSION_PAUSE_US 10000
#define CLOSE_PAUSE_US   500000
#define MIGRATE_LOCK_MS  5000
#define MIGRATE_WAIT_MS  60000

// ---- connection strings ----

static void add_setting(struct buf *out, const char *keyword, const char *value)
{
    buf_printf(out, "%s%s='", out->len ? " " : "", keyword);
    for (const char *c = value; *c; c++) {
        if (*c == '\'' || *c == '\\') {
            buf_puts(out, "\\");
        }
        buf_add(out, c, 1);
    }
    buf_puts(out, "'");
}

// Everything that a dsn says but the database, and how sessions are called. A bare word is nothing
// but a database.
static int add_settings(struct buf *out, const char *dsn, struct mr_error *err)
{
    if (!dsn || (!strchr(dsn, '=') && !strchr(dsn, ':'))) {
        return 0;
    }
    PQconninfoOption *options = PQconninfoParse(dsn, NULL);
    if (!options) {
        return mr_error_set(err, MR_EUSAGE, "the connection string cannot be parsed");
    }
    for (const PQconninfoOption *option = options; option->keyword; option++) {
        if (option->val && *option->val && !str_equal(option->keyword, "dbname") &&
            !str_equal(option->keyword, "application_name")) {
            add_setting(out, option->keyword, option->val);
        }
    }
    PQconninfoFree(options);
    return 0;
}

int place_dsn(struct buf *out, const char *dsn, const char *database, struct mr_error *err)
{
    int code = add_settings(out, dsn, err);

    add_setting(out, "dbname", database);
    return code ? code : buf_status(out, err);
}

// ---- databases ----

static int create_database(struct place *place, const char *name, const char *template,
                           struct mr_error *err)
{
    int code = script_run(place->conn, "create_database", name, template, err);

    if (code) {
        mr_error_prefix(err, "cannot create the scratch database %s", name);
    }
    if (code == MR_EPRIVILEGE) {
        mr_error_hint(err,
                      "Give the role the right with `alter role %s createdb`, or measure in queues "
                      "of this database with --here.",
                      PQuser(conn_pg(place->conn)));
    }
    return code;
}

static int drop_database(struct place *place, char *name, struct mr_error *err)
{
    int code = name[0] ? script_run(place->conn, "drop_database", name, NULL, err) : 0;

    if (code == 0) {
        name[0] = '\0';
    }
    return code;
}

static int migrate(const char *dsn, struct mr_error *err)
{
    const struct schema_options options = {
        .program_version = MILLRACE_VERSION,
        .lock_timeout_ms = MIGRATE_LOCK_MS,
        .wait_timeout_ms = MIGRATE_WAIT_MS,
    };
    AUTO_CONN *conn = NULL;
    size_t steps = 0;
    int code = conn_open(dsn, &conn, err);

    return code ? code : schema_migrate(conn, &embedded, &options, &steps, err);
}

static int make_template(struct place *place, struct mr_error *err)
{
    char name[PLACE_NAME_SIZE];
    AUTO_BUF dsn;

    buf_init(&dsn, DSN_MAX);
    snprintf(name, sizeof(name), "millrace_bench_%ld", (long)getpid());
    int code = place_dsn(&dsn, place->dsn, name, err);
    if (code) {
        return code;
    }
    // before it is made: an answer that is lost must not leave one behind
    memcpy(place->database, name, sizeof(name));
    // template0: nobody can be in it, which a copy does not bear
    code = create_database(place, name, "template0", err);
    return code ? code : migrate(buf_peek(&dsn), err);
}

int place_open(struct place *place, const char *dsn, bool here, struct mr_error *err)
{
    const char *chosen = NULL;
    int code = conn_choose_dsn(dsn, &chosen, err);

    *place = (struct place){.dsn = chosen, .here = here};
    if (code || (code = conn_open(chosen, &place->conn, err))) {
        return code;
    }
    code = here ? 0 : make_template(place, err);
    if (code) {
        struct mr_error ignored;
        place_close(place, &ignored);
    }
    return code;
}

// ---- sites ----

static struct site *free_site(struct place *place)
{
    for (int i = 0; i < PLACE_SITES_MAX; i++) {
        if (!place->sites[i].open) {
            return &place->sites[i];
        }
    }
    return NULL;
}

// A queue that nobody else has.
static int name_queue(struct site *site, struct mr_error *err)
{
    uint64_t number;

    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number)) {
        return mr_error_set(err, MR_EIO, "no random numbers can be had");
    }
    snprintf(site->queue, sizeof(site->queue), "bench_%016llx", (unsigned long long)number);
    return 0;
}

static int make_site(struct place *place, struct site *site, struct mr_error *err)
{
    char name[PLACE_NAME_SIZE];
    int code;

    if (place->here) {
        // the queue's name is its sessions' name too
        if ((code = name_queue(site, err)) == 0 &&
            (code = place_dsn(&site->dsn, place->dsn, PQdb(conn_pg(place->conn)), err)) == 0) {
            add_setting(&site->dsn, "application_name", site->queue);
        }
        return code ? code : buf_status(&site->dsn, err);
    }
    snprintf(site->queue, sizeof(site->queue), "default");
    snprintf(name, sizeof(name), "millrace_bench_%ld_%u", (long)getpid(), ++place->serial);
    if ((code = place_dsn(&site->dsn, place->dsn, name, err))) {
        return code;
    }
    memcpy(site->database, name, sizeof(name));
    return create_database(place, name, place->database, err);
}

int place_enter(struct place *place, struct site **ret, struct mr_error *err)
{
    struct site *site = free_site(place);

    if (!site) {
        return mr_error_set(err, MR_EINTERNAL, "more than %d sites", PLACE_SITES_MAX);
    }
    *site = (struct site){.open = true};
    buf_init(&site->dsn, DSN_MAX);
    int code = make_site(place, site, err);
    if (code == 0) {
        code = conn_open(buf_peek(&site->dsn), &site->conn, err);
    }
    if (code == 0) {
        *ret = site;
    }
    return code;
}

// A session that was closed may still be at its last statement, which would make the queue again.
static int wait_for_sessions(struct place *place, const char *const *values, int64_t deadline,
                             struct mr_error *err)
{
    int64_t count = 1;
    int code = 0;

    while (code == 0 && count > 0 && clock_ms() < deadline) {
        AUTO_RESULT *rows = NULL;
        if ((code = script_query(place->conn, "sessions", 1, values, &rows, err)) == 0 &&
            (count = strtoll(PQgetvalue(rows, 0, 0), NULL, 10)) > 0) {
            watch_pause_us(SESSION_PAUSE_US);
        }
    }
    return code;
}

// A queue that was never used is not there, and jobs that still run keep one from being dropped.
static int drop_queue(struct place *place, struct site *site, struct mr_error *err)
{
    const char *values[] = {site->queue};
    int64_t deadline = clock_ms() + CLOSE_LIMIT_MS;
    int code = wait_for_sessions(place, values, deadline, err);

    if (code) {
        return code;
    }
    do {
        AUTO_RESULT *rows = NULL;
        code =
            conn_query_params(place->conn, "select millrace.drop_queue($1)", 1, values, &rows, err);
        if (code == 0 || code == MR_EUNKNOWN || code == MR_ESCHEMA || code == MR_ECONNECT) {
            break;
        }
        watch_pause_us(CLOSE_PAUSE_US);
    } while (clock_ms() < deadline);
    return code == MR_EUNKNOWN || code == MR_ESCHEMA ? 0 : code;
}

static int remove_site(struct place *place, struct site *site, struct mr_error *err)
{
    int code = 0;

    conn_free(site->conn);
    site->conn = NULL;
    if (place->here && site->queue[0]) {
        code = drop_queue(place, site, err);
    } else {
        code = drop_database(place, site->database, err);
    }
    if (code == 0) {
        buf_done(&site->dsn);
        site->open = false;
    }
    return code;
}

int place_leave(struct place *place, struct site *site, struct mr_error *err)
{
    return remove_site(place, site, err);
}

// ---- the end ----

static int remove_all(struct place *place, struct mr_error *err)
{
    int code = 0;

    for (int i = 0; i < PLACE_SITES_MAX && code == 0; i++) {
        if (place->sites[i].open) {
            code = remove_site(place, &place->sites[i], err);
        }
    }
    return code ? code : drop_database(place, place->database, err);
}

static int reconnect(struct place *place, struct mr_error *err)
{
    conn_free(place->conn);
    place->conn = NULL;
    return conn_open(place->dsn, &place->conn, err);
}

static void name_left(const struct place *place, struct buf *out)
{
    if (place->database[0]) {
        buf_printf(out, " %s", place->database);
    }
    for (int i = 0; i < PLACE_SITES_MAX; i++) {
        const struct site *site = &place->sites[i];
        if (site->open) {
            buf_printf(out, " %s", place->here ? site->queue : site->database);
        }
    }
}

static void tell_left(const struct place *place, struct mr_error *err)
{
    AUTO_BUF left;

    buf_init(&left, DSN_MAX);
    name_left(place, &left);
    mr_error_prefix(err, "left behind:%s", buf_peek(&left));
    mr_error_hint(err, place->here ? "Remove such a queue with millrace.drop_queue()."
                                   : "Remove such a database with `dropdb --force`.");
}

int place_close(struct place *place, struct mr_error *err)
{
    int64_t deadline = clock_ms() + CLOSE_LIMIT_MS;
    int code = place->conn ? remove_all(place, err) : 0;

    while (code == MR_ECONNECT && clock_ms() < deadline) {
        if ((code = reconnect(place, err)) == 0) {
            code = remove_all(place, err);
        } else {
            watch_pause_us(CLOSE_PAUSE_US);
        }
    }
    if (code) {
        tell_left(place, err);
    }
    for (int i = 0; i < PLACE_SITES_MAX; i++) {
        conn_free(place->sites[i].conn);
        buf_done(&place->sites[i].dsn);
    }
    conn_free(place->conn);
    place->conn = NULL;
    return code;
}
