// SPDX-License-Identifier: PostgreSQL
//
// What `millrace doctor` has found: a list of checks with their verdicts.

#ifndef MILLRACE_CLI_FINDING_H
#define MILLRACE_CLI_FINDING_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"

// From fine to worst, named as in the SQL function doctor().
enum verdict { VERDICT_OK, VERDICT_NOTE, VERDICT_WARNING, VERDICT_CRITICAL, VERDICT_COUNT };

enum { FINDINGS_MAX = 100, FINDING_TOPIC_MAX = 64, FINDING_TEXT_MAX = 1024 };

struct finding {
    enum verdict verdict;
    char topic[FINDING_TOPIC_MAX];
    char evidence[FINDING_TEXT_MAX];
    char remedy[FINDING_TEXT_MAX]; // "" where all is well
};

struct findings {
    struct finding list[FINDINGS_MAX];
    int count;
};

const char *verdict_name(enum verdict verdict);

// The verdict of that name; an unknown one is a note.
enum verdict verdict_of(const char *name);

// Appends a finding and returns it, with its evidence and remedy to be filled in. Beyond
// FINDINGS_MAX the last one is overwritten.
struct finding *findings_add(struct findings *findings, const char *topic, enum verdict verdict);

// Fill them in; a text that is too long is cut at a whole character. What is ok gets no remedy.
void finding_evidence(struct finding *finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void finding_remedy(struct finding *finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// The worst verdict of all; VERDICT_OK of none.
enum verdict findings_worst(const struct findings *findings);

// For people, the worst first, with colours or without, in lines of at most `columns` (0: as long
// as they are); and {"verdict":...,"checks":[...]}.
int findings_print(const struct findings *findings, bool colours, int columns, FILE *out,
                   struct mr_error *err);
int findings_print_json(const struct findings *findings, FILE *out, struct mr_error *err);

#endif
