// SPDX-License-Identifier: PostgreSQL
//
// What a claim brought: rows of millrace.claimed_job, read in place.

#ifndef MILLRACE_CLIENT_BATCH_H
#define MILLRACE_CLIENT_BATCH_H

#include <libpq-fe.h>
#include <millrace/millrace.h>

// Takes over `result` (binary), also on failure. `queue` is copied. *ret is the caller's, who
// frees it with mr_batch_free(). Fails with MR_ENOMEM, MR_ESCHEMA (columns that are not those
// of claimed_job).
int batch_take(PGresult *result, const char *queue, mr_batch **ret, mr_error *err);

#endif
