// SPDX-License-Identifier: PostgreSQL
//
// Takes in an answer of S3: the headers that count, and a body no larger than it may be. Only for
// s3_wire.c.

#ifndef MILLRACE_STORE_S3_RECEIVE_H
#define MILLRACE_STORE_S3_RECEIVE_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

#include "store/s3_wire.h"

// What is kept of the body of an error.
#define S3_ERROR_BODY_MAX (64 * 1024)

struct s3_receive {
    CURL *easy;
    struct s3_request *request;
    size_t capacity; // of the request's answer
    bool too_large;  // the transfer was ended for that
    bool no_memory;
};

// Before each attempt: forgets the answer to the one before.
void s3_receive_begin(struct s3_receive *receive, CURL *easy, struct s3_request *request);

// For libcurl, with a struct s3_receive.
size_t s3_receive_header(char *data, size_t one, size_t size, void *arg);
size_t s3_receive_body(char *data, size_t one, size_t size, void *arg);

#endif
