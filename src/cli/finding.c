// SPDX-License-Identifier: PostgreSQL
//
// What `millrace doctor` has found: see finding.h.

#include "cli/finding.h"

#include <limits.h>
#include <stdarg.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/width.h"

enum { TEXT_MAX = 1024 * 1024, VERDICT_WIDTH = 8, TOPIC_WIDTH = 21, TEXT_WIDTH_MIN = 20 };

static const struct {
    const char *name;
    const char *colour; // of a terminal
    const char *one, *many;
} verdicts[VERDICT_COUNT] = {
    [VERDICT_OK] = {"ok", "\033[32m", "ok", "ok"},
    [VERDICT_NOTE] = {"note", "\033[36m", "note", "notes"},
    [VERDICT_WARNING] = {"warning", "\033[33m", "warning", "warnings"},
    [VERDICT_CRITICAL] = {"critical", "\033[1;31m", "critical", "critical"},
};

const char *verdict_name(enum verdict verdict)
{
    return verdicts[verdict].name;
}

enum verdict verdict_of(const char *name)
{
    for (int i = 0; i < VERDICT_COUNT; i++) {
        if (str_equal(name, verdicts[i].name)) {
            return (enum verdict)i;
        }
    }
    return VERDICT_NOTE;
}

struct finding *findings_add(struct findings *findings, const char *topic, enum verdict verdict)
{
    if (findings->count == FINDINGS_MAX) {
        findings->count--;
    }
    struct finding *finding = &findings->list[findings->count++];

    *finding = (struct finding){.verdict = verdict};
    snprintf(finding->topic, sizeof(finding->topic), "%s", topic);
    str_trim_utf8(finding->topic);
    return finding;
}

__attribute__((format(printf, 2, 0))) static void fill(char *text, const char *format, va_list args)
{
    // clang 14 loses sight of the va_start() of the second caller
    // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized)
    vsnprintf(text, FINDING_TEXT_MAX, format, args);
    str_trim_utf8(text);
}

void finding_evidence(struct finding *finding, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fill(finding->evidence, format, args);
    va_end(args);
}

void finding_remedy(struct finding *finding, const char *format, ...)
{
    va_list args;

    if (finding->verdict == VERDICT_OK) {
        return;
    }
    va_start(args, format);
    fill(finding->remedy, format, args);
    va_end(args);
}

enum verdict findings_worst(const struct findings *findings)
{
    enum verdict worst = VERDICT_OK;

    for (int i = 0; i < findings->count; i++) {
        worst = findings->list[i].verdict > worst ? findings->list[i].verdict : worst;
    }
    return worst;
}

// ---- for people ----

static void add_finding(struct buf *text, const struct finding *finding, bool colours, int columns)
{
    const int indent = VERDICT_WIDTH + TOPIC_WIDTH + 4; // two blanks behind each
    const int room = columns > indent + TEXT_WIDTH_MIN ? columns - indent : INT_MAX;

    buf_printf(text, "%s%-*s%s  %-*s  ", colours ? verdicts[finding->verdict].colour : "",
               VERDICT_WIDTH, verdict_name(finding->verdict), colours ? "\033[0m" : "", TOPIC_WIDTH,
               finding->topic);
    width_wrap(text, finding->evidence, room, indent);
    if (finding->remedy[0]) {
        buf_printf(text, "\n%*s-> ", indent, "");
        width_wrap(text, finding->remedy, room - 3, indent + 3);
    }
    buf_puts(text, "\n");
}

static void print_summary(const struct findings *findings, FILE *out)
{
    int counts[VERDICT_COUNT] = {0};

    for (int i = 0; i < findings->count; i++) {
        counts[findings->list[i].verdict]++;
    }
    fprintf(out, "\n%d checks:", findings->count);
    for (int i = VERDICT_COUNT - 1; i >= 0; i--) {
        fprintf(out, " %d %s%s", counts[i], counts[i] == 1 ? verdicts[i].one : verdicts[i].many,
                i ? "," : "\n");
    }
}

int findings_print(const struct findings *findings, bool colours, int columns, FILE *out,
                   struct mr_error *err)
{
    AUTO_BUF text;

    buf_init(&text, TEXT_MAX);
    for (int verdict = VERDICT_COUNT - 1; verdict >= 0; verdict--) {
        for (int i = 0; i < findings->count; i++) {
            if ((int)findings->list[i].verdict == verdict) {
                add_finding(&text, &findings->list[i], colours, columns);
            }
        }
    }
    int code = buf_status(&text, err);
    if (code == 0) {
        fputs(buf_peek(&text), out);
        print_summary(findings, out);
    }
    return code;
}

// ---- for machines ----

static void add_object(struct buf *out, const struct finding *finding)
{
    buf_puts(out, "{\"topic\":");
    json_add_string(out, finding->topic);
    buf_printf(out, ",\"verdict\":\"%s\",\"evidence\":", verdict_name(finding->verdict));
    json_add_string(out, finding->evidence);
    buf_puts(out, ",\"remedy\":");
    if (finding->remedy[0]) {
        json_add_string(out, finding->remedy);
    } else {
        buf_puts(out, "null");
    }
    buf_puts(out, "}");
}

int findings_print_json(const struct findings *findings, FILE *out, struct mr_error *err)
{
    AUTO_BUF text;

    buf_init(&text, TEXT_MAX);
    buf_printf(&text, "{\"verdict\":\"%s\",\n\"checks\":[", verdict_name(findings_worst(findings)));
    for (int i = 0; i < findings->count; i++) {
        buf_puts(&text, i ? ",\n" : "\n");
        add_object(&text, &findings->list[i]);
    }
    buf_puts(&text, "]}\n");
    int code = buf_status(&text, err);
    if (code == 0) {
        fputs(buf_peek(&text), out);
    }
    return code;
}
