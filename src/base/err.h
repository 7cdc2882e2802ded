// SPDX-License-Identifier: PostgreSQL
//
// What went wrong, in a form that a caller can act on without reading text.
//
// A call that can fail returns 0 or a negative MR_E* code and takes a `struct
// mr_error *` as its last parameter. The struct belongs to the caller, holds no
// pointers, is written only on failure and may be NULL when nobody will read it.

#ifndef MILLRACE_BASE_ERR_H
#define MILLRACE_BASE_ERR_H

enum mr_code {
    MR_OK = 0,
    MR_ENOMEM = -1,     // out of memory
    MR_ELIMIT = -2,     // something grew beyond the maximum it was given
    MR_EUSAGE = -3,     // the command line or an argument is wrong
    MR_ECONNECT = -4,   // the database cannot be reached, or the connection broke
    MR_EDATABASE = -5,  // the server refused a statement for a reason not listed here
    MR_ELOCK = -6,      // a lock was not granted within its timeout
    MR_ECONFLICT = -7,  // deadlock or serialization failure: the same again may work
    MR_EPRIVILEGE = -8, // the database user may not do this
    MR_EROLES = -9,     // roles are missing and the user may not create them
    MR_EREADONLY = -10, // a standby, or read-only transactions
    MR_ESERVER = -11,   // the server is too old
    MR_EFOREIGN = -12,  // a schema called millrace exists and is not Millrace's
    MR_ENEWER = -13,    // the database is newer than this program
    MR_EALTERED = -14,  // an applied migration is not the one this program carries
    MR_EIO = -15,       // a file or stream could not be read or written
    MR_EINTERNAL = -16, // a defect in this program
};

enum mr_class {
    MR_CLASS_NONE,
    MR_CLASS_TRANSIENT, // try again later
    MR_CLASS_CONFLICT,  // somebody else was first; try again now
    MR_CLASS_REJECTED,  // this input will never be accepted
    MR_CLASS_CONFIG,    // a person has to change the set-up
    MR_CLASS_INTERNAL,  // a defect, or the machine is out of resources
};

enum {
    MR_ERROR_MESSAGE_SIZE = 1024,
    MR_ERROR_DETAIL_SIZE = 2048,
    MR_ERROR_HINT_SIZE = 1024,
    MR_ERROR_SQLSTATE_SIZE = 6,
};

// Texts are cut at their size, between characters; an unused one is empty. The
// message is one line, `what: why`, in lower case without a period; detail and hint
// are sentences.
struct mr_error {
    int code;
    enum mr_class error_class;
    char message[MR_ERROR_MESSAGE_SIZE];
    char detail[MR_ERROR_DETAIL_SIZE];
    char hint[MR_ERROR_HINT_SIZE];
    char sqlstate[MR_ERROR_SQLSTATE_SIZE];
};

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

// The class of a code; MR_CLASS_INTERNAL for a number that is not a code.
enum mr_class mr_code_class(int code);

#endif
