// SPDX-License-Identifier: PostgreSQL
//
// What went wrong, in a form that a caller can act on without reading text.
//
// Codes, classes and the struct itself are in the installed header, the one place of truth. A
// call that can fail returns 0 or a negative MR_E* code and takes a `struct mr_error *` as its
// last parameter: the caller's, written only on failure, NULL when nobody will read it.

#ifndef MILLRACE_BASE_ERR_H
#define MILLRACE_BASE_ERR_H

#include <millrace/millrace.h>

// Starts a new error: sets code, class and message, empties the rest. Returns `code`,
// so that a failing function can end with it.
int mr_error_set(struct mr_error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Gives an existing error another code, and with it its class. Returns `code`.
int mr_error_recode(struct mr_error *err, int code);

// Puts `what: ` before the message that is there.
void mr_error_prefix(struct mr_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Replace detail, hint, SQLSTATE of an existing error.
void mr_error_detail(struct mr_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void mr_error_hint(struct mr_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void mr_error_sqlstate(struct mr_error *err, const char *sqlstate);

#endif
