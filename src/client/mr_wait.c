// SPDX-License-Identifier: PostgreSQL
//
// Waiting for the end of a job on PostgreSQL: asking the SQL function outcome() until it has come.

#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "client/mr_conn.h"
#include "client/queue_ops.h"
#include "client/request.h"

// Pauses between two looks: the first, and the longest. Each is half as long again as the last.
#define PAUSE_FIRST_MS 10
#define PAUSE_MAX_MS   500

// Columns of CALL_OUTCOME.
enum { COLUMN_STATUS, COLUMN_RESULT, COLUMN_FAILURE, COLUMNS };

static const struct status {
    const char *word;
    bool ended;
} statuses[] = {
    {"scheduled", false}, {"available", false}, {"running", false}, {"paused", false},
    {"waiting", false},   {"completed", true},  {"dead", true},     {"cancelled", true},
    {"expired", true},    {"moved", true},
};

struct look {
    const struct status *status;
    char *result, *failure; // or NULL
};

static void look_done(struct look *look)
{
    free(look->result);
    free(look->failure);
    *look = (struct look){0};
}

// False: out of memory.
static bool copy_value(const PGresult *rows, int column, char **ret)
{
    *ret = PQgetisnull(rows, 0, column) ? NULL : strdup(PQgetvalue(rows, 0, column));
    return *ret || PQgetisnull(rows, 0, column);
}

static int read_look(const PGresult *rows, struct look *ret, mr_error *err)
{
    struct look look = {0};

    for (size_t i = 0; PQntuples(rows) == 1 && PQnfields(rows) == COLUMNS &&
                       i < sizeof(statuses) / sizeof(statuses[0]);
         i++) {
        if (str_equal(PQgetvalue(rows, 0, COLUMN_STATUS), statuses[i].word)) {
            look.status = &statuses[i];
        }
    }
    if (!look.status) {
        mr_error_set(err, MR_ESCHEMA, "the server's answer has another form than expected");
        mr_error_hint(err, "The schema and the library are of different versions; upgrade the "
                           "older one (`millrace migrate` for the schema).");
        return MR_ESCHEMA;
    }
    if (!copy_value(rows, COLUMN_RESULT, &look.result) ||
        !copy_value(rows, COLUMN_FAILURE, &look.failure)) {
        look_done(&look);
        mr_error_set(err, MR_ENOMEM, "out of memory");
        return MR_ENOMEM;
    }
    *ret = look;
    return 0;
}

// *ret is the caller's, to be ended with look_done().
static int look_once(mr_conn *conn, int64_t id, struct look *ret, mr_error *err)
{
    AUTO_CALL call;
    mr_reply *reply = NULL;
    int code = request_outcome(&call, id, err);

    if (code || (code = mr__conn_ask(conn, &call, NULL, &reply, err))) {
        return code;
    }
    code = read_look(reply->result, ret, err);
    mr_reply_free(reply);
    return code;
}

// A look changes nothing, so one whose answer was lost is simply made again.
static bool may_repeat(const mr_conn *conn, int code)
{
    return (code == MR_ECONNECT || code == MR_ETIMEOUT) && !mr__conn_is_wrapped(conn);
}

static int timed_out(int64_t id, int64_t timeout_ms, const struct look *look, mr_error *err)
{
    mr_error_set(err, MR_ETIMEOUT, "job %lld has not ended within %lld ms: it is %s", (long long)id,
                 (long long)timeout_ms, look->status->word);
    mr_error_hint(err, "Wait longer; `millrace job %lld` tells what became of it so far.",
                  (long long)id);
    return MR_ETIMEOUT;
}

// Looks until the job has ended: 0. Or until the time is up, or a look fails for good: a code.
// `err` may be written all the same: by looks that failed before.
static int look_until(mr_conn *conn, int64_t id, int64_t timeout_ms, struct look *ret,
                      mr_error *err)
{
    int64_t begun_ms = clock_ms();
    int64_t pause_ms = PAUSE_FIRST_MS;

    for (;;) {
        int code = look_once(conn, id, ret, err);
        int64_t left_ms = timeout_ms - (clock_ms() - begun_ms);
        if ((code == 0 && ret->status->ended) ||
            (code && (left_ms <= 0 || !may_repeat(conn, code)))) {
            return code;
        }
        if (code == 0 && left_ms <= 0) {
            code = timed_out(id, timeout_ms, ret, err);
            look_done(ret);
            return code;
        }
        look_done(ret);
        poll(NULL, 0, (int)(pause_ms < left_ms ? pause_ms : left_ms));
        pause_ms = pause_ms * 3 / 2 < PAUSE_MAX_MS ? pause_ms * 3 / 2 : PAUSE_MAX_MS;
    }
}

static void give(char **ret, char **from)
{
    if (ret) {
        *ret = *from;
        *from = NULL;
    }
}

int wait_for_end(mr_conn *conn, int64_t id, int64_t timeout_ms, const char **ret_status,
                 char **ret_result, char **ret_failure, mr_error *err)
{
    struct look look = {0};
    mr_error last;

    if (timeout_ms < 0) {
        mr_error_set(err, MR_EUSAGE, "timeout_ms is negative: %lld", (long long)timeout_ms);
        mr_error_hint(err, "Give milliseconds, or 0 to look once.");
        return MR_EUSAGE;
    }
    int code = look_until(conn, id, timeout_ms, &look, &last);
    if (code) {
        if (err) {
            *err = last;
        }
        return code;
    }
    if (ret_status) {
        *ret_status = look.status->word;
    }
    give(ret_result, &look.result);
    give(ret_failure, &look.failure);
    look_done(&look);
    return 0;
}
