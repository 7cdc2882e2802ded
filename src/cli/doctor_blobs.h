// SPDX-License-Identifier: PostgreSQL
//
// The check of `millrace doctor` that concerns the blob store: that of MILLRACE_BLOBS, as this host
// reaches it.

#ifndef MILLRACE_CLI_DOCTOR_BLOBS_H
#define MILLRACE_CLI_DOCTOR_BLOBS_H

#include "cli/finding.h"
#include "client/conn.h"

// Adds its finding. Only a lost connection to the database is an error.
int doctor_blobs(struct conn *conn, struct findings *findings, struct mr_error *err);

// ---- the judgement, on figures ----

// A store that works. It removes objects by itself after `rule_days` (0: never,
// BLOB_LIFECYCLE_UNKNOWN), and jobs may need theirs for `need_days`.
void doctor_judge_lifecycle(struct findings *findings, const char *place, int rule_days,
                            double need_days);

#endif
