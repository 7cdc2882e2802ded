// SPDX-License-Identifier: PostgreSQL
//
// What an answer of S3, or the want of one, means to a caller: a result, a text and a hint.

#ifndef MILLRACE_STORE_S3_FAULT_H
#define MILLRACE_STORE_S3_FAULT_H

#include <curl/curl.h>
#include <stddef.h>
#include <stdint.h>

#include "store/blob.h"
#include "store/s3_answer.h"

struct s3_fault {
    enum blob_result result;
    char text[BLOB_TEXT_SIZE];
    const char *hint;        // constant or NULL
    char code[S3_CODE_SIZE]; // S3's own; "": none
};

// What the head of an answer tells beside the status.
struct s3_head {
    bool of_s3;      // it has an x-amz-request-id
    char region[64]; // where the bucket is, if it says so
    int64_t clock_s; // its Date; 0: none
};

// An answer that is not 2xx. `body` is what was kept of it.
void s3_fault_of_answer(long status, const char *body, size_t size, const struct s3_head *head,
                        struct s3_fault *ret);

// An error inside of an answer that is 200.
void s3_fault_of_error(const struct s3_error *error, struct s3_fault *ret);

// No answer, or half of one. `why` is libcurl's own text, may be "".
void s3_fault_of_curl(CURLcode code, const char *why, struct s3_fault *ret);

// A 2xx whose body is not what S3 answers.
void s3_fault_of_stranger(long status, struct s3_fault *ret);

#endif
