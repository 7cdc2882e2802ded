// SPDX-License-Identifier: PostgreSQL
//
// The checks of `millrace doctor` that need the client's side: see doctor_client.h.

#include "cli/doctor_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/figure.h"
#include "cli/rows.h"
#include "client/embedded.h"
#include "client/schema_script.h"
#include "config.h"

enum { TEXT_MAX = 200 };

// Differences of the clocks that are worth a word, and those that make times in logs useless.
static const int64_t CLOCK_NOTE_US = INT64_C(1000000);
static const int64_t CLOCK_WARNING_US = INT64_C(10000000);

// What has to be free on the disk, in percent.
enum { DISK_WARNING = 20, DISK_CRITICAL = 10 };

enum { PLACE_DATA, PLACE_CLOCK, PLACE_PID };
enum { FUNCTIONS_CHECKSUM, FUNCTIONS_VERSION };

void doctor_judge_clock(struct findings *findings, int64_t sent_us, int64_t received_us,
                        int64_t server_us)
{
    int64_t ahead = server_us > received_us ? server_us - received_us : 0;
    int64_t behind = server_us < sent_us ? sent_us - server_us : 0;
    int64_t off = ahead > behind ? ahead : behind;
    enum verdict verdict = off > CLOCK_WARNING_US ? VERDICT_WARNING
                           : off > CLOCK_NOTE_US  ? VERDICT_NOTE
                                                  : VERDICT_OK;
    struct finding *finding = findings_add(findings, "clock of this host", verdict);
    AUTO_BUF text;

    buf_init(&text, TEXT_MAX);
    figure_add_time(&text, off / 1000);
    if (off == 0) {
        finding_evidence(finding, "agrees with the server's");
    } else {
        finding_evidence(finding, "the server's is %s %s", buf_peek(&text),
                         ahead ? "ahead" : "behind");
    }
    finding_remedy(finding, "Let chrony or systemd-timesyncd keep both clocks. The server's counts "
                            "for leases and delays; this one stands in logs.");
}

void doctor_judge_disk(struct findings *findings, const char *path, uint64_t bytes, uint64_t free)
{
    double percent = bytes ? 100.0 * (double)free / (double)bytes : 0;
    enum verdict verdict = percent < DISK_CRITICAL  ? VERDICT_CRITICAL
                           : percent < DISK_WARNING ? VERDICT_WARNING
                                                    : VERDICT_OK;
    struct finding *finding = findings_add(findings, "disk", verdict);

    finding_evidence(finding, "%.0f %% of %.1f GB free at %s", percent, (double)bytes / 1e9, path);
    finding_remedy(finding, "Make room, or grow the disk: a server without room stops. Shorter "
                            "`retention` and `dead_max_bytes` of the queues with large jobs help "
                            "at the next rotation.");
}

// ---- looking ----

static int script(struct conn *conn, const char *name, PGresult **ret, struct mr_error *err)
{
    const struct embedded_file *file = NULL;
    int code = schema_script_find(&embedded, name, &file, err);

    return code ? code : conn_query(conn, file->sql, ret, err);
}

static void unknown(struct findings *findings, const char *topic, const char *why)
{
    finding_evidence(findings_add(findings, topic, VERDICT_NOTE), "not known: %s", why);
}

// A refusal of the server is a note, a lost connection the caller's affair.
static int excuse(struct findings *findings, const char *topic, int code,
                  const struct mr_error *err)
{
    if (code == MR_ECONNECT) {
        return code;
    }
    unknown(findings, topic, err->message);
    return 0;
}

static int check_program(struct conn *conn, struct findings *findings, struct mr_error *err)
{
    AUTO_RESULT *rows = NULL;
    int code = script(conn, "applied_functions", &rows, err);

    if (code) {
        return excuse(findings, "program", code, err);
    }
    bool known = PQntuples(rows) > 0;
    const char *version = known ? PQgetvalue(rows, 0, FUNCTIONS_VERSION) : "none";
    bool same =
        known && str_equal(PQgetvalue(rows, 0, FUNCTIONS_CHECKSUM), embedded.functions_checksum);
    struct finding *finding =
        findings_add(findings, "program", same ? VERDICT_OK : VERDICT_WARNING);

    finding_evidence(finding, "version %s; the schema's functions are %s (%s)", MILLRACE_VERSION,
                     same ? "its own" : "other ones", version);
    finding_remedy(finding, str_version_compare(version, MILLRACE_VERSION) > 0
                                ? "Use the newer program."
                                : "Run `millrace migrate`.");
    return 0;
}

// A pooler answers with a process number of its own making.
static void check_pooler(const struct conn *conn, const char *pid, struct findings *findings)
{
    bool direct = strtol(pid, NULL, 10) == PQbackendPID(conn_pg(conn));
    struct finding *finding = findings_add(findings, "pooler", direct ? VERDICT_OK : VERDICT_NOTE);

    finding_evidence(finding,
                     direct ? "none in between" : "one stands between this program and the server");
    finding_remedy(finding, "In transaction mode workers need `--pooler` or `pooler = true`: no "
                            "named statements, no LISTEN, so they poll.");
}

static void check_disk(const struct conn *conn, const char *data, struct findings *findings)
{
    struct statvfs fs;

    if (!conn_same_host(conn_pg(conn))) {
        unknown(findings, "disk", "the server is not known to be on this host");
    } else if (!data) {
        unknown(findings, "disk", "the data directory is told to members of pg_read_all_settings");
    } else if (statvfs(data, &fs)) {
        unknown(findings, "disk", strerror(errno));
    } else {
        doctor_judge_disk(findings, data, (uint64_t)fs.f_blocks * fs.f_frsize,
                          (uint64_t)fs.f_bavail * fs.f_frsize);
    }
}

int doctor_client(struct conn *conn, struct findings *findings, struct mr_error *err)
{
    AUTO_RESULT *rows = NULL;
    int code = check_program(conn, findings, err);

    if (code) {
        return code;
    }
    int64_t sent_us = clock_wall_us();
    code = script(conn, "server_place", &rows, err);
    int64_t received_us = clock_wall_us();
    if (code) {
        return excuse(findings, "server", code, err);
    }
    doctor_judge_clock(findings, sent_us, received_us,
                       strtoll(PQgetvalue(rows, 0, PLACE_CLOCK), NULL, 10));
    check_pooler(conn, PQgetvalue(rows, 0, PLACE_PID), findings);
    check_disk(conn, rows_value(rows, 0, PLACE_DATA), findings);
    return 0;
}
