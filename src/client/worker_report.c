// SPDX-License-Identifier: PostgreSQL
//
// The worker's reports of progress: handed over by any thread, sent by the worker's own between
// its other calls.
//
// 1. A job has at most one report that is to be sent: a newer one takes its place.
// 2. Of one job, one report is sent in WORKER_REPORT_MS. What is left when the job ends is sent
//    then, before its outcome; behind it nothing is.
// 3. A report is sent once. Whether it arrived does not matter to the job.
// 4. The list and what is in it are touched with the lock held. held_job.report is set by the
//    thread that runs the job, or by the worker's own when that is done.

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_scan.h"
#include "base/str.h"
#include "client/worker_parts.h"

struct report {
    struct held_job *held;
    double percent;
    bool has_note;
    char note[WORKER_NOTE_MAX + 1];
    bool fresh;         // to be sent
    int64_t next_at_ms; // not before
    struct report *next, *prev;
};

// ---- from any thread ----

// A longer note is cut between characters.
static void cut_note(const char *note, char *ret)
{
    size_t len = strnlen(note, WORKER_NOTE_MAX);

    memcpy(ret, note, len);
    ret[len] = '\0';
    if (note[len]) {
        str_trim_utf8(ret);
    }
}

// What cannot be written as a JSON string is not UTF-8.
static int check_note(const char *note)
{
    AUTO_BUF string;

    buf_init(&string, 6 * WORKER_NOTE_MAX + 2); // an escaped character has six
    json_add_string(&string, note);
    return string.status ? MR_ENOMEM
                         : json_check((struct json_slice){string.data, string.len}, NULL);
}

// With the lock held. NULL: out of memory.
static struct report *report_of(struct worker *worker, struct held_job *held)
{
    struct report *report = held->report;

    if (report || !(report = calloc(1, sizeof(*report)))) {
        return report;
    }
    report->held = held;
    report->next = worker->reports;
    if (report->next) {
        report->next->prev = report;
    }
    worker->reports = report;
    held->report = report;
    return report;
}

// `note` is a cut one, or NULL.
static void report_fill(struct report *report, double percent, const char *note)
{
    report->percent = percent;
    report->has_note = note != NULL;
    memcpy(report->note, note ? note : "", note ? strlen(note) + 1 : 1);
    report->fresh = true;
}

int worker_report(struct worker *worker, struct held_job *held, double percent, const char *note)
{
    char text[WORKER_NOTE_MAX + 1] = "";
    bool news = false;
    int code = percent >= 0 && percent <= 100 ? 0 : MR_EINVALID;

    if (code == 0 && note) {
        cut_note(note, text);
        code = check_note(text);
    }
    if (code) {
        return code;
    }
    pthread_mutex_lock(&worker->reports_lock);
    struct report *report = report_of(worker, held);
    if (report) {
        news = !report->fresh; // else the worker knows already
        report_fill(report, percent, note ? text : NULL);
    }
    pthread_mutex_unlock(&worker->reports_lock);
    if (news) {
        worker_wake(worker);
    }
    return report ? 0 : MR_ENOMEM;
}

// ---- on the worker's thread ----

// The server does not take reports: it has an older schema, or the user may not.
static bool is_final(const struct mr_error *err)
{
    switch (mr_code_class(err->code)) {
    case MR_CLASS_NONE:
    case MR_CLASS_TRANSIENT:
    case MR_CLASS_CONFLICT: return false;
    case MR_CLASS_REJECTED:
    case MR_CLASS_CONFIG:
    case MR_CLASS_INTERNAL: return true;
    }
    return true;
}

void worker_unreported(struct worker *worker, const struct mr_error *err)
{
    // a lost lease is a heartbeat's matter, and a job may end elsewhere
    if (err->code == MR_ECONNECT || err->code == MR_ELEASE || err->code == MR_EUNKNOWN) {
        return;
    }
    if (!worker->cannot_report) {
        worker->cannot_report = is_final(err);
        worker_tell(worker, WORKER_UNREPORTED, NULL, err);
    }
}

static bool is_wanted(const struct worker *worker, const struct report *report)
{
    return report->fresh && !worker->cannot_report && !report->held->dropped &&
           !report->held->lease->lost;
}

static void send_report(struct worker *worker, struct report *report, int64_t now_ms)
{
    worker->transport->ops->report(worker->transport, report->held, report->percent,
                                   report->has_note ? report->note : NULL);
    report->fresh = false;
    report->next_at_ms = now_ms + WORKER_REPORT_MS;
}

void worker_send_reports(struct worker *worker, int64_t now_ms)
{
    pthread_mutex_lock(&worker->reports_lock);
    for (struct report *report = worker->reports; report; report = report->next) {
        if (is_wanted(worker, report) && now_ms >= report->next_at_ms) {
            send_report(worker, report, now_ms);
        }
    }
    pthread_mutex_unlock(&worker->reports_lock);
}

int64_t worker_reports_at(struct worker *worker)
{
    int64_t at_ms = 0;

    pthread_mutex_lock(&worker->reports_lock);
    for (const struct report *report = worker->reports; report; report = report->next) {
        int64_t next_ms = report->next_at_ms ? report->next_at_ms : 1;
        if (is_wanted(worker, report) && (at_ms == 0 || next_ms < at_ms)) {
            at_ms = next_ms;
        }
    }
    pthread_mutex_unlock(&worker->reports_lock);
    return at_ms;
}

void worker_end_report(struct worker *worker, struct held_job *held, int64_t now_ms, bool last)
{
    struct report *report = held->report;

    if (!report) {
        return;
    }
    pthread_mutex_lock(&worker->reports_lock);
    // without a connection it would wait, and come when the lease may be another's
    if (last && is_wanted(worker, report) && worker->transport->ops->connected(worker->transport)) {
        send_report(worker, report, now_ms);
    }
    *(report->prev ? &report->prev->next : &worker->reports) = report->next;
    if (report->next) {
        report->next->prev = report->prev;
    }
    pthread_mutex_unlock(&worker->reports_lock);
    held->report = NULL;
    free(report);
}
