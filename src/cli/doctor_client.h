// SPDX-License-Identifier: PostgreSQL
//
// The checks of `millrace doctor` that need the client's side: this program against the schema,
// this host's clock against the server's, a pooler in between, the disk of a server on this host.

#ifndef MILLRACE_CLI_DOCTOR_CLIENT_H
#define MILLRACE_CLI_DOCTOR_CLIENT_H

#include <stdint.h>

#include "cli/finding.h"
#include "client/conn.h"

// Adds their findings, those of the server's own checks excepted. A check that cannot be made is
// a note; only a lost connection is an error.
int doctor_client(struct conn *conn, struct findings *findings, struct mr_error *err);

// ---- the judgements, on figures ----

// The server said `server_us` at some time between `sent_us` and `received_us` of this host.
void doctor_judge_clock(struct findings *findings, int64_t sent_us, int64_t received_us,
                        int64_t server_us);

// Of a file system with `bytes` in all, `free` of them free.
void doctor_judge_disk(struct findings *findings, const char *path, uint64_t bytes, uint64_t free);

#endif
