// SPDX-License-Identifier: PostgreSQL
//
// The check of the blob store: see doctor_blobs.h.

#include "cli/doctor_blobs.h"

#include <stdlib.h>

#include "base/str.h"
#include "client/call.h"
#include "store/blob.h"

#define TOPIC "blob store"
// A person waits.
#define ATTEMPTS   2
#define CALL_MS    5000
#define CONNECT_MS 2000

static void tell_failure(struct findings *findings, const struct mr_error *failure)
{
    struct finding *finding = findings_add(findings, TOPIC, VERDICT_WARNING);

    finding_evidence(finding, "cannot be used: %s", failure->message);
    finding_remedy(finding, "%s",
                   failure->hint[0] ? failure->hint
                                    : "Jobs whose payload is there wait until it can be used.");
}

void doctor_judge_lifecycle(struct findings *findings, const char *place, int rule_days,
                            double need_days)
{
    bool cut = rule_days > 0 && rule_days < need_days;
    struct finding *finding = findings_add(findings, TOPIC, cut ? VERDICT_WARNING : VERDICT_OK);

    if (cut) {
        finding_evidence(finding,
                         "%s removes objects after %d days, and jobs may need theirs for %.0f",
                         place, rule_days, need_days);
    } else {
        finding_evidence(finding, "%s can be used", place);
    }
    finding_remedy(finding,
                   "Let the bucket's lifecycle rule wait longer than the longest delay and "
                   "`dead_retention`: a job whose object is gone becomes a dead letter.");
}

static int ask_need(struct conn *conn, double *ret_days, struct mr_error *err)
{
    AUTO_RESULT *rows = NULL;
    AUTO_CALL call;

    call_init(&call, CALL_OFFLOAD_SPAN);
    int code = call_exec(&call, conn_pg(conn), &rows, err);
    if (code == 0) {
        *ret_days = strtod(PQgetvalue(rows, 0, 0), NULL);
    }
    return code;
}

static int look(struct conn *conn, struct blob_store *store, struct findings *findings,
                struct mr_error *err)
{
    struct mr_error failure;
    double need_days = 0;
    int rule_days = BLOB_LIFECYCLE_UNKNOWN;

    if (blob_probe(store, &failure)) {
        tell_failure(findings, &failure);
        return 0;
    }
    int code = ask_need(conn, &need_days, err);
    if (code == MR_ECONNECT) {
        return code;
    }
    if (blob_lifecycle(store, &rule_days, &failure)) {
        rule_days = BLOB_LIFECYCLE_UNKNOWN;
    }
    doctor_judge_lifecycle(findings, blob_place(store), rule_days, need_days);
    return 0;
}

int doctor_blobs(struct conn *conn, struct findings *findings, struct mr_error *err)
{
    const char *address = getenv("MILLRACE_BLOBS");
    const struct blob_options options = {
        .attempts = ATTEMPTS,
        .call_timeout_ms = CALL_MS,
        .connect_timeout_ms = CONNECT_MS,
    };
    struct blob_store *store = NULL;
    struct mr_error failure;

    if (str_empty(address)) {
        finding_evidence(findings_add(findings, TOPIC, VERDICT_OK),
                         "none is named by MILLRACE_BLOBS");
        return 0;
    }
    if (blob_open(address, NULL, &options, &store, &failure)) {
        tell_failure(findings, &failure);
        return 0;
    }
    int code = look(conn, store, findings, err);
    blob_free(store);
    return code;
}
