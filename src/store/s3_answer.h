// SPDX-License-Identifier: PostgreSQL
//
// What S3 says in its answers. Each reader returns false where the text is not such an answer:
// whoever sent it, it was not S3.

#ifndef MILLRACE_STORE_S3_ANSWER_H
#define MILLRACE_STORE_S3_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define S3_CODE_SIZE    64
#define S3_MESSAGE_SIZE 160

// Cut at their sizes; the message is one line.
struct s3_error {
    char code[S3_CODE_SIZE];
    char message[S3_MESSAGE_SIZE];
};
bool s3_answer_error(const char *data, size_t size, struct s3_error *ret);

// An object of a list, in the order of the answer. false ends the reading, which then is false.
typedef bool s3_entry_fn(void *arg, const char *key, int64_t size, int64_t modified_us);
bool s3_answer_list(const char *data, size_t size, s3_entry_fn *on_entry, void *arg,
                    bool *ret_truncated);

// A key that could not be removed.
typedef void s3_undeleted_fn(void *arg, const char *key, const struct s3_error *error);
bool s3_answer_deleted(const char *data, size_t size, s3_undeleted_fn *on_undeleted, void *arg);

// The fewest days after which a rule removes all that begins with `prefix`; 0: none does.
bool s3_answer_lifecycle(const char *data, size_t size, const char *prefix, int *ret_days);

#endif
